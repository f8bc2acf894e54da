"""`query`: the probabilities of a network's variables, given the states of some of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..foundation.errors import SettingError
from .network import Network

_LEAST_SHOWN = 5e-5  # a smaller probability is not shown as 0.0000


@dataclass(frozen=True, slots=True)
class Answer:
    """Probabilities of the states of variables, given states of others."""

    given: Mapping[str, str]
    probability_of_given: float
    probabilities: Mapping[str, Mapping[str, float]]  # by variable, then by state

    def describe(self) -> list[str]:
        """Return the probabilities as lines of one table."""
        names = max(map(len, ("variable", *self.probabilities)))
        states = max(len(state) for each in self.probabilities.values() for state in each)
        states = max(states, len("state"))
        lines = [f"{'variable':{names}}   {'state':{states}}   probability"]
        for name, each in self.probabilities.items():
            shown = name
            for state, probability in each.items():
                lines.append(f"{shown:{names}}   {state:{states}}   {_in_words(probability):>11}")
                shown = ""
        if not self.given:
            return lines
        given = ", ".join(f"{name} = {state}" for name, state in self.given.items())
        return [f"Given {given} (probability {self.probability_of_given:.4g}):", "", *lines]

    def as_json(self) -> dict[str, Any]:
        """Return what `qubayes query --json` prints."""
        return {
            "given": dict(self.given),
            "probability_of_given": self.probability_of_given,
            "probabilities": {name: dict(each) for name, each in self.probabilities.items()},
        }


def _in_words(probability: float) -> str:
    """Return the probability with four decimals."""
    return "< 0.0001" if 0.0 < probability < _LEAST_SHOWN else f"{probability:.4f}"


def query(
    network: Network, given: Mapping[str, str] | None = None, of: Sequence[str] = ()
) -> Answer:
    """Return the probabilities of the variables `of`, by default of all that are not given.

    They are exact, as those of `Network.probability`."""
    given = given or {}
    names = of or [name for name in network.names if name not in given]
    known = network.probability(given) if given else 1.0
    found = {}
    for name in dict.fromkeys(names):
        probabilities = network.probability(name, given=given)
        states = network.parameters[0][network.index(name)]
        found[name] = dict(zip(states, probabilities.values(), strict=True))
    if not found:
        raise SettingError("every variable is given; leave out one that is asked for")
    return Answer(dict(given), known, found)


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
