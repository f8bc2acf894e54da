"""The pages about machines run as written, from data to a decoded network, with stand-ins for the machines.

The stand-ins anneal on this machine. They take what the real thing takes and answer in its form.
The page about any other annealer has its own stand-in (tests/test_manual.py)."""

import json
import re
import sys
import types

import dimod
import pytest

from model_cases import read_constrained
from qubayes.candidates import read_candidates
from qubayes.machines import KEY_VARIABLE
from qubayes.network import read_network
from qubayes.search import solve
from test_machines_annealer import KEY, Service, document
from test_manual import ROOT, shell

samplers = pytest.importorskip("dwave.samplers")


def annealed(bqm, reads=60, sweeps=3000):
    return samplers.SimulatedAnnealingSampler().sample(
        bqm, num_reads=reads, num_sweeps=sweeps, seed=1
    )


def annealed_with_constraints(model):
    """The samples of a constrained model, by label."""
    bqm, invert = dimod.cqm_to_bqm(model, lagrange_multiplier=30.0)
    return [invert(sample) for sample in annealed(bqm, sweeps=12_000).samples()]


def blocks(page):
    """(kind, code) of each block of the page, in order."""
    return re.findall(r"```(sh|python)\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)


def run_page(page, folder, monkeypatch, changes=(), before_decode=None):
    """Run the blocks of a page in the folder; `changes` are replaced in them."""
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    for kind, code in blocks(page):
        for old, new in changes:
            code = code.replace(old, new)
        if kind == "python":
            exec(compile(code, page, "exec"), {})
        else:
            if code.startswith("qubayes decode") and before_decode:
                before_decode()
            shell(code.strip(), folder)


def assert_best(folder, *networks):
    """The files hold networks of the best score that candidate sets of wine.jkl allow."""
    candidates = read_candidates(folder / "wine.jkl")
    best = solve(candidates, "exact")
    assert best.proved
    for name in networks:
        network = read_network(folder / name)
        order = [network.names.index(v) for v in candidates.names]
        places = {old: new for new, old in enumerate(order)}
        parents = [tuple(sorted(places[p] for p in network.parents[old])) for old in order]
        sets = [list(candidates.families.sets_of(vertex)) for vertex in range(candidates.n)]
        start = candidates.families.vertex_start
        score = sum(
            candidates.scores[start[v] + sets[v].index(parents[v])] for v in range(candidates.n)
        )
        assert score == pytest.approx(best.score)


def test_dwave(tmp_path, monkeypatch):
    asked = []

    class EmbeddingComposite:
        def __init__(self, machine):
            assert machine == "machine"

        def sample(self, bqm, num_reads):
            asked.append(num_reads)
            return annealed(bqm)

    class LeapHybridCQMSampler:
        def sample_cqm(self, model, time_limit):
            asked.append(len(model.constraints))
            return dimod.SampleSet.from_samples_cqm(annealed_with_constraints(model), model)

    system = types.ModuleType("dwave.system")
    system.DWaveSampler, system.EmbeddingComposite = lambda: "machine", EmbeddingComposite
    system.LeapHybridCQMSampler = LeapHybridCQMSampler
    monkeypatch.setitem(sys.modules, "dwave.system", system)
    pytest.importorskip("minorminer")
    run_page("howto-dwave.md", tmp_path, monkeypatch, [("--timeout 60", "--timeout 5")])
    assert asked == [1000, 12]
    assert_best(tmp_path, "wine.graphml", "hybrid.graphml")


class AnnealingService(Service):
    """A Digital Annealer on loopback that anneals objective + 50 (penalty + excess over the inequalities)."""

    def result(self, job):
        job["polls"] += 1
        if job["polls"] < 2:
            return document({"status": "Running"})
        return document(
            {"status": "Done", "qubo_solution": {"solutions": machine_solutions(job["request"])}}
        )


def machine_solutions(request):
    model = dimod.ConstrainedQuadraticModel()
    objective, penalty = (
        polynomial(request[f"{part}binary_polynomial"]) for part in ("", "penalty_")
    )
    assert set(penalty.variables) <= set(objective.variables)
    both = objective.copy()
    both.update(50 * penalty)
    model.set_objective(both)
    for row in request["inequalities"]:
        linear = polynomial(row)
        model.add_constraint(linear <= 0)
    found = []
    for sample in annealed_with_constraints(model):
        values = {
            "energy": objective.energy(sample),
            "penalty_energy": penalty.energy(sample),
            "frequency": 1,
        }
        found.append(
            values | {"configuration": {str(bit): bool(sample[bit]) for bit in objective.variables}}
        )
    return found


def polynomial(part):
    bqm = dimod.BinaryQuadraticModel("BINARY")
    for term in part["terms"]:
        match term["p"]:
            case []:
                bqm.offset += term["c"]
            case [bit]:
                bqm.add_linear(bit, term["c"])
            case [one, other]:
                bqm.add_quadratic(one, other, term["c"])
    return bqm


def test_digital_annealer(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    service = AnnealingService()

    def answer_the_file():
        request = json.loads((tmp_path / "wine.json").read_text())
        answer = {"status": "Done", "qubo_solution": {"solutions": machine_solutions(request)}}
        (tmp_path / "answer.json").write_text(json.dumps(answer))

    try:
        address = [("https://address-of-the-service/da", service.url)]
        run_page("howto-digital-annealer.md", tmp_path, monkeypatch, address, answer_the_file)
    finally:
        service.close()
    assert service.jobs == {}
    assert_best(tmp_path, "wine.graphml", "saved.graphml")


def test_amplify_and_ommx(tmp_path, monkeypatch):
    amplify = pytest.importorskip("amplify")
    networks = ["wine.graphml", "ommx.graphml"]

    def solve_here(model, client):
        """Stands for the service: reads Amplify's model, not our file."""
        assert client.token and model.constraints[0].label.startswith("subsets[")
        variables = model.variables
        form = dimod.ConstrainedQuadraticModel()
        form.set_objective(bqm_of(model.objective))
        for row in model.constraints:
            left, sense, right = row.conditional
            assert sense == "LE"
            form.add_constraint(bqm_of(left) <= right)
        best = min(
            annealed_with_constraints(form),
            key=lambda s: (not form.check_feasible(s), form.objective.energy(s)),
        )
        values = {variable: float(best[variable.id]) for variable in variables}
        return types.SimpleNamespace(best=types.SimpleNamespace(values=values))

    def bqm_of(poly):
        bqm = dimod.BinaryQuadraticModel("BINARY")
        for bits, weight in poly.as_dict().items():
            if len(bits) == 2:
                bqm.add_quadratic(*bits, weight)
            elif bits:
                bqm.add_linear(bits[0], weight)
            else:
                bqm.offset += weight
        return bqm

    class OMMXOpenJijSAAdapter:
        @staticmethod
        def sample(instance, num_reads):
            model = read_constrained(tmp_path / "wine.qplib")
            states = annealed_with_constraints(model)
            names = {variable.name: variable.id for variable in instance.decision_variables}
            samples = {
                k: {names[label]: x for label, x in state.items()} for k, state in enumerate(states)
            }
            return instance.evaluate_samples(samples)

    monkeypatch.setattr(amplify, "solve", solve_here)
    adapter = types.ModuleType("ommx_openjij_adapter")
    adapter.OMMXOpenJijSAAdapter = OMMXOpenJijSAAdapter
    monkeypatch.setitem(sys.modules, "ommx_openjij_adapter", adapter)
    try:
        import ommx  # noqa: F401
    except ImportError:
        networks.pop()
        monkeypatch.setattr(
            sys.modules[__name__], "blocks", lambda page, all_blocks=blocks: all_blocks(page)[:-1]
        )
    run_page("howto-amplify.md", tmp_path, monkeypatch)
    assert_best(tmp_path, *networks)
