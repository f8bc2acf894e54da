"""The score that stood before annealing, added to trials that did not record it: no trial is run again.

    python -m benchmarks all-zero --data DIR --results docs/results

`sa` and `digital` read the network that repair makes of the all-zero state, and that of the descent
from it, before the first flip. Trials from before `statistics["before_annealing"]` do not say what
they scored. The repaired all-zero state depends on the candidate sets alone (the order bits are
chosen from them), so it is computed here from the sample's rows. The descent is read from the
trace: it is the last point before 4 % of the time limit, since annealing offers its first state
after a twentieth of its time, which is at least 80 % of the limit. Each such record gets a field
`before_annealing` with both and how they were had; the other lines of the file stay as they are."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.store import Record, Store
from benchmarks.paper.tables import ANNEALERS, before_annealing
from benchmarks.paper.trial import Place, Trial, prepared
from qubayes.candidates import Candidates
from qubayes.foundation.files import replacing
from qubayes.qubo import formulate, quick_subsets
from qubayes.qubo.samplers import network_of_state

FIRST_SHARE = 0.04  # of the time limit: annealing offers no state before


def main() -> None:
    """Add the field where it is missing, and print what was added."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with networks/ and fimi/")
    parser.add_argument("--results", type=Path, default=Path("docs/results"))
    parser.add_argument(
        "--cache", type=Path, default=Path("bench-results/candidates"), help="kept candidate sets"
    )
    options = parser.parse_args()
    add_scores(options.results / "trials.jsonl", Place(str(options.data), str(options.cache)))


def add_scores(path: Path, place: Place) -> None:
    """Rewrite the file with the field in all records of annealers that lack it."""
    missing = [
        r
        for name in ANNEALERS
        for r in Store(path).results(approach=name)
        if before_annealing(r) is None
    ]
    samples = {Trial(**record["trial"]).sample: Trial(**record["trial"]) for record in missing}
    scores: dict[str, float] = {}
    for name, trial in samples.items():
        scores[name] = all_zero_score(prepared(place, trial))
        print(f"{name} {scores[name]:.6f}", flush=True)
    added = {
        json.dumps(r): json.dumps(with_score(r, scores[Trial(**r["trial"]).sample]))
        for r in missing
    }
    lines = path.read_text(encoding="utf-8").splitlines()
    with replacing(path) as file:
        file.writelines(f"{added.get(line, line)}\n" for line in lines)


def all_zero_score(candidates: Candidates) -> float:
    """Return the score of the network that is read from the all-zero state of the default QUBO."""
    formulation = formulate(candidates, quick_subsets(candidates))
    zeros = np.zeros(formulation.qubo.bits, np.bool_)
    return float(candidates.scores[network_of_state(formulation, zeros).choice].sum())


def with_score(record: Record, all_zero: float) -> Record:
    """Return the record with its field; raise if its trace does not begin with the all-zero state's network."""
    result = record["result"]
    early = [score for seconds, score in result["trace"] if seconds < FIRST_SHARE * result["limit"]]
    if all_zero > result["empty_score"] and not any(
        abs(score - all_zero) < 1e-6 for score in early
    ):
        raise SystemExit(
            f"the trace of {record['trial']} does not hold the all-zero state's {all_zero}: {early}"
        )
    added: dict[str, Any] = {
        "score": max(all_zero, *early),
        "all_zero": all_zero,
        "how": "all-zero state repaired from the candidate sets, descent from the trace; added after the trial",
    }
    return {**record, "before_annealing": added}


if __name__ == "__main__":
    main()
