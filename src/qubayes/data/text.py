"""Text tables (CSV, TSV, GOBNILP) and FIMI item sets to columns.

The scanner of separated fields is our own by measurement: on 200,000 rows x 40 columns it takes
half the time of polars, it keeps one to four bytes per field instead of a string, and its errors
name the line. It reads a file in blocks, so that a file that becomes shorter meanwhile is an error
and not a crash."""

import csv
import os
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from ..foundation.arrays import AnyArray, Ints, Records
from ..foundation.errors import DataError, FormatError, option
from ..foundation.files import opened, read_bytes
from ..foundation.jit import inlined, kernel
from .columns import Column
from .dataset import MOST_STATES

_BLOCK = 1 << 22  # bytes
# cells of a table of item sets, 2 bytes each: a small file of rare items asks for a square of them
_MOST_CELLS = 10**9
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMMENTS = re.compile(rb"^[ \t\r]*#.*", re.MULTILINE)
_DOUBLED_BIT = 32  # of a key: the hash has the bits below, the column those above
_COLUMN_BIT = 33
_SPREAD = 0x9E3779B1  # keeps the same text in neighbouring columns apart
_OTHER, _QUOTE, _BLANK, _SEPARATOR, _NEWLINE = range(5)  # classes of bytes
_DONE, _FULL, _RAGGED, _UNCLOSED, _AFTER_QUOTE = range(5)  # why a scan stopped
_PROBLEMS = {
    _UNCLOSED: "a quotation mark that is never closed; close it, or double it inside quotes",
    _AFTER_QUOTE: "text after a closing quotation mark;"
    " double quotation marks inside a quoted field",
}


def read_separated(path: Path, separator: str) -> list[Column]:
    """Return the columns of a table with a header row.

    Fields may be quoted; blanks around them do not count."""
    with opened(path) as file:
        texts = (text for _, text in _numbered_lines(path, file))
        rows = csv.reader(texts, delimiter=separator, skipinitialspace=True, strict=True)
        try:
            names = next((row for row in rows if "".join(row).strip()), [])
        except csv.Error as error:
            problem = f"the header cannot be read ({error}); quote names that hold separators"
            raise FormatError(f"{path}, line 1: {problem}") from None
        _check_names(path, names)
        return _scanned(path, file, rows.line_num + 1, [name.strip() for name in names], separator)


def read_gobnilp(path: Path) -> list[Column]:
    """Return the columns of a GOBNILP or blip table: names, numbers of states, rows.

    Blanks separate, and `#` begins a comment."""
    with opened(path) as file:
        lines = _lines_with_fields(path, file)
        _, names = next(lines, (0, []))
        line, arities = next(lines, (0, []))
        are_numbers = all(re.fullmatch("[1-9][0-9]{0,8}", arity) for arity in arities)
        if len(arities) != len(names) or not are_numbers:
            raise FormatError(
                f"{path}: {len(names)} names, then {len(arities)} fields where the number of states"
                " of each must stand;"
                f" give names, numbers of states, rows (or {option('format', 'fimi')})"
            )
        _check_names(path, names)
        if (most := max(map(int, arities))) > MOST_STATES:
            _fail(path, line, f"a variable with {most} states; at most {MOST_STATES} are allowed")
        columns = _scanned(path, file, line + 1, names, " ")
    return [
        column._replace(declared=int(arity)) for column, arity in zip(columns, arities, strict=True)
    ]


def looks_like_fimi(path: Path) -> bool:
    """Return True if a `.dat` file holds item sets.

    It then has whole numbers only, which are not codes below numbers of states in line 2."""
    with opened(path) as file:
        rows = [fields for _, fields in islice(_lines_with_fields(path, file), 1000)]
    for field in chain.from_iterable(rows):
        if not (field.isascii() and field.isdigit() and len(field) <= 18):
            return False
    if len(rows) < 3 or any(len(fields) != len(rows[0]) for fields in rows):
        return True
    codes = np.array(rows[2:], dtype=np.int64)
    return bool((codes >= np.array(rows[1], dtype=np.int64)).any())


def read_fimi(path: Path) -> list[Column]:
    """Return a column for each item, in numeric order: "1" where a transaction has it, else "0"."""
    content = read_bytes(path)
    if not content:
        raise FormatError(f"{path} is empty; give a transaction of item numbers on each line")
    if bad := re.search(rb"[^0-9\s]|[0-9]{19}", content):
        line = content.count(b"\n", 0, bad.start()) + 1
        _fail(
            path, line, f"{bad[0][:20]!r} is not an item; items are whole numbers, blanks between"
        )
    transactions = [line.split() for line in content.removesuffix(b"\n").split(b"\n")]
    lengths = np.array([len(transaction) for transaction in transactions], dtype=np.int64)
    items = np.array(list(map(int, chain.from_iterable(transactions))), dtype=np.int64)
    numbers, columns = np.unique(items, return_inverse=True)
    if len(numbers) == 0:
        raise FormatError(f"{path} holds no item; give a transaction of item numbers on each line")
    if len(numbers) * len(lengths) > _MOST_CELLS:
        raise DataError(
            f"{path}: {len(numbers)} items x {len(lengths)} rows is too large;"
            " remove rare items first"
        )
    present: AnyArray = np.zeros((len(numbers), len(lengths)), dtype=np.uint8)
    present[columns, np.repeat(np.arange(len(lengths)), lengths)] = 1
    return [
        Column(str(number), ("0", "1"), present[i], ("0", "1"))
        for i, number in enumerate(numbers.tolist())
    ]


def _numbered_lines(path: Path, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield (number, text) of each line."""
    for number, line in enumerate(file, 1):
        content = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        _check_text(path, content, number)
        yield number, content.decode()


def _lines_with_fields(path: Path, file: BinaryIO) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, fields) of each line that is neither blank nor a comment."""
    for number, text in _numbered_lines(path, file):
        fields = text.split()
        if fields and not fields[0].startswith("#"):
            yield number, fields


def _check_names(path: Path, names: list[str]) -> None:
    if not names:
        raise FormatError(
            f"{path} is empty or holds only blank lines; give a table with a header row and data"
        )


def _check_text(path: Path, content: bytes, line: int) -> None:
    """Raise unless the content, which begins on this line, is UTF-8 text."""
    try:
        if not content.isascii():
            content.decode()
    except UnicodeDecodeError as error:
        found = f"byte {content[error.start]:#04x} is not UTF-8 text; save the file as UTF-8"
        _fail(path, line + content.count(b"\n", 0, error.start), found)
    if (place := content.find(b"\0")) >= 0:
        _fail(path, line + content.count(b"\n", 0, place), "a NUL byte; this is not a text file")


def _fail(path: Path, line: int, problem: str) -> NoReturn:
    raise FormatError(f"{path}, line {line}: {problem}")


def _scanned(
    path: Path, file: BinaryIO, line: int, names: list[str], separator: str
) -> list[Column]:
    """Return the columns of the rows that follow in the file, whose next line has this number."""
    values = _Values(len(names), separator)
    blocks: list[AnyArray] = []
    content = b""
    # a row that is longer than a block doubles the next one
    while block := file.read(max(_BLOCK, len(content))):
        content += block
        stop = content.rfind(b"\n") + 1
        codes, read, line = values.scan(path, content[:stop], line, last=False)
        blocks.append(codes)
        content = content[read:]
    blocks.append(values.scan(path, content + b"\n" if content else b"", line, last=True)[0])
    return values.columns(names, blocks)


class _Syntax(NamedTuple):
    """What the bytes of a table mean."""

    classes: AnyArray  # (256,) uint8, the class of each byte
    field_end: int  # the least class that ends a field


class _Field(NamedTuple):
    """A field, whose text is content[first:end]."""

    first: int
    end: int  # -1 if it is quoted and never closed
    behind: int  # the next position, behind a quotation mark
    line_ends: int  # in its text
    doubled: int  # 1 if its text has doubled quotation marks


class _Table(NamedTuple):
    """A hash table with open addressing; value v is texts[offsets[v] : offsets[v + 1]]."""

    slots: Ints  # a value, or -1; half of the slots stay empty
    keys: Ints  # of each value: its column, whether it has doubled quotation marks, its hash
    offsets: Ints  # (len(keys) + 1,)
    texts: AnyArray  # uint8


_PLACE = np.dtype(
    [
        ("position", np.int64),  # where the next row begins
        ("line", np.int64),  # its number
        ("row", np.int64),  # rows before it
        ("values", np.int64),  # values in the table
        ("fields", np.int64),  # of a row that has too few or too many
    ]
)


def _syntax_of(separator: str) -> _Syntax:
    """Return the classes of bytes; between fields, a space stands for any blanks."""
    classes = np.zeros(256, np.uint8)
    classes[[ord(blank) for blank in " \r\t"]] = _BLANK
    classes[ord("\n")] = _NEWLINE
    if separator == " ":
        return _Syntax(classes, _BLANK)
    classes[ord('"')] = _QUOTE
    classes[ord(separator)] = _SEPARATOR
    return _Syntax(classes, _SEPARATOR)


class _Values:
    """The distinct values of all columns: a hash table that grows as blocks are scanned."""

    def __init__(self, columns: int, separator: str) -> None:
        room = 1 << max(11, columns.bit_length())  # one row at least
        self._table = _Table(
            slots=np.full(2 * room, -1, np.int64),
            keys=np.zeros(room, np.int64),
            offsets=np.zeros(room + 1, np.int64),
            texts=np.empty(0, np.uint8),
        )
        self._count = 0
        self._width = columns
        self._syntax = _syntax_of(separator)
        # so that no file can be made whose values all collide
        self._seed = int.from_bytes(os.urandom(7), "little")

    def scan(
        self, path: Path, content: bytes, line: int, *, last: bool
    ) -> tuple[AnyArray, int, int]:
        """Return (value of each (column, row), bytes that were read, number of the next line).

        The content ends with a line end; a quoted field may continue in the next block unless this
        is the last one."""
        _check_text(path, content, line)
        if self._syntax.field_end == _BLANK and b"#" in content:
            content = _COMMENTS.sub(lambda found: b" " * len(found[0]), content)
        # a field has a byte behind it
        rows = min(content.count(b"\n"), len(content) // self._width + 1)
        codes = np.empty((self._width, rows), np.uint32)
        place = np.zeros(1, _PLACE)
        place["line"] = line
        text = np.frombuffer(content, np.uint8)
        status = _FULL
        while status == _FULL:
            self._make_room(len(content))
            place["values"] = self._count
            status = _scan(text, self._syntax, self._seed, place, self._table, codes)
            self._count = int(place["values"][0])
        position, line, row, _, fields = place[0].item()
        if status == _RAGGED:
            problem = f"{fields} fields where the header has {self._width}; give every row as many"
            _fail(path, line, problem)
        if status != _DONE and not (status == _UNCLOSED and not last):
            _fail(path, line, _PROBLEMS[status])
        return codes[:, :row].astype(np.min_scalar_type(self._count)), position, line

    def _make_room(self, size: int) -> None:
        """Make room for a row of new values, and for all bytes of a content of this size."""
        slots, keys, offsets, texts = self._table
        used = int(offsets[self._count])
        if len(texts) < used + size:
            texts = np.concatenate([texts[:used], np.empty(used + size, np.uint8)])
        if self._count + self._width > len(keys):
            offsets = np.concatenate([offsets, np.zeros_like(keys)])
            slots = _slots_of(keys[: self._count], 2 * len(slots))
            keys = np.concatenate([keys, np.zeros_like(keys)])
        self._table = _Table(slots, keys, offsets, texts)

    def columns(self, names: list[str], blocks: list[AnyArray]) -> list[Column]:
        """Return the columns, whose values are numbered in the order of their first rows."""
        texts: list[list[str]] = [[] for _ in names]
        codes = np.empty(self._count, np.min_scalar_type(self._count))
        content = self._table.texts.tobytes()
        offsets = self._table.offsets.tolist()
        for value, key in enumerate(self._table.keys[: self._count].tolist()):
            text = content[offsets[value] : offsets[value + 1]].decode()
            if key >> _DOUBLED_BIT & 1:
                text = text.replace('""', '"')
            its = texts[key >> _COLUMN_BIT]
            codes[value] = len(its)
            its.append(text)
        columns = []
        for i, (name, its) in enumerate(zip(names, texts, strict=True)):
            values = np.concatenate([block[i] for block in blocks])
            columns.append(Column(name, its, codes[values]))
        return columns


def _slots_of(keys: Ints, length: int) -> Ints:
    """Return the slots of a table of this length with these keys, as `_value_of` finds them."""
    found = np.full(length, -1, np.int64)
    mask = length - 1
    values = np.arange(len(keys))
    slots = (keys ^ ((keys >> _COLUMN_BIT) * _SPREAD)) & mask
    while len(values):  # each value takes its slot, or the next one if another value has it
        free = found[slots] < 0
        found[slots[free]] = values[free]
        waiting = found[slots] != values
        values = values[waiting]
        slots = (slots[waiting] + 1) & mask
    return found


@inlined
def _after_blanks(content: AnyArray, classes: AnyArray, position: int) -> int:
    """Return the position of the next byte that is not blank."""
    while classes[content[position]] == _BLANK:
        position += 1
    return position


@inlined
def _quoted_field(content: AnyArray, classes: AnyArray, first: int) -> _Field:
    """Return the field that begins at `first`, behind a quotation mark."""
    position = first - 1
    line_ends = 0
    doubled = 0
    kind = _OTHER
    while kind != _QUOTE:
        position += 1
        if position == len(content):
            return _Field(first, -1, position, line_ends, doubled)
        kind = classes[content[position]]
        if kind == _NEWLINE:
            line_ends += 1
        elif kind == _QUOTE and classes[content[position + 1]] == _QUOTE:
            position += 1
            doubled = 1
            kind = _OTHER
    return _Field(first, position, position + 1, line_ends, doubled)


@inlined
def _plain_field(content: AnyArray, syntax: _Syntax, first: int) -> _Field:
    """Return the field that begins at `first`, without the blanks at its end."""
    behind = first
    while syntax.classes[content[behind]] < syntax.field_end:
        behind += 1
    end = behind
    while end > first and syntax.classes[content[end - 1]] == _BLANK:
        end -= 1
    return _Field(first, end, behind, 0, 0)


@inlined
def _field(content: AnyArray, syntax: _Syntax, position: int) -> _Field:
    """Return the field that begins at this position."""
    found: _Field
    if syntax.classes[content[position]] == _QUOTE:
        found = _quoted_field(content, syntax.classes, position + 1)
    else:
        found = _plain_field(content, syntax, position)
    return found


@inlined
def _hash(content: AnyArray, field: _Field, seed: int) -> int:
    """Return 32 bits of a hash (FNV-1a) of the field's text."""
    found = seed
    for i in range(field.first, field.end):
        found = (found ^ content[i]) * 1099511628211
    return (found ^ (found >> 32)) & 0xFFFFFFFF


@inlined
def _is_text(content: AnyArray, field: _Field, table: _Table, value: int) -> bool:
    """Return whether the text of the value is that of the field."""
    begin = table.offsets[value]
    if table.offsets[value + 1] - begin != field.end - field.first:
        return False
    i = field.first
    while i < field.end and content[i] == table.texts[begin + i - field.first]:
        i += 1
    return i == field.end


@inlined
def _value_of(content: AnyArray, field: _Field, key: int, at: Any, table: _Table) -> int:
    """Return the number of the field's value; one that the table has not is added to it."""
    mask = len(table.slots) - 1
    slot = (key ^ ((key >> _COLUMN_BIT) * _SPREAD)) & mask
    value: int = table.slots[slot]
    while value >= 0:
        if table.keys[value] == key and _is_text(content, field, table, value):
            return value
        slot = (slot + 1) & mask
        value = table.slots[slot]
    value = at["values"]
    at["values"] = value + 1
    table.slots[slot] = value
    table.keys[value] = key
    place = table.offsets[value]
    for i in range(field.first, field.end):
        table.texts[place] = content[i]
        place += 1
    table.offsets[value + 1] = place
    return value


@kernel
def _scan(
    content: AnyArray, syntax: _Syntax, seed: int, place: Records, table: _Table, codes: AnyArray
) -> int:
    """Scan rows, beginning at `place[0]`; return why the scan stopped.

    `place[0]` is then the next row, or the one that cannot be read. The content ends with a line
    end. The keys of the table must have room for a row of new values (else the scan stops), its
    texts for the whole content."""
    classes = syntax.classes
    width = len(codes)
    at = place[0]
    position = at["position"]
    line = at["line"]
    row = at["row"]
    while True:
        at["position"] = position
        at["line"] = line
        at["row"] = row
        if position == len(content):
            return _DONE
        if at["values"] + width > len(table.keys):
            return _FULL
        column = 0
        kind = _OTHER
        while kind != _NEWLINE:
            position = _after_blanks(content, classes, position)
            if column == 0 and classes[content[position]] == _NEWLINE:
                break  # a blank line
            field = _field(content, syntax, position)
            if field.end < 0:
                return _UNCLOSED
            line += field.line_ends
            position = _after_blanks(content, classes, field.behind)
            kind = classes[content[position]]
            if kind >= _SEPARATOR:
                position += 1
            elif syntax.field_end == _SEPARATOR:
                return _AFTER_QUOTE
            if column < width:
                key = _hash(content, field, seed)
                key |= (column << _COLUMN_BIT) | (field.doubled << _DOUBLED_BIT)
                codes[column, row] = _value_of(content, field, key, at, table)
            column += 1
        line += 1
        if column == 0:
            position += 1
        elif column == width:
            row += 1
        else:
            at["fields"] = column
            return _RAGGED
