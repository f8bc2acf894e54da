"""Decoder g1: from the bits of the quadratic model back to the variables of the polynomial."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import AnyArray
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import json_object, replacing
from .polynomial import Variable

FORMAT = "qubayes-decoder-1"


@dataclass(frozen=True, slots=True)
class Decoder:
    """g1: a variable is 1 iff the bit of a read set that holds it is 1. Variables in no term are 0."""

    variables: tuple[Variable, ...]  # of the polynomial
    bits: tuple[Variable, ...]  # label of the bit of each set
    sets: tuple[tuple[Variable, ...], ...]
    read: tuple[bool, ...]  # which sets g1 reads; the other bits are products of these
    counter: Variable | None = None  # the bit z of exclusive terms; then at most two sets may be active
    exclusive: bool = False

    @property
    def labels(self) -> tuple[Variable, ...]:
        """All bits of the model."""
        return self.bits if self.counter is None else (*self.bits, self.counter)

    def decode(self, sample: Mapping[Variable, int]) -> dict[Variable, int]:
        """Return the state of the polynomial's variables for a state of the bits."""
        row = np.array([[_bit(sample, label) for label in self.labels]], dtype=np.int8)
        return dict(zip(self.variables, map(int, self.decode_rows(row)[0]), strict=True))

    def decode_rows(self, rows: AnyArray) -> npt.NDArray[np.int8]:
        """Return states of `variables`, one in each row, for states of `labels`, one in each row."""
        members = self._members()
        members[~np.array(self.read, dtype=np.bool_)] = 0.0
        return (rows[:, : len(self.bits)].astype(np.float32) @ members > 0).astype(np.int8)

    def encode(self, sample: Mapping[Variable, int]) -> dict[Variable, int]:
        """Return the state of the bits that decodes to a state of the variables, or to the largest one below it."""
        active = {v for v in self.variables if _bit(sample, v)}
        inside = [set(s) <= active for s in self.sets]
        if not self.exclusive:
            return dict(zip(self.bits, map(int, inside), strict=True))
        pair = self._pair(active, inside)
        state = {bit: int(number in pair) for number, bit in enumerate(self.bits)}
        return state if self.counter is None else {**state, self.counter: int(len(pair) == 2)}

    def satisfied_rows(self, rows: AnyArray) -> npt.NDArray[np.bool_]:
        """Return for each state of `labels` whether the penalty is 0: every bit is the product of its variables."""
        active: npt.NDArray[np.bool_] = rows[:, : len(self.bits)].astype(np.bool_)
        if self.exclusive:
            number = active.sum(axis=1)
            counter = number >= 2 if self.counter is None else rows[:, len(self.bits)].astype(np.int64)
            return np.asarray(counter - counter * number + number * (number - 1) // 2 == 0)
        missing = (1 - self.decode_rows(rows)).astype(np.float32) @ self._members().T
        return np.asarray(np.all((missing == 0) == active, axis=1))

    def to_json(self) -> str:
        """Return the decoder as JSON; labels are strings, numbers, or tuples of them."""
        try:
            text = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise FormatError(f"a label cannot be JSON ({error}); use strings, numbers or tuples of them") from None
        if Decoder.from_json(text) != self:
            raise FormatError("a label does not survive JSON; use strings, numbers or tuples of them")
        return text

    def write(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        text = self.to_json()
        with replacing(path) as file:
            file.write(text)

    @staticmethod
    def from_json(text: str) -> "Decoder":
        """Return the decoder that `to_json` wrote."""
        facts = json_object(text)
        try:
            fields = {name: _tupled(value) for name, value in facts.items()}
            if fields.pop("format") != FORMAT:
                raise KeyError(f"this version reads {FORMAT}")
            decoder = Decoder(**fields)
            if not len(decoder.bits) == len(decoder.sets) == len(decoder.read):
                raise KeyError("bits, sets and read do not belong together")
            if not set().union(*decoder.sets) <= set(decoder.variables):
                raise KeyError("a set names a variable that is not listed")
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(f"no decoder ({error}); give what Decoder.to_json wrote") from None
        return decoder

    def _members(self) -> npt.NDArray[np.float32]:
        place = {v: i for i, v in enumerate(self.variables)}
        result = np.zeros((len(self.sets), len(self.variables)), dtype=np.float32)
        for row, members in enumerate(self.sets):
            result[row, [place[v] for v in members]] = 1.0
        return result

    def _pair(self, active: set[Variable], inside: list[bool]) -> tuple[int, ...]:
        """Return the numbers of at most two sets whose union is that of all sets inside the active variables."""
        usable = [number for number, fits in enumerate(inside) if fits]
        reachable = set().union(*(self.sets[n] for n in usable))
        for number, first in enumerate(usable):
            for second in usable[number:]:
                if set(self.sets[first]) | set(self.sets[second]) == reachable:
                    return (first, second) if first != second else (first,)
        if reachable:
            raise QubayesError(
                "the state is not the union of two sets, so more than one term is active; give a state with one "
                "active term, or quadratize with assumptions='general'"
            )
        return ()


def _tupled(value: Any) -> Any:
    """Return the value with lists, as JSON has them, replaced by tuples."""
    return tuple(map(_tupled, value)) if isinstance(value, list) else value


def _bit(sample: Mapping[Variable, int], label: Variable) -> int:
    if label not in sample:
        raise QubayesError(f"the sample has no value for {label!r}; give a state of all bits")
    if sample[label] not in (0, 1):
        raise QubayesError(
            f"{label!r} = {sample[label]!r} where a bit is expected; spins become bits by (1 + spin) / 2"
        )
    return int(sample[label])
