"""Composite for dimod: any sampler of quadratic models samples polynomials by decomposed quadratization."""

import time
from collections.abc import Mapping
from typing import Any

import dimod
import numpy as np
from dimod.core.polysampler import ComposedPolySampler

from ..foundation.errors import SettingError
from .polynomial import Variable
from .quadratize import Quadratization, quadratize

OPTIONS = ("assumptions", "mode", "fewest_couplers", "penalty", "time_limit")  # of `quadratize`


class DecomposedQuadratizationComposite(ComposedPolySampler):
    """Sampler of polynomials. Samples have the polynomial's variables, its energies and `penalty_satisfaction`.

    A polynomial of spins is sampled as the equal polynomial of bits; its samples are spins.
    """

    def __init__(self, child_sampler: Any) -> None:
        self._children = [child_sampler]

    @property
    def children(self) -> list[Any]:
        """The sampler of quadratic models, in a list."""
        return self._children

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the child and of this composite."""
        ours = dict.fromkeys(("quadratize_options", "discard_unsatisfied", "keep_penalty_variables"), ())
        return {**self.child.parameters, **{name: list(value) for name, value in ours.items()}}

    @property
    def properties(self) -> dict[str, Any]:
        """Properties of the child."""
        return {"child_properties": dict(self.child.properties)}

    def sample_poly(  # type: ignore[override]
        self,
        poly: Any,
        quadratize_options: Mapping[str, Any] | None = None,
        discard_unsatisfied: bool = False,
        keep_penalty_variables: bool = False,
        initial_state: Mapping[Variable, int] | None = None,
        **parameters: Any,
    ) -> dimod.SampleSet:
        """Sample a `dimod.BinaryPolynomial` by the child sampler, which takes all further parameters.

        `quadratize_options` are keywords of `quadratize`. `initial_state` is a state of the polynomial's variables.
        `keep_penalty_variables` adds the bits of the model that are not variables of the polynomial.
        """
        began = time.perf_counter_ns()
        unknown = set(quadratize_options or {}) - set(OPTIONS)
        if unknown:
            raise SettingError(f"quadratize_options has {sorted(unknown)}; allowed are {', '.join(OPTIONS)}")
        binary = poly.to_binary(copy=True) if poly.vartype is dimod.SPIN else poly
        result = quadratize(binary, **(quadratize_options or {}))
        if initial_state is not None:
            spins = poly.vartype is dimod.SPIN
            bits = {v: (x + 1) // 2 if spins else x for v, x in initial_state.items()}
            parameters["initial_state"] = result.decoder.encode(bits)
        ready = time.perf_counter_ns()
        answer = self.child.sample(result.model, **parameters)
        sampled = time.perf_counter_ns()
        samples = _decoded(answer, poly, result, keep_penalty_variables)
        samples.info["timing"] = {
            "preprocessing_ns": ready - began, "sampling_ns": sampled - ready,
            "postprocessing_ns": time.perf_counter_ns() - sampled,
        }  # fmt: skip
        if not discard_unsatisfied:
            return samples
        return samples.filter(lambda datum: datum.penalty_satisfaction)


def _decoded(answer: dimod.SampleSet, poly: Any, result: Quadratization, keep: bool) -> dimod.SampleSet:
    """Return the child's samples in the polynomial's variables; other vectors of the child are kept."""
    decoder = result.decoder
    place = {label: column for column, label in enumerate(answer.variables)}
    rows = answer.record.sample[:, [place[label] for label in decoder.labels]] > 0
    labels = [v for v in decoder.variables if v in poly.variables]
    states = decoder.decode_rows(rows)
    energies = result.polynomial.energies(states)
    states = states[:, [decoder.variables.index(v) for v in labels]]
    extra = [label for label in decoder.labels if label not in set(labels)] if keep else []
    states = np.hstack([states, rows[:, [decoder.labels.index(label) for label in extra]].astype(np.int8)])
    if poly.vartype is dimod.SPIN:
        states = 2 * states - 1
    vectors = {name: answer.record[name] for name in answer.record.dtype.names if name not in ("sample", "energy")}
    vectors["penalty_satisfaction"] = decoder.satisfied_rows(rows)
    info = {
        **answer.info,
        "quadratization": {"bits": result.bits, "couplers": result.couplers, "status": result.status},
    }
    samples: dimod.SampleSet = dimod.SampleSet.from_samples(  # type: ignore[no-untyped-call]
        (states.astype(np.int8), labels + extra),
        energy=energies,
        info=info,
        vartype=poly.vartype,
        sort_labels=False,
        **vectors,
    )
    return samples
