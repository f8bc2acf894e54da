"""A large JSON document read value by value: memory for one value at a time, not for the document."""

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any

from ..foundation.errors import FormatError
from ..foundation.files import shown

_SPACE = " \t\n\r"
_BLOCK = 1 << 16


class JsonStream:
    """A position in a JSON document. `members` and `items` go into an object or array, `value` takes a whole value."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        decoder = json.JSONDecoder(parse_constant=_refuse)
        self._value, self._list = decoder.raw_decode, decoder.decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._tried = False  # whether this block was tried as a batch

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here. The caller takes the value of each before asking for the next."""
        for _ in self._parts("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise FormatError(f"{shown(key, 40)} where a key is needed")
            self._take(":")
            yield key

    def items(self) -> Iterator[Any]:
        """The values of the array that begins here."""
        for _ in self._parts("[", "]"):
            yield from self._batch()
            yield self.value()

    def value(self) -> Any:
        """The whole value that begins here."""
        self._peek()
        while True:
            try:
                value, end = self._value(self._text, self._at)
            except RecursionError as error:
                raise FormatError("values nested too deeply") from error
            except ValueError as error:
                if self._ended:
                    raise FormatError("no JSON, or the file ends inside a value") from error
            else:
                if end < len(self._text) or self._ended:  # else a number may go on in the next block
                    self._at = end
                    return value
            self._read(max(_BLOCK, len(self._text) - self._at))

    def _batch(self) -> list[Any]:
        """Values of the array up to the last closing brace that was read, but for the last; none if that is not
        possible. Values one by one take three times as long."""
        if self._tried:
            return []
        self._tried = True
        last = self._text.rfind("}")
        cut = self._text.rfind("{", self._at, last)
        comma = self._text.rfind(",", self._at, cut)
        if comma < 0 or self._text[comma + 1 : cut].strip(_SPACE):
            return []
        try:
            values: list[Any] = self._list(f"[{self._text[self._at : comma]}]")
        except (ValueError, RecursionError):
            return []
        self._at = comma + 1
        return values

    def end(self) -> None:
        """An error unless nothing follows."""
        if self._peek():
            raise FormatError("something follows the JSON document")

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self._peek() == closing:
            self._take(closing)
            return
        while True:
            yield
            if self._peek() == closing:
                self._take(closing)
                return
            self._take(",")

    def _peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._read(_BLOCK)

    def _take(self, character: str) -> None:
        found = self._peek()
        if found != character:
            raise FormatError(f"{found or 'the end'!r} where {character!r} is needed")
        self._at += 1

    def _read(self, size: int) -> None:
        block = self._file.read(size)
        self._ended = not block
        self._text = self._text[self._at :] + self._decode(block, self._ended)
        self._at = 0
        self._tried = False


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
