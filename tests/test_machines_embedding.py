"""Minor embeddings: checked chains, limits told, the same for the same seed; the command `embed`."""

import json

import networkx
import numpy as np
import pytest

from qubayes import SettingError
from qubayes.machines import embed, qubo_from_couplers, target_graph, write_qubo

pytest.importorskip("minorminer")
pytest.importorskip("dwave_networkx")
from typer.testing import CliRunner

from qubayes.cli import app

runner = CliRunner()


def complete(bits, alone=0):
    rows, cols = np.triu_indices(bits, 1)
    return qubo_from_couplers(np.ones(bits + alone), rows, cols, np.ones(len(rows)))


@pytest.mark.parametrize("topology", ["pegasus:3", "zephyr:2", "chimera:4"])
def test_chains_are_connected_apart_and_joined(topology):
    qubo = complete(8, alone=2)
    found = embed(qubo, topology, timeout=30, seed=3)
    graph = target_graph(topology)
    chains = found.chains
    assert len(chains) == 10
    assert found.found
    assert (
        len({qubit for chain in chains for qubit in chain})
        == sum(map(len, chains))
        == found.physical_qubits
    )
    assert max(map(len, chains)) == found.longest_chain
    assert all(networkx.is_connected(graph.subgraph(chain)) for chain in chains)
    for i in range(8):
        for j in range(i):
            assert any(graph.has_edge(p, q) for p in chains[i] for q in chains[j])
    assert (found.available_qubits, found.available_couplers) == (
        len(graph.nodes),
        len(graph.edges),
    )


def test_same_seed_same_embedding():
    one, two, other = (
        embed(complete(10), "pegasus:3", timeout=30, seed=seed) for seed in (5, 5, 6)
    )
    assert one.chains == two.chains != other.chains


def test_what_cannot_fit_is_told_at_once():
    many = embed(qubo_from_couplers(np.zeros(200), [0], [1], [1.0]), "chimera:4")
    assert (many.found, many.impossible) == (False, True)
    assert many.status == "does not fit chimera:4: 200 bits, 128 qubits"
    dense = embed(complete(30), "chimera:4")
    assert (dense.found, dense.impossible) == (False, True)
    assert "435 couplers, 352 in the machine" in dense.status


def test_a_failed_search_proves_nothing():
    found = embed(complete(25), "chimera:4", timeout=1)
    assert (found.found, found.impossible) == (False, False)
    assert (found.physical_qubits, found.longest_chain) == (0, 0)
    assert "one may exist" in found.status


def test_bits_without_couplers_take_single_qubits():
    found = embed(qubo_from_couplers(np.ones(128), [], [], []), "chimera:4")
    assert (found.physical_qubits, found.longest_chain) == (128, 1)
    assert embed(qubo_from_couplers([], [], [], []), "chimera:1").found


def test_sizes_of_the_machines():
    assert len(target_graph("zephyr:12").nodes) == 4800
    assert len(target_graph("pegasus:16").nodes) == 5640
    assert len(target_graph("chimera:16").nodes) == 2048


@pytest.mark.parametrize(
    "topology", ["pegasus", "pegasus:x", "pegasus:1", "zephyr:0", "square:4", "", "chimera:1000"]
)
def test_unknown_topologies(topology):
    with pytest.raises(SettingError, match="topology"):
        embed(complete(2), topology)


@pytest.mark.parametrize("settings", [{"timeout": 0}, {"timeout": float("nan")}, {"seed": -1}])
def test_bad_settings(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        embed(complete(2), "chimera:4", **settings)


def test_command(tmp_path):
    write_qubo(complete(6), [f"u[{i}|a]" for i in range(6)], tmp_path / "m.bqm")
    arguments = [
        "embed",
        str(tmp_path / "m.bqm"),
        "--topology",
        "pegasus:3",
        "--timeout",
        "30",
        "--seed",
        "1",
    ]
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    found = embed(complete(6), "pegasus:3", timeout=30, seed=1)
    assert (told["bits"], told["couplers"], told["found"], told["impossible"]) == (
        6,
        15,
        True,
        False,
    )
    assert (told["physical_qubits"], told["longest_chain"]) == (
        found.physical_qubits,
        found.longest_chain,
    )
    text = runner.invoke(app, arguments).stdout
    assert "6 bits, 15 couplers" in text
    assert f"{found.physical_qubits} physical qubits, longest chain {found.longest_chain}" in text


def test_command_tells_what_does_not_fit(tmp_path):
    write_qubo(complete(30), None, tmp_path / "m.bqm")
    result = runner.invoke(
        app, ["embed", str(tmp_path / "m.bqm"), "--topology", "chimera:4", "--json"]
    )
    told = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (told["found"], told["impossible"], told["physical_qubits"]) == (False, True, None)
    assert (
        "does not fit"
        in runner.invoke(app, ["embed", str(tmp_path / "m.bqm"), "--topology", "chimera:4"]).stdout
    )


def test_command_compares_both_formulations(tmp_path):
    """Candidate sets of three variables that want each other: both QUBOs are embedded and told side by side."""
    scores = {"a": [("b", "c", -1.0), ("b", -1.5)], "b": [("a", -1.0)], "c": [("a", "b", -1.0)]}
    lines = ["3"]
    for child, sets in scores.items():
        lines.append(f"{child} {len(sets) + 1}")
        lines += [f"{score} {len(parents)} {' '.join(parents)}" for *parents, score in sets]
        lines.append("-5.0 0")
    (tmp_path / "x.jkl").write_text("\n".join(lines) + "\n")
    arguments = ["embed", str(tmp_path / "x.jkl"), "--topology", "chimera:4"]
    answer = json.loads(runner.invoke(app, [*arguments, "--json"]).stdout)
    for name in ("default", "paper"):
        assert answer[name]["found"] and answer[name]["physical_qubits"] >= answer[name]["bits"] > 0
    assert answer["default"]["bits"] < answer["paper"]["bits"]
    text = runner.invoke(app, arguments).stdout
    assert "default: " in text and "paper: " in text
