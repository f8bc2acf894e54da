"""Answers of samplers and annealing machines as states of a formulation.

Bits are found by their labels. Only an array that comes without labels, and the answer of a Digital
Annealer, which has none, is taken in the order of `formulation.labels`."""

import csv
import numbers
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..foundation.arrays import AnyArray, Bools
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import ending, parse_json, read_text, shown
from ..machines import AnnealerSolutions

if TYPE_CHECKING:
    from .formulation import Formulation

# name of the formulation's checksum in an answer: a key of JSON files and of SampleSet.info
CHECKSUM = "checksum"
FILES = (".json", ".csv")
# Columns that `SampleSet.to_pandas_dataframe` has beside the bits; the first holds the numbers of
# the rows.
_FACTS = frozenset(
    {"", "energy", "num_occurrences", "chain_break_fraction", "is_feasible", "is_satisfied"}
)


class SampleSetLike(Protocol):
    """A `dimod.SampleSet`."""

    record: Any
    variables: Any
    vartype: Any
    info: Any


Samples: TypeAlias = (
    SampleSetLike | AnnealerSolutions | Sequence[Mapping[str, Any]] | tuple[Any, Sequence[str]]
)
"""Several states: a SampleSet, an answer of the Digital Annealer, a list of mappings, or (rows, labels)."""
State: TypeAlias = AnyArray | Sequence[int] | Mapping[str, Any]
"""One state: a mapping from labels to 0 and 1, or an array in the order of `formulation.labels`."""


class States(NamedTuple):
    """States of a formulation."""

    # (samples, bits) by `formulation.labels`; the z bits of the constrained form agree with the u
    # bits
    rows: Bools
    constrained: bool  # whether they are states of the constrained form, which has no z bits
    several: bool  # False for a single state


class _Labelled(NamedTuple):
    """Values by label, before they are checked."""

    values: Any  # (samples, labels)
    labels: Sequence[str]
    constrained: bool = False
    several: bool = True


def states_of(formulation: "Formulation", answer: State | Samples) -> States:
    """Return the states in the answer, checked: every bit once, 0 or 1; the z bits may be absent."""
    table = _table_of(formulation, answer)
    values = _array(table.values)
    if not values.size and not len(values):
        raise QubayesError("the answer has no sample; run the sampler again")
    if values.ndim != 2 or values.shape[1] != len(table.labels):
        raise QubayesError(
            f"values of shape {values.shape} for {len(table.labels)} labels; give a row for each sample"
        )
    plain = formulation.subsets.total + len(formulation.order.pairs)
    wanted, given = formulation.labels, set(table.labels)
    without_z = plain < len(wanted) and not given & set(wanted[plain:])
    wanted = wanted[:plain] if without_z else wanted
    counts = Counter(table.labels)
    for fault, labels in (
        ("the answer names bits that this formulation does not have", counts.keys() - set(wanted)),
        ("the answer has no value for bits of this formulation", set(wanted) - counts.keys()),
        ("the answer names bits twice", {label for label, count in counts.items() if count > 1}),
    ):
        if labels:
            some = ", ".join(shown(label) for label in sorted(labels)[:3])
            raise QubayesError(
                f"{fault}: {some} ({len(labels)} in all); decode it with the model that was sampled"
            )
    if values.dtype.kind not in "biuf":
        for label, value in (
            cell for row in table.values for cell in zip(table.labels, row, strict=True)
        ):
            if not _is_bit(value):
                raise QubayesError(f"{label} = {shown(value)}; give the number 0 or 1 for each bit")
        values = values.astype(np.float64)
    wrong = np.argwhere(~np.isin(values, (0, 1)))
    if len(wrong) and np.isin(values, (-1, 1)).all():
        raise QubayesError(
            "the values are spins, -1 and 1; give bits (s + 1) / 2, or a SampleSet, which says so"
        )
    for row, place in wrong[:1].tolist():
        raise QubayesError(
            f"{table.labels[place]} = {values[row, place]} in sample {row}; give 0 or 1 for each bit"
        )
    column = {label: number for number, label in enumerate(table.labels)}
    rows = np.zeros((len(values), len(formulation.labels)), np.bool_)
    rows[:, : len(wanted)] = values[:, [column[label] for label in wanted]] != 0
    constrained = without_z or (table.constrained and len(wanted) == plain)
    if constrained:
        sums = np.cumsum(np.pad(rows[:, : formulation.subsets.total], ((0, 0), (1, 0))), axis=1)
        active = np.diff(sums[:, formulation.subsets.families.vertex_start], axis=1)
        rows[:, plain:] = active[:, formulation.slack_vertices] >= 2
    return States(rows, constrained, table.several)


def _table_of(formulation: "Formulation", answer: Any) -> _Labelled:
    plain = formulation.subsets.total + len(formulation.order.pairs)
    if isinstance(answer, AnnealerSolutions):
        return _Labelled(answer.states, formulation.labels[:plain], constrained=True)
    if hasattr(answer, "record") and hasattr(answer, "vartype"):
        check_checksum(formulation, answer.info.get(CHECKSUM))
        values = answer.record.sample
        if answer.vartype.name == "SPIN":
            values = (values + 1) // 2
        # made by the samplers of constrained models
        constrained = "is_feasible" in answer.record.dtype.names
        return _Labelled(values, [str(label) for label in answer.variables], constrained)
    if isinstance(answer, Mapping):
        labels = [label for label in answer if label not in _FACTS]
        return _Labelled(
            [[answer[label] for label in labels]], [str(label) for label in labels], several=False
        )
    if isinstance(answer, list | tuple) and all(isinstance(sample, Mapping) for sample in answer):
        labels = [label for label in answer[0] if label not in _FACTS] if answer else []
        for number, sample in enumerate(answer):
            if sample.keys() - _FACTS != set(labels):
                raise QubayesError(
                    f"sample {number} has other labels than sample 0; give every bit in each sample"
                )
        return _Labelled(
            [[sample[label] for label in labels] for sample in answer],
            [str(label) for label in labels],
        )
    if (
        isinstance(answer, tuple)
        and len(answer) == 2
        and all(isinstance(label, str) for label in answer[1])
    ):
        values = _array(answer[0])
        return _Labelled(
            values[None] if values.ndim == 1 and len(values) else values, list(answer[1])
        )
    values = _array(answer)
    if values.shape not in ((len(formulation.labels),), (plain,)):
        raise QubayesError(
            f"an array of shape {values.shape} without labels; this formulation has {len(formulation.labels)} bits, "
            f"{plain} without its z bits: give one state in the order of formulation.labels, or (rows, labels)"
        )
    return _Labelled(values[None], formulation.labels[: len(values)], several=False)


def _array(values: Any) -> AnyArray:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise QubayesError("a value is masked; give 0 or 1 for each bit")
    try:
        with warnings.catch_warnings():
            # a masked number in a list becomes NaN, which is refused
            warnings.simplefilter("ignore", UserWarning)
            return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise QubayesError(
            "rows of different lengths, or a value that is not a number; give 0 or 1 for each bit"
        ) from None


def _is_bit(value: Any) -> bool:
    """Return whether a value of any type is the number 0 or 1."""
    return isinstance(value, numbers.Number | np.bool_ | Decimal) and value in (0, 1)


def check_checksum(formulation: "Formulation", checksum: str | None) -> None:
    """Raise if the checksum is that of another formulation. An answer without a checksum (None) passes."""
    if checksum is not None and checksum != formulation.checksum:
        raise QubayesError(
            f"the answer is for the formulation {shown(str(checksum)[:12])}, and this is "
            f"{formulation.checksum[:12]!r}; decode it with the formulation whose model was sampled"
        )


def read_answer(path: str | Path, formulation: "Formulation") -> State | Samples:
    """Return the answer in a file, for `decode`.

    `.json`: a mapping from labels to values or a list of them, {"labels": [...], "samples":
    [[...]]}, a SampleSet as `to_serializable` writes it, or the answer of a Digital Annealer.
    `.csv`: labels in the first line, a sample in each other line. An object may hold the checksum
    of its formulation. What a table of a SampleSet has beside the bits (energy, num_occurrences,
    ...) is ignored."""
    kind = ending(path)
    if kind not in FILES:
        raise FormatError(f"{path}: an answer is read from {' or '.join(FILES)}; convert it")
    text = read_text(path)
    if kind == ".csv":
        try:
            rows = [row for row in csv.reader(text.splitlines()) if row]
        except csv.Error as error:
            raise FormatError(f"{path}: {error}; give labels, then rows of values") from error
        if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise FormatError(
                f"{path}: give the labels in the first line, and as many values in each other line"
            )
        bits = [column for column, label in enumerate(rows[0]) if label not in _FACTS]
        try:
            values = np.array([[row[column] for column in bits] for row in rows[1:]], np.float64)
            return values, [rows[0][column] for column in bits]
        except ValueError as error:
            raise FormatError(f"{path}: {error}; give 0 or 1 for each bit") from error
    try:
        return _from_json(parse_json(text), formulation)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def _from_json(content: Any, formulation: "Formulation") -> State | Samples:
    if isinstance(content, list) and all(isinstance(sample, dict) for sample in content):
        return content
    if not isinstance(content, dict):
        raise FormatError("give an object of labels and values, or a list of such objects")
    if content.get("type") == "SampleSet":
        from dimod import SampleSet

        try:
            found: SampleSetLike = SampleSet.from_serializable(content)  # type: ignore[no-untyped-call]
        except Exception as error:  # dimod and numpy raise errors of many kinds
            raise FormatError(f"a damaged SampleSet ({type(error).__name__}: {error})") from error
        return found
    checksum = content.pop(CHECKSUM, None)
    check_checksum(formulation, checksum)
    solution = content.get("qubo_solution", content)
    if isinstance(solution, dict) and isinstance(solution.get("solutions"), list):
        plain = formulation.subsets.total + len(formulation.order.pairs)
        places = [str(number) for number in range(plain)]  # which name the bits
        rows = []
        for one in solution["solutions"]:
            configuration = one.get("configuration") if isinstance(one, dict) else None
            if not isinstance(configuration, dict) or configuration.keys() != set(places):
                raise FormatError(
                    f"a solution does not set the bits 0 to {plain - 1} of this formulation"
                )
            values = [configuration[place] for place in places]
            if not all(map(_is_bit, values)):
                raise FormatError("a solution sets a bit to something else than true or false")
            rows.append(values)
        unknown = np.zeros(len(rows))
        return AnnealerSolutions(
            np.array(rows).reshape(-1, plain), unknown, unknown, unknown.astype(np.int64)
        )
    if "samples" in content and "labels" in content:
        samples, labels = content["samples"], content["labels"]
        if (
            not isinstance(samples, list)
            or not isinstance(labels, list)
            or not all(isinstance(x, str) for x in labels)
        ):
            raise FormatError(
                "give labels as a list of texts, and samples as a list of rows of values"
            )
        return samples, labels
    return content
