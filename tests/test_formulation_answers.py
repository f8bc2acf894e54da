"""Answers of samplers and machines: found by label, never by guess; what does not fit is refused in one line."""

import json
import re
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise

import dimod
import numpy as np
import pytest
from typer.testing import CliRunner

from formulation_cases import (
    candidates_of,
    random_scores,
    split_subsets,
    state_of,
    subsets_of,
    whole_subsets,
)
from qubayes import QubayesError
from qubayes.candidates import write_candidates
from qubayes.cli import app
from qubayes.machines import AnnealerSolutions
from qubayes.network import read_network
from qubayes.qubo import (
    Coefficients,
    best_sets,
    companion_of,
    constrain,
    decode,
    encode_sets,
    energy,
    formulate,
    read_answer,
    read_formulation,
    write_formulation,
)
from reference import energies as reference


def problem(seed: int = 0, n: int = 5):
    """(scores, formulation) with u, r and z bits."""
    while True:
        scores = random_scores(np.random.default_rng(seed), n, 3, 0.3)
        candidates = candidates_of(scores)
        formulation = formulate(candidates, split_subsets(np.random.default_rng(seed), candidates))
        if min(formulation.bits.values()) > 0:
            return scores, formulation
        seed += 100


def best_state(formulation) -> np.ndarray:
    order = list(range(formulation.candidates.n))
    return encode_sets(formulation, best_sets(formulation, order), order)


def by_label(formulation, state, *, z: bool = True) -> dict[str, int]:
    pairs = zip(formulation.labels, state.astype(int).tolist(), strict=True)
    return {label: bit for label, bit in pairs if z or label[0] != "z"}


def test_every_form_of_an_answer_gives_the_same_network():
    _, formulation = problem()
    state = best_state(formulation)
    expected, sample = decode(formulation, state), by_label(formulation, state)
    shuffled = dict(np.random.default_rng(0).permutation(list(sample.items())).tolist())
    shuffled = {label: int(bit) for label, bit in shuffled.items()}
    bits, plain = len(state), formulation.bits["u"] + formulation.bits["r"]
    sampleset = dimod.SampleSet.from_samples(
        [sample, sample], "BINARY", energy=[0.0, 0.0], sort_labels=True
    )
    spins = sampleset.change_vartype("SPIN", inplace=False)
    assert list(sampleset.variables) != list(formulation.labels)  # dimod sorted them
    for one in (
        sample,
        shuffled,
        sampleset.first.sample,
        state.astype(int).tolist(),
        state[:plain],
    ):
        found = decode(formulation, one)
        assert (found.parents, found.violations) == (expected.parents, ())
        assert found.energy == pytest.approx(expected.energy) and len(found.bits) == bits
    labels = list(shuffled)
    rows = np.array([[sample[label] for label in labels]] * 3)
    annealed = AnnealerSolutions(
        np.array([state[:plain]] * 2), np.zeros(2), np.zeros(2), np.ones(2, np.int64)
    )
    for several, count in (
        (sampleset, 2),
        (spins, 2),
        ([sample] * 4, 4),
        ((rows, labels), 3),
        (annealed, 2),
    ):
        found = formulation.decode(several)
        assert len(found) == count
        assert all((each.parents, each.feasible) == (expected.parents, True) for each in found)


def test_answers_of_the_constrained_form():
    """States of the constrained form: the energy is its objective, and more than two subsets are a violation."""
    checked = cyclic = 0
    for seed in range(6):
        _, formulation = problem(seed)
        plain = formulation.bits["u"] + formulation.bits["r"]
        form, starts = constrain(formulation), formulation.subsets.families.vertex_start
        random, n = np.random.default_rng(seed), formulation.candidates.n
        orders = [random.permutation(n).tolist() for _ in range(100)]
        networks = [
            encode_sets(formulation, best_sets(formulation, order), order)[:plain]
            for order in orders
        ]
        # bits turned on besides
        more = random.random((100, plain)) < random.choice([0.0, 0.03], size=(100, 1))
        states = np.array(networks) | more
        for state, found in zip(states, decode(formulation, (states, form.labels)), strict=True):
            total = energy(form.score, state) + energy(form.cycles, state)
            assert found.energy == pytest.approx(float(total))
            crowded = max(state[a:b].sum() for a, b in pairwise(starts)) > 2
            assert crowded == any(v.constraint == "subsets" for v in found.violations)
            assert not any(v.constraint == "slack" for v in found.violations)
            if found.feasible:
                checked += 1
                assert found.energy == pytest.approx(-found.score)
                assert reference.is_acyclic([frozenset(p) for p in found.parents])
            cyclic += not found.feasible
    assert checked > 50 and cyclic > 50


def test_two_subsets_that_no_candidate_set_combines_are_feasible_in_the_constrained_form():
    scores = [
        {frozenset(): -9.0, frozenset([1]): -7.0, frozenset([2]): -6.0},
        *({frozenset(): 0.0} for _ in range(2)),
    ]
    candidates = candidates_of(scores)
    formulation = formulate(candidates, whole_subsets(candidates))
    assert formulation.bits["z"] == 0  # so labels cannot tell the forms apart
    answer = AnnealerSolutions(
        np.array([[True, True]]), np.zeros(1), np.zeros(1), np.ones(1, np.int64)
    )
    found = decode(formulation, answer)[0]
    assert found.feasible and found.energy == -found.score == 6.0
    cqm_answer = dimod.SampleSet.from_samples_cqm(
        dict.fromkeys(formulation.labels, 1), formulation.to_cqm()
    )
    assert decode(formulation, cqm_answer)[0].feasible


def bad_answers(formulation):
    state = best_state(formulation)
    good = by_label(formulation, state)
    first, z = formulation.labels[0], next(label for label in formulation.labels if label[0] == "z")
    without_r = {label: bit for label, bit in good.items() if label[0] != "r"}
    spins = {label: 2 * bit - 1 for label, bit in good.items()}
    sampleset = dimod.SampleSet.from_samples(good, "BINARY", 0.0)
    sampleset.info["checksum"] = "0" * 64
    yield good | {"u[x|y]": 1}, r"does not have: 'u\[x\|y\]' \(1 in all\)"
    yield (
        {label.replace("v", "w"): bit for label, bit in good.items()},
        "decode it with the model that was sampled",
    )
    yield without_r, "no value for binary variables"
    yield (
        {label: bit for label, bit in good.items() if label != z}
        if formulation.bits["z"] > 1
        else {},
        "no value",
    )
    yield spins, r"spins, -1 and 1; give bits \(s \+ 1\) / 2"
    yield good | {first: 2}, "= 2 in sample 0; give 0 or 1"
    yield good | {first: 0.5}, "= 0.5 in sample 0; give 0 or 1"
    yield good | {first: "1"}, re.escape(f"{first} = '1'; give the number 0 or 1")
    yield good | {first: 10**30}, "give the number 0 or 1"
    yield good | {first: None}, "= None; give the number 0 or 1"
    yield good | {first: [1]}, "a value that is not a number"
    yield [], "no sample"
    yield ([], list(good)), "no sample"
    yield ([state.tolist(), [1]], list(good)), "rows of different lengths"
    yield dimod.SampleSet.from_samples([], "BINARY", energy=[]), "no sample|no value"
    yield (np.zeros((0, len(good))), list(good)), "no sample"
    yield sampleset, "for the formulation '00000000.*this is"
    yield ([state.astype(int).tolist()], [first, *formulation.labels[:-1]]), "no value|twice"
    yield np.zeros((2, len(state))), "without labels"
    yield state[:-1] if formulation.bits["z"] > 1 else state[:1], "without labels"
    yield [good, without_r], "sample 1 has other labels"
    yield ([state.tolist()], [3, *formulation.labels[1:]]), "without labels|different lengths"


def test_bad_answers_are_refused_in_one_line():
    _, formulation = problem(3)
    for answer, words in bad_answers(formulation):
        with pytest.raises(QubayesError, match=words) as caught:
            decode(formulation, answer)
        assert "\n" not in str(caught.value)


def test_samples_without_bits_are_samples():
    candidates = candidates_of([{frozenset(): -1.0}, {frozenset(): -2.0}])
    formulation = formulate(candidates, whole_subsets(candidates))
    found = decode(formulation, (np.zeros((2, 0)), []))
    assert [one.parents for one in found] == [((), ())] * 2 and found[0].energy == 3.0


def test_a_label_given_twice_is_refused():
    _, formulation = problem()
    labels = [*formulation.labels, formulation.labels[0]]
    with pytest.raises(QubayesError, match="names binary variables twice"):
        decode(formulation, (np.zeros((1, len(labels))), labels))


@pytest.mark.parametrize("kind", ["plain", "paper", "rounded", "scaled", "unions"])
def test_a_formulation_comes_back_from_its_file(tmp_path, kind):
    _, plain = problem(1)
    options = {
        "plain": {},
        "paper": {"order": "scc", "penalty": "paper"},
        "rounded": {"coefficients": Coefficients(digits=2)},
        "scaled": {"coefficients": Coefficients({"order": 1.5, "slack": 2.0})},
        "unions": {"union_scores": lambda v, sets: [-50.0 - v - sum(p) / 7 for p in sets]},
    }[kind]
    formulation = formulate(plain.candidates, plain.subsets, **options)
    write_formulation(formulation, tmp_path / "a.qbf")
    write_formulation(formulation, tmp_path / "b.qbf")
    assert (tmp_path / "a.qbf").read_bytes() == (tmp_path / "b.qbf").read_bytes()
    again = read_formulation(tmp_path / "a.qbf")
    assert again.labels == formulation.labels and again.checksum == formulation.checksum
    assert (again.order_kind, again.penalty_kind) == (
        formulation.order_kind,
        formulation.penalty_kind,
    )
    state = best_state(formulation)
    assert decode(again, state).score == pytest.approx(decode(formulation, state).score)


def test_files_that_are_not_formulations_are_refused(tmp_path):
    _, formulation = problem()
    (tmp_path / "a.qbf").write_text("x")
    with pytest.raises(QubayesError, match="not a formulation"):
        read_formulation(tmp_path / "a.qbf")
    write_formulation(formulation, tmp_path / "b.qbf")
    whole = (tmp_path / "b.qbf").read_bytes()
    (tmp_path / "c.qbf").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(QubayesError, match="not a formulation"):
        read_formulation(tmp_path / "c.qbf")
    with pytest.raises(
        QubayesError, match=r"no file model.bqm.qbf beside it; give the candidate sets"
    ):
        read_formulation(tmp_path / "model.bqm")


def decoded(*arguments: object):
    done = CliRunner().invoke(app, ["decode", *map(str, arguments)])
    assert done.exit_code == 0, done.exception
    return done.stdout


def answer_files(formulation, folder, state):
    """The same state in each form of file."""
    sample, plain = by_label(formulation, state), formulation.bits["u"] + formulation.bits["r"]
    sampleset = dimod.SampleSet.from_samples([sample], "BINARY", energy=[0.0])
    configuration = {str(number): bool(bit) for number, bit in enumerate(state[:plain])}
    contents = {
        "map.json": sample,
        "list.json": [sample],
        "rows.json": {
            "labels": list(sample),
            "samples": [list(sample.values())],
            "checksum": formulation.checksum,
        },
        "set.json": sampleset.to_serializable(),
        "annealer.json": {
            "qubo_solution": {"solutions": [{"configuration": configuration, "energy": 1.0}]}
        },
    }
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content))
    labels = ['"' + label + '"' for label in sample]
    (folder / "rows.csv").write_text(
        ",".join(labels) + "\n" + ",".join(map(str, sample.values())) + "\n"
    )
    table = sampleset.to_pandas_dataframe().assign(
        chain_break_fraction=0.25, is_feasible=True, is_satisfied="[ True]"
    )
    table.to_csv(folder / "table.csv")  # with a column of row numbers that has no name
    table.to_csv(folder / "plain.csv", index=False)
    table.to_json(folder / "table.json", orient="records")
    return [
        folder / name for name in (*contents, "rows.csv", "table.csv", "plain.csv", "table.json")
    ]


@pytest.mark.parametrize("model", ["m.bqm", "m.cqm", "m.lp", "m.qplib", "m.json", "m.coo"])
def test_from_candidates_to_a_model_and_back(tmp_path, model):
    """formulate, a stand-in machine, decode: the network comes back whatever file carries the answer."""
    _, small = problem(2)
    write_candidates(small.candidates, tmp_path / "small.qbc")
    done = CliRunner().invoke(
        app, ["formulate", str(tmp_path / "small.qbc"), "-o", str(tmp_path / model), "--json"]
    )
    assert done.exit_code == 0, done.exception
    formulation = read_formulation(tmp_path / model)
    assert companion_of(tmp_path / model).exists()
    assert json.loads(done.stdout)["bits"]["u"] == formulation.bits["u"]
    state = best_state(formulation)
    expected = decode(formulation, state)
    for number, answer in enumerate(answer_files(formulation, tmp_path, state)):
        network = tmp_path / f"network{number}.json"
        text = decoded(tmp_path / model, answer, "-o", network)
        assert (
            f"best network: score {expected.score:.6f}" in text
            and "samples: 1, without a violation: 1" in text
        )
        assert read_network(network).parents == expected.parents
    facts = json.loads(decoded(tmp_path / model, answer, "--json"))["samples"][0]
    assert facts["score"] == pytest.approx(expected.score) and facts["repaired"] is None
    from_sets = decoded(tmp_path / "small.qbc", answer)
    assert f"score {expected.score:.6f}" in from_sets


def test_violations_and_repair_stand_apart_on_the_command_line(tmp_path):
    _, formulation = problem(2)
    formulation.write(tmp_path / "m.bqm")
    (tmp_path / "ones.json").write_text(json.dumps(dict.fromkeys(formulation.labels, 1)))
    raw = decode(formulation, np.ones(len(formulation.labels)), repair=True)
    text = decoded(tmp_path / "m.bqm", tmp_path / "ones.json")
    assert (
        f"energy {raw.energy:.6f}, score {raw.score:.6f}, violations {len(raw.violations)}" in text
    )
    assert (
        f"repaired to score {raw.repaired.score:.6f}" in text
        and f"sample 0: {raw.violations[0]}" in text
    )
    text = decoded(
        tmp_path / "m.bqm", tmp_path / "ones.json", "--no-repair", "-o", tmp_path / "none.json"
    )
    assert (
        "repaired" not in text
        and "best network" not in text
        and not (tmp_path / "none.json").exists()
    )
    facts = json.loads(decoded(tmp_path / "m.bqm", tmp_path / "ones.json", "--json"))["samples"][0]
    assert facts["violations"] == [str(violation) for violation in raw.violations]
    assert (
        facts["repaired"]["score"]
        == pytest.approx(raw.repaired.score)
        != pytest.approx(facts["score"])
    )


def test_bad_answer_files_are_refused_in_one_line(tmp_path):
    _, formulation = problem(2)
    formulation.write(tmp_path / "m.bqm")
    sample = by_label(formulation, best_state(formulation))
    for name, text, words in [
        ("a.txt", "1", "read from .json or .csv"),
        ("b.json", "{", "b.json: not JSON"),
        ("i.json", "[]", "no sample"),
        ("j.json", json.dumps({"labels": list(sample), "samples": []}), "no sample"),
        (
            "k.json",
            json.dumps({"labels": list(sample), "samples": [list(sample.values()), [1]]}),
            "different lengths",
        ),
        (
            "l.json",
            json.dumps({"labels": 3, "samples": [[1]]}),
            "l.json: give labels as a list of texts",
        ),
        (
            "m.json",
            json.dumps({"labels": ["a", 3], "samples": [[1, 0]]}),
            "m.json: give labels as a list of texts",
        ),
        ("c.json", "[1, 0]", "object of labels and values"),
        ("d.json", json.dumps(sample | {"checksum": "1" * 64}), "for the formulation"),
        (
            "e.json",
            json.dumps({"solutions": [{"configuration": {"0": True}}]}),
            "does not set the bits 0 to",
        ),
        ("f.csv", "a,b\n1\n", "as many values"),
        ("g.csv", "a,b\n1,x\n", "give 0 or 1"),
        ("n.csv", ",energy\n0,-1.5\n", "has no value for binary variables"),
        ("h.json", json.dumps({"type": "SampleSet"}), "damaged SampleSet"),
    ]:
        (tmp_path / name).write_text(text)
        done = CliRunner().invoke(app, ["decode", str(tmp_path / "m.bqm"), str(tmp_path / name)])
        assert isinstance(done.exception, QubayesError) and words in str(done.exception), (
            name,
            done.exception,
        )
        assert "\n" not in str(done.exception)


def test_read_answer_gives_what_decode_takes(tmp_path):
    _, formulation = problem(2)
    state = best_state(formulation)
    for path in answer_files(formulation, tmp_path, state):
        found = decode(formulation, read_answer(path, formulation))
        found = found[0] if isinstance(found, tuple) else found
        np.testing.assert_array_equal(found.bits, state)


def test_subsets_of_size_two_for_reading():
    """A vertex with three pairs and a z bit: rows without z get the z that belongs to their active subsets."""
    pairs = {frozenset(pair): -1.0 - sum(pair) / 9 for pair in combinations(range(1, 4), 2)}
    scores = [{frozenset(): -9.0} | pairs, *({frozenset(): 0.0} for _ in range(3))]
    candidates = candidates_of(scores)
    formulation = formulate(candidates, subsets_of(candidates, [[(1,), (2,), (3,)], [], [], []]))
    assert formulation.bits == {"u": 3, "r": 0, "z": 1, "total": 4}
    for index in range(8):
        found = decode(formulation, state_of(index, 3))
        assert found.bits[3] == (found.bits[:3].sum() >= 2) and found.feasible == (
            found.bits[:3].sum() <= 2
        )


ODD_VALUES = [2**63, 2**70, -(2**70), 10**400, 2.0**70, -1, 0.5, "1", "x", [1], [], {}, [[1]], None]
SAMPLE_SETS = (
    "num_rows",
    "num_variables",
    "variable_labels",
    "sample_data",
    "sample_type",
    "vectors",
    "info",
)
SAMPLE_DATA = ("data", "data_type", "shape", "use_bytes")


@pytest.mark.parametrize("odd", ODD_VALUES, ids=lambda value: repr(value)[:12])
def test_numbers_of_any_size_and_kind_in_an_answer_are_refused(tmp_path, odd):
    _, formulation = problem()
    labels, zeros = list(formulation.labels), [0] * len(formulation.labels)
    plain = formulation.subsets.total + len(formulation.order.pairs)
    good, path = dict(zip(labels, zeros, strict=True)), tmp_path / "answer.json"
    configuration = {str(i): odd if i == 0 else False for i in range(plain)}
    whole = dict.fromkeys(configuration, odd)
    documents = [
        good | {labels[0]: odd},
        dict.fromkeys(labels, odd),
        [good, good | {labels[0]: odd}],
        {"labels": labels, "samples": [zeros, [odd, *zeros[1:]]]},
        {"labels": labels, "samples": [odd]},
        {"labels": odd, "samples": [zeros]},
        {"qubo_solution": {"solutions": [{"configuration": configuration}]}},
        {"qubo_solution": {"solutions": [{"configuration": whole}, {"configuration": whole}]}},
    ]
    for document in documents:
        path.write_text(json.dumps(document))
        with pytest.raises(QubayesError) as caught:
            decode(formulation, read_answer(path, formulation))
        assert "\n" not in str(caught.value)
    samples = dimod.SampleSet.from_samples([good], vartype="BINARY", energy=0).to_serializable()
    changed = [samples | {key: odd} for key in SAMPLE_SETS]
    changed += [
        samples | {"sample_data": samples["sample_data"] | {key: odd}} for key in SAMPLE_DATA
    ]
    for document in changed:
        path.write_text(json.dumps(document))
        with suppress(QubayesError):
            decode(formulation, read_answer(path, formulation))


def test_values_of_other_classes_are_bits_or_refused():
    _, formulation = problem()
    state = best_state(formulation).astype(int).tolist()
    expected = decode(formulation, state).parents
    for kind in (Fraction, Decimal, np.float32, np.int8, np.bool_, bool, complex):
        values = [kind(bit) for bit in state]
        if kind is not complex:
            assert decode(formulation, values).parents == expected
        labelled = dict(zip(formulation.labels, values, strict=True))
        if kind is not complex:
            assert decode(formulation, labelled).parents == expected
    odd: object
    for odd in (
        object(),
        np.ma.masked,
        Decimal("NaN"),
        Fraction(1, 2),
        1j,
        np.datetime64(1, "s"),
        b"1",
        "\ud800",
    ):
        with pytest.raises(QubayesError):
            decode(formulation, [odd, *state[1:]])
        with pytest.raises(QubayesError):
            decode(
                formulation,
                {**dict(zip(formulation.labels, state, strict=True)), formulation.labels[0]: odd},
            )
    masked = np.ma.MaskedArray(state, mask=[True] + [False] * (len(state) - 1))
    with pytest.raises(QubayesError, match="masked"):
        decode(formulation, masked)
    assert decode(formulation, np.ma.MaskedArray(state)).parents == expected


def test_a_field_that_is_too_long_is_refused(tmp_path):
    _, formulation = problem()
    (tmp_path / "x.csv").write_text("a" * 200_000 + ",b\n1,0\n")
    with pytest.raises(QubayesError, match=r"x\.csv: field larger"):
        read_answer(tmp_path / "x.csv", formulation)
