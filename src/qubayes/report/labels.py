"""How wide a label is, before any browser has seen it."""

import unicodedata

FONT_SIZE = 13.0
FONT_FAMILY = "Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
LONGEST = 28  # characters of a name that the picture shows; the rest is told by the tooltip

# Widths in em, of the widest of these fonts (DejaVu Sans), by kind of character.
_KINDS = (
    (frozenset("iljtfrI.,:;'|!()[] /\\-"), 0.42),
    (frozenset("mwMW@%"), 1.0),
    (frozenset("ABCEFKLPRSTVXYZ"), 0.7),
    (frozenset("+=<>~#^&|"), 0.85),
    (frozenset('abcdeghknopqsuvxyz0123456789_$*?`"{}'), 0.64),
)
_EM = {character: em for characters, em in _KINDS for character in characters}


def shortened(name: str) -> str:
    """The name, its middle left out if it is long: both ends of machine-made names tell them apart."""
    visible = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") else c for c in name)
    if len(visible) <= LONGEST:
        return visible
    head = (LONGEST - 1) * 2 // 3
    return f"{visible[:head]}…{visible[head + 1 - LONGEST :]}"


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Pixels that the text takes at most in the usual sans-serif fonts (the widest of them is DejaVu Sans)."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return _EM.get(character, 0.8)
