"""Bayesian networks in scikit-learn: continuous data, bins and a grid search."""

from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer

from qubayes.estimator import BayesianNetworkEstimator

values = load_wine().data[:, :6]
bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform")
pipeline = make_pipeline(bins, BayesianNetworkEstimator(time_limit=2.0))
search = GridSearchCV(pipeline, {"bayesiannetworkestimator__max_parents": [0, 1, 2]}, cv=3).fit(values)
print(f"held-out rows are likeliest with {search.best_params_}: {search.best_score_:.3f}")
network = search.best_estimator_[-1].network_
print({name: list(parents) for name, parents in network.parent_names().items()})
