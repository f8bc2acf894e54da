"""Readers of model files: dimod, scipy and json where they read the format, else word by word."""

import gzip
import io
import itertools
import json
import re
from pathlib import Path

import dimod
import numpy as np
import scipy.sparse

from qubayes.machines import from_bqm, inequalities_of, qubo_from_couplers, read_model, read_qubo


def kind_of(path):
    return Path(path).name.removesuffix(".gz").rpartition(".")[2]


def content_of(path):
    data = Path(path).read_bytes()
    return gzip.decompress(data) if Path(path).suffix == ".gz" else data


def labels_of(comments, bits):
    """The labels in comments `qubayes label PLACE TEXT`, else 0..n-1."""
    labels = {int(place): json.loads(text) for place, text in comments}
    return tuple(labels[bit] if labels else str(bit) for bit in range(bits))


def lines_of_terms(path):
    """(QUBO, labels) of COO, qbsolv and MatrixMarket."""
    kind = kind_of(path)
    lines = content_of(path).decode("ascii").splitlines()
    comments = [line for line in lines if line[0] in "#c%"]
    (offset,) = [float(line.split()[3]) for line in comments if " qubayes offset " in line]
    labels = [line.split(maxsplit=4)[3:] for line in comments if " qubayes label " in line]
    terms = [line.split() for line in lines if line[0] not in "#c%"]
    sizes = {"coo": None, "qubo": 3, "mtx": 0}[kind]
    bits = len({row[0] for row in terms if row[0] == row[1]})
    if sizes is not None:
        bits = int(terms.pop(0)[sizes])
    first, factor = (1, 2.0) if kind == "mtx" else (0, 1.0)
    h, couplers = np.zeros(bits), []
    for i, j, weight in terms:
        if i == j:
            h[int(i) - first] = float(weight)
        else:
            couplers.append((int(i) - first, int(j) - first, factor * float(weight)))
    return qubo_of(h, couplers, offset), labels_of(labels, bits)


def qubo_of(h, couplers, offset):
    i, j, w = zip(*couplers, strict=True) if couplers else ((), (), ())
    return qubo_from_couplers(h, np.array(i, int), np.array(j, int), np.array(w, float), offset)


def read_npz(path):
    """(QUBO, labels): the upper triangular matrix of scipy, offset and labels beside it."""
    matrix = scipy.sparse.load_npz(path).tocoo()
    with np.load(path) as arrays:
        offset = float(arrays["offset"])
        labels = json.loads(arrays["labels"].tobytes()) if "labels" in arrays else None
    triples = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    h, couplers = np.zeros(matrix.shape[0]), []
    for i, j, weight in triples:
        if i == j:
            h[i] = weight
        else:
            couplers.append((i, j, weight))
    names = map(str, range(len(h))) if labels is None else labels
    return qubo_of(h, couplers, offset), tuple(names)


def read_cqm(path):
    model = dimod.ConstrainedQuadraticModel.from_file(io.BytesIO(content_of(path)))
    names = [name for name in model.constraints if isinstance(name, str)]
    model.relabel_constraints({x: x.replace("%2F", "/").replace("%25", "%") for x in names})
    return model


def read_lp(path):
    """The model as dimod reads it, with the labels of the comments."""
    content = content_of(path)
    model = dimod.lp.load(io.BytesIO(content))
    labels = {"label": {}, "constraint": {}}
    for kind, name, text in re.findall(r"\\ qubayes (\w+) (\w+) (.*)", content.decode()):
        labels[kind][name] = json.loads(text)
    model.relabel_variables(labels["label"])
    model.relabel_constraints(labels["constraint"])
    return model


class _Qplib:
    """The numbers of a file in their order."""

    def __init__(self, path):
        self.lines = iter(content_of(path).decode("ascii").splitlines())

    def word(self):
        return next(self.lines).split()[0]

    def entries(self, indices):
        rows = [line.split() for line in itertools.islice(self.lines, int(self.word()))]
        return [(*(int(x) - 1 for x in row[:indices]), float(row[indices])) for row in rows]

    def vector(self, length):
        values = [float(self.word())] * length
        for place, value in self.entries(1):
            values[place] = value
        return values

    def names(self):
        found = []
        for line in itertools.islice(self.lines, int(self.word())):
            name, _, label = line.partition(" ")[2].partition(" # qubayes label ")
            found.append(json.loads(label) if label else name)
        return found


def read_qplib(path):
    """The constrained model of a file that we wrote: each listed entry of a product counts half."""
    file = _Qplib(path)
    assert file.word() == "qubayes"
    kind, sense, n = file.word(), file.word(), int(file.word())
    assert kind[0] == "Q" and sense == "minimize"
    m = int(file.word()) if kind[2] != "N" else 0
    quadratic = file.entries(2)
    linear, offset = file.vector(n), float(file.word())
    row_quadratic = file.entries(3) if kind[2] == "Q" else []
    row_linear = file.entries(2) if m else []
    infinity = float(file.word())
    low, high = (file.vector(m), file.vector(m)) if m else ([], [])
    bounds = [[0.0] * n, [1.0] * n] if kind[1] == "B" else [file.vector(n), file.vector(n)]
    kinds = file.vector(n) if kind[1] == "G" else [{"B": 2, "C": 0, "I": 1}[kind[1]]] * n
    for length in (n, m, n) if m else (n, n):
        assert not any(file.vector(length))  # starting points
    names = file.names() or [f"x{k + 1}" for k in range(n)]
    rows = file.names()
    assert next(file.lines, None) is None
    model = dimod.ConstrainedQuadraticModel()
    for name, number, least, most in zip(names, kinds, *bounds, strict=True):
        vartype = {0: "REAL", 1: "INTEGER", 2: "BINARY"}[number]
        limits = {} if number == 2 else {"lower_bound": least, "upper_bound": most}
        model.add_variable(vartype, name, **limits)
    products = [(names[i], names[j], weight / 2) for i, j, weight in quadratic]
    model.set_objective([*products, *zip(names, linear, strict=True), (offset,)])
    for row, name in enumerate(rows):
        terms = [(names[i], names[j], w / 2) for k, i, j, w in row_quadratic if k == row]
        terms += [(names[i], weight) for k, i, weight in row_linear if k == row]
        sense = "==" if low[row] == high[row] else ">=" if low[row] > -infinity else "<="
        side = high[row] if sense == "<=" else low[row]
        model.add_constraint_from_iterable(terms, sense, side, label=name)
    return model


READERS = {"cqm": read_cqm, "lp": read_lp, "qplib": read_qplib}


def read_constrained(path):
    """The model of a file, quadratic from .bqm."""
    kind = kind_of(path)
    return read_model(path) if kind == "bqm" else READERS[kind](path)


def _sum_of(terms, bits):
    """The QUBO of terms of a request."""
    h, couplers, offset = np.zeros(bits), [], 0.0
    for term in terms:
        if len(term["p"]) == 2:
            couplers.append((*term["p"], term["c"]))
        elif term["p"]:
            h[term["p"][0]] += term["c"]
        else:
            offset += term["c"]
    return qubo_of(h, couplers, offset)


def read_request(path):
    """(objective, penalty, inequalities) of a request of the Digital Annealer."""
    request = json.loads(content_of(path))
    objective = request["binary_polynomial"]["terms"]
    penalty = request.get("penalty_binary_polynomial", {"terms": []})["terms"]
    bits = 1 + max((max(term["p"], default=-1) for term in objective), default=-1)
    rows = []
    for row in request["inequalities"]:
        *linear, constant = row["terms"]
        assert constant["p"] == [] and all(len(term["p"]) == 1 for term in linear)
        indices, weights = [term["p"][0] for term in linear], [term["c"] for term in linear]
        rows.append((indices, weights, constant["c"], row["lambda"]))
    return _sum_of(objective, bits), _sum_of(penalty, bits), inequalities_of(rows)


def read_back(path):
    """(QUBO, labels) of a file of any format."""
    kind = kind_of(path)
    if kind == "bqm":
        return read_qubo(path)
    if kind in ("coo", "qubo", "mtx"):
        return lines_of_terms(path)
    if kind == "npz":
        return read_npz(path)
    if kind == "json":
        qubo, penalty, rows = read_request(path)
        assert not (penalty.couplers or penalty.h.any() or len(rows.constants))
        return qubo, tuple(map(str, range(qubo.bits)))
    model = READERS[kind](path)
    assert not model.constraints
    assert all(model.vartype(v) is dimod.BINARY for v in model.variables)
    linear = {v: model.objective.get_linear(v) for v in model.variables}
    bqm = dimod.BinaryQuadraticModel(linear, {}, model.objective.offset, "BINARY")
    bqm.add_quadratic_from(model.objective.iter_quadratic())
    return from_bqm(bqm)
