"""Prior knowledge: what it allows, and how contradictions are told."""

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qubayes import ConstraintError, QubayesError
from qubayes.candidates import Knowledge, read_knowledge

NAMES = ("Age", "Sex", "Smoker", "Lung")


def test_nothing_known_allows_everything() -> None:
    allowed = Knowledge().resolve(NAMES, 2)
    assert allowed.required == ((), (), (), ())
    assert allowed.allowed == ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    assert allowed.limits == (2, 2, 2, 2)


def test_forbidden_edges_have_a_direction() -> None:
    allowed = Knowledge(forbidden=[("Lung", "Smoker")]).resolve(NAMES, 2)
    assert allowed.allowed[2] == (0, 1)
    assert allowed.allowed[3] == (0, 1, 2)


def test_required_edges_exclude_what_would_close_a_cycle() -> None:
    allowed = Knowledge(required=[("Age", "Smoker"), ("Smoker", "Lung")]).resolve(NAMES, 2)
    assert allowed.required == ((), (), (0,), (2,))
    assert allowed.allowed == ((1,), (0, 2, 3), (1,), (0, 1))


def test_tiers_and_variables_in_none() -> None:
    tiers = [["Age"], ["Smoker", "Lung"]]
    assert Knowledge(tiers=tiers).resolve(NAMES, 3).allowed == (
        (1,),
        (0, 2, 3),
        (0, 1, 3),
        (0, 1, 2),
    )
    strict = Knowledge(tiers=tiers, forbid_within_tiers=True).resolve(NAMES, 3)
    assert strict.allowed == ((1,), (0, 2, 3), (0, 1), (0, 1))


def test_max_parents_lower_the_common_limit_only() -> None:
    assert Knowledge(max_parents={"Age": 0, "Sex": 9}).resolve(NAMES, 2).limits == (0, 2, 2, 2)


@pytest.mark.parametrize(
    ("knowledge", "words"),
    [
        (
            Knowledge(forbidden=[("Age", "Sex")], required=[("Age", "Sex")]),
            "Age -> Sex is both required and forbidden",
        ),
        (
            Knowledge(required=[("Lung", "Age")], tiers=[["Age"], ["Lung"]]),
            "Lung -> Age goes from tier 2 back to tier 1",
        ),
        (
            Knowledge(
                required=[("Lung", "Age")], tiers=[["Age", "Lung"]], forbid_within_tiers=True
            ),
            "Lung -> Age lies inside tier 1",
        ),
        (
            Knowledge(
                required=[("Age", "Sex"), ("Sex", "Lung"), ("Lung", "Age"), ("Age", "Smoker")]
            ),
            r"cycle (Age -> Sex -> Lung -> Age|Sex -> Lung -> Age -> Sex|Lung -> Age -> Sex -> Lung);",
        ),
        (
            Knowledge(required=[(name, "Lung") for name in NAMES[:3]]),
            "'Lung' has 3 required parents .* at most 2",
        ),
        (
            Knowledge(required=[("Age", "Lung")], max_parents={"Lung": 0}),
            "'Lung' has 1 required parents .* at most 0",
        ),
        (
            Knowledge(forbidden=[("Smokr", "Lung")]),
            "forbidden edge Smokr -> Lung names 'Smokr'.*did you mean 'Smoker'",
        ),
        (Knowledge(tiers=[["Age"], ["sex"]]), "tier 2 names 'sex'.*did you mean 'Sex'"),
        (Knowledge(max_parents={"Lungs": 1}), "max_parents names 'Lungs'.*did you mean 'Lung'"),
    ],
)
def test_contradictions_say_which(knowledge: Knowledge, words: str) -> None:
    with pytest.raises(ConstraintError, match=words):
        knowledge.resolve(NAMES, 2)


@pytest.mark.parametrize(
    ("given_knowledge", "words"),
    [
        ({"forbidden": [["Age", "Age"]]}, "edge from 'Age' to itself"),
        ({"forbidden": ["AB"]}, r"\[parent, child\]"),
        ({"forbidden": "AB"}, r"\[parent, child\]"),
        ({"required": [["Age", "Sex", "Lung"]]}, r"\[parent, child\]"),
        ({"required": 3}, r"\[parent, child\]"),
        ({"tiers": ["Age"]}, "list of lists"),
        ({"tiers": [["Age"], ["Age"]]}, "'Age' is in tier 1 and again in tier 2"),
        ({"forbid_within_tiers": 1}, "true and false"),
        ({"max_parents": {"Age": -1}}, "whole numbers"),
        ({"max_parents": {"Age": True}}, "whole numbers"),
        ({"max_parents": [1]}, "object"),
        ({"forbiden": []}, "'forbiden' is given; allowed"),
        ([], "no object is given"),
    ],
)
def test_bad_files_say_what_is_allowed(tmp_path: Path, given_knowledge: object, words: str) -> None:
    path = tmp_path / "knowledge.json"
    path.write_text(json.dumps(given_knowledge))
    with pytest.raises(QubayesError, match=words):
        read_knowledge(path)


def test_file_and_python_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "knowledge.json"
    facts = {
        "forbidden": [["Lung", "Sex"]],
        "required": [["Age", "Lung"]],
        "tiers": [["Age", "Sex"], ["Lung"]],
        "forbid_within_tiers": True,
        "max_parents": {"Smoker": 1},
    }
    path.write_text(json.dumps(facts))
    built = Knowledge(
        [("Lung", "Sex")], [("Age", "Lung")], [("Age", "Sex"), ("Lung",)], True, {"Smoker": 1}
    )
    assert read_knowledge(path) == built
    path.write_text("{}")
    assert read_knowledge(path) == Knowledge()


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, '{"tiers": [], "tiers": []}', "\xff\xfe", "NaN"]
)
def test_files_that_are_not_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "knowledge.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(QubayesError, match=r"knowledge\.json"):
        read_knowledge(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(QubayesError, match="cannot read"):
        read_knowledge(tmp_path / "absent.json")


edges = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda e: e[0] != e[1]),
    max_size=4,
)


@settings(max_examples=3 * settings.default.max_examples)
@given(
    forbidden=edges,
    required=edges,
    placed=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2)),
    within=st.booleans(),
    m=st.integers(0, 3),
)
def test_allowed_is_what_the_definition_says(
    forbidden: list[tuple[str, str]],
    required: list[tuple[str, str]],
    placed: dict[str, int],
    within: bool,
    m: int,
) -> None:
    """Against all 543 DAGs on four vertices: an error iff none obeys, else every parent that one of them has."""
    tiers = [[name for name in NAMES if placed.get(name) == tier] for tier in range(3)]

    def obeys(parents: tuple[frozenset[int], ...]) -> bool:
        present = {(NAMES[p], NAMES[c]) for c in range(4) for p in parents[c]}
        ordered = all(
            placed[p] < placed[c] or (placed[p] == placed[c] and not within)
            for p, c in present
            if p in placed and c in placed
        )
        return set(required) <= present and not set(forbidden) & present and ordered

    legal = [
        graph for graph in _dags() if obeys(graph) and all(len(parents) <= m for parents in graph)
    ]
    knowledge = Knowledge(forbidden, required, tiers, within)
    if not legal:
        with pytest.raises(ConstraintError):
            knowledge.resolve(NAMES, m)
        return
    allowed = knowledge.resolve(NAMES, m)
    for vertex in range(4):
        always = frozenset.intersection(*(graph[vertex] for graph in legal))
        ever = frozenset.union(*(graph[vertex] for graph in legal))
        assert set(allowed.required[vertex]) == always
        further = set(allowed.allowed[vertex]) if len(always) < m else set()
        assert further == ever - always


def _dags() -> list[tuple[frozenset[int], ...]]:
    if not _DAGS:
        choices = [
            [
                frozenset(p for p in range(4) if bits >> p & 1)
                for bits in range(16)
                if not bits >> v & 1
            ]
            for v in range(4)
        ]
        _DAGS.extend(graph for graph in product(*choices) if _acyclic(graph))
        assert len(_DAGS) == 543
    return _DAGS


_DAGS: list[tuple[frozenset[int], ...]] = []


def _acyclic(graph: tuple[frozenset[int], ...]) -> bool:
    left = set(range(4))
    while free := {v for v in left if not graph[v] & left}:
        left -= free
    return not left
