"""Bayesian networks in scikit-learn: continuous data, bins and a grid search."""

from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from qubayes.data import ReadSettings
from qubayes.learning.estimator import BayesianNetworkEstimator

values = load_wine().data[:, 5:11]
bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
# a fold may leave a bin empty
declared = ReadSettings(arities={f"x{column}": 3 for column in range(6)})
pipeline = make_pipeline(bins, BayesianNetworkEstimator(reading=declared, time_limit=2.0))
folds = KFold(3, shuffle=True, random_state=0)  # the rows are sorted by kind of wine
search = GridSearchCV(pipeline, {"bayesiannetworkestimator__max_parents": [0, 1, 2]}, cv=folds).fit(
    values
)
print(f"held-out rows are likeliest with {search.best_params_}: {search.best_score_:.3f}")
network = search.best_estimator_[-1].network_
print({name: list(parents) for name, parents in network.parent_names().items()})
