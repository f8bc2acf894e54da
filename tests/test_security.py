"""Names from data stay names, and keys stay secret."""

import ast
import base64
import hashlib
import html.parser
import json
import logging
import os
import re
import stat
import subprocess
import sys
import threading
import traceback
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest

from candidate_cases import CONTROL, dependent_data
from network_cases import read_graph
from qubayes import QubayesError, ServiceError
from qubayes.cli import app
from qubayes.data import Dataset, write
from qubayes.foundation.files import replacing
from qubayes.learning import learn
from qubayes.machines import (
    KEY_VARIABLE,
    DigitalAnnealer,
    Patience,
    problem_of,
    qubo_from_couplers,
)
from qubayes.network import Network, fit, read_network, write_network
from qubayes.report import Report, draw, render
from service_cases import sender

SOURCES = sorted((Path(__file__).parents[1] / "src/qubayes").rglob("*.py"))
assert len(SOURCES) > 100
# fmt: off
HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "]]>", "<!--", "&lt;b&gt;", "\" onload=\"x",
    "' y", "../../escaped", "/etc/passwd", "$(touch owned)", "`touch owned`", "; touch owned", "-rf", "%s%n",
    "{0.__class__}", "{task.fields}", "[red]x[/red]", "[link=http://x]y[/link]", "=1+1", "\x1b]0;owned\x07",
    "\x1b[31mred", "\x9b31m", "\u202egnp.exe", "a\rb", "x\u2028y", "javascript:alert(1)", "{{script}}",
)  # fmt: skip
# fmt: on


def hostile_data() -> Dataset:
    """Data whose variables and states are all named by an enemy."""
    plain = dependent_data(len(HOSTILE), 60, 1, states=2)
    return Dataset(HOSTILE, tuple((f"{name}0", f"{name}1") for name in HOSTILE), plain.codes)


def hostile_network() -> Network:
    parents = tuple((i - 1,) if i else () for i in range(len(HOSTILE)))
    return fit(Network(HOSTILE, parents), hostile_data())


def run(*arguments: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from qubayes.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


# Markup


class Tags(html.parser.HTMLParser):
    """The tags of a page, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.text.setdefault(self.found[-1][0], []).append(data)


def test_names_are_no_markup_in_the_report() -> None:
    hostile = Tags(render(Report(hostile_network(), "</title><script>x</script>")))
    harmless = Tags(render(Report(Network(("a", "b"), ((), (0,))), "t")))
    assert hostile.found[5:] == harmless.found[5:]  # the same tags, whatever the names
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in harmless.found]
    told = json.loads(
        next(text for text in hostile.text["script"] if text.lstrip().startswith("{"))
    )
    assert {node["name"] for node in told["network"]["nodes"]} == set(HOSTILE)


def test_the_policy_of_the_report_allows_its_own_script_and_style_alone() -> None:
    page = render(Report(hostile_network()))
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (
        rules["default-src"] == "'none'"
        and rules["base-uri"] == "'none'"
        and rules["form-action"] == "'none'"
    )
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script")
    tags = Tags(page)
    for kind, rule in (("script", "script-src"), ("style", "style-src")):
        [allowed] = re.findall(r"'(sha256-[^']+)'", rules[rule])
        hashes = {
            "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            for text in tags.text[kind]
        }
        assert allowed in hashes
    assert not [a for _, its in tags.found for a in its if a.startswith("on")]
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", page
    )


@pytest.mark.parametrize("ending", [".xmlbif", ".graphml"])
def test_names_are_no_markup_in_xml(tmp_path: Path, ending: str) -> None:
    allowed = [name for name in HOSTILE if not re.search("[\x00-\x1f]", name)]
    network = Network(tuple(allowed), tuple((i - 1,) if i else () for i in range(len(allowed))))
    plain = dependent_data(len(allowed), 60, 1, states=2)
    states = tuple((f"{name}0", f"{name}1") for name in allowed)
    network = fit(network, Dataset(network.names, states, plain.codes))
    path = tmp_path / f"x{ending}"
    write_network(network, path)
    assert read_network(path).parent_names() == network.parent_names()
    assert not {element.tag for element in ElementTree.parse(path).iter()} & {"script", "img", "b"}


def test_names_are_no_markup_in_pictures_and_quoted_in_dot(tmp_path: Path) -> None:
    network = hostile_network()
    tags = {
        element.tag.rpartition("}")[2] for element in ElementTree.fromstring(draw(network)).iter()
    }
    assert tags <= {"svg", "title", "style", "rect", "g", "path", "text"}
    write_network(network, tmp_path / "x.dot")
    assert read_graph(tmp_path / "x.dot").parent_names() == network.parent_names()
    for line in (tmp_path / "x.dot").read_text().split(";\n")[1:-1]:
        assert re.fullmatch(r'\s*"(?:[^"\\]|\\.)*"(?: -> "(?:[^"\\]|\\.)*")?', line, re.DOTALL)


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    write(hostile_data(), tmp_path / "x.csv")
    learned = run(
        "learn",
        "x.csv",
        "-m",
        "1",
        "--moves",
        "50",
        "--solver",
        "anneal",
        "--json",
        folder=tmp_path,
    )
    assert learned.returncode == 0, learned.stderr
    assert set(json.loads(learned.stdout)["network"]) == set(HOSTILE)
    refused = run("learn", "x.csv", "--ignore", "nobody", folder=tmp_path)
    assert refused.returncode == 1 and "columns are '<script>" in refused.stderr
    cycle = tmp_path / "k.json"
    cycle.write_text(
        json.dumps({"required": [["\x1b[31mred", "\x9b31m"], ["\x9b31m", "\x1b[31mred"]]})
    )
    told = run("learn", "x.csv", "--knowledge", "k.json", folder=tmp_path)
    assert told.returncode == 1 and "\\x1b[31mred" in told.stderr
    for done in (learned, refused, told):
        assert not CONTROL.search(done.stdout) and not CONTROL.search(done.stderr)


def test_stamps_from_files_do_not_steer_the_terminal(tmp_path: Path) -> None:
    stamp = json.dumps({"score": "\x1b[31mbdeu\u202e", "arities": "\x1b]0;x\x07"})
    (tmp_path / "x.jkl").write_text(f"2\n# qubayes {stamp}\na 1\n-1 0\nb 2\n-2 0\n-1 1 a\n")
    done = run("solve", "x.jkl", "--moves", "50", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\\x1b[31mbdeu\\u202e" in done.stdout and not CONTROL.search(done.stdout)


# Files and programs


def test_names_are_no_paths_and_no_shell_words(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    result = learn(
        hostile_data(), 1, solver="anneal", time_limit=None, moves=50, run_dir=inner / "run"
    )
    write_network(result.network, inner / "x.json")
    (inner / "x.html").write_text(render(result.report_contents()))
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert made <= {f"a/b/c/{n}" for n in ("x.json", "x.html")} | {
        f"a/b/c/run/{n}"
        for n in ("run.json", "run.lock", "candidates.qbc", "subsets.qbs", "solution.json")
    }


def test_no_shell_is_started_and_no_code_is_made_of_data() -> None:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "os.system", "os.popen", "compile"), (
                f"{path}:{node.lineno}"
            )
            shells = [k for k in node.keywords if k.arg == "shell"]
            assert not shells, f"{path}:{node.lineno}"
            if called.startswith("subprocess."):  # a list of words, never a text
                assert "command" in ast.unparse(node.args[0]) or isinstance(node.args[0], ast.List)


def test_no_pickle() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import | ast.ImportFrom)
                else []
            )
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.split(".")[0] for n in names} & {
                "pickle",
                "dill",
                "cloudpickle",
                "joblib",
                "shelve",
                "marshal",
            }
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("np.load", "numpy.load", "np.save", "np.savez"), (
                    f"{path}:{node.lineno}"
                )
                for keyword in node.keywords:
                    if keyword.arg == "allow_pickle":
                        assert ast.unparse(keyword.value) == "False"


def test_programs_beside_the_data_are_not_run(tmp_path: Path) -> None:
    table = dependent_data(3, 40, 1)
    from qubayes.data import write

    write(table, tmp_path / "x.parquet")
    for name in ("numpy", "polars", "qubayes", "json", "struct"):
        (tmp_path / f"{name}.py").write_text("open('owned', 'w')\n")
    script = str(Path(sys.executable).parent / "qubayes")
    if not Path(script).exists():
        pytest.skip("the command is not installed")
    done = subprocess.run(
        [script, "candidates", "x.parquet", "-m", "1"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "owned").exists()


def test_unfinished_files_are_private(tmp_path: Path) -> None:
    with replacing(tmp_path / "x.txt") as file:
        [temporary] = tmp_path.iterdir()
        assert stat.S_IMODE(temporary.stat().st_mode) & 0o077 == 0
        file.write("x")
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


# Keys

KEY = "k3y-Very-Secret-4711"


@contextmanager
def service(status: int, body: bytes) -> Iterator[str]:
    """A server on this machine that answers everything with this."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            echoed = body.replace(b"KEY", (self.headers["X-Api-Key"] or "").encode())
            self.send_response(status, "no " + KEY)
            self.send_header("Content-Length", str(len(echoed)))
            self.end_headers()
            self.wfile.write(echoed)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [200, 302, 400, 401, 500])
@pytest.mark.parametrize(
    "body",
    [
        b"KEY",
        b'{"error": {"title": "KEY", "message": "your KEY is wrong"}}',
        b'{"status": "Error", "message": "KEY"}',
        b'{"status": "KEY"}',
        b'{"job_id": "KEY/../x"}',
        b'{"status": "Done", "qubo_solution": {"solutions": [{"configuration": {"KEY": true, "1": true}}]}}',
    ],
)
def test_the_key_is_in_no_error_trace_or_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int, body: bytes
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    problem = problem_of(
        qubo_from_couplers(np.ones(2), np.array([0]), np.array([1]), np.array([1.0]))
    )
    with service(status, body) as address:
        client = DigitalAnnealer(address, patience=Patience(5.0, 1, 0.0, 0.0))
        for call in (
            lambda: client.submit(problem),
            lambda: client.poll("job"),
            lambda: client.fetch("job", 2),
        ):
            try:
                call()
            except QubayesError as error:
                told = (
                    "".join(traceback.format_exception(error))
                    + repr(error)
                    + repr(error.__context__)
                )
                assert KEY not in told
        assert KEY not in repr(client) and KEY not in str(vars(client))
    assert KEY not in caplog.text


def answers_with(text: str) -> Iterator[bytes]:
    """Every place of an answer in which a service can put a text."""
    ok = b"HTTP/1.1 200 OK\r\n"
    raw = text.encode()
    yield b"HTTP/1.1 200 " + raw + b"\r\nContent-Length: 2\r\n\r\n{}"
    yield b"HTTP/1.1 500 " + raw + b"\r\nRetry-After: " + raw + b"\r\nContent-Length: 0\r\n\r\n"
    yield b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/" + raw + b"\r\n\r\n"
    yield b"HTTP/9.9 " + raw + b"\r\n\r\n"
    yield b"HTTP/1.1 " + raw + b"\r\n\r\n"
    yield raw
    yield ok + b"Transfer-Encoding: chunked\r\n\r\n" + raw + b"\r\n" + raw
    yield ok + b"Content-Length: 9999\r\n\r\n" + raw
    yield ok + b"X: " + raw + b"\r\n" + raw + b"\r\n\r\n" + raw
    value: object
    for value in (text, [text, text], {text: text}, {"title": {text: text}, "message": [text]}):
        for document in (
            value,
            {"status": value},
            {"status": "Error", "message": value},
            {"status": "Done", "message": value},
            {"job_id": value},
            {"error": {"title": value, "message": value}},
            {"title": value, "message": value},
            {"status": "Done", "qubo_solution": {"solutions": value}},
            {
                "status": "Done",
                "qubo_solution": {"solutions": [{"configuration": {text: value, "1": True}}]},
            },
            {
                "status": "Done",
                "qubo_solution": {"solutions": [{"configuration": {"0": value, "1": True}}]},
            },
        ):
            body = json.dumps(document).encode()
            for status in (b"200", b"400"):
                yield b"HTTP/1.1 %b X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


def parts_in(text: str, key: str) -> list[str]:
    """The parts of the key of four characters that stand in the text."""
    parts = {key[i : i + 4] for i in range(len(key) - 3)}
    return [part for part in parts if part.lower() in text.lower()]


@pytest.mark.parametrize("key", [KEY, "QZ'WX\"VB\\JK'QQ\\\\XX", "b03d51f90e28a4c6"])
@pytest.mark.parametrize("padding", [0, 34, 290])
def test_no_part_of_the_key_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, key: str, padding: int
) -> None:
    """Whatever place the service puts it in, and wherever the text is cut: before the key, in it, after it."""
    monkeypatch.setenv(KEY_VARIABLE, key)
    caplog.set_level(logging.DEBUG)
    problem = problem_of(
        qubo_from_couplers(np.ones(2), np.array([0]), np.array([1]), np.array([1.0]))
    )
    texts = [
        "-" * padding + key,
        key[:7] + "-" * padding + key[2:],
        "-" * padding + key.swapcase() + "!" * 400,
    ]
    answers = [answer for text in texts for answer in answers_with(text)]
    told = []
    with sender([answer for answer in answers for _ in range(2)]) as address:
        client = DigitalAnnealer(address, patience=Patience(5.0, 1, 0.0, 0.0))
        for _ in answers:
            for call in (
                lambda: client.submit(problem),
                lambda: client.wait("job", 2, 0.0),
            ):
                try:
                    call()
                except ServiceError as error:
                    behind = [error, error.__context__, error.__cause__]
                    told += [str(one) for one in behind]
                    told += [repr(one) for one in behind if "'" not in key]
    assert len(told) > 3 * len(answers)
    assert not [line for line in told if parts_in(line, key) or "\n" in line]
    assert not parts_in(caplog.text + repr(client) + str(vars(client)), key)


def test_a_job_that_is_called_as_the_key_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "qz47-Wx19_Vb"
    monkeypatch.setenv(KEY_VARIABLE, key)
    problem = problem_of(
        qubo_from_couplers(np.ones(2), np.array([0]), np.array([1]), np.array([1.0]))
    )
    documents = [{"job_id": key}, {"status": "Running"}, {"job_id": key}, {"status": "Waiting"}, {}]
    bodies = [json.dumps(document).encode() for document in documents]
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
    with sender([head % len(body) + body for body in bodies]) as address:
        client = DigitalAnnealer(address, patience=Patience(5.0, 1, 0.0, 0.0))
        calls = (
            lambda: client.solve(problem, time_limit=-1.0),
            lambda: client.fetch(client.submit(problem), 2),
            lambda: client.poll(f"{key}/"),
        )
        for call in calls:
            with pytest.raises(ServiceError) as caught:
                call()
            assert not parts_in("".join(traceback.format_exception(caught.value)), key)


def test_the_key_is_in_nothing_that_a_run_leaves(tmp_path: Path) -> None:
    write(dependent_data(3, 60, 1), tmp_path / "x.csv")
    variables = {KEY_VARIABLE: KEY, "DWAVE_API_TOKEN": KEY}
    arguments = (
        "-m",
        "1",
        "--moves",
        "50",
        "--solver",
        "anneal",
        "--run-dir",
        "run",
        "--report",
        "x.html",
        "-o",
        "x.json",
    )
    done = run("learn", "x.csv", *arguments, "--trace", "t.csv", folder=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert KEY not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 6
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_keys_are_read_from_the_environment_alone() -> None:
    """No option of a command takes a key, and errors show no local variables."""
    import typer

    command = typer.main.get_command(app)
    options = {name for sub in command.commands.values() for p in sub.params for name in p.opts}
    assert "--seed" in options and not [
        name for name in options if re.search("key|token|secret|password", name)
    ]
    assert app.pretty_exceptions_enable is False or app.pretty_exceptions_show_locals is False


def test_what_is_named_like_a_secret_is_hidden_in_the_report() -> None:
    page = render(
        Report(
            Network(("a",), ((),)),
            provenance={"settings": {"api_key": KEY, "Token": KEY, "seed": 1}},
        )
    )
    assert KEY not in page and "(hidden)" in page
