"""The Digital Annealer: request bodies, and the client against a server on loopback that speaks its interface."""

import itertools
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from qubayes import QubayesError, ServiceError, SettingError
from qubayes.machines import (
    KEY_VARIABLE,
    AnnealerParameters,
    AnnealerProblem,
    DigitalAnnealer,
    Patience,
    digital_annealer_json,
    energy,
    inequalities_of,
    problem_of,
    qubo_from_couplers,
)

KEY = "s3cret-KEY-0123456789"


def small_problem():
    objective = qubo_from_couplers([1.5, 0.0, -2.0, 0.0, 0.0], [0, 1], [2, 2], [1 / 3, -4.0], 7.0)
    penalty = qubo_from_couplers([0.0, 0.5, 0.0, 0.0, 0.0], [1], [3], [2.0], 1.0)
    rows = inequalities_of([([0, 1, 2], [1.0, 1.0, 1.0], -2.0, 3)])
    return AnnealerProblem(objective, penalty, rows, tuple("abcde"))


def body(problem, parameters=None):
    return json.loads(b"".join(digital_annealer_json(problem, parameters)))


def polynomial(terms):
    """{bits: coefficient} of a list of terms, repeated ones summed, zeros dropped."""
    sums = {}
    for term in terms:
        bits = tuple(sorted(term["p"]))
        sums[bits] = sums.get(bits, 0.0) + term["c"]
    return {bits: c for bits, c in sums.items() if c}


def value(terms, state):
    return sum(term["c"] for term in terms if all(state[bit] for bit in term["p"]))


def test_body_has_the_energies_of_the_problem():
    problem = small_problem()
    request = body(problem)
    for state in itertools.product([0, 1], repeat=5):
        assert value(request["binary_polynomial"]["terms"], state) == pytest.approx(
            energy(problem.objective, state)
        )
        assert value(request["penalty_binary_polynomial"]["terms"], state) == energy(
            problem.penalty, state
        )
        assert value(request["inequalities"][0]["terms"], state) == sum(state[:3]) - 2
    assert request["inequalities"][0]["lambda"] == 3
    assert request["fujitsuDA3"] == {"time_limit_sec": 10}


def test_every_bit_stands_in_the_objective():
    terms = body(small_problem())["binary_polynomial"]["terms"]
    assert {bit for term in terms for bit in term["p"]} == set(range(5))
    assert sorted(term["p"] for term in terms if term["c"] == 0.0) == [[3], [4]]


def test_parameters_that_are_set_are_sent():
    parameters = AnnealerParameters(
        time_limit_sec=60,
        num_run=2,
        gs_level=0,
        penalty_coef=10,
        guidance_config={4: True, 0: False},
    )
    expected = {"time_limit_sec": 60, "num_run": 2, "gs_level": 0, "penalty_coef": 10}
    assert body(small_problem(), parameters)["fujitsuDA3"] == expected | {
        "guidance_config": {"0": False, "4": True}
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"time_limit_sec": 0},
        {"time_limit_sec": 3601},
        {"time_limit_sec": 1.5},
        {"num_run": 1025},
        {"num_group": 17},
        {"num_output_solution": 0},
        {"gs_level": 101},
        {"gs_cutoff": -1},
        {"gs_cutoff": True},
        {"penalty_auto_mode": 10_001},
        {"penalty_coef": 0},
        {"penalty_inc_rate": 99},
    ],
)
def test_parameters_outside_their_ranges_are_refused(settings):
    with pytest.raises(SettingError, match=next(iter(settings))):
        AnnealerParameters(**settings)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("time_limit_sec", 1, 3600),
        ("num_run", 1, 1024),
        ("num_group", 1, 16),
        ("num_output_solution", 1, 1024),
        ("gs_level", 0, 100),
        ("gs_cutoff", 0, 1_000_000),
        ("penalty_auto_mode", 0, 10_000),
        ("penalty_coef", 1, 2**63 - 1),
        ("penalty_inc_rate", 100, 200),
    ],
)
def test_parameters_at_the_ends_of_their_ranges(name, least, most):
    for value in (least, most):
        assert getattr(AnnealerParameters(**{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(SettingError, match=name):
            AnnealerParameters(**{name: value})


def test_patience_that_would_never_begin_or_end_is_refused():
    """Each value alone, at its limit and beyond it."""
    for fine in (
        {"timeout": 0.01},
        {"attempts": 1},
        {"first_delay": 0.0},
        {"first_delay": 30.0},
        {"longest_delay": 999_999.0},
        {"first_delay": 0.25, "longest_delay": 0.25},
    ):
        Patience(**fine)
    for wrong in (
        {"timeout": 0.0},
        {"attempts": 0},
        {"first_delay": -0.1},
        {"first_delay": 30.5},
        {"longest_delay": 1e6},
        {"timeout": float("nan")},
    ):
        with pytest.raises(SettingError, match=r"timeout > 0, attempts >= 1"):
            Patience(**wrong)


def test_problems_that_the_machine_refuses():
    small = qubo_from_couplers([1.0, 2.0], [0], [1], [3.0])
    names = ("a", "b")
    with pytest.raises(SettingError, match="100,000"):
        problem_of(qubo_from_couplers(np.zeros(100_001), [], [], []))
    problem_of(qubo_from_couplers([2.0**52], [], [], []))
    with pytest.raises(SettingError, match=r"2\^52"):
        problem_of(qubo_from_couplers([np.nextafter(2.0**52, np.inf)], [], [], []))
    with pytest.raises(SettingError, match=r"2\^52"):
        problem_of(qubo_from_couplers([0.0], [], [], [], -1e17))
    AnnealerProblem(
        small, small, inequalities_of([([0], [1.0], 0.0, 1), ([0], [1.0], 0.0, 10**9)]), names
    )
    with pytest.raises(SettingError, match="lambda"):
        AnnealerProblem(small, small, inequalities_of([([0], [1.0], 0.0, 0)]), names)
    with pytest.raises(SettingError, match="lambda"):
        AnnealerProblem(small, small, inequalities_of([([0], [1.0], 0.0, 10**9 + 1)]), names)
    with pytest.raises(SettingError, match="names a bit"):
        AnnealerProblem(small, small, inequalities_of([([2], [1.0], 0.0, 1)]), names)
    with pytest.raises(SettingError, match="have 2, 1, 2 bits"):
        AnnealerProblem(small, qubo_from_couplers([0.0], [], [], []), inequalities_of([]), names)
    with pytest.raises(SettingError, match="guidance_config"):
        body(problem_of(small), AnnealerParameters(guidance_config={2: True}))


def test_body_agrees_with_amplify(tmp_path):
    """The Amplify SDK writes the request of a dry run to a file without asking any service."""
    amplify = pytest.importorskip("amplify")
    x = amplify.VariableGenerator().array("Binary", 5)
    objective = 1.5 * x[0] - 2.0 * x[2] + 0.1 * x[0] * x[2] - 4.0 * x[1] * x[2] + 7.0
    equal = amplify.equal_to(x[1] + x[3], 1)
    at_most = amplify.less_equal(x[0] + x[1] + x[4], 2)
    client = amplify.FujitsuDA4Client()
    client.token, client.url = "none", "http://127.0.0.1:9"
    client.parameters.time_limit_sec = 20
    client.parameters.num_run = 4
    client.write_request_data = str(tmp_path / "request.json")
    client.solve(objective, equal + at_most, dry_run=True)
    theirs = json.loads((tmp_path / "request.json").read_text())

    problem = AnnealerProblem(
        qubo_from_couplers([1.5, 0.0, -2.0, 0.0, 0.0], [0, 1], [2, 2], [0.1, -4.0], 7.0),
        qubo_from_couplers([0.0, -1.0, 0.0, -1.0, 0.0], [1], [3], [2.0], 1.0),  # (x1 + x3 - 1)^2
        inequalities_of([([0, 1, 4], [1.0, 1.0, 1.0], -2.0, 1)]),
        tuple("abcde"),
    )
    ours = body(problem, AnnealerParameters(time_limit_sec=20, num_run=4))
    assert ours.keys() == theirs.keys()
    assert ours["fujitsuDA3"] == theirs["fujitsuDA3"]
    for part in ("binary_polynomial", "penalty_binary_polynomial"):
        assert polynomial(ours[part]["terms"]) == polynomial(theirs[part]["terms"])
    assert len(ours["inequalities"]) == len(theirs["inequalities"]) == 1
    assert ours["inequalities"][0].keys() == theirs["inequalities"][0].keys()
    assert ours["inequalities"][0]["lambda"] == theirs["inequalities"][0]["lambda"]
    assert polynomial(ours["inequalities"][0]["terms"]) == polynomial(
        theirs["inequalities"][0]["terms"]
    )


class Service:
    """A Digital Annealer on loopback: it solves by trying all states. Faults are played before the next answers."""

    def __init__(self):
        self.jobs = {}
        self.seen = []  # (method, path, headers)
        self.faults = []  # callables (handler) -> None, or (status, headers, bytes)
        self.polls_until_done = 1
        self.lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                service.answer(self)

            do_GET = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/da"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler):
        content = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self.lock:
            self.seen.append((handler.command, handler.path, dict(handler.headers)))
            fault = self.faults.pop(0) if self.faults else None
        if callable(fault):
            fault(handler)
            return
        status, headers, data = fault or self.reply(handler, content)
        send(handler, status, headers, data)

    def reply(self, handler, content):
        if handler.headers.get("X-Api-Key") != KEY:
            return error(401, "Unauthorized", "Authentication failed.")
        path = handler.path.removeprefix("/da/v4/async")
        if (handler.command, path) == ("POST", "/qubo/solve"):
            job = f"job-{len(self.jobs)}"
            self.jobs[job] = {"request": json.loads(content), "polls": 0, "status": "Waiting"}
            return document({"job_id": job})
        if (handler.command, path) == ("POST", "/jobs/cancel"):
            job = self.jobs.get(json.loads(content)["job_id"])
            if job:
                job["status"] = "Canceled"
                return document({"status": "Canceled"})
        name = path.removeprefix("/jobs/result/")
        if name not in self.jobs or path == name:
            return error(404, "Resource Not Found", "Resource not found.")
        if handler.command == "DELETE":
            del self.jobs[name]
            return document({"status": "Deleted"})
        return self.result(self.jobs[name])

    def result(self, job):
        job["polls"] += 1
        if job["status"] != "Canceled":
            job["status"] = "Done" if job["polls"] > self.polls_until_done else "Running"
        if job["status"] != "Done":
            return document({"status": job["status"]})
        terms = job["request"]["binary_polynomial"]["terms"]
        bits = sorted({bit for term in terms for bit in term["p"]})
        states = itertools.product([False, True], repeat=len(bits))
        best = sorted(
            (value(terms, dict(zip(bits, state, strict=True))), state) for state in states
        )[:3]
        solutions = [
            {
                "energy": found,
                "penalty_energy": 0.0,
                "frequency": 1,
                "configuration": {str(bit): x for bit, x in zip(bits, state, strict=True)},
            }
            for found, state in reversed(best)
        ]
        timing = {"solve_time": "1", "total_elapsed_time": "2"}
        found = {"progress": [], "result_status": True, "solutions": solutions, "timing": timing}
        return document({"qubo_solution": found, "status": "Done"})


def send(handler, status, headers, data):
    handler.send_response(status)
    for name, text in ({"Content-Length": str(len(data))} | headers).items():
        handler.send_header(name, text)
    handler.end_headers()
    handler.wfile.write(data)


def document(content, status=200):
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()


def error(code, title, message):
    return document({"error": {"code": code, "title": title, "message": message}}, code)


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    service = Service()
    yield service
    service.close()


def client(service, **changes):
    patience = Patience(
        **({"timeout": 5.0, "first_delay": 0.01, "longest_delay": 0.05, "seed": 1} | changes)
    )
    return DigitalAnnealer(service.url, patience=patience)


def calls(service):
    return [f"{method} {path.removeprefix('/da/v4/async')}" for method, path, _ in service.seen]


def test_solve_from_submit_to_delete(service):
    problem = problem_of(qubo_from_couplers([1.0, -2.0, 0.0], [0, 1], [1, 2], [3.0, -4.0], 0.5))
    service.polls_until_done = 3
    found = client(service).solve(problem)
    assert found.energies[0] == -5.5
    assert found.states[0].tolist() == [False, True, True]
    assert energy(problem.objective, found.states).tolist() == found.energies.tolist()
    assert found.energies.tolist() == sorted(found.energies.tolist())
    assert found.frequencies.tolist() == [1, 1, 1]
    assert calls(service) == [
        "POST /qubo/solve",
        *["GET /jobs/result/job-0"] * 4,
        "DELETE /jobs/result/job-0",
    ]
    assert service.jobs == {}
    assert {headers["X-Api-Key"] for _, _, headers in service.seen} == {KEY}


def test_single_steps(service):
    annealer = client(service)
    job = annealer.submit(small_problem(), AnnealerParameters(time_limit_sec=7))
    assert service.jobs[job]["request"] == body(
        small_problem(), AnnealerParameters(time_limit_sec=7)
    )
    assert annealer.poll(job) == "Running"
    assert annealer.poll(job) == "Done"
    assert annealer.fetch(job, 5).states.shape == (3, 5)
    annealer.delete(job)
    with pytest.raises(ServiceError, match="status 404: Resource Not Found; Resource not found"):
        annealer.poll(job)
    with pytest.raises(ServiceError, match="404"):
        annealer.delete(job)
    other = annealer.submit(small_problem())
    with pytest.raises(ServiceError, match="running; fetch it when it is done"):
        annealer.fetch(other, 5)
    assert annealer.cancel(other) == "Canceled"
    with pytest.raises(ServiceError, match="canceled and has no solution"):
        annealer.fetch(other, 5)


def test_versions(service):
    with pytest.raises(SettingError, match="v4, v3c"):
        DigitalAnnealer(service.url, version="v2")
    with pytest.raises(ServiceError, match="404"):
        DigitalAnnealer(service.url, version="v3c").poll("job")
    assert service.seen[0][1] == "/da/v3c/async/jobs/result/job"


def test_large_body_is_sent_whole(service):
    n = 2000
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n, (2, 60_000))
    problem = problem_of(qubo_from_couplers(rng.normal(size=n), i, j, rng.normal(size=60_000)))
    job = client(service, timeout=30.0).submit(problem)
    terms = service.jobs[job]["request"]["binary_polynomial"]["terms"]
    assert len(terms) == problem.objective.couplers + n
    assert int(service.seen[0][2]["Content-Length"]) > 2_000_000


def test_passing_failures_are_repeated_where_that_is_safe(service):
    annealer = client(service)
    job = annealer.submit(small_problem())
    service.faults = [
        error(500, "Internal Server Error", "x"),
        error(502, "Bad Gateway", "x"),
        closed,
        truncated,
    ]
    assert annealer.poll(job) == "Running"
    assert len(calls(service)) == 6
    service.faults = [error(503, "Unavailable", "x")]
    assert annealer.cancel(job) == "Canceled"
    service.faults = [lost_after_doing(service)]
    annealer.delete(job)  # the first attempt did it, the second finds nothing
    assert service.jobs == {}


def test_submission_is_not_repeated_once_it_may_have_been_taken(service):
    for fault in (
        error(500, "Internal Server Error", "broken"),
        error(504, "Timeout", "broken"),
        closed,
        truncated,
    ):
        service.seen.clear()
        service.faults = [fault]
        with pytest.raises(ServiceError):
            client(service).submit(small_problem())
        assert calls(service) == ["POST /qubo/solve"]


def test_submission_is_repeated_when_it_was_turned_away(service):
    service.faults = [error(429, "Too Many Requests", "slow"), error(503, "Unavailable", "x")]
    assert client(service).submit(small_problem()) == "job-0"
    assert len(calls(service)) == 3


@pytest.fixture
def pauses(monkeypatch):
    """The seconds that the client would have slept."""
    slept = []
    monkeypatch.setattr("qubayes.machines.annealer_client.time.sleep", slept.append)
    return slept


def test_retry_after_is_kept_up_to_the_longest_delay(service, pauses):
    annealer = client(service, longest_delay=20.0)
    job = annealer.submit(small_problem())
    for delay in ("7", "86400", "0"):
        service.faults = [(429, {"Retry-After": delay}, b"{}")]
        annealer.poll(job)
    assert pauses[:2] == [7.0, 20.0]
    assert 0 < pauses[2] <= 0.01  # the client's own delay is longer


def test_attempts_end(service):
    service.faults = [error(500, "Internal Server Error", "still broken")] * 10
    with pytest.raises(ServiceError, match="status 500: Internal Server Error; still broken"):
        client(service, attempts=3).poll("job")
    assert len(service.seen) == 3


def test_jitter_is_that_of_the_seed(service, pauses):
    for _ in range(2):
        service.faults = [error(500, "x", "x")] * 6
        with pytest.raises(ServiceError):
            client(service, first_delay=1.0, longest_delay=4.0).poll("job")
    assert len(pauses) == 10
    assert pauses[:5] == pauses[5:]
    assert all(
        0.5 * full <= pause <= full for pause, full in zip(pauses, [1, 2, 4, 4, 4], strict=False)
    )


def test_slow_answers_end_at_the_time_out(service):
    started = threading.Event()
    for fault in (silent(started), dripping(started), dripping_headers(started)):
        started.clear()
        service.faults = [fault]
        with pytest.raises(ServiceError, match=r"no complete answer within 0\.4 s"):
            client(service, timeout=0.4, attempts=1).poll("job")
        assert started.is_set()


def test_wait_ends_at_its_limit_and_names_the_job(service):
    service.polls_until_done = 10**6
    annealer = client(service)
    with pytest.raises(ServiceError, match=r"job-0 is still running after 0\.2 s"):
        annealer.solve(small_problem(), time_limit=0.2)
    assert "job-0" in service.jobs  # the result can still be fetched


def test_interrupt_cancels_and_deletes(service, monkeypatch):
    service.polls_until_done = 10**6

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("qubayes.machines.annealer_client.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        client(service).solve(small_problem())
    assert calls(service)[-2:] == ["POST /jobs/cancel", "DELETE /jobs/result/job-0"]


def solved(**changes):
    solution = {
        "energy": 1.0,
        "penalty_energy": 0.0,
        "frequency": 1,
        "configuration": {"0": True, "1": False},
    }
    return document({"status": "Done", "qubo_solution": {"solutions": [solution | changes]}})


@pytest.mark.parametrize(
    "answer",
    [
        (200, {}, b""),
        (200, {}, b"not json"),
        (200, {}, b"[1, 2]"),
        (200, {}, b"\xff\xfe"),
        (200, {}, b'{"status": "Done", "qubo_solution": {"solutions": [NaN]}}'),
        (200, {}, b"[" * 100_000),
        document({}),
        document({"status": 5}),
        document({"status": "Thinking"}),
        document({"status": "Done"}),
        document({"status": "Done", "message": "no solution\nfound"}),
        document({"status": "Error"}),
        document({"status": "Done", "qubo_solution": {}}),
        document({"status": "Done", "qubo_solution": {"solutions": [5]}}),
        solved(configuration={"0": True}),
        solved(configuration={"0": True, "1": 1}),
        solved(configuration={"0": True, "2": True}),
        solved(configuration={"0": True, "00": True}),
        solved(configuration={"0": True, "x": True}),
        solved(configuration={"0": True, "99999999999999999999": True}),
        solved(configuration=None),
        solved(energy="low"),
        solved(energy=None),
        solved(energy=10**400),
        solved(frequency=True),
        (204, {}, b""),
        (302, {"Location": "http://127.0.0.1:9/elsewhere"}, b""),
        (418, {}, b"<html>teapot</html>"),
        document({"error": "text"}, 400),
        document({"error": {"title": ["x"], "message": {"a": 1}}}, 400),
    ],
)
def test_malformed_answers_are_one_line(service, answer):
    service.faults = [answer] * 3
    with pytest.raises(QubayesError) as caught:
        client(service, attempts=1).fetch("job", 2)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_well_formed_answer_is_taken(service):
    service.faults = [solved()]
    assert client(service).fetch("job", 2).states.tolist() == [[True, False]]


@pytest.mark.parametrize("identifier", ["", "a/b", "../x", "a b", "x" * 200, 5, None])
def test_identifiers_that_are_none(service, identifier):
    service.faults = [document({"job_id": identifier})]
    with pytest.raises(ServiceError):
        client(service).submit(small_problem())
    if isinstance(identifier, str):
        with pytest.raises(ServiceError, match="not a job"):
            client(service).delete(identifier)
        assert len(service.seen) == 1


def test_long_answers_are_refused(service):
    service.faults = [(200, {}, b" " * 5000)] * 2
    annealer = DigitalAnnealer(service.url, largest_answer=1000)
    with pytest.raises(ServiceError, match="longer than 1,000 bytes"):
        annealer.poll("job")
    assert len(service.seen) == 1


def test_refusal_before_the_body_is_read(service):
    """A server that answers and closes early is heard, not reported as a broken connection."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 3000, (2, 200_000))
    problem = problem_of(qubo_from_couplers(np.ones(3000), i, j, rng.normal(size=200_000)))
    with early_refusal() as url, pytest.raises(ServiceError, match=r"status 413|connection failed"):
        DigitalAnnealer(url, patience=Patience(timeout=5.0, attempts=1)).submit(problem)


def test_redirects_do_not_get_the_key(service):
    other = Service()
    try:
        service.faults = [(307, {"Location": f"{other.url}/v4/async/jobs/result/job"}, b"")]
        with pytest.raises(ServiceError, match="redirects"):
            client(service).poll("job")
        assert other.seen == []
    finally:
        other.close()


def test_no_service_at_the_address(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    annealer = DigitalAnnealer(
        f"http://127.0.0.1:{port}", patience=Patience(attempts=2, first_delay=0.01)
    )
    with pytest.raises(ServiceError, match="no connection: Connection refused"):
        annealer.submit(small_problem())


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/da",
        "http://127.0.0.1.example.org/da",
        "http://10.0.0.1/da",
        "ftp://127.0.0.1/da",
        "https://user:word@example.org/da",
        "https://example.org/da?key=1",
        "https://example.org/da#x",
        "https:///da",
        "https://example.org:99999/",
        "https://exa mple.org/",
        "https://example.org/\r\nX: y",
        "example.org",
        "",
    ],
)
def test_addresses_where_no_key_is_sent(url):
    with pytest.raises(SettingError):
        DigitalAnnealer(url)


@pytest.mark.parametrize(
    "url",
    ["https://example.org/da/", "http://localhost:8/x", "http://[::1]:8/", "http://127.8.8.8"],
)
def test_addresses_that_are_allowed(url):
    assert "DigitalAnnealer(http" in repr(DigitalAnnealer(url))


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "ümlaut", "null\0"[:4] + "\t"])
def test_keys_that_are_none_are_not_shown(service, monkeypatch, key):
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(SettingError, match=KEY_VARIABLE) as caught:
        client(service).submit(small_problem())
    assert not key or key not in str(caught.value)
    assert service.seen == []


def test_wrong_key(service, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "wrong")
    with pytest.raises(
        ServiceError, match=r"status 401: Unauthorized; Authentication failed\.: check the key"
    ):
        client(service).submit(small_problem())
    assert len(service.seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        error(400, "Bad Request", f"the key {KEY} is odd"),
        document({"status": f"about {KEY}"}),
        document({"status": "Done", "message": f"the key {KEY}"}),
        document({"status": "Error", "message": f"the key {KEY}"}),
        (302, {"Location": f"https://example.org/{KEY}"}, b""),
        lambda handler: handler.wfile.write(f"HTTP/9.9 {KEY} {KEY}\r\n\r\n".encode()),
    ],
)
def test_key_appears_nowhere(service, answer, caplog, capsys):
    service.faults = [answer] * 2
    annealer = client(service, attempts=1)
    with caplog.at_level(0), pytest.raises(ServiceError) as caught:
        annealer.fetch("job", 2)
    told = (
        "".join(traceback.format_exception(caught.value))
        + repr(annealer)
        + str(vars(annealer))
        + caplog.text
    )
    assert KEY not in told + "".join(capsys.readouterr())
    behind = caught.value.__context__
    while behind is not None:
        assert KEY not in repr(behind)
        behind = behind.__context__


def closed(handler):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def truncated(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"status": ')
    handler.wfile.flush()
    closed(handler)


def lost_after_doing(service):
    def fault(handler):
        service.reply(handler, b"")
        closed(handler)

    return fault


def silent(started):
    def fault(handler):
        started.set()
        time.sleep(1.5)
        closed(handler)

    return fault


def dripping(started):
    def fault(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        started.set()
        drip(handler, b" ")

    return fault


def dripping_headers(started):
    def fault(handler):
        started.set()
        drip(handler, b"HTTP/1.1 200 OK\r\nX: y\r\n")

    return fault


def drip(handler, data):
    """A byte now and then: each read succeeds, the answer never ends."""
    handler.close_connection = True
    try:
        for at in range(15):
            handler.wfile.write(data[at % len(data) : at % len(data) + 1])
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        return


class early_refusal:  # noqa: N801
    """A server that reads only the headers, answers 413 and closes."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def serve(self):
        connection, _ = self.socket.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(
                b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            )
            time.sleep(0.3)

    def __exit__(self, *exception):
        self.thread.join(2)
        self.socket.close()


def test_secure_address_on_a_plain_server(service):
    annealer = DigitalAnnealer(
        service.url.replace("http:", "https:"), patience=Patience(timeout=5.0, attempts=1)
    )
    with pytest.raises(ServiceError, match="no connection") as caught:
        annealer.submit(small_problem())
    assert "\n" not in str(caught.value)
    assert service.seen == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make a certificate")
    place = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command.split(), *names], cwd=place, check=True, capture_output=True, timeout=60
    )
    return place


@pytest.fixture
def secure(service, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    service.server.socket = context.wrap_socket(service.server.socket, server_side=True)
    service.url = f"https://localhost:{service.server.server_port}/da"
    return service


def test_certificates_are_checked(secure):
    annealer = DigitalAnnealer(secure.url, patience=Patience(timeout=5.0, attempts=1))
    with pytest.raises(ServiceError, match="certificate"):
        annealer.poll("job")
    assert secure.seen == []


def test_trusted_certificate(secure, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    assert client(secure).submit(small_problem()) == "job-0"
