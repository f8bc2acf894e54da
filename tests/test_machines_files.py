"""Model files: exact round trips, other packages' readers on our files, ours on theirs, and damaged files."""

import itertools
import json
import operator
import random
import struct

import dimod
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from dimod.serialization import coo
from hypothesis import given
from hypothesis import strategies as st

from model_cases import read_back, read_constrained, read_request
from qubayes import FormatError, QubayesError
from qubayes.machines import (
    CONSTRAINED_ENDINGS,
    MODEL_ENDINGS,
    AnnealerProblem,
    energy,
    from_bqm,
    inequalities_of,
    qubo_from_couplers,
    read_model,
    read_qubo,
    to_bqm,
    write_model,
    write_qubo,
)
from qubayes.machines import qubo as qubo_module

QUADRATIC = tuple(ending for ending in MODEL_ENDINGS if ending not in (".cqm", ".lp", ".json"))
LABELLED = tuple(ending for ending in MODEL_ENDINGS if ending != ".json")

floats = st.floats(allow_nan=False, allow_infinity=False, width=64)
moderate = st.floats(-(2.0**52), 2.0**52).filter(lambda x: x == 0 or abs(x) > 1e-300)


@st.composite
def qubos(draw, numbers=moderate):
    bits = draw(st.integers(0, 6))
    h = draw(st.lists(numbers, min_size=bits, max_size=bits))
    pairs = (
        draw(st.lists(st.sampled_from(list(itertools.combinations(range(bits), 2))), unique=True))
        if bits > 1
        else []
    )
    weights = draw(st.lists(numbers, min_size=len(pairs), max_size=len(pairs)))
    rows, cols = np.array([p[0] for p in pairs], int), np.array([p[1] for p in pairs], int)
    return qubo_from_couplers(h, rows, cols, weights, draw(numbers))


def identical(one, other):
    """Bit for bit, except that the sign of a zero does not count."""
    return all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
        for a, b in zip(one, other, strict=True)
    )


def random_qubo(bits, couplers, seed=0):
    rng = np.random.default_rng(seed)
    h = np.where(rng.random(bits) < 0.7, rng.normal(size=bits), 0.0)
    i, j = rng.integers(0, bits, (2, couplers))
    weights = rng.normal(size=couplers) * 10.0 ** rng.integers(-12, 13, couplers)
    return qubo_from_couplers(h, i, j, weights, -1234.5678)


@pytest.fixture
def qubo():
    return random_qubo(30, 200)


@pytest.fixture
def labels():
    return [f'u[vertex {i}|a b,ü,"x"\n\\ # % vartype=SPIN]' for i in range(30)]


@pytest.mark.parametrize("ending", MODEL_ENDINGS)
@given(model=qubos())
def test_every_float_comes_back(ending, model, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / f"model{ending}"
    write_qubo(model, None, path)
    back, _ = read_back(path)
    assert identical(model, back)


@pytest.mark.parametrize("ending", QUADRATIC)
@given(model=qubos(numbers=floats))
def test_extreme_floats_come_back_or_are_refused(ending, model, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / f"model{ending}"
    try:
        write_qubo(model, None, path)
    except FormatError:
        assert ending in (".mtx", ".qplib")
        with np.errstate(over="ignore"):
            factor = 0.5 if ending == ".mtx" else 2.0
            assert not np.array_equal(model.weights * factor / factor, model.weights)
        return
    assert identical(model, read_back(path)[0])


@pytest.mark.parametrize(("ending", "weight"), [(".mtx", 5e-324), (".qplib", 1.7e308)])
def test_weights_that_are_lost_by_halves_or_doubles_are_refused(ending, weight, tmp_path):
    model = qubo_from_couplers(np.zeros(2), np.array([0]), np.array([1]), np.array([weight]))
    with pytest.raises(FormatError, match=r"a coupler is too (small|large) for a float; scale"):
        write_qubo(model, None, tmp_path / f"m{ending}")


@pytest.mark.parametrize("where", ["objective", "row", "linear term of a row"])
def test_coefficients_of_a_constrained_model_that_qplib_cannot_hold(where, tmp_path):
    """The format holds twice the coefficient of a product."""
    x, y = dimod.Binaries(["x", "y"])
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective((1.7e308 if where == "objective" else 1.0) * x * y + x)
    weight = {"row": 1.7e308, "linear term of a row": 1.0}.get(where, 1.0)
    model.add_constraint(
        weight * x * y + (np.inf if where.startswith("linear") else 1.0) * x <= 1, label="row"
    )
    with pytest.raises(FormatError, match="a coefficient, or twice one, is too large for a float"):
        write_model(model, tmp_path / "m.qplib")


@pytest.mark.parametrize("ending", LABELLED)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_labels_and_offset_come_back(ending, packed, qubo, labels, tmp_path):
    path = tmp_path / f"model{ending}{packed}"
    if ending == ".npz" and packed:
        with pytest.raises(FormatError, match="archive"):
            write_qubo(qubo, labels, path)
        return
    write_qubo(qubo, labels, path)
    back, names = read_back(path)
    assert identical(qubo, back)
    assert list(names) == labels


@pytest.mark.parametrize("ending", LABELLED)
def test_labels_that_are_plain_names_or_numbers_as_text(ending, tmp_path):
    qubo = qubo_from_couplers([1.0, 2.0, 0.0], [0], [2], [3.0])
    for labels in (
        ["a", "b", "c"],
        ["2", "0", "1"],
        ["", " ", "\0"],
        ["end", "st", "free"],
        ["info", "nan", ";a"],
    ):
        write_qubo(qubo, labels, tmp_path / f"m{ending}")
        assert read_back(tmp_path / f"m{ending}")[1] == tuple(labels)


@pytest.mark.parametrize("ending", LABELLED)
def test_models_of_dimod_come_back_equal(ending, tmp_path):
    for variables in ([0, 1, 2], ["x", "y z", "2"]):
        a, b, c = variables
        bqm = dimod.BinaryQuadraticModel(
            {a: 1.5, b: 0, c: 1 / 3}, {(a, b): 0.1, (b, c): -7e-12}, 2.5, "BINARY"
        )
        write_model(bqm, tmp_path / f"m{ending}")
        qubo, labels = read_back(tmp_path / f"m{ending}")
        assert identical(qubo, from_bqm(bqm)[0])
        numbered = {".lp": ("x0", "x1", "x2"), ".qplib": ("x1", "x2", "x3")}
        expected = tuple(map(str, variables))
        assert labels == (numbered.get(ending, expected) if variables[0] == 0 else expected)
    write_model(bqm, tmp_path / "m.bqm")
    assert read_model(tmp_path / "m.bqm") == bqm


def test_bqm_keeps_all_that_dimod_knows(tmp_path):
    bqm = dimod.BinaryQuadraticModel(
        {("a", 1): 1.5, 3: 0, "x": 2}, {(("a", 1), 3): 0.0, (3, "x"): 4}, 1.0, "SPIN"
    )
    single = dimod.BinaryQuadraticModel(bqm, dtype=np.float32)
    for model in (bqm, single, dimod.BinaryQuadraticModel("BINARY")):
        write_model(model, tmp_path / "m.bqm")
        back = read_model(tmp_path / "m.bqm")
        assert back == model
        assert (back.dtype, back.vartype, list(back.variables)) == (
            model.dtype,
            model.vartype,
            list(model.variables),
        )


@pytest.mark.parametrize("version", [1, 2])
def test_bqm_of_both_versions_is_read(version, tmp_path):
    bqm = dimod.BinaryQuadraticModel({"a": 1.5, "b": 2}, {("a", "b"): 0.1}, 1.0, "BINARY")
    (tmp_path / "m.bqm").write_bytes(bqm.to_file(version=version).read())
    assert read_model(tmp_path / "m.bqm") == bqm


def test_our_bqm_is_dimods_byte_for_byte(qubo, labels, tmp_path):
    for names in (labels, None):
        write_qubo(qubo, names, tmp_path / "m.bqm")
        assert (tmp_path / "m.bqm").read_bytes() == to_bqm(qubo, names).to_file().read()


def test_dimod_reads_our_coo(qubo, labels, tmp_path):
    write_qubo(qubo, labels, tmp_path / "m.coo")
    with (tmp_path / "m.coo").open() as file:
        model = coo.load(file)
    expected = to_bqm(qubo)
    expected.offset = 0.0
    assert model == expected


def test_scipy_reads_our_matrices(qubo, labels, tmp_path):
    states = np.random.default_rng(1).integers(0, 2, (20, qubo.bits))
    write_qubo(qubo, labels, tmp_path / "m.mtx")
    write_qubo(qubo, labels, tmp_path / "m.npz")
    symmetric = scipy.io.mmread(tmp_path / "m.mtx")
    upper = scipy.sparse.load_npz(tmp_path / "m.npz")
    assert (upper != scipy.sparse.triu(upper)).nnz == 0
    for matrix in (symmetric, upper):
        dense = matrix.toarray()
        expected = np.einsum("si,ij,sj->s", states, dense, states) + qubo.offset
        assert energy(qubo, states) == pytest.approx(expected, rel=1e-12)


def test_qbsolv_layout(tmp_path):
    write_qubo(
        qubo_from_couplers([1.0, 0.0, -2.5], [2], [0], [0.1], 7.0), None, tmp_path / "m.qubo"
    )
    expected = [
        "c qubayes offset 7.0",
        "p qubo 0 3 3 1",
        "0 0 1.0",
        "1 1 0.0",
        "2 2 -2.5",
        "0 2 0.1",
    ]
    assert (tmp_path / "m.qubo").read_text().splitlines() == expected


@pytest.mark.parametrize("ending", sorted({*MODEL_ENDINGS} - {".bqm"}))
def test_a_format_that_is_only_written_says_what_reads_it(ending, tmp_path):
    path = tmp_path / f"m{ending}"
    write_qubo(random_qubo(3, 2), None, path)
    readers = {
        ".npz": "read it with scipy.sparse.load_npz, or ",
        ".cqm": "read it with dimod.ConstrainedQuadraticModel.from_file, or ",
        ".coo": "read it with dimod.serialization.coo.load, or ",
        ".mtx": "read it with scipy.io.mmread, or ",
        ".lp": "read it with dimod.lp.load, or ",
        ".qplib": "read it with ommx.v1.Instance.load_qplib, or ",
    }
    for read in (read_model, read_qubo):
        with pytest.raises(FormatError) as caught:
            read(path)
        remedy = f"{readers.get(ending, '')}write a .bqm file"
        assert str(caught.value) == f"{path}: {ending} files are written, not read; {remedy}"


def constrained_model(labels=("x 1", "y", "n")):
    x, y = dimod.Binaries(labels[:2])
    n = dimod.Integer(labels[2], lower_bound=-3, upper_bound=8)
    r = dimod.Real("r", lower_bound=-1.5, upper_bound=2.5)
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(0.1 * x * y - 3 * n + n * n / 3 + r + 2.5)
    model.add_constraint(x + y <= 1, label="at most one")
    model.add_constraint(x * n - 2 * y >= -1, label="c0")
    model.add_constraint(x - n == 0.25, label="equal")
    return model


@pytest.mark.parametrize("ending", [".cqm", ".lp", ".qplib"])
def test_constrained_models_come_back(ending, tmp_path):
    for labels in (("x 1", "y", "n"), ("x1", "y", "n")):
        model = constrained_model(labels)
        write_model(model, tmp_path / f"m{ending}")
        back = read_constrained(tmp_path / f"m{ending}")
        assert back.is_equal(model)
        assert list(back.variables) == list(model.variables)


@pytest.mark.parametrize("ending", CONSTRAINED_ENDINGS)
def test_every_name_of_a_constraint_comes_back(ending, tmp_path):
    model = dimod.ConstrainedQuadraticModel()
    names = ["a/b", "a%2Fb", "100 %", "edge[x->y z]", "ü", '"', "c1", "#"]
    for name in names:
        model.add_constraint(dimod.Binary("x") <= 1, label=name)
    write_model(model, tmp_path / f"m{ending}")
    found = set(read_constrained(tmp_path / f"m{ending}").constraints)
    assert found == set(names) == set(model.constraints)
    if ending == ".cqm":
        with (tmp_path / "m.cqm").open("rb") as file:
            assert len(dimod.ConstrainedQuadraticModel.from_file(file).constraints) == len(names)


def test_dimod_reads_our_lp(tmp_path):
    x, y, z = dimod.Binaries(["x", "y", "z"])
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(0.1 * x * y - 3 * z + 2.5 + y * z)
    model.add_constraint(x + y + z <= 2, label="c0")
    write_model(model, tmp_path / "ours.lp")
    assert dimod.lp.load(str(tmp_path / "ours.lp")).is_equal(model)


def test_dimod_reads_our_streamed_lp(qubo, labels, tmp_path):
    write_qubo(qubo, labels, tmp_path / "m.lp")
    model = dimod.lp.load(str(tmp_path / "m.lp"))
    assert model.objective.offset == qubo.offset
    expected = to_bqm(qubo, [f"x{i}" for i in range(qubo.bits)])
    assert {v: model.objective.get_linear(v) for v in model.variables} == dict(expected.linear)
    assert all(model.objective.get_quadratic(u, v) == w for u, v, w in expected.iter_quadratic())


def qplib_pair(tmp_path):
    """A constrained model of bits with names as ours, and its file."""
    labels = ["u[Smoker|Age,Sex]", "u[Smoker|Age]", "u[Smoker|Sex]", "r[Age<Sex]"]
    a, b, c, r = dimod.Binaries(labels)
    model = dimod.ConstrainedQuadraticModel()
    model.set_objective(0.1 * a * b - 3 * c + 7 * b * r - 2.5 * a + 1e-7 * r + 11)
    model.add_constraint(a + b + c <= 2, label="at-most-two[Smoker]")
    model.add_constraint(a + r >= 1, label="order[1]")
    model.add_constraint(b - r == 0, label="equal[2]")
    write_model(model, tmp_path / "m.qplib")
    return model, labels


def states_of(labels):
    return [
        dict(zip(labels, bits, strict=True))
        for bits in itertools.product([0, 1], repeat=len(labels))
    ]


def test_ommx_reads_our_qplib(tmp_path):
    ommx = pytest.importorskip("ommx.v1")
    model, labels = qplib_pair(tmp_path)
    instance = ommx.Instance.load_qplib(str(tmp_path / "m.qplib"))
    assert [variable.name for variable in instance.decision_variables] == labels
    sides = {"at-most-two[Smoker] [c_u]", "order[1] [c_l]", "equal[2] [c_u]", "equal[2] [c_l]"}
    assert {row.name for row in instance.constraints} == sides
    for state in states_of(labels):
        found = instance.evaluate(dict(enumerate(state.values())))
        assert found.objective == pytest.approx(model.objective.energy(state), rel=1e-12)
        assert found.feasible == model.check_feasible(state)


def value_of(polynomial, values):
    """The value of a polynomial of Amplify over bits."""
    return sum(
        weight for bits, weight in polynomial.as_dict().items() if all(values[bit] for bit in bits)
    )


def test_amplify_reads_our_qplib(tmp_path):
    amplify = pytest.importorskip("amplify")
    model, labels = qplib_pair(tmp_path)
    loaded, generator = amplify.load_qplib(tmp_path / "m.qplib")
    assert [variable.name for variable in generator.variables] == labels
    assert [row.label for row in loaded.constraints] == [
        "at-most-two[Smoker]",
        "order[1]",
        "equal[2]",
    ]
    senses = {"LE": operator.le, "GE": operator.ge, "EQ": operator.eq}
    for state in states_of(labels):
        values = list(state.values())
        assert value_of(loaded.objective, values) == pytest.approx(
            model.objective.energy(state), rel=1e-12
        )
        rows = (row.conditional for row in loaded.constraints)
        kept = [senses[sense](value_of(left, values), right) for left, sense, right in rows]
        assert all(kept) == model.check_feasible(state)


def annealer_problem():
    objective = qubo_from_couplers([1.5, 0.0, -2.0, 0.0], [0], [2], [1 / 3], 7.0)
    penalty = qubo_from_couplers([0.0, 0.5, 0.0, 0.0], [1], [3], [2.0], 1.0)
    rows = inequalities_of([([0, 1, 2], [1.0, 1.0, 1.0], -2.0, 1), ([3], [0.1], 0.0, 10**9)])
    return AnnealerProblem(objective, penalty, rows, ("0", "1", "2", "3"))


def test_problems_of_the_digital_annealer_come_back(tmp_path):
    problem = annealer_problem()
    write_model(problem, tmp_path / "m.json")
    parts = problem.objective, problem.penalty, problem.inequalities
    for one, other in zip(parts, read_request(tmp_path / "m.json"), strict=True):
        assert identical(one, other)


@pytest.mark.parametrize("ending", MODEL_ENDINGS)
def test_large_models_are_written_in_chunks(ending, tmp_path, monkeypatch):
    """Chunks far smaller than the model: rows that lie across a border, empty rows, a dense row."""
    monkeypatch.setattr(qubo_module, "COUPLERS_AT_ONCE", 7)
    n = 40
    rows = np.concatenate([np.zeros(n - 1, int), [3, 3, 20], np.arange(25, 35)])
    cols = np.concatenate([np.arange(1, n), [5, 9, 38], np.arange(26, 36)])
    qubo = qubo_from_couplers(np.arange(n) / 3, rows, cols, np.arange(1, len(rows) + 1) / 7, 0.1)
    write_qubo(qubo, None, tmp_path / f"m{ending}")
    assert identical(qubo, read_back(tmp_path / f"m{ending}")[0])


@pytest.mark.parametrize("ending", MODEL_ENDINGS)
def test_same_model_same_bytes(ending, qubo, labels, tmp_path):
    if ending == ".cqm":
        pytest.skip("dimod stamps its archive with the time")
    for name in ("one", "two"):
        write_qubo(qubo, labels, tmp_path / f"{name}{ending}")
    assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.txt", "", "ends in none of"),
        ("m.bqm", "DIMOD", "DIMODBQM"),
        ("m.bqm", "DIMODBQM", "ends inside its header"),
        ("m.bqm", "DIMODBQM\3\0", "version 3.0"),
    ],
)
def test_bad_files_are_refused_in_one_line(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=message):
        read_model(tmp_path / name)


def test_what_a_format_cannot_hold_is_refused(tmp_path):
    tuples = dimod.BinaryQuadraticModel({("a", 1): 1.0}, {}, 0.0, "BINARY")
    with pytest.raises(FormatError, match="relabel"):
        write_model(tuples, tmp_path / "m.qubo")
    with pytest.raises(FormatError, match="constrained"):
        write_model(constrained_model(), tmp_path / "m.bqm")
    with pytest.raises(FormatError, match=r"\.json"):
        write_model(annealer_problem(), tmp_path / "m.bqm")
    with pytest.raises(FormatError, match="can be written"):
        write_model({"a": 1}, tmp_path / "m.bqm")
    with pytest.raises(FormatError, match="distinct"):
        write_qubo(random_qubo(3, 2), ["a", "b", "b"], tmp_path / "m.bqm")
    spin = dimod.ConstrainedQuadraticModel()
    spin.set_objective(dimod.Spin("s") * 1.0)
    for ending in (".lp", ".qplib"):
        with pytest.raises(FormatError, match="spins"):
            write_model(spin, tmp_path / f"s{ending}")
    assert list(tmp_path.iterdir()) == []


def test_writers_return_the_size_of_what_they_wrote(tmp_path):
    qubo = qubo_from_couplers([0.0, -0.5, 3.0], [0, 1], [1, 2], [0.25, -8.0], 100.0)
    bqm = to_bqm(qubo, ["a", "b", "c"])
    for ending in MODEL_ENDINGS:
        assert write_qubo(qubo, ["a", "b", "c"], tmp_path / f"m{ending}") == (3, 2, 0, (0.25, 8.0))
        assert write_model(bqm, tmp_path / f"m{ending}") == (3, 2, 0, (0.25, 8.0))
    assert write_qubo(qubo_from_couplers([0.0], [], [], []), None, tmp_path / "m.bqm") == (
        1,
        0,
        0,
        (0.0, 0.0),
    )
    for ending in CONSTRAINED_ENDINGS:
        size = write_model(constrained_model(), tmp_path / f"m{ending}")
        assert size == (4, 2, 3, (0.1, 3.0))
        assert len(read_constrained(tmp_path / f"m{ending}").constraints) == size.constraints
    assert write_model(annealer_problem(), tmp_path / "m.json") == (4, 2, 2, (1 / 3, 2.0))


def test_missing_and_unwritable_places(tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read_model(tmp_path / "none.bqm")
    with pytest.raises(FormatError, match="cannot write"):
        write_qubo(random_qubo(3, 2), None, tmp_path / "none" / "m.bqm")


def bqm_with(**changes):
    """A .bqm file whose header lies."""
    whole = to_bqm(random_qubo(4, 5)).to_file().read()
    (length,) = struct.unpack("<I", whole[10:14])
    header = json.loads(whole[14 : 14 + length]) | changes
    text = json.dumps(header).encode().ljust(length)
    return whole[:10] + struct.pack("<I", len(text)) + text + whole[14 + length :]


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [10**9, 0]},
        {"shape": [4, 10**6]},
        {"shape": [5_000_000, 2]},
        {"shape": "x"},
        {"shape": [True, 0]},
        {"dtype": "object"},
        {"itype": "float64"},
        {"vartype": "INTEGER"},
        {"variables": True},
    ],
)
def test_headers_that_lie_are_refused(changes, tmp_path):
    (tmp_path / "m.bqm").write_bytes(bqm_with(**changes))
    with pytest.raises(FormatError):
        read_model(tmp_path / "m.bqm")


def test_bits_of_a_file_up_to_the_limit(tmp_path):
    for bits, message in ((10_000_000, "ends inside"), (10_000_001, "10000001 bits; 0 to 10,000")):
        (tmp_path / "m.bqm").write_bytes(bqm_with(shape=[bits, 0]))
        with pytest.raises(FormatError, match=message):
            read_model(tmp_path / "m.bqm")


def test_the_triangles_of_a_bqm_mirror_each_other(tmp_path):
    """Whichever coupler of one triangle is changed: its weight, or the bit that it names."""
    qubo = qubo_from_couplers([0.5, 1.0, 2.0, -1.0], [0, 0, 1], [1, 2, 3], [1.5, -2.0, 3.0])
    write_qubo(qubo, None, tmp_path / "m.bqm")
    whole = (tmp_path / "m.bqm").read_bytes()
    record = np.dtype([("i", "<i4"), ("w", "<f8")])
    begin = len(whole) - 2 * qubo.couplers * record.itemsize
    edges = np.frombuffer(whole[begin:], record)
    assert sorted(edges["w"].tolist()) == [-2.0, -2.0, 1.5, 1.5, 3.0, 3.0]
    for place, (bit, _) in enumerate(edges.tolist()):
        for key, value in [("w", 7.0), *(("i", other) for other in range(4) if other != bit)]:
            changed = edges.copy()
            changed[key][place] = value
            (tmp_path / "m.bqm").write_bytes(whole[:begin] + changed.tobytes())
            with pytest.raises(FormatError, match="do not mirror each other"):
                read_model(tmp_path / "m.bqm")


def mutated(data, rng):
    """The bytes with a few of them changed, removed, doubled or swapped for tokens that readers know."""
    tokens = [
        b"[",
        b"]",
        b'"',
        b"{",
        b"-",
        b"1e999",
        b"nan",
        b"\n",
        b"\0",
        b"99999999999",
        b"c ",
        b"qubayes label ",
        b":",
    ]
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        choice = rng.randrange(5)
        if choice == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif choice == 1:
            del data[at : at + rng.randint(1, 30)]
        elif choice == 2:
            start = rng.randrange(len(data) + 1)
            data[at:at] = data[start : start + 20]
        elif choice == 3:
            data[at:at] = rng.choice(tokens)
        else:
            del data[at:]
    return bytes(data)


def test_damaged_files_only_raise_our_error(tmp_path):
    rng = random.Random("damage .bqm")
    original = tmp_path / "m.bqm"
    write_qubo(random_qubo(6, 10), [f"u[{i}|a]" for i in range(6)], original)
    data = original.read_bytes()
    damaged = tmp_path / "damaged.bqm"
    refused = 0
    for _ in range(400):
        damaged.write_bytes(mutated(data, rng))
        for read in (read_model, read_qubo):
            try:
                read(damaged)
            except QubayesError as error:
                assert "\n" not in str(error)[:50]
                refused += 1
    assert refused > 100


def test_labels_that_are_nested_too_deeply_are_refused(tmp_path):
    path = tmp_path / "m.bqm"
    whole = to_bqm(random_qubo(1, 0), ["x"]).to_file().read()
    refused = []
    for depth in (3, 600, 900, 5000):
        labels = b"[" * depth + b"1" + b"]" * depth
        section = b"VARS" + struct.pack("<I", len(labels)) + labels
        path.write_bytes(whole[: whole.index(b"VARS")] + section)
        try:
            assert read_model(path).num_variables == 1
        except FormatError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            refused.append(depth)
    assert refused[-1] == 5000 and refused[0] > 3
