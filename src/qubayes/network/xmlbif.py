"""XMLBIF 0.3: the interchange format in XML. In a table the first GIVEN is slowest, the child's states fastest."""

import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

import numpy as np

from ..foundation.arrays import Floats
from ..foundation.errors import FormatError
from .assembly import all_names, assembled, check_axes, unholdable, with_tables
from .network import Network
from .xml_tree import check_xml_name, read_xml

_BLANK = " \t\r\n"
_ESCAPES = {"\r": "&#13;"}  # a parser makes line feeds of carriage returns that are not escaped


def xmlbif_text(network: Network) -> str:
    """The network as an XMLBIF file."""
    states, tables = with_tables(".xmlbif", network)
    for name in all_names(network):
        check_xml_name(".xmlbif", name)
        if name != name.strip(_BLANK):
            raise unholdable(".xmlbif", name, "it begins or ends with a blank")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>network</NAME>"]
    for name, its in zip(network.names, states, strict=True):
        outcomes = "".join(_element("OUTCOME", state) for state in its)
        lines.append(f'<VARIABLE TYPE="nature">{_element("NAME", name)}{outcomes}</VARIABLE>')
    for name, parents, table in zip(network.names, network.parents, tables, strict=True):
        given = "".join(_element("GIVEN", network.names[p]) for p in parents)
        lines.append(f"<DEFINITION>{_element('FOR', name)}{given}<TABLE>")
        lines += (" ".join(map(repr, row)) for row in table.reshape(-1, table.shape[-1]).tolist())
        lines.append("</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text, _ESCAPES)}</{tag}>"


def read_xmlbif(path: str | Path) -> Network:
    """The network in an XMLBIF file; without any TABLE it is a graph with states."""
    network = _network(path)
    variables = dict(_variables(path, network))
    definitions = dict(_definitions(path, network))
    index = {name: vertex for vertex, name in enumerate(variables)}
    for child, (given, _) in definitions.items():
        for name in (child, *given):
            if name not in index:
                raise FormatError(f"{path}: {name!r} in a DEFINITION is no VARIABLE; declare it")
    if lost := [name for name in variables if name not in definitions]:
        raise FormatError(f"{path}: {lost[0]!r} has no DEFINITION")
    parents = [[index[name] for name in definitions[child][0]] for child in variables]
    states = list(variables.values())
    graph = assembled(path, list(variables), parents, states)
    if all(numbers is None for _, numbers in definitions.values()):
        return graph
    tables = [_table(path, name, definitions[name], variables) for name in variables]
    return assembled(path, graph.names, parents, states, tables)


def _network(path: str | Path) -> Element:
    root = read_xml(path)
    networks = root.findall("NETWORK") if root.tag == "BIF" else []
    if len(networks) != 1:
        raise FormatError(f"{path} is no XMLBIF file; it must hold one NETWORK in a BIF element, not {root.tag!r}")
    return networks[0]


def _variables(path: str | Path, network: Element) -> Iterator[tuple[str, list[str]]]:
    """The name and states of each variable."""
    seen = set()
    for variable in network.findall("VARIABLE"):
        name = _only(path, variable, "NAME")
        if name in seen:
            raise FormatError(f"{path}: two VARIABLE elements are named {name!r}; give each its own name")
        if variable.get("TYPE", "nature") != "nature":
            raise FormatError(f"{path}: {name!r} has TYPE {variable.get('TYPE')!r}; only 'nature' is a random variable")
        seen.add(name)
        outcomes = _texts(variable, "OUTCOME") or _texts(variable, "VALUE")  # VALUE: version 0.2
        yield name, outcomes


def _definitions(path: str | Path, network: Element) -> Iterator[tuple[str, tuple[list[str], list[float] | None]]]:
    """The child, parents and numbers of each definition."""
    seen = set()
    for definition in (*network.findall("DEFINITION"), *network.findall("PROBABILITY")):
        child = _only(path, definition, "FOR")
        if child in seen:
            raise FormatError(f"{path}: a second DEFINITION of {child!r}; keep one")
        seen.add(child)
        tables = _texts(definition, "TABLE")
        if len(tables) > 1:
            raise FormatError(f"{path}: {child!r} has {len(tables)} TABLE elements; keep one")
        yield child, (_texts(definition, "GIVEN"), _numbers(path, child, tables[0]) if tables else None)


def _texts(element: Element, tag: str) -> list[str]:
    return [(part.text or "").strip(_BLANK) for part in element.findall(tag)]


def _only(path: str | Path, element: Element, tag: str) -> str:
    found = _texts(element, tag)
    if len(found) != 1 or not found[0]:
        raise FormatError(f"{path}: a {element.tag} has {len(found)} {tag} elements with text; give it one")
    return found[0]


def _numbers(path: str | Path, child: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split()]
    except ValueError as error:
        raise FormatError(f"{path}: the table of {child!r}: {str(error)[:80]}") from None


def _table(
    path: str | Path, child: str, definition: tuple[list[str], list[float] | None], states: dict[str, list[str]]
) -> Floats:
    given, numbers = definition
    check_axes(path, child, len(given) + 1)
    shape = [len(states[name]) for name in (*given, child)]
    if numbers is None or len(numbers) != math.prod(shape):
        found = 0 if numbers is None else len(numbers)
        raise FormatError(
            f"{path}: the table of {child!r} has {found} numbers; its states and parents need {math.prod(shape)}"
        )
    return np.array(numbers).reshape(shape)
