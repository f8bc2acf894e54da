"""`query`: the probabilities of a network's variables, given the values of some of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..foundation.errors import DataError, SettingError
from .mixture import Mixture
from .network import Network
from .normal import Normal

_LEAST_SHOWN = 5e-5  # a smaller probability is not shown as 0.0000


@dataclass(frozen=True, slots=True)
class Answer:
    """Probabilities of the states of variables, given values of others.

    A continuous variable has a mean and a deviation in place of states."""

    given: Mapping[str, str | float]
    probability_of_given: float | None  # None if a number is given: it has a density
    probabilities: Mapping[str, Mapping[str, float]]  # by variable, then by state
    normals: Mapping[str, Normal | Mixture] = field(default_factory=dict)  # of continuous ones

    def describe(self) -> list[str]:
        """Return the probabilities as lines of one table."""
        lines = []
        if self.probabilities:
            lines += self._lines_of_states()
        if self.normals:
            lines += [""] * bool(lines) + self._lines_of_numbers()
        if not self.given:
            return lines
        values = {
            name: f"{value:g}" if isinstance(value, float) else value
            for name, value in self.given.items()
        }
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        known = self.probability_of_given
        chance = "" if known is None else f" (probability {known:.4g})"
        return [f"Given {given}{chance}:", "", *lines]

    def _lines_of_states(self) -> list[str]:
        """Return a table of the probabilities of states."""
        names = max(map(len, ("variable", *self.probabilities)))
        states = max(map(len, ("state", *chain.from_iterable(self.probabilities.values()))))
        lines = [f"{'variable':{names}}   {'state':{states}}   probability"]
        for name, each in self.probabilities.items():
            shown = name
            for state, probability in each.items():
                lines.append(f"{shown:{names}}   {state:{states}}   {_in_words(probability):>11}")
                shown = ""
        return lines

    def _lines_of_numbers(self) -> list[str]:
        """Return a table of the means and deviations of continuous variables."""
        names = max(map(len, ("variable", *self.normals)))
        lines = [f"{'variable':{names}}   {'mean':>11}   {'deviation':>11}"]
        for name, normal in self.normals.items():
            lines.append(f"{name:{names}}   {normal.mean:>11.6g}   {normal.deviation:>11.6g}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes query --json` prints."""
        facts: dict[str, Any] = {
            "given": dict(self.given),
            "probability_of_given": self.probability_of_given,
            "probabilities": {name: dict(each) for name, each in self.probabilities.items()},
        }
        if self.normals:
            facts["normals"] = {
                name: {"mean": normal.mean, "deviation": normal.deviation}
                for name, normal in self.normals.items()
            }
        return facts


def _in_words(probability: float) -> str:
    """Return the probability with four decimals."""
    return "< 0.0001" if 0.0 < probability < _LEAST_SHOWN else f"{probability:.4f}"


def query(
    network: Network, given: Mapping[str, str] | None = None, of: Sequence[str] = ()
) -> Answer:
    """Return the probabilities of the variables `of`, by default of all that are not given.

    They are exact, as those of `Network.probability`. Of a continuous variable the answer has its
    mean and deviation."""
    states, _ = network.all_parameters
    given = given or {}
    known = {name: _value(name, text, states[network.index(name)]) for name, text in given.items()}
    names = of or [name for name in network.names if name not in known]
    if not names:
        raise SettingError("every variable is given; leave out one that is asked for")
    found = {}
    normals = {}
    for name in dict.fromkeys(names):
        answer = network.probability(name, given=known)
        its = states[network.index(name)]
        if its:
            found[name] = dict(zip(its, answer.values(), strict=True))
        else:
            normals[name] = answer
    chance: float | None = 1.0
    if any(isinstance(value, float) for value in known.values()):
        chance = None
    elif known:
        chance = network.probability(known)
    return Answer(known, chance, found, normals)


def _value(name: str, text: str, states: Sequence[str]) -> str | float:
    """Return a value that was given as text: a number for a continuous variable."""
    if states:
        return text
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"{text!r} was given for {name!r}, which is continuous; give a number"
        ) from None


def parsed_states(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return {"A": "yes", "B": "2"} for ["A=yes,B=2"], or for ["A=yes", "B=2"].

    A state may hold commas, and the name of a variable commas and "="."""
    known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    beginning = re.compile(rf"(?:^|,)\s*({known}|[^=,]+?)\s*=")
    found: dict[str, str] = {}
    for text in texts:
        matches = list(beginning.finditer(text))
        if not matches or matches[0].start() > 0:
            raise SettingError(f"--given {text}; give VARIABLE=STATE,...")
        ends = [*(match.start() for match in matches[1:]), len(text)]
        for match, end in zip(matches, ends, strict=True):
            if match[1] in found:
                raise SettingError(f"--given names {match[1]!r} twice; give one state")
            found[match[1]] = text[match.end() : end].strip()
    return found
