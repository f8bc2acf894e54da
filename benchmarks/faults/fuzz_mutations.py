"""Damage to files: what disks, editors, other programs and enemies do to them. The same random stream, the same damage.

`mutated` knows text and bytes alike; `gzip_damage`, `zip_damage` and `checked_damage` know
containers and damage what is inside them, with sums and sizes made right again, so that the reader
gets past its first check."""

import gzip
import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

LARGEST = 1 << 17  # bytes of a mutant

_NUMBERS = (
    b"0", b"-0", b"-1", b"1", b"2", b"1e308", b"-1e308", b"1e309", b"1e-320", b"nan", b"NaN", b"-inf", b"Infinity",
    b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"2147483648",
    b"1000000000000", b"999999999999999999", b"4294967295", b"65536", b"10000000", b"9" * 400, b"9" * 5000, b"1_0",
    b"0x10", b"+1", b"1.", b".5", b"1e", b"00012", b"0." + b"3" * 400, "٣".encode(), "²".encode(), b"true", b"null",
)  # fmt: skip
_NAMES = (
    b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"a b", b"#x", b"//", b"/*", b"../../x", b"\\",
    b'"', b"'", b"%s", b"{0}", b"[red]", b"\x1b[31m", b"<b>", b"&lt;", b"&#0;", b"]]>", b"<!--", b"\r", b"\x85",
    "雨".encode(), "\u202e".encode(), "\u2028".encode(), b"\\ud800", b"\\u0000", b"x" * 300, b"y" * 40_000,
    b"__class__", b"NA", b"missing", b"inf", b"1", b"0", b"obj", b"End", b"VAR", b"META", b"node", b"table",
)  # fmt: skip
_NESTS = (
    (b"[", b"]"),
    (b"{", b"}"),
    (b"(", b")"),
    (b'{"a":', b"}"),
    (b"<a>", b"</a>"),
    (b'"', b'"'),
    (b"[1,", b"]"),
)
_DEPTHS = (3, 30, 120, 400, 900, 980, 1000, 3000, 20_000)
_TOKEN = re.compile(
    rb'[A-Za-z_][A-Za-z0-9_]*|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?|"[^"\n]{0,200}"|\s+|.', re.DOTALL
)
_NUMBER = re.compile(rb"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
_VALUES = (
    None, True, 0, 1, -1, 3, 201, 1 << 63, 10**400, 0.5, -1e308, float("inf"), float("-inf"), float("nan"),
    "", "1", "3", "ff", "-1", "0x1", "1e99999999", "f" * 5000, "v0", "root",
    "search", "branch", [], {}, [[]], [0, 1], ["v1", "v0"],
)  # fmt: skip
_WORDS = (
    0,
    1,
    -1,
    2**31 - 1,
    -(2**31),
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    10**12,
    255,
    65536,
)


def mutated(seeds: Sequence[bytes], random: Random) -> bytes:
    """One of the seeds, changed in one place or in several."""
    content = random.choice(seeds)
    for _ in range(1 + min(int(random.expovariate(0.7)), 6)):
        content = random.choice(_CHANGES)(content, seeds, random)[:LARGEST]
    return content


def gzip_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """Damaged content, packed well; or content packed and then damaged."""
    if random.random() < 0.7:
        return gzip.compress(mutated(seeds, random), 1, mtime=0)
    return mutated([gzip.compress(random.choice(seeds), 1, mtime=0)], random)


def zip_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """An archive (behind whatever comes before it) with one damaged member, its sums right; or a damaged archive."""
    whole = random.choice(seeds)
    if random.random() < 0.4:
        return mutated([whole], random)
    start = whole.find(b"PK\x03\x04")
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = random.choice(list(members))
    members[chosen] = mutated([members[chosen], *members.values()], random)
    if random.random() < 0.1:
        del members[random.choice(list(members))]
    packed = io.BytesIO()
    with zipfile.ZipFile(
        packed, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    head = (
        mutated([whole[:start]], random)
        if start > 0 and random.random() < 0.2
        else whole[: max(start, 0)]
    )
    return head + packed.getvalue()


def formulation_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """A formulation (.qbf) with one damaged part, all sums right; or a damaged archive."""
    if random.random() < 0.2:
        return zip_damage(seeds, random)
    with zipfile.ZipFile(io.BytesIO(random.choice(seeds))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = random.choice(list(members))
    content = members[chosen]
    if chosen.endswith(".npy"):
        at = content.index(b"\n") + 1
        if random.random() < 0.8:
            content = content[:at] + _words(content[at:], seeds, random)
        else:
            content = mutated([content], random)
    elif chosen.endswith(".json"):
        content = mutated([content], random)
    else:
        content = checked_damage([content], random)
    members[chosen] = content
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, part in members.items():
            archive.writestr(name, part)
    return packed.getvalue()


def certificate_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """Scores and certificate (a line with a length, then both), one of them damaged.

    A certificate is changed in its text or its values, and mostly signed again.
    """
    whole = random.choice(seeds)
    line, rest = whole.split(b"\n", 1)
    scores, certificate = rest[: int(line)], rest[int(line) :]
    kind = random.random()
    if kind < 0.3:
        scores = (
            mutated([scores], random) if random.random() < 0.5 else gzip_damage([scores], random)
        )
    elif kind < 0.6:
        certificate = signed(mutated([certificate], random))
    else:
        value = json.loads(certificate)
        for _ in range(random.choice((1, 1, 2, 4))):
            value = _other_value(value, random)
        certificate = signed(json.dumps(value).encode())
    return b"%d\n" % len(scores) + scores + certificate


def signed(certificate: bytes) -> bytes:
    """The certificate with the digest that belongs to it, if it can have one."""
    try:
        value = json.loads(certificate)
        del value["digest"]
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        value["digest"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(value).encode()
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return certificate


def _other_value(value: Any, random: Random) -> Any:
    """The JSON value with one value in it replaced, doubled or lost."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        if random.random() < 0.05:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _other_value(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        kind = random.randrange(8)
        middle = (
            [] if kind == 0 else [value[at]] * 2 if kind == 1 else [_other_value(value[at], random)]
        )
        return value[:at] + middle + value[at + 1 :]
    if type(value) is int and random.random() < 0.5:
        return value + random.choice((-1, 1, 2, -value - 1, 1 << 64, 10 ** random.randrange(4000)))
    return random.choice(_VALUES)


def checked_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """A native file (magic, version, length, header, arrays, crc32) damaged; mostly with length and sum made right."""
    whole = random.choice(seeds)
    if random.random() < 0.2:
        return mutated(seeds, random)
    (length,) = struct.unpack_from("<I", whole, 20)
    header, body = whole[24 : 24 + length], whole[24 + length : -4]
    if random.random() < 0.4:
        header = mutated([header], random)
    else:
        body = _words(body, seeds, random) if random.random() < 0.7 else mutated([body], random)
    start = whole[:20] + struct.pack("<I", len(header)) + header + body
    return start + struct.pack("<I", zlib.crc32(start))


def records_damage(seeds: Sequence[bytes], random: Random) -> bytes:
    """A file of finished blocks (a line, then records with a sum each), the last record damaged, its sum right."""
    whole = random.choice(seeds)
    if random.random() < 0.3:
        return mutated(seeds, random)
    at = whole.index(b"\n") + 1
    head, payload = whole[at : at + 16], whole[at + 16 :]
    _, width, count = struct.unpack("<IIQ", head)
    payload = payload[: count * (12 + 4 * width)]
    damaged = _words(payload, seeds, random)
    if random.random() < 0.3:
        head = _words(head, seeds, random)
    return whole[:at] + head + damaged + struct.pack("<I", zlib.crc32(head + damaged))


def _flip(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _set(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]


def _insert(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + random.choice((_NAMES, _NUMBERS))[random.randrange(30)] + content[at:]


def _truncate(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] if random.random() < 0.8 else content[at:]


def _delete(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    return content[:at] + content[at + random.choice((1, 2, 5, 20, 200)) :]


def _repeat(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(content) + 1)
    part = content[at : at + random.choice((1, 4, 16, 64, 1000))]
    return content[:at] + part * random.choice((2, 2, 3, 50, 2000)) + content[at:]


def _splice(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    other = random.choice(seeds)
    at, there = random.randrange(len(content) + 1), random.randrange(len(other) + 1)
    return content[:at] + other[there : there + random.choice((10, 100, 10_000))] + content[at:]


def _lines(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    lines = content.split(b"\n")
    i, j = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(4)
    if kind == 0:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 1:
        lines.insert(j, lines[i])
    elif kind == 2:
        del lines[i]
    else:
        lines[i : i + 2] = [b"".join(lines[i : i + 2])]
    return random.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r")).join(lines)


def _tokens(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    tokens = _TOKEN.findall(content[: 1 << 14])
    if not tokens:
        return content
    i, j = random.randrange(len(tokens)), random.randrange(len(tokens))
    kind = random.randrange(5)
    if kind == 0:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif kind == 1:
        tokens.insert(i, tokens[j])
    elif kind == 2:
        del tokens[i]
    elif kind == 3:
        tokens[i] = random.choice(_NAMES)
    else:
        tokens[i] = tokens[j]
    return b"".join(tokens) + content[1 << 14 :]


def _number(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    found = list(_NUMBER.finditer(content, 0, 1 << 14))
    if not found:
        return content
    match = random.choice(found)
    return content[: match.start()] + random.choice(_NUMBERS) + content[match.end() :]


def _nest(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    left, right = random.choice(_NESTS)
    depth = random.choice(_DEPTHS)
    at = random.randrange(len(content) + 1)
    inner = random.choice((b"", b"1", content[at : at + 10]))
    nested = left * depth + inner + (right * depth if random.random() < 0.7 else b"")
    return content[:at] + nested + content[at + len(inner) :]


def _encode(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    text = content.decode("utf-8", "replace")
    codec = random.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252"))
    return text.encode(codec, "replace")


def _words(content: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    """Whole numbers of four or eight bytes overwritten, at places where such may stand."""
    width, sign = random.choice(((4, "<i"), (8, "<q"), (8, "<q")))
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        places = (len(changed) - width) // 4
        if places < 0:
            break
        word = random.choice(_WORDS) if random.random() < 0.6 else random.randrange(-3, 12)
        bits = 8 * width
        struct.pack_into(
            sign,
            changed,
            4 * random.randrange(places + 1),
            (word + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1),
        )
    return bytes(changed)


_CHANGES: tuple[Callable[[bytes, Sequence[bytes], Random], bytes], ...] = (
    _flip, _flip, _set, _insert, _insert, _truncate, _delete, _delete, _repeat, _splice, _lines, _lines, _tokens,
    _tokens, _tokens, _number, _number, _number, _nest, _encode, _words,
)  # fmt: skip
