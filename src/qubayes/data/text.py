"""Text tables (CSV, TSV, GOBNILP) to columns: one pass over the bytes, each distinct value of a column met once.

A general reader makes a string of each of rows x columns fields first; this one keeps four bytes for each.
"""

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from ..foundation.arrays import AnyArray, Ints
from ..foundation.errors import FormatError
from ..foundation.files import read_bytes
from ..foundation.jit import inner, kernel
from .columns import Column
from .settings import MOST_STATES

Bytes = npt.NDArray[np.uint8]

_NEWLINE, _RETURN, _SPACE, _TAB, _QUOTE, _HASH = (ord(c) for c in '\n\r \t"#')
_FINE, _FULL, _RAGGED, _UNCLOSED, _AFTER_QUOTE = range(5)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANKS = b" \r\t"
SMALL = 1 << 20  # bytes: fewer are split in Python before a kernel is compiled, or loaded


class _Index(NamedTuple):
    """The distinct values met so far: an open hash table of entries."""

    slots: Ints  # (a power of two,) number of the entry, or -1
    entries: Ints  # (half as many, 6) column, first byte, length, doubled quotation marks, code in its column, key
    counts: Ints  # (columns,) entries of each column
    start: Ints  # (1,) where hashing begins: another number each time, so that no file makes all values meet


class _Place(NamedTuple):
    """How far a scan has come, and why it stopped."""

    status: int
    position: int
    line: int
    row: int
    fields: int = 0  # of the row where it stopped


class _Table(NamedTuple):
    """The rows of a file as numbers of entries."""

    codes: AnyArray  # (columns, rows) uint32, the code of the entry
    entries: Ints  # (entries, 6), as in _Index


def read_separated(path: Path, separator: str) -> list[Column]:
    """The columns of a table with a header row; fields may be quoted, blanks around them do not count."""
    content = _content(path)
    start, line, names = _header(path, content, separator)
    if len(content) <= SMALL and (columns := _split(content[start:].tobytes(), names, separator.encode())):
        return columns
    return _columns(path, content, names, _scanned(path, content, (start, line), len(names), ord(separator)))


def _split(body: bytes, names: list[str], separator: bytes) -> list[Column]:
    """The columns of these rows; none if there is a quotation mark or something wrong, of which `_scanned` can tell."""
    rows = [row.split(separator) for row in body.split(b"\n") if row.strip(_BLANKS.replace(separator, b""))]
    if not rows or b'"' in body or b"\0" in body or any(len(row) != len(names) for row in rows):
        return []
    columns = []
    for name, padded in zip(names, zip(*rows, strict=True), strict=True):
        fields = [field.strip(_BLANKS) for field in padded]
        codes = {field: code for code, field in enumerate(dict.fromkeys(fields))}
        try:
            columns.append(Column(name, [*map(bytes.decode, codes)], np.array([*map(codes.get, fields)], np.uint32)))
        except UnicodeDecodeError:
            return []
    return columns


def read_gobnilp(path: Path) -> list[Column]:
    """The columns of a GOBNILP or blip table: names, numbers of states, rows; white space between, `#` comments."""
    content = _content(path)
    lines = _meaningful_lines(path, content)
    _, _, names = next(lines, (0, 0, []))
    start, line, arities = next(lines, (0, 0, []))
    if len(arities) != len(names) or not all(re.fullmatch("[1-9][0-9]{0,8}", arity) for arity in arities):
        raise FormatError(
            f"{path}: {len(names)} names, then {len(arities)} fields where the number of states of each must stand;"
            f" give names, numbers of states, rows (or --format fimi)"
        )
    _check_names(path, names)
    if (most := max(map(int, arities))) > MOST_STATES:  # before as many names are made
        _fail(path, line, f"a variable with {most} states; at most {MOST_STATES} are allowed")
    table = _scanned(path, content, (start, line + 1), len(names), _SPACE)
    columns = _columns(path, content, names, table)
    return [column._replace(declared=int(arity)) for column, arity in zip(columns, arities, strict=True)]


def looks_like_fimi(path: Path) -> bool:
    """Whether a `.dat` file holds transactions: whole numbers, and not codes below the arities of a second line."""
    lines = _meaningful_lines(path, _content(path))
    rows = [fields for _, _, fields in (next(lines, (0, 0, [])) for _ in range(1000)) if fields]
    if not all(field.isascii() and field.isdigit() and len(field) <= 18 for fields in rows for field in fields):
        return False
    if len(rows) < 3 or any(len(fields) != len(rows[0]) for fields in rows):
        return True
    return any(int(code) >= int(arity) for row in rows[2:] for code, arity in zip(row, rows[1], strict=True))


def _content(path: Path) -> Bytes:
    """The bytes of the file; mapped, not copied, where that can be."""
    if path.suffix.lower() != ".gz" and path.is_file() and path.stat().st_size:
        try:
            return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
        except OSError:
            pass  # read_bytes says what is wrong
    content = np.frombuffer(read_bytes(path), dtype=np.uint8)
    if len(content) == 0:
        raise FormatError(f"{path} is empty; give a table with a header row and data")
    return content


def _lines(path: Path, content: Bytes) -> Iterator[tuple[int, int, str]]:
    """(offset of the next line, number of the line, its text with its end)."""
    start = len(_BYTE_ORDER_MARK) if content[:3].tobytes() == _BYTE_ORDER_MARK else 0
    number = 0
    while start < len(content):
        number += 1
        length = 1 << 12
        while not (found := np.flatnonzero(content[start : start + length] == _NEWLINE)).size and start + length < len(
            content
        ):
            length *= 4
        stop = start + int(found[0]) + 1 if found.size else len(content)
        yield stop, number, _decoded(path, content, start, stop)
        start = stop


def _line_end(content: Bytes, start: int) -> int:
    """The position after the next line break, or the end of the content."""
    length = 1 << 10
    while True:
        found = np.flatnonzero(content[start : start + length] == _NEWLINE)
        if found.size or start + length >= len(content):
            return start + int(found[0]) + 1 if found.size else len(content)
        length *= 4


def _meaningful_lines(path: Path, content: Bytes) -> Iterator[tuple[int, int, list[str]]]:
    """(offset of the next line, number of the line, its fields) without comments and blank lines."""
    for stop, number, text in _lines(path, content):
        fields = text.split()
        if fields and not fields[0].startswith("#"):
            yield stop, number, fields


def _header(path: Path, content: Bytes, separator: str) -> tuple[int, int, list[str]]:
    """(offset of the first row, its line, names of the columns)."""
    stops: list[int] = []

    def texts() -> Iterator[str]:
        for stop, _, text in _lines(path, content):
            stops.append(stop)
            yield text

    try:
        reader = csv.reader(texts(), delimiter=separator, skipinitialspace=True, strict=True)
        names = next((row for row in reader if any(field.strip() for field in row)), [])
    except csv.Error as error:
        raise FormatError(
            f"{path}, line 1: the header cannot be read ({error}); quote names that hold separators"
        ) from None
    names = [name.strip() for name in names]
    _check_names(path, names)
    return stops[-1], len(stops) + 1, names


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise FormatError(f"{path} holds only blank lines; give a table with a header row and data")


def _scanned(path: Path, content: Bytes, start: tuple[int, int], columns: int, separator: int) -> _Table:
    """The table that begins at `start` (offset, line), or an error that names the line."""
    pieces = range(start[0], len(content), 1 << 24)
    lines = sum(int(np.count_nonzero(content[i : i + (1 << 24)] == _NEWLINE)) for i in pieces)
    rows = min(lines + 1, (len(content) - start[0]) // columns + 1)  # a field has a sign behind it; lines may be blank
    codes = np.empty((columns, rows), np.uint32)
    index = _empty_index(columns)
    place = _Place(*_scan(content, start[0], start[1], 0, separator, index, codes))
    while place.status == _FULL:
        index = _larger(index)
        place = _Place(*_scan(content, place.position, place.line, place.row, separator, index, codes))
    if place.status == _RAGGED:
        _fail(path, place.line, f"{place.fields} fields where the header has {columns}; give every row as many")
    if place.status == _UNCLOSED:
        _fail(path, place.line, "a quotation mark that is never closed; close it, or double it inside quotes")
    if place.status == _AFTER_QUOTE:
        _fail(path, place.line, "text after a closing quotation mark; double quotation marks inside a quoted field")
    return _Table(codes[:, : place.row], index.entries[: int(index.counts.sum())])


def _empty_index(columns: int) -> _Index:
    """An index with room for one row at least."""
    size = 1 << max(11, columns.bit_length())
    start = np.frombuffer(os.urandom(8), np.int64)
    return _Index(np.full(2 * size, -1, np.int64), np.empty((size, 6), np.int64), np.zeros(columns, np.int64), start)


def _fail(path: Path, line: int, problem: str) -> NoReturn:
    raise FormatError(f"{path}, line {line}: {problem}")


def _columns(path: Path, content: Bytes, names: list[str], table: _Table) -> list[Column]:
    texts: list[list[str]] = [[] for _ in names]
    for column, first, length, doubled, _, _ in table.entries.tolist():
        text = _decoded(path, content, first, first + length)
        texts[column].append(text.replace('""', '"') if doubled else text)
    return [Column(name, distinct, table.codes[i]) for i, (name, distinct) in enumerate(zip(names, texts, strict=True))]


def _decoded(path: Path, content: Bytes, start: int, stop: int) -> str:
    piece = content[start:stop].tobytes()
    try:
        text = piece.decode()
    except UnicodeDecodeError as error:
        found = f"byte {piece[error.start]:#04x} is not UTF-8 text; save the file as UTF-8"
        _fail(path, int(np.count_nonzero(content[:start] == _NEWLINE)) + 1, found)
    if "\0" in text:
        _fail(path, int(np.count_nonzero(content[:start] == _NEWLINE)) + 1, "a NUL byte; this is no text file")
    return text


@kernel
def _scan(content, position, line, row, separator, index, codes):  # type: ignore[no-untyped-def]
    """The fields of a _Place: at the end of the content, where the index has no room for a row, or at an error.

    A separator of one space stands for any white space, and takes no quotes.
    """
    slots, entries, counts, start = index
    columns, used, status = len(counts), 0, _FINE
    for i in range(columns):
        used += counts[i]
    while used + columns <= len(entries):
        position, line = _after_blank_lines(content, position, line, separator)
        if position >= len(content):
            return _FINE, position, line, row, columns
        column, ended, row_line = np.int64(0), False, line  # no literal: numba would compile what it is passed to twice
        while not ended and status == _FINE:
            status, first, length, doubled, position, breaks = _next_field(content, position, separator)
            line += breaks
            position, ended = _after_separator(content, position, separator)
            if column < columns:
                key = _hash(content, first, length, column, start[0])
                slot = _slot_of(content, slots, entries, key, first, length, doubled)
                if slots[slot] < 0:
                    slots[slot] = used
                    entries[used, 0], entries[used, 1], entries[used, 2] = column, first, length
                    entries[used, 3], entries[used, 4], entries[used, 5] = doubled, counts[column], key
                    counts[column] += 1
                    used += 1
                codes[column, row] = entries[slots[slot], 4]
            column += 1
        if status != _FINE or column != columns:
            return status if status > _RAGGED else _RAGGED, position, row_line, row, column
        line += 1
        row += 1
    return _FULL, position, line, row, columns


@inner
def _after_blank_lines(content, position, line, separator):  # type: ignore[no-untyped-def]
    """The next position whose line is not blank and, in a table with white space between, no comment; and its line."""
    while position < len(content):
        after = _after_blanks(content, position, separator)
        comment = separator == _SPACE and after < len(content) and content[after] == _HASH
        while comment and after < len(content) and content[after] != _NEWLINE:
            after += 1
        if after < len(content) and content[after] != _NEWLINE:
            break
        if after < len(content):
            line += 1
        position = after + 1
    return position, line


@inner
def _after_separator(content, position, separator):  # type: ignore[no-untyped-def]
    """The position after a separator or line end, and whether it was the line's end."""
    if separator == _SPACE:
        position = _after_blanks(content, position, separator)
        if position < len(content) and content[position] != _NEWLINE:
            return position, False
    ended = position >= len(content) or content[position] == _NEWLINE
    return position + 1, ended


@inner
def _slot_of(content, slots, entries, key, first, length, doubled):  # type: ignore[no-untyped-def]
    """The slot of the entry with this key and these bytes, or the empty slot where it belongs."""
    slot = key & (len(slots) - 1)
    while slots[slot] >= 0:
        e = slots[slot]  # not entries[e]: a view would be counted, which costs more than all the rest
        alike = entries[e, 5] == key and entries[e, 2] == length and entries[e, 3] == doubled
        i, other = 0, entries[e, 1]
        while alike and i < length:
            alike = content[first + i] == content[other + i]
            i += 1
        if alike:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@inner
def _after_blanks(content, position, separator):  # type: ignore[no-untyped-def]
    """The first position that holds no blank; a tab that separates is none."""
    while position < len(content):
        byte = content[position]
        if byte != _SPACE and byte != _RETURN and (byte != _TAB or separator == _TAB):
            break
        position += 1
    return position


@inner
def _next_field(content, position, separator):  # type: ignore[no-untyped-def]
    """(status, first, length, doubled quotes, position of the separator or line end, line breaks inside)."""
    white, size = separator == _SPACE, len(content)
    first = position = _after_blanks(content, position, separator)
    doubled, breaks = False, 0
    if not white and position < size and content[position] == _QUOTE:
        first += 1
        position += 1
        while position < size:
            if content[position] == _QUOTE:
                if position + 1 < size and content[position + 1] == _QUOTE:
                    doubled = True
                    position += 1
                else:
                    break
            elif content[position] == _NEWLINE:
                breaks += 1
            position += 1
        if position >= size:
            return _UNCLOSED, first, 0, doubled, position, breaks
        length = position - first
        position = _after_blanks(content, position + 1, separator)
        fine = position >= size or content[position] == separator or content[position] == _NEWLINE
        return (_FINE if fine else _AFTER_QUOTE), first, length, doubled, position, breaks
    while position < size:
        byte = content[position]
        ends = byte == separator or byte == _NEWLINE  # `in` takes numba longer to compile
        if ends or (white and (byte == _TAB or byte == _RETURN)):  # noqa: SIM109
            break
        position += 1
    last = position
    while last > first and (content[last - 1] == _SPACE or content[last - 1] == _RETURN or content[last - 1] == _TAB):
        last -= 1
    return _FINE, first, last - first, doubled, position, breaks


@inner
def _hash(content, first, length, column, start):  # type: ignore[no-untyped-def]
    """FNV-1a of the bytes, the column in the upper bits: different columns never have the same key."""
    key = np.uint64(start)
    for i in range(first, first + length):
        key = (key ^ np.uint64(content[i])) * np.uint64(1099511628211)
    key = ((key ^ (key >> np.uint64(32))) & np.uint64(0xFFFFFFFF)) ^ (np.uint64(column) * np.uint64(0x9E3779B1))
    return np.int64((key & np.uint64(0xFFFFFFFF)) | (np.uint64(column) << np.uint64(32)))


def _larger(index: _Index) -> _Index:
    """The same entries with room for twice as many; the slots stay at least half empty."""
    entries = np.concatenate([index.entries, np.empty_like(index.entries)])
    slots = np.full(2 * len(index.slots), -1, np.int64)
    _fill_slots(slots, entries, int(index.counts.sum()))
    return _Index(slots, entries, index.counts, index.start)


@kernel
def _fill_slots(slots, entries, used):  # type: ignore[no-untyped-def]
    for i in range(used):
        slot = entries[i, 5] & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = i
