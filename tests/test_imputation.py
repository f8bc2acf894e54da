"""`missing="impute"`: cells drawn from the network, and for numbers the EM algorithm."""

import json
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import qubayes
from candidate_cases import assert_one_line, run
from missing_cases import CHAIN, chain_with_gaps, numbers_with_gaps
from qubayes import fit, judge, learn
from qubayes.candidates import CandidateSearch, identify
from qubayes.data import MissingCells, ReadSettings, read, write
from qubayes.foundation.errors import DataError, SettingError
from qubayes.foundation.progress import Progress
from qubayes.learning import LearnSettings
from qubayes.network import Network, sample_dataset
from qubayes.scores import Score, local_score


def test_observed_cells_are_left_alone_and_all_others_filled():
    dataset = chain_with_gaps()
    learned = learn(dataset, 2)
    table = learned.dataset
    observed = ~dataset.missing.mask
    assert table.missing.treatment == "filled" and len(table.missing.tables) == 5
    for codes in table.missing.tables:
        assert np.array_equal(codes[observed], dataset.codes[observed])
    assert any((codes != table.codes).any() for codes in table.missing.tables)


def test_numbers_that_are_known_are_left_alone():
    dataset = numbers_with_gaps()
    mask = dataset.missing.mask
    imputed = replace(dataset, missing=MissingCells(mask, "impute"))
    table = learn(imputed, 2).dataset
    for v, name in enumerate(dataset.names):
        own = table.numbers[name]
        assert np.array_equal(own[~mask[v]], dataset.numbers[name][~mask[v]])
        assert np.isfinite(own).all()


def test_the_same_seed_gives_the_same_network():
    dataset = chain_with_gaps()
    first, again, other = (learn(dataset, 2, seed=seed) for seed in (1, 1, 2))
    assert first.dataset.checksum == again.dataset.checksum != other.dataset.checksum
    assert first.network.parents == again.network.parents
    assert first.solution.score == again.solution.score


def test_the_network_is_the_best_for_the_mean_score_of_the_tables():
    learned = learn(chain_with_gaps(), 3)
    tables = learned.dataset.completions
    found = learned.candidates
    for child in range(4):
        for parents, score in found.of(child):
            each = [local_score(table, child, parents, Score("bdeu")) for table in tables]
            assert score == pytest.approx(np.mean(each), rel=1e-9)
    assert learned.solution.proved
    assert learned.solution.describe_gap().endswith("for the completed table")
    assert "completed table" in "\n".join(learned.solution.conclusion())
    assert {frozenset(edge) for edge in learned.network.edges} == {
        frozenset(pair) for pair in ("ab", "bc", "cd")
    }
    again = judge(learned.dataset, learned.network, 3)
    assert again.score == pytest.approx(learned.solution.score, rel=1e-9)


def test_completed_tables_give_edges_support():
    learned = learn(chain_with_gaps(), 2, completions=3)
    assert learned.completions.samples == 3
    assert learned.completions.of(0, 1) == 1.0
    assert learned.as_json()["completions"]["samples"] == 3
    assert any("3 completed tables" in line for line in learned.describe())


def test_probabilities_are_the_mean_of_those_of_the_tables():
    learned = learn(chain_with_gaps(), 1, completions=2)
    graph = Network(learned.network.names, learned.network.parents)
    fits = [fit(graph, table) for table in learned.dataset.completions]
    for v in range(4):
        mean = (fits[0].tables[v] + fits[1].tables[v]) / 2
        assert learned.network.tables[v] == pytest.approx(mean)


def test_a_run_folder_keeps_the_completed_tables(tmp_path):
    for dataset in (chain_with_gaps(), numbers_with_gaps()):
        given = replace(dataset, missing=MissingCells(dataset.missing.mask, "impute"))
        folder = tmp_path / dataset.names[0]
        seen: list[Progress] = []
        first = learn(given, 2, run_dir=folder)
        again = learn(given, 2, run_dir=folder, on_progress=seen.append)
        assert not any(each.stage == "missing cells" for each in seen)
        assert again.dataset.checksum == first.dataset.checksum
        assert again.completions.samples == 5
        key = json.loads((folder / "run.json").read_text())["completed.json"]
        learn(given, 2, run_dir=folder, completions=2)
        assert json.loads((folder / "run.json").read_text())["completed.json"] != key


def test_a_time_limit_ends_with_a_network():
    dataset = chain_with_gaps()
    assert learn(dataset, time_limit=0.05).network.n == 4


def test_only_learn_imputes():
    dataset = chain_with_gaps()
    with pytest.raises(SettingError, match="missing='rows' here"):
        identify(dataset, CandidateSearch(1))
    for wrong in ({"impute_rounds": -1}, {"completions": 0}):
        with pytest.raises(SettingError, match="give a whole number from"):
            LearnSettings(**wrong)


def test_numbers_with_states_and_missing_cells_are_refused_with_the_remedy():
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [0.5, 1.5, 2.5, 3.5]})
    with pytest.raises(ValueError, match="missing cells in a table of numbers and states"):
        learn(read(frame, missing="impute"))


def test_ctrl_c_keeps_the_table_and_the_network_so_far(tmp_path):
    pressed = []

    def press(progress):
        if progress.stage == "missing cells" and progress.done >= 2 and not pressed:
            pressed.append(progress)
            signal.raise_signal(signal.SIGINT)

    learned = learn(chain_with_gaps(), 2, run_dir=tmp_path, on_progress=press)
    assert learned.interrupted and learned.network.n == 4
    assert learned.dataset.missing.treatment == "filled"
    assert "completed.json" not in json.loads((tmp_path / "run.json").read_text())


def test_the_command_line_imputes(tmp_path, capsys):
    path = tmp_path / "holes.csv"
    write(chain_with_gaps(100), path)
    words = [
        "learn",
        path,
        "-m",
        2,
        "--missing",
        "impute",
        "--completions",
        2,
        "--impute-rounds",
        1,
    ]
    code, out, err = run(capsys, *words)
    assert code == 0, err
    assert "This is said of the completed table" in out and "2 completed tables" in out
    assert_one_line(*run(capsys, "learn", path)[::2], "--missing impute", "--missing drop")


def test_the_estimator_takes_missing_cells():
    frame = chain_with_gaps(200).to_frame()
    reading = ReadSettings(missing="impute")
    fitted = qubayes.BayesianNetworkEstimator(max_parents=1, reading=reading, completions=2).fit(
        frame
    )
    assert fitted.result_.completions.samples == 2
    complete = sample_dataset(CHAIN, 20, seed=5).to_frame()
    assert np.isfinite(fitted.score(complete))
    with pytest.raises(DataError, match="missing='drop'"):
        fitted.score(frame)
    with pytest.raises(DataError, match="missing="):
        qubayes.BayesianNetworkEstimator().fit(np.array([[0.0, np.nan], [1.0, 2.0]]))


@pytest.mark.parametrize(
    "arguments",
    [{"max_parents": "all"}, {"max_parents": "all", "completions": 2, "score": "bic"}],
)
def test_sets_of_every_size_are_refused_before_cells_are_filled(arguments):
    stages = []
    with pytest.raises(SettingError, match="max_parents='all' is for tables without missing cells"):
        learn(chain_with_gaps(100), **arguments, on_progress=stages.append)
    assert stages == []


def test_sets_of_every_size_are_searched_where_there_is_one_completed_table():
    dataset = numbers_with_gaps()
    numbers = replace(dataset, missing=MissingCells(dataset.missing.mask, "impute"))
    states = chain_with_gaps(100)
    for table in (numbers, states):
        found = learn(table, "all", completions=1, impute_rounds=1)
        assert found.candidates.stamp.every_size == table.n and found.solution.proved
        assert found.dataset.missing.treatment == "filled"
    assert learn(numbers, "all", completions=2, impute_rounds=1).solution.proved


def test_the_estimator_does_what_its_error_for_nan_advises():
    values = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    values[3, 1] = np.nan
    with pytest.raises(DataError, match="missing='impute' draws them from the network"):
        qubayes.BayesianNetworkEstimator(1).fit(values)
    fitted = qubayes.BayesianNetworkEstimator(1, missing="impute", completions=2, impute_rounds=1)
    assert fitted.fit(values).result_.completions.samples == 2
