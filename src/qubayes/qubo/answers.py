"""Answers of samplers and annealing machines as samples of a formulation.

Variables are found by their labels. Only an array that comes without labels, and the answer of a
Digital Annealer, which has none, is taken in the order of `formulation.labels`."""

import csv
import numbers
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..foundation.arrays import AnyArray, Bools
from ..foundation.errors import FormatError, QubayesError
from ..foundation.files import ending, parse_json, read_text, shown
from ..machines import AnnealerSolutions
from .violations import active_counts

if TYPE_CHECKING:
    from .formulation import Formulation

# name of the formulation's checksum in an answer: a key of JSON files and of SampleSet.info
CHECKSUM = "checksum"
FILES = (".json", ".csv")
# Columns that `SampleSet.to_pandas_dataframe` has beside the variables; the first holds the numbers
# of the rows.
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
"""A SampleSet, an answer of the Digital Annealer, a list of mappings, or (rows, labels)."""
State: TypeAlias = AnyArray | Sequence[int] | Mapping[str, Any]
"""One sample: a mapping from labels to 0 and 1, or an array ordered as `formulation.labels`."""


class States(NamedTuple):
    """Samples of a formulation."""

    # (samples, variables) by `formulation.labels`; the z bits of the constrained form agree with
    # the u bits
    rows: Bools
    constrained: bool  # whether they are samples of the constrained form, which has no z bits
    several: bool  # False for a single sample


class _Labelled(NamedTuple):
    """Values by label, before they are checked."""

    values: Any  # (samples, labels)
    labels: Sequence[str]
    constrained: bool = False
    several: bool = True


def states_of(formulation: "Formulation", answer: State | Samples) -> States:
    """Return the samples in the answer; raise unless each variable but z is there, and 0 or 1."""
    table = _table_of(formulation, answer)
    values = _array(table.values)
    if not values.size and not len(values):
        raise QubayesError("the answer has no sample; run the sampler again")
    if values.ndim != 2 or values.shape[1] != len(table.labels):
        raise QubayesError(
            f"values of shape {values.shape} for {len(table.labels)} labels; "
            "give a row for each sample"
        )
    plain = formulation.first_z
    wanted = formulation.labels
    has_slack = plain < len(wanted)
    if has_slack and not set(table.labels) & set(wanted[plain:]):
        wanted = wanted[:plain]
    _check_labels(table.labels, wanted)
    values = _checked_values(table, values)
    column = {label: number for number, label in enumerate(table.labels)}
    rows = np.zeros((len(values), formulation.qubo.bits), np.bool_)
    rows[:, : len(wanted)] = values[:, [column[label] for label in wanted]] != 0
    constrained = len(wanted) == plain and (has_slack or table.constrained)
    if constrained:
        active = active_counts(formulation, rows)
        rows[:, plain:] = active[:, formulation.slack_vertices] >= 2
    return States(rows, constrained, table.several)


def _check_labels(labels: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless the labels are those that are wanted, each once, in any order."""
    counts = Counter(labels)
    _refuse(
        "the answer names binary variables that this formulation does not have",
        counts.keys() - set(wanted),
    )
    _refuse(
        "the answer has no value for binary variables of this formulation",
        set(wanted) - counts.keys(),
    )
    _refuse(
        "the answer names binary variables twice",
        [label for label, count in counts.items() if count > 1],
    )


def _refuse(fault: str, labels: Iterable[str]) -> None:
    """Raise if there are labels with this fault."""
    wrong = sorted(labels)
    if wrong:
        some = ", ".join(shown(label) for label in wrong[:3])
        raise QubayesError(
            f"{fault}: {some} ({len(wrong)} in all); decode it with the model that was sampled"
        )


def _checked_values(table: _Labelled, values: AnyArray) -> AnyArray:
    """Return the values as numbers; raise unless all are 0 or 1."""
    if values.dtype.kind not in "biuf":
        for row in table.values:
            for label, value in zip(table.labels, row, strict=True):
                if not _is_bit(value):
                    raise QubayesError(
                        f"{label} = {shown(value)}; give the number 0 or 1 for each binary variable"
                    )
        values = values.astype(np.float64)
    wrong = np.argwhere(~np.isin(values, (0, 1)))
    if len(wrong) and np.isin(values, (-1, 1)).all():
        raise QubayesError(
            "the values are spins, -1 and 1; give bits (s + 1) / 2, or a SampleSet, which says so"
        )
    for row, place in wrong[:1].tolist():
        raise QubayesError(
            f"{table.labels[place]} = {values[row, place]} in sample {row}; "
            "give 0 or 1 for each binary variable"
        )
    return values


def _table_of(formulation: "Formulation", answer: Any) -> _Labelled:
    """Return the values of an answer of any kind by label."""
    if isinstance(answer, AnnealerSolutions):
        labels = formulation.labels[: formulation.first_z]
        return _Labelled(answer.states, labels, constrained=True)
    if hasattr(answer, "record") and hasattr(answer, "vartype"):
        return _of_sample_set(formulation, answer)
    if isinstance(answer, Mapping):
        return _of_mappings([answer])._replace(several=False)
    if isinstance(answer, list | tuple) and all(isinstance(sample, Mapping) for sample in answer):
        return _of_mappings(answer)
    if isinstance(answer, tuple) and len(answer) == 2 and _are_texts(answer[1]):
        values = _array(answer[0])
        one = values.ndim == 1 and len(values) > 0
        return _Labelled(values[None] if one else values, list(answer[1]))
    return _of_array(formulation, _array(answer))


def _are_texts(labels: Any) -> bool:
    return all(isinstance(label, str) for label in labels)


def _of_sample_set(formulation: "Formulation", answer: SampleSetLike) -> _Labelled:
    check_checksum(formulation, answer.info.get(CHECKSUM))
    values = answer.record.sample
    if answer.vartype.name == "SPIN":
        values = (values + 1) // 2
    # the samplers of constrained models say which samples are feasible
    constrained = "is_feasible" in answer.record.dtype.names
    return _Labelled(values, [str(label) for label in answer.variables], constrained)


def _of_mappings(answer: Sequence[Mapping[str, Any]]) -> _Labelled:
    labels = [label for label in answer[0] if label not in _FACTS] if answer else []
    values = []
    for number, sample in enumerate(answer):
        if sample.keys() - _FACTS != set(labels):
            raise QubayesError(
                f"sample {number} has other labels than sample 0; "
                "give every binary variable in each sample"
            )
        values.append([sample[label] for label in labels])
    return _Labelled(values, [str(label) for label in labels])


def _of_array(formulation: "Formulation", values: AnyArray) -> _Labelled:
    bits, plain = formulation.qubo.bits, formulation.first_z
    if values.shape not in ((bits,), (plain,)):
        raise QubayesError(
            f"an array of shape {values.shape} without labels; this formulation has {bits} binary "
            f"variables, {plain} without its slack variables z: "
            "give one sample in the order of formulation.labels, or (rows, labels)"
        )
    return _Labelled(values[None], formulation.labels[: len(values)], several=False)


def _array(values: Any) -> AnyArray:
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise QubayesError("a value is masked; give 0 or 1 for each binary variable")
    try:
        with warnings.catch_warnings():
            # a masked number in a list becomes NaN, which is refused
            warnings.simplefilter("ignore", UserWarning)
            return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise QubayesError(
            "rows of different lengths, or a value that is not a number; "
            "give 0 or 1 for each binary variable"
        ) from None


def _is_bit(value: Any) -> bool:
    """Return whether a value of any type is the number 0 or 1."""
    return isinstance(value, numbers.Number | np.bool_ | Decimal) and value in (0, 1)


def check_checksum(formulation: "Formulation", checksum: str | None) -> None:
    """Raise if the checksum is that of another formulation. An answer without one (None) passes."""
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
    of its formulation. What a table of a SampleSet has beside the variables (energy,
    num_occurrences, ...) is ignored."""
    kind = ending(path)
    if kind not in FILES:
        raise FormatError(f"{path}: an answer is read from {' or '.join(FILES)}; convert it")
    text = read_text(path)
    try:
        return _from_csv(text) if kind == ".csv" else _from_json(parse_json(text), formulation)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def _from_csv(text: str) -> Samples:
    try:
        lines = [row for row in csv.reader(text.splitlines()) if row]
    except csv.Error as error:
        raise FormatError(f"{error}; give labels, then rows of values") from error
    if len(lines) < 2 or any(len(row) != len(lines[0]) for row in lines):
        raise FormatError(
            "give the labels in the first line, and as many values in each other line"
        )
    wanted = [label not in _FACTS for label in lines[0]]
    table = [list(compress(row, wanted)) for row in lines]
    try:
        return np.array(table[1:], np.float64), table[0]
    except ValueError as error:
        raise FormatError(f"{error}; give 0 or 1 for each binary variable") from error


def _from_json(content: Any, formulation: "Formulation") -> State | Samples:
    if isinstance(content, list) and all(isinstance(sample, dict) for sample in content):
        return content
    if not isinstance(content, dict):
        raise FormatError("give an object of labels and values, or a list of such objects")
    if content.get("type") == "SampleSet":
        return _sample_set(content)
    check_checksum(formulation, content.pop(CHECKSUM, None))
    solution = content.get("qubo_solution", content)
    if isinstance(solution, dict) and isinstance(solution.get("solutions"), list):
        return _annealer_solutions(solution["solutions"], formulation.first_z)
    if "samples" not in content or "labels" not in content:
        return content
    samples, labels = content["samples"], content["labels"]
    if not isinstance(samples, list) or not isinstance(labels, list) or not _are_texts(labels):
        raise FormatError("give labels as a list of texts, and samples as a list of rows of values")
    return samples, labels


def _sample_set(content: dict[str, Any]) -> SampleSetLike:
    from dimod import SampleSet

    try:
        found: SampleSetLike = SampleSet.from_serializable(content)  # type: ignore[no-untyped-call]
    except Exception as error:  # dimod and numpy raise errors of many kinds
        raise FormatError(f"a damaged SampleSet ({type(error).__name__}: {error})") from error
    return found


def _annealer_solutions(solutions: list[Any], plain: int) -> AnnealerSolutions:
    """Return the solutions of a Digital Annealer, which numbers the variables u and r from 0."""
    places = [str(number) for number in range(plain)]
    rows = []
    for solution in solutions:
        configuration = solution.get("configuration") if isinstance(solution, dict) else None
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
