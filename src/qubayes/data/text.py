"""Text tables (CSV, TSV, GOBNILP) and FIMI item sets to columns.

The scanner of separated fields is our own by measurement: on 200,000 rows x 40 columns it takes
half the time of polars, it keeps one to four bytes per field instead of a string, and its errors
name the line. It reads a file in blocks, so that a file that becomes shorter meanwhile is an error
and not a crash."""

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from ..foundation.arrays import AnyArray
from ..foundation.errors import DataError, FormatError, option
from ..foundation.files import opened, read_bytes
from ..foundation.jit import kernel
from .columns import Column
from .dataset import MOST_STATES

_BLOCK = 1 << 22  # bytes
# cells of a table of item sets, 2 bytes each: a small file of rare items asks for a square of them
_MOST_CELLS = 10**9
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMMENTS = re.compile(rb"^[ \t\r]*#.*", re.MULTILINE)
_OTHER, _QUOTE, _BLANK, _SEPARATOR, _NEWLINE = range(5)  # classes of bytes
_DONE, _FULL, _RAGGED, _UNCLOSED, _AFTER_QUOTE = range(5)  # why a scan stopped
_PROBLEMS = {
    _UNCLOSED: "a quotation mark that is never closed; close it, or double it inside quotes",
    _AFTER_QUOTE: "text after a closing quotation mark; double quotation marks inside a quoted field",
}


def read_separated(path: Path, separator: str) -> list[Column]:
    """Return the columns of a table with a header row. Fields may be quoted; blanks around them do not count."""
    with opened(path) as file:
        texts = (text for _, text in _numbered_lines(path, file))
        rows = csv.reader(texts, delimiter=separator, skipinitialspace=True, strict=True)
        try:
            names = next((row for row in rows if any(field.strip() for field in row)), [])
        except csv.Error as error:
            raise FormatError(
                f"{path}, line 1: the header cannot be read ({error}); quote names that hold separators"
            ) from None
        _check_names(path, names)
        return _scanned(path, file, rows.line_num + 1, [name.strip() for name in names], separator)


def read_gobnilp(path: Path) -> list[Column]:
    """Return the columns of a GOBNILP or blip table: names, numbers of states, rows; blanks between, `#` comments."""
    with opened(path) as file:
        lines = _lines_with_fields(path, file)
        _, names = next(lines, (0, []))
        line, arities = next(lines, (0, []))
        if len(arities) != len(names) or not all(
            re.fullmatch("[1-9][0-9]{0,8}", arity) for arity in arities
        ):
            raise FormatError(
                f"{path}: {len(names)} names, then {len(arities)} fields where the number of states of each must stand;"
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
    """Return True if a `.dat` file holds item sets: whole numbers that are not codes below arities in a second line."""
    with opened(path) as file:
        rows = [
            fields
            for _, (_, fields) in zip(range(1000), _lines_with_fields(path, file), strict=False)
        ]
    if not all(
        field.isascii() and field.isdigit() and len(field) <= 18
        for fields in rows
        for field in fields
    ):
        return False
    if len(rows) < 3 or any(len(fields) != len(rows[0]) for fields in rows):
        return True
    return any(
        int(code) >= int(arity)
        for row in rows[2:]
        for code, arity in zip(row, rows[1], strict=True)
    )


def read_fimi(path: Path) -> list[Column]:
    """Return a column of "0" and "1" for each item, in numeric order: "1" where the row's transaction has the item."""
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
    items = np.array(
        [int(item) for transaction in transactions for item in transaction], dtype=np.int64
    )
    numbers, columns = np.unique(items, return_inverse=True)
    if len(numbers) == 0:
        raise FormatError(f"{path} holds no item; give a transaction of item numbers on each line")
    if len(numbers) * len(lengths) > _MOST_CELLS:
        raise DataError(
            f"{path}: {len(numbers)} items x {len(lengths)} rows is too large; remove rare items first"
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


class _Values:
    """The distinct values of all columns: an open hash table, grown as blocks are scanned."""

    def __init__(self, columns: int, separator: str) -> None:
        room = 1 << max(11, columns.bit_length())  # one row at least
        self.slots = np.full(2 * room, -1, np.int64)  # value, or -1; half of the slots stay empty
        # of each value: column << 33 | doubled quotation marks << 32 | hash
        self.keys = np.empty(room, np.int64)
        self.offsets = np.zeros(room + 1, np.int64)  # value v is texts[offsets[v] : offsets[v + 1]]
        self.texts = np.empty(0, np.uint8)
        self.count = 0
        self._width = columns
        self._classes = np.zeros(256, np.uint8)  # class of each byte
        self._classes[[ord(blank) for blank in " \r\t"]] = _BLANK
        self._classes[ord("\n")] = _NEWLINE
        self._stop = _BLANK  # the least class that ends a field; a space stands for any blanks
        if separator != " ":
            self._stop = _SEPARATOR
            self._classes[ord('"')] = _QUOTE
            self._classes[ord(separator)] = _SEPARATOR
        # so that no file can be made whose values all collide
        self._seed = int.from_bytes(os.urandom(7), "little")

    def scan(
        self, path: Path, content: bytes, line: int, *, last: bool
    ) -> tuple[AnyArray, int, int]:
        """Return (value of each (column, row), bytes that were read, number of the next line).

        The content ends with a line end; a quoted field may continue in the next block unless this
        is the last one."""
        _check_text(path, content, line)
        if self._stop == _BLANK and b"#" in content:
            content = _COMMENTS.sub(lambda found: b" " * len(found[0]), content)
        # a field has a byte behind it
        rows = min(content.count(b"\n"), len(content) // self._width + 1)
        codes = np.empty((self._width, rows), np.uint32)
        place = np.array([0, line, 0, self.count, 0])
        status = _FULL
        while status == _FULL:
            self._make_room(len(content))
            status = _scan(
                np.frombuffer(content, np.uint8), self._classes, self._stop, self._seed, place,
                self.slots, self.keys, self.offsets, self.texts, codes,
            )  # fmt: skip
            position, line, row, self.count, fields = place.tolist()
        if status == _RAGGED:
            _fail(
                path,
                line,
                f"{fields} fields where the header has {self._width}; give every row as many",
            )
        if status != _DONE and not (status == _UNCLOSED and not last):
            _fail(path, line, _PROBLEMS[status])
        return codes[:, :row].astype(np.min_scalar_type(self.count)), position, line

    def _make_room(self, size: int) -> None:
        """Make room for a row of new values, and for all bytes of a content of this size."""
        used = int(self.offsets[self.count])
        if len(self.texts) < used + size:
            self.texts = np.concatenate([self.texts[:used], np.empty(used + size, np.uint8)])
        if self.count + self._width <= len(self.keys):
            return
        self.offsets = np.concatenate([self.offsets, np.zeros_like(self.keys)])
        self.keys = np.concatenate([self.keys, np.zeros_like(self.keys)])
        self.slots = np.full(2 * len(self.slots), -1, np.int64)
        values = np.arange(self.count)
        mask, keys = len(self.slots) - 1, self.keys[: self.count]
        slots = (keys ^ ((keys >> 33) * 0x9E3779B1)) & mask  # as in _scan
        while len(values):  # each value takes its slot, or the next one if another value has it
            free = self.slots[slots] < 0
            self.slots[slots[free]] = values[free]
            left = self.slots[slots] != values
            values, slots = values[left], (slots[left] + 1) & mask

    def columns(self, names: list[str], blocks: list[AnyArray]) -> list[Column]:
        """Return the columns, whose values are numbered in the order of their first rows."""
        texts: list[list[str]] = [[] for _ in names]
        codes = np.empty(self.count, np.min_scalar_type(self.count))
        content, offsets = self.texts.tobytes(), self.offsets.tolist()
        for value, key in enumerate(self.keys[: self.count].tolist()):
            text = content[offsets[value] : offsets[value + 1]].decode()
            its = texts[key >> 33]
            codes[value] = len(its)
            its.append(text.replace('""', '"') if key >> 32 & 1 else text)
        return [
            Column(name, its, codes[np.concatenate([block[i] for block in blocks])])
            for i, (name, its) in enumerate(zip(names, texts, strict=True))
        ]


@kernel
def _scan(content, classes, stop, seed, place, slots, keys, offsets, texts, codes):  # type: ignore[no-untyped-def]
    """Return why the scan stopped; `place` is then (position, line, row) of the next row, values, fields of a bad row.

    The content ends with a line end. `keys` must have room for a row of new values (else the scan
    stops there), `texts` for the whole content."""
    columns, mask = len(codes), len(slots) - 1
    position, line, row, count = place[0], place[1], place[2], place[3]
    while True:
        place[0], place[1], place[2] = position, line, row
        if position == len(content):
            return _DONE
        if count + columns > len(keys):
            return _FULL
        column, kind = 0, _OTHER
        while kind != _NEWLINE:
            while classes[content[position]] == _BLANK:
                position += 1
            kind = classes[content[position]]
            if kind == _NEWLINE and column == 0:
                break  # a blank line
            first, tag = position, column << 33
            if kind == _QUOTE:
                first += 1
                kind = _OTHER
                while kind != _QUOTE:
                    position += 1
                    if position == len(content):
                        return _UNCLOSED
                    kind = classes[content[position]]
                    if kind == _NEWLINE:
                        line += 1
                    elif kind == _QUOTE and classes[content[position + 1]] == _QUOTE:
                        position += 1
                        tag |= 1 << 32
                        kind = _OTHER
                last = position
                position += 1
            else:
                while classes[content[position]] < stop:
                    position += 1
                last = position
                while last > first and classes[content[last - 1]] == _BLANK:
                    last -= 1
            while classes[content[position]] == _BLANK:
                position += 1
            kind = classes[content[position]]
            if kind >= _SEPARATOR:
                position += 1
            elif stop == _SEPARATOR:
                return _AFTER_QUOTE
            if column < columns:
                key = seed
                for i in range(first, last):  # FNV-1a
                    key = (key ^ content[i]) * 1099511628211
                key = ((key ^ (key >> 32)) & 0xFFFFFFFF) | tag
                slot = (key ^ (column * 0x9E3779B1)) & mask
                value = slots[slot]
                while value >= 0:
                    begin, i = offsets[value], first
                    if keys[value] == key and offsets[value + 1] - begin == last - first:
                        while i < last and content[i] == texts[begin + i - first]:
                            i += 1
                        if i == last:
                            break
                    slot = (slot + 1) & mask
                    value = slots[slot]
                if value < 0:
                    value = count
                    slots[slot], keys[value], end = value, key, offsets[value]
                    for i in range(first, last):
                        texts[end] = content[i]
                        end += 1
                    count += 1
                    place[3], offsets[count] = count, end
                codes[column, row] = value
            column += 1
        line += 1
        if column == 0:
            position += 1
        elif column == columns:
            row += 1
        else:
            place[4] = column
            return _RAGGED
