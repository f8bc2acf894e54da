"""Files of local scores in the format of URLearning and GOBNILP (`.pss`).

`META key = value` lines, then per variable `VAR name`, its own `META` lines and lines `score parent parent ...`. The
format has no counts; our own files keep them with the stamp, so that a file that was cut short is noticed.
"""

from typing import IO, Any, BinaryIO

from ..foundation.files import json_object
from .candidates import Candidates, Stamp
from .lines import Lines, Listing, check_words, shown, write_sections
from .stamps import stamp_as_json, stamp_of

_STAMP = "qubayes"


def read_pss(file: BinaryIO) -> Candidates:
    """The candidate sets among the parent sets of the file."""
    lines = Lines(file)
    listing = Listing(lines)
    facts: dict[str, Any] | None = None
    for words in lines:
        if words[0] == "META":
            facts = _stamp_facts(lines.text) if facts is None else facts
        elif words[0] == "VAR":
            if len(words) != 2:
                raise lines.error(f"{shown(lines.text)} is not 'VAR name' with a name of one word")
            listing.begin(words[1])
        elif not listing.names:
            raise lines.error(
                f"{shown(lines.text)} comes before the first variable; expected 'META key = value' or 'VAR name'"
            )
        else:
            listing.add(lines.score(words[0]), words[1:])
    if not listing.names and facts is None:
        lines.next("'VAR name'")
    return listing.finish(Stamp() if facts is None else _checked_stamp(facts, lines, listing))


def _stamp_facts(meta: str) -> dict[str, Any] | None:
    """What our own files say of themselves; None for any other META line."""
    key, _, value = meta.split(maxsplit=1)[-1].partition("=")
    return json_object(value) if key.strip() == _STAMP else None


def _checked_stamp(facts: dict[str, Any], lines: Lines, listing: Listing) -> Stamp:
    expected = facts.pop("variables", None), facts.pop("sets", None)
    if expected != (len(listing.names), listing.sets) or not lines.whole:
        raise lines.error(
            f"the file ends with {len(listing.names)} variables and {listing.sets} parent sets; "
            f"expected {expected[0]} and {expected[1]}: it was cut short or changed"
        )
    return stamp_of(facts)


def write_pss(candidates: Candidates, file: IO[str]) -> None:
    """Write the candidate sets; scores have as many digits as give them back exactly."""
    check_words(candidates.names, ".pss")
    facts = stamp_as_json(candidates.stamp, variables=candidates.n, sets=len(candidates.scores))
    file.write(f"META {_STAMP} = {facts}\n")
    write_sections(
        file,
        candidates,
        lambda name, sets: f"\nVAR {name}\n",
        lambda score, parents: " ".join([score, *parents]) + "\n",
    )
