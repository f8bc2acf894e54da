"""Two runs at once in one place: the second is refused before it touches anything."""

import pytest

import qubayes
from candidate_cases import dependent_data
from qubayes import QubayesError
from qubayes.learning import RunFolder


def test_a_run_folder_belongs_to_one_run(tmp_path):
    data = dependent_data(4, 100, seed=1)
    with (
        RunFolder(tmp_path / "run"),
        pytest.raises(
            QubayesError,
            match=r"another run works in .*run now; wait for its end, or choose another",
        ),
    ):
        qubayes.learn(data, 2, run_dir=tmp_path / "run", moves=10, solver="anneal")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.lock"]
    first = qubayes.learn(data, 2, run_dir=tmp_path / "run", moves=10, solver="anneal")
    again = qubayes.learn(data, 2, run_dir=tmp_path / "run", moves=10, solver="anneal")
    assert first.solution.parents == again.solution.parents
