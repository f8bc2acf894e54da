"""What every command shares: how it prints, how it shows progress, how it fails."""

import errno
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol

from typer.core import TyperCommand, TyperGroup, TyperOption

from ..foundation.environment import address_limit
from ..foundation.errors import NoResultError, QubayesError
from ..foundation.progress import OnProgress, progress_bars, silent
from ..foundation.summary import aligned

# bytes of address space; `learn` on a small file takes 570 MB with its libraries
_LEAST_MEMORY = 700 << 20

_LONGEST = 2000  # characters of an error message


def guarded(command: Callable[[], Any]) -> None:
    """Run the command; an error prints one line and exits with code 1, an interrupt with 130."""
    _open_standard_streams()
    try:
        _prepare_for_limit()
        _run(command)
        sys.stdout.flush()  # so that ENOSPC is still reported
    except QubayesError as error:
        code = 130 if isinstance(error, NoResultError) else 1
        _fail(" ".join(str(error).split()), code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except MemoryError:
        _fail_for_memory()
    except BrokenPipeError:  # the reader had enough, and knows it
        _abandon_stdout()
        sys.exit(1)
    except (ImportError, RuntimeError) as error:
        if not _want_of_memory(error):
            raise
        _fail_for_memory()
    except OSError as error:
        if _want_of_memory(error):
            _fail_for_memory()
        _abandon_stdout()
        place = f" {error.filename}" if error.filename else ""
        _fail(f"cannot read or write{place}: {error.strerror or error}", 1)


def _open_standard_streams() -> None:
    """Open the null device for closed streams (`2>&-`); a file of ours would get their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != number:
                os.dup2(handle, number)
            setattr(
                sys,
                name,
                os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False),
            )


def _run(command: Callable[[], Any]) -> None:
    """Run the command; typer ends it by SystemExit in any case, also after Ctrl-C."""
    try:
        command()
    except SystemExit as end:
        cause = end.__context__
        while cause and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause:
            _fail("interrupted", 130)
        if end.code:
            raise


def _fail(message: str, code: int) -> NoReturn:
    # names may be as long as a file
    cut = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    say(f"qubayes: {cut}", error=True)
    sys.exit(code)


def fail_after_printing(
    failure: QubayesError | None = None, *, interrupted: str | bool = ""
) -> None:
    """Raise what failed after the result was printed, or exit with 130 after an interrupt."""
    if failure is not None:
        raise failure
    if interrupted:
        say(f"qubayes: interrupted; {interrupted}", error=True)
        sys.exit(130)


def say(text: str, *, error: bool = False) -> None:
    """Print lines on stdout or stderr; characters that would steer the terminal are spelled out."""
    stream = sys.stderr if error else sys.stdout
    shown = printable(text)
    encoding = stream.encoding or "utf-8"
    stream.write(shown.encode(encoding, "backslashreplace").decode(encoding) + "\n")


@contextmanager
def log_on_stderr(*, verbose: bool) -> Iterator[None]:
    """Print what the package logs inside the block: warnings, and with `verbose` the stages."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(f"qubayes: {record.getMessage()}", error=True)

    logger, handler = logging.getLogger("qubayes"), Handler()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


def printable(text: str) -> str:
    """Return the text with control characters and changes of direction spelled out."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() or c in "\n\t" else _spelled(c) for c in text)
    )


def on_one_line(text: str) -> str:
    """The text with its line breaks and tabs spelled out as well, for a row of a table."""
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _fail_for_memory() -> NoReturn:
    limit = address_limit()
    where = f" within the limit of {limit >> 20} MB (ulimit -v); raise it, or" if limit else ";"
    _fail(f"out of memory{where} take fewer parents: `qubayes plan` tells what fits", 1)


def _want_of_memory(error: Exception) -> bool:
    """Whether a library could not be loaded, or a thread not be started, for want of memory."""
    words = ("cannot allocate memory", "failed to map segment", "can't start new thread")
    text = str(error).lower()
    return getattr(error, "errno", None) == errno.ENOMEM or any(word in text for word in words)


def _prepare_for_limit() -> None:
    """Raise if too little memory is allowed: libraries hang or abort when an allocation fails."""
    limit = address_limit()
    if limit is None:
        return
    if limit < _LEAST_MEMORY:
        raise QubayesError(
            f"the memory of this process is limited to {limit >> 20} MB; "
            f"raise the limit to {_LEAST_MEMORY >> 20} MB "
            f"or more, with: ulimit -v {_LEAST_MEMORY >> 10}"
        )
    # each thread would take 40 MB, and nothing here needs them
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _abandon_stdout() -> None:
    """Discard unwritten output; Python would try to write it at exit, and complain."""
    with suppress(OSError):  # io.UnsupportedOperation too: a stdout without a file needs no care
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def filled(text: str, solvers: Iterable[str]) -> str:
    """Return the help text with the names of the solvers in place of {solvers}."""
    return text.replace("{solvers}", ", ".join(solvers))


class Command(TyperCommand):
    """A command whose help names the solvers that are registered when it is shown."""

    def get_help(self, ctx: Any) -> str:
        for item in self.params:
            if isinstance(item, TyperOption) and "{solvers}" in (item.help or ""):
                from ..search import registered  # here: the help of other commands needs no numpy

                item.help = filled(item.help or "", registered())
        return super().get_help(ctx)


class Commands(TyperGroup):
    """The commands; `--help` lists them in groups, with the whole first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            summary = (command.help or "").strip().splitlines()[0]
            groups.setdefault(getattr(command, "rich_help_panel", ""), []).append((name, summary))
        for group, rows in groups.items():
            with formatter.section(group):
                formatter.write_dl(rows)


class Result(Protocol):
    """What a command prints: in lines for people, or as JSON."""

    def describe(self) -> Sequence[str]: ...
    def as_json(self) -> Mapping[str, Any]: ...


def print_result(
    result: Result, written: Mapping[Path | None, str] | None = None, *, as_json: bool
) -> None:
    """Print the result as JSON; or in lines, and which files were written, with what they are."""
    if as_json:
        print_json(result.as_json())
    else:
        say("\n".join(result.describe()))
        print_written(written or {})


def print_written(files: Mapping[Path | None, str]) -> None:
    """Print the files that were written, and what they are; None is a file that nobody wanted."""
    rows = [(on_one_line(str(path)), what) for path, what in files.items() if path is not None]
    if rows:
        say("\n".join(["", *aligned(rows)]))


def print_json(value: Any) -> None:
    """Print the value as one JSON document, with escapes for what stdout cannot show."""
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
    encoding = sys.stdout.encoding or "utf-8"
    if (
        not text.replace("\n", "").isprintable()
        or text.encode(encoding, "replace").decode(encoding) != text
    ):
        text = json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    sys.stdout.write(text + "\n")


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[OnProgress]:
    """Return a receiver of progress that draws bars on stderr; a silent one without a terminal."""
    if quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console

    with progress_bars(Console(stderr=True)) as show:
        yield show


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the clock was made, rounded to milliseconds."""
        return round(time.perf_counter() - self._start, 3)
