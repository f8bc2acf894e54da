"""Order bits with a proof: that they suffice, their certificate, and what is refused."""

import copy
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from formulation_cases import all_energies, candidates_of, random_scores, whole_subsets
from order_cases import best_relaxed_score
from qubayes import QubayesError, SettingError
from qubayes.candidates import example, write_candidates
from qubayes.cli import app
from qubayes.qubo import Coefficients, Demand, formulate, is_certified, read_formulation
from qubayes.search import checker
from qubayes.search.exact import signed
from reference import energies as reference


def random_problems(seed, count):
    """Problems whose best relaxed score without order bits is wrong more often than not."""
    random = np.random.default_rng(seed)
    while count:
        scores = random_scores(random, 5, 2, 0.3)
        candidates = candidates_of(scores)
        default = formulate(candidates, whole_subsets(candidates)).order.pairs
        if 3 < len(default) <= 9:
            yield scores, candidates, len(default)
            count -= 1


def sparse(seed=2, n=8):
    """Candidate sets whose proof needs fewer order bits than the default."""
    return candidates_of(random_scores(np.random.default_rng(seed), n, 2, 0.3))


def exact_scores(candidates):
    """The scores as the checker reads them."""
    names = candidates.names
    return [
        {
            frozenset(names[p] for p in parents): Fraction(score)
            for parents, score in candidates.of(v)
        }
        for v in range(candidates.n)
    ]


def verdict_of(formulation, change=lambda certificate: None):
    candidates = formulation.candidates
    certificate = copy.deepcopy(dict(formulation.certificate))
    change(certificate)
    scores = dict(zip(candidates.names, exact_scores(candidates), strict=True))
    return checker.check_parts(scores, signed(certificate))


def test_no_state_of_small_problems_lies_below_the_best_network():
    """Over all order bits: with those of the proof the relaxed problem is exact; with none it mostly is not."""
    wrong = fewer = proved = 0
    for scores, candidates, default in random_problems(1, 14):
        made = formulate(candidates, whole_subsets(candidates), order="proved")
        best = reference.best_score_of_dags(scores)
        pairs = {(min(pair), max(pair)) for pair in made.order.pairs.tolist()}
        both = {tuple(pair) for pair in made.order.coupled.tolist()}
        arcs = candidates.families.arcs()
        either = {(int(a), int(b)) for a, b in np.argwhere(np.triu(arcs | arcs.T))}
        assert best_relaxed_score(scores, pairs, pairs | both | either) == pytest.approx(best)
        wrong += best_relaxed_score(scores, set(), either) > best + 1e-9
        fewer += len(pairs) < default
        proved += made.order_status.certified
        assert made.exact and (made.certificate is not None) == made.order_status.certified
        if made.certificate:
            assert verdict_of(made).score == pytest.approx(best)
    assert wrong > 3 and fewer > 3 and proved > 3


def test_the_least_energy_of_all_states_is_minus_the_best_score():
    found = 0
    for seed in range(60):
        scores = random_scores(np.random.default_rng(seed), 4, 2, 0.3)
        candidates = candidates_of(scores)
        made = formulate(candidates, whole_subsets(candidates), order="proved")
        if made.order_status.certified and made.qubo.bits <= 20:
            least = all_energies(made.qubo).min()
            assert least == pytest.approx(-reference.best_score_of_dags(scores))
            found += 1
    assert found >= 5


def test_a_certificate_is_about_its_order_bits():
    candidates = sparse()
    made = formulate(candidates, order="proved")
    default = formulate(candidates)
    assert made.order_status.certified
    assert len(made.order.pairs) < len(default.order.pairs)
    verdict = verdict_of(made)
    assert "order bits is exact" in verdict.describe()
    assert is_certified(made, verdict.order) and not is_certified(default, verdict.order)
    for pair in list(verdict.order)[::5]:  # each pair is needed by some cut
        with pytest.raises(checker.RefusedError, match="do not hold"):
            verdict_of(
                made,
                lambda cert, pair=pair: cert["order"].remove(
                    sorted(pair, key=candidates.names.index)
                ),
            )


def first_part(certificate):
    return next(part for part in certificate["parts"] if part["leaving"])


def shorten(certificate):
    leaving = first_part(certificate)["leaving"]
    mask = max(leaving, key=lambda mask: len(leaving[mask]))
    leaving[mask] = leaving[mask][1:]


def forget(certificate):
    first_part(certificate)["leaving"].clear()


def repeat_one(certificate):
    leaving = first_part(certificate)["leaving"]
    mask = max(leaving, key=lambda mask: len(leaving[mask]))
    leaving[mask][0] = leaving[mask][1]


def weaken(certificate):
    for cut in first_part(certificate)["cuts"][1]:
        cut[0] //= 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (shorten, "do not hold"),
        (forget, "do not hold"),
        (repeat_one, "do not hold"),
        (weaken, "too weak"),
        (lambda cert: cert["order"].append(["nobody", "else"]), "not two variables"),
        (lambda cert: cert["order"].append(cert["order"][0][:1]), "not two variables"),
    ],
)
def test_forged_certificates_are_refused(change, said):
    made = formulate(sparse(), order="proved")
    with pytest.raises(checker.RefusedError, match=said):
        verdict_of(made, change)


def test_without_time_the_default_order_bits_are_used():
    candidates = sparse()
    made = formulate(candidates, order="proved", demand=Demand(seconds=0.0))
    default = formulate(candidates)
    assert made.exact and not made.order_status.certified and made.certificate is None
    assert made.order.pairs.tolist() == default.order.pairs.tolist()
    assert "order bits: the default ones, which are exact; no proof for fewer" in made.describe()


@pytest.mark.parametrize("coefficients", [Coefficients(digits=2), Coefficients(bits=12)])
def test_rounded_coefficients_have_no_proof(coefficients):
    with pytest.raises(SettingError, match="leave out rounded coefficients"):
        formulate(example(8), order="proved", coefficients=coefficients)


def run(*words):
    found = CliRunner().invoke(app, list(words))
    return found.exit_code, f"{found.output}{found.exception or ''}"


def test_the_command_writes_a_certificate_that_check_verifies(tmp_path):
    file, model, proof = tmp_path / "x.qbc", tmp_path / "x.bqm", tmp_path / "proof.json"
    write_candidates(sparse(), file)
    words = "formulate", str(file), "-o", str(model)
    code, said = run(*words, "--order", "proved", "--certificate", str(proof))
    assert code == 0 and "order bits: exact, proved by a certificate" in said
    assert "certificate, for `qubayes check`" in said and "its scores" in said
    assert read_formulation(model).order_status.certified
    scores = str(proof.with_suffix(".jkl"))
    code, said = run("check", scores, str(proof), "--model", str(model))
    assert code == 0 and "order bits is exact" in said and f"{model} is this QUBO" in said
    alone = [sys.executable, "-I", checker.__file__, scores, str(proof)]
    assert "is exact" in subprocess.run(alone, capture_output=True, text=True, check=True).stdout
    # another formulation of the same scores
    assert run(*words)[0] == 0
    code, said = run("check", scores, str(proof), "--model", str(model))
    assert code == 1 and "has other order bits than the certificate" in said
    # the same order bits, other scores
    write_candidates(sparse(3), file)
    assert run(*words, "--order", "proved")[0] == 0
    code, said = run("check", scores, str(proof), "--model", str(model))
    assert code == 1 and "is not made of the scores" in said


def test_what_does_not_go_together_is_refused(tmp_path):
    file, proof = tmp_path / "x.jkl", tmp_path / "proof.json"
    write_candidates(example(8), file)
    code, said = run("formulate", str(file), "--certificate", str(proof))
    assert code != 0 and "choose --order proved" in said
    solved = "solve", str(file), "--solver", "exact", "--certificate", str(proof)
    assert run(*solved)[0] == 0
    model = tmp_path / "x.bqm"
    assert run("formulate", str(file), "-o", str(model))[0] == 0
    code, said = run("check", str(file), str(proof), "--model", str(model))
    assert code == 1 and "the certificate is not about a QUBO" in said
    with pytest.raises(QubayesError, match="chordal, scc, adjacent, proved"):
        formulate(example(8), order="best")
