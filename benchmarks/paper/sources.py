"""Where the paper's data come from: downloads that are checked, kept and gone on with where they stopped."""

import gzip
import hashlib
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from qubayes import ServiceError, SettingError
from qubayes.foundation.files import private, publish
from qubayes.foundation.progress import OnProgress, Progress, silent

NETWORKS = "https://www.bnlearn.com/bnrepository"
ITEMS = "http://fimi.uantwerpen.be/data"
_PATIENCE = 30  # seconds without a byte
_PIECE = 1 << 16
_LARGEST = 200_000_000  # bytes of a file, packed or not; the largest of these is 9 MB


class Source(NamedTuple):
    """A packed file, its place in the folder of the data and the sha256 of its content."""

    url: str
    place: str
    sha256: str


def _network(name: str, sha256: str, folder: str | None = None) -> Source:
    return Source(f"{NETWORKS}/{folder or name}/{name}.bif.gz", f"networks/{name}.bif.gz", sha256)


def _items(name: str, sha256: str) -> Source:
    return Source(f"{ITEMS}/{name}.dat.gz", f"fimi/{name}.dat.gz", sha256)


# Checksums of the unpacked files.
SOURCES = {
    "alarm": _network("alarm", "701e6c561f71b55669070c29614f0724b761289aa2c4a35bcc97b638ee881fa2"),
    "barley": _network(
        "barley", "1250e958b3d8ca87ccf8af9584de8baa18da667fbccbf4e0efa2a33e112fe346"
    ),
    "hailfinder": _network(
        "hailfinder", "cf09960af33dd643771c61e23a89c7815448047f335ffa9ba7d57359bc755548"
    ),
    "hepar2": _network(
        "hepar2", "d70ffdcc3b698235002898344c98d9645beb277969f29ba7af6f11d7db3f16cc"
    ),
    "win95pts": _network(
        "win95pts", "14d2195e0c4613e0beb1f06e9199c8cd39a1154171a215c38b47c0fd773d0b36"
    ),
    "pathfinder": _network(
        "pathfinder", "2c67a693139b417067d895077aa00b8610a97eadf8a6fbae544631729a7a6f24"
    ),
    "munin1": _network(
        "munin1", "decf5ce383c6d1c3010ec3c8419a9fa7520efef924f27f98578bb5332968b6d2", "munin4"
    ),
    "munin": _network("munin", "9235aff13057307e3f1b8aaea0c6cd072653e0cfbd0db8f9068094f8f18dbf11"),
    "andes": _network("andes", "2330f233405fbbdf2a485651edd4130d3d09f816e81cb7056842ae6021edabe4"),
    "chess": _items("chess", "a12ea887df58a396709430af5bf0a9a32d1f6eba8e7c13dd41f28b98572c5db2"),
    "connect": _items(
        "connect", "4af29e7a6e3dc9da6698ddd6440d619a76450623ee2166c011e317c58291fd8a"
    ),
    "mushroom": _items(
        "mushroom", "6cf94bc482712c3936f0b40c921381ab2b776c3d9941880fecac4d83ca5cbeb5"
    ),
}


def fetch(
    names: list[str],
    folder: Path,
    *,
    sources: dict[str, Source] | None = None,
    on_progress: OnProgress = silent,
) -> None:
    """Make sure that the files of these instances are in the folder: what is there and right is not fetched again."""
    known = SOURCES if sources is None else sources
    for name in names:
        if name not in known:
            raise SettingError(f"no source of {name!r} is known; there are {', '.join(known)}")
    for done, name in enumerate(names):
        on_progress(Progress("download", done, len(names), name))
        _fetch_one(known[name], folder)
    on_progress(Progress("download", len(names), len(names)))


def _fetch_one(source: Source, folder: Path) -> None:
    place = folder / source.place
    if place.exists() and _content_sha256(place) == source.sha256:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    _download(source.url, part)
    found = _content_sha256(part)
    if found != source.sha256:
        part.unlink()
        raise ServiceError(
            f"{source.url} gave a file with the checksum {found}, expected is {source.sha256}; nothing was kept: "
            f"fetch it yourself to {place}, or give a folder that has it with --data"
        )
    publish(part, place)


def _download(url: str, part: Path) -> None:
    """Append what is missing of the file; from the beginning where the server does not go on in the middle."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urlopen(request, timeout=_PATIENCE) as answer:
            goes_on = have and answer.status == 206
            with open(part, "ab" if goes_on else "wb", opener=private) as file:
                size = have if goes_on else 0
                while piece := answer.read(_PIECE):
                    size += len(piece)
                    if size > _LARGEST:
                        raise ServiceError(f"{url} sends more than {_LARGEST:,} bytes; stopped")
                    file.write(piece)
            length = answer.headers.get("Content-Length", "")
            if length.isdigit() and size - (have if goes_on else 0) < int(length):
                raise ServiceError(f"{url} broke off after {size:,} bytes; run again to go on")
    except HTTPError as error:
        if error.code == 416:  # all of it was there; the checksum will tell
            return
        raise ServiceError(
            f"{url} answers {error.code}; try later, or give a folder with --data"
        ) from None
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        raise ServiceError(
            f"cannot fetch {url}: {reason}; run again to go on, or give a folder that has the data with --data"
        ) from None


def _content_sha256(path: Path) -> str:
    """sha256 of the unpacked content; of a damaged file one that fits nothing."""
    digest, size = hashlib.sha256(), 0
    try:
        with gzip.open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                if size > _LARGEST:
                    return "too large"
    except (EOFError, OSError, zlib.error):
        return "damaged"
    return digest.hexdigest()
