"""XML from anywhere, read without what makes XML dangerous: entities, depth, more elements than a network has."""

import re
from pathlib import Path
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from ..foundation.errors import FormatError
from ..foundation.files import read_bytes
from .assembly import MOST_BYTES, unholdable

_DEEPEST = 100
_MOST_DECLARATIONS = 1000  # of attributes: the parser compares each that has a default with all before it
_MOST_ELEMENTS = 5_000_000  # some 500 MB of them

# All that XML 1.0 has no way to write, not even as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_xml(path: str | Path) -> Element:
    """The root element, names without their namespace. Declarations of elements are passed over, entities refused."""
    content = read_bytes(path, MOST_BYTES)
    builder = _Builder(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.specified_attributes = True  # a default in the DOCTYPE would be copied to every element
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.tree.data
    parser.EntityDeclHandler = builder.refuse_entity
    parser.AttlistDeclHandler = builder.count_declaration
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is no well-formed XML: {error}") from None
    return builder.tree.close()


class _Builder:
    """Takes what the parser finds, and counts it."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.tree = TreeBuilder()
        self.depth = 0
        self.elements = 0
        self.declarations = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        self.elements += 1
        if self.depth > _DEEPEST or self.elements > _MOST_ELEMENTS:
            raise FormatError(f"{self.path} nests deeper than {_DEEPEST} or has more than {_MOST_ELEMENTS} elements")
        self.tree.start(local(name), {local(key): value for key, value in attributes.items()})

    def end(self, name: str) -> None:
        self.depth -= 1
        self.tree.end(local(name))

    def count_declaration(self, *_: object) -> None:
        self.declarations += 1
        if self.declarations > _MOST_DECLARATIONS:
            raise FormatError(f"{self.path} declares more than {_MOST_DECLARATIONS} attributes; leave out its DOCTYPE")

    def refuse_entity(self, name: str, *_: object) -> NoReturn:
        raise FormatError(f"{self.path} declares the entity {name!r}; write what it stands for in its places")


def local(name: str) -> str:
    """The name without its namespace."""
    return name.rpartition(" ")[2]


def check_xml_name(kind: str, name: str) -> None:
    """Raise if XML has no way to write the name."""
    if not name or _FORBIDDEN.search(name):
        raise unholdable(kind, name, "it is empty, or has a control character")
