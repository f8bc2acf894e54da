"""From a messy table to P(x | y): mixed types, missing values, a date and an identifier."""

import numpy as np
import pandas as pd

import qubayes as qb

random = np.random.default_rng(0)
age = random.normal(45, 15, 400).round(1)
smoker = random.random(400) < 0.2 + 0.004 * age
cough = np.where(random.random(400) < np.where(smoker, 0.7, 0.15), "yes", "no")
table = pd.DataFrame(
    {
        "patient": [f"P{i:04}" for i in range(400)],
        "visit": pd.to_datetime("2026-03-01")
        + pd.to_timedelta(random.integers(0, 3, 400), unit="D"),
        "age": np.where(random.random(400) < 0.05, np.nan, age),
        "smoker": smoker,
        "cough": cough,
    }
)

learned = qb.learn(table, ignore=["patient"], bins={"age": [30, 50]}, missing="drop", seed=1)
print(learned.dataset)
print(learned.network)
print(learned.network["cough"])
print(learned.network.to_frame("cough"))
print(
    "P(cough | smoker) =",
    round(learned.network.probability(cough="yes", given={"smoker": True}), 3),
)
print("P(cough | aged 25) =", round(learned.network.probability(cough="yes", given={"age": 25}), 3))
print(
    "predicted:",
    learned.network.predict(table.head(5), "cough").tolist(),
    "seen:",
    cough[:5].tolist(),
)
print(qb.sample(learned.network, 3, seed=1))
