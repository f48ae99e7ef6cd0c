"""`cockpit check` on a real server, in a shell script and in Python: all exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree

import msgspec
import pytest

from cockpit.cli import main
from cockpit.model.events import AnyEvent, RunEnded, RunStarted, SessionEnded, SessionStarted, Tick
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from cockpit.report import baselines
from cockpit.report.check_result import CheckJson
from tests.commands import cockpit
from tests.report.test_compare import recorded

SCRIPT = Path(__file__).with_name("check.sh")
EXITS = {
    "good": 0,
    "broken": 99,
    "against": 99,
    "one-run": 4,
    "repeated": 0,
    "with-spread": 0,
    "other-load": 2,
    "no-baseline": 2,
    "aborted": 99,
    "max-duration": 0,
    "unknown": 2,
    "refused": 3,
    "host-aborted": 99,
    "unstable": 4,
    "too-short": 4,
    "recorded": 0,
    "recording": 0,
    "recording-broken": 99,
    "interrupted": 130,
    "generator": 1,
}
# Calls that need no process of their own, with their arguments, in order.
CALLS = {
    "against": ("URL/", "-n", "100", "--baseline", "before", "--threshold", "rate >= 1000000% of baseline", "--json"),
    "repeated": ("URL/", "-n", "100", "--runs", "3", "--add-to-baseline", "before"),
    "with-spread": (
        *("URL/", "-n", "100", "--runs", "2", "--baseline", "before"),
        *("--threshold", "rate >= 1% of baseline", "--json"),
    ),
    "other-load": ("URL/", "-n", "100", "-c", "2", "--baseline", "before"),
    "no-baseline": ("URL/", "-n", "100", "--baseline", "gone"),
    "aborted": ("URL/status/503", "-z", "60s", "--abort-on", "failed < 10", "--json", "--save-baseline", "cut"),
    "max-duration": ("URL/", "-n", "100m", "--max-duration", "1s", "--json"),
    "unknown": ("URL/", "--threshold", "speed > 3"),
    "host-aborted": ("./hosts.toml", "--trust", "--json"),
    "too-short": ("URL/", "-n", "10", "--stable"),
    "recorded": ("URL/", "-n", "100", "--record", "run.cockpit"),
    "one-run": (
        *("run.cockpit", "--baseline", "same", "--threshold", "rate >= 100% of baseline"),
        *("--junit", "one-run.xml"),
    ),
    "recording": ("run.cockpit", "--threshold", "completed == 100"),
    "recording-broken": ("run.cockpit#1", "--threshold", "completed == 101"),
    "unstable": ("slower.cockpit", "--stable", "--json"),
}
HOSTS = """\
[target]
url = "URL/"
[load]
duration = "60s"
[[host]]
name = "here"
[check]
abort_on = ["here.cpu.idle > 100"]
"""
# More requests than the check of the target before a run sends.
UNDER_LOAD = 100


class _Handler(BaseHTTPRequestHandler):
    """Answer `/status/503` with that status; create a file in the folder when one of two paths is under load."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    folder: Path
    requests: Counter[str]

    def do_GET(self) -> None:
        status = int(self.path.removeprefix("/status/")) if self.path.startswith("/status/") else 200
        if self.path in ("/interrupted", "/generator"):
            self.requests[self.path] += 1
            if self.requests[self.path] == UNDER_LOAD:
                (self.folder / f"loaded{self.path}").touch()
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: tests read stderr."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a test kills its client."""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    (folder / "loaded").mkdir()
    handler = type("Handler", (_Handler,), {"folder": folder, "requests": Counter()})
    found = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_address[1]}"
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """Run the script and CALLS; return the folder with their output, and their exit codes."""
    folder = tmp_path_factory.mktemp("check")
    environment = {"PYTHON": sys.executable, "XDG_STATE_HOME": str(folder / "state")}
    with server(folder) as url, contextlib.chdir(folder), patch.dict(os.environ, environment | {"URL": url}):
        done = subprocess.run(["sh", SCRIPT], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        codes = {name: int(code) for name, code in (line.split() for line in done.stdout.splitlines())}
        (folder / "hosts.toml").write_text(HOSTS.replace("URL", url))
        recorded(folder / "slower.cockpit", list(slower()))
        for name, arguments in CALLS.items():
            done = cockpit("check", *(argument.replace("URL", url) for argument in arguments))
            if name == "recorded":
                assert cockpit("baseline", "set", "same", "run.cockpit").returncode == 0
            codes[name] = done.returncode
            (folder / f"{name}.out").write_text(done.stdout)
            (folder / f"{name}.err").write_text(done.stderr)
    return folder, codes


def slower() -> Iterator[AnyEvent]:
    """Yield a run of 12 s whose rate falls by 10% per second."""
    yield SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="slower")
    yield RunStarted(t=0, run=1, plan=LoadPlan(url="http://web1/", duration=12.0))
    for tenth in range(120):
        completed = round(100 * 0.9 ** (tenth / 10))
        times = Histogram.of([1_000_000] * completed)
        start = tenth / 10
        yield Tick(t=start + 0.1, start=start, run=1, worker=0, sent=completed, completed=completed, service=times)
    yield RunEnded(t=12, run=1, reason="completed")
    yield SessionEnded(t=12)


def test_exit_codes(ended: tuple[Path, dict[str, int]]) -> None:
    folder, codes = ended
    assert codes == EXITS, "".join(path.read_text() for path in sorted(folder.glob("*.err")))
    for path in folder.glob("*.err"):
        assert "Traceback" not in path.read_text(), path.name


def test_problem_is_one_error_line(ended: tuple[Path, dict[str, int]]) -> None:
    folder, _ = ended
    for name, message in (
        ("other-load", "baseline before: different load (concurrency 1 → 2); compare with --force"),
        ("no-baseline", "gone: no such baseline; saved: before"),
        ("unknown", "unknown metric 'speed'"),
        ("refused", "127.0.0.1 port 1"),
    ):
        errors = [line for line in (folder / f"{name}.err").read_text().splitlines() if line.startswith("cockpit: ")]
        assert len(errors) == 1, name
        assert message in errors[0]
        assert (folder / f"{name}.out").read_text() == ""


def test_table_is_compact(ended: tuple[Path, dict[str, int]]) -> None:
    folder, _ = ended
    lines = (folder / "broken.out").read_text().splitlines()
    assert "  FAILED  failed == 0  found 100" in lines
    assert lines[-1] == "check: 1 of 1 thresholds failed"
    # Warnings are extra lines: on a busy machine the generator may have waited for a CPU.
    assert len([line for line in lines if not line.startswith("  ! ")]) <= 8
    assert (folder / "good.out").read_text().endswith("check: good\n")
    assert "UNSTABLE  too short" in (folder / "too-short.out").read_text()


def test_json_has_reason(ended: tuple[Path, dict[str, int]]) -> None:
    folder, _ = ended
    names = ("against", "aborted", "max-duration", "with-spread")
    found = {name: json.loads((folder / f"{name}.out").read_text()) for name in names}
    found |= {
        name: json.loads((folder / f"{name}.out").read_text()) for name in ("unstable", "interrupted", "host-aborted")
    }
    for name, result in found.items():
        msgspec.convert(result, CheckJson)
        assert result["check"]["exit"] == EXITS[name]
    assert found["against"]["check"]["baseline"]["name"] == "before"
    (spread,) = found["with-spread"]["thresholds"]
    assert (spread["status"], spread["ratio"]["runs"], spread["ratio"]["assumed"]) == ("holds", [4, 2], False)
    assert spread["ratio"]["low"] < spread["ratio"]["value"] < spread["ratio"]["high"]
    assert found["with-spread"]["completed"] == 200
    assert found["aborted"]["check"]["aborted"] == "failed < 10"
    assert [threshold["holds"] for threshold in found["aborted"]["thresholds"]] == [False, False]
    assert found["aborted"]["ended"] == "stopped"
    assert found["host-aborted"]["check"]["aborted"] == "here.cpu.idle > 100"
    assert 0 <= found["host-aborted"]["thresholds"][1]["found"] <= 100
    assert found["max-duration"]["check"]["stopped_after"] == 1.0
    assert found["unstable"]["check"]["stability"]["kind"] == "rate"
    assert "check" in msgspec.json.schema(CheckJson)["$defs"]["CheckJson"]["required"]


def test_a_run_that_a_threshold_ended_is_no_baseline(ended: tuple[Path, dict[str, int]]) -> None:
    folder, _ = ended
    assert "cockpit: baseline cut: not saved: failed < 10 ended the run early\n" in (folder / "aborted.err").read_text()
    assert not list((folder / "state").rglob("cut.json"))


def test_a_run_without_a_response_is_no_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    events = [
        SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="down"),
        RunStarted(t=0, run=1, plan=LoadPlan(url="http://web1/", duration=12.0)),
        Tick(t=12.0, start=0.0, run=1, worker=0, sent=9, errors={"refused": 9}),
        RunEnded(t=12, run=1, reason="completed"),
        SessionEnded(t=12),
    ]
    file = str(recorded(tmp_path / "down.cockpit", events))
    assert main(["check", file, "--save-baseline", "down"]) == 99
    assert "cockpit: baseline down: not saved: a run has no response\n" in capsys.readouterr().err
    assert baselines.names() == []


def test_runs_of_different_loads_are_not_checked_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events: list[AnyEvent] = [SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="two")]
    for run, connections in ((1, 10), (2, 20)):
        start = 20.0 * (run - 1)
        plan = LoadPlan(url="http://web1/", concurrency=connections, duration=10.0)
        times = Histogram.of([1_000_000] * 100)
        events += [
            RunStarted(t=start, run=run, plan=plan),
            Tick(t=start + 10, start=start, run=run, worker=0, sent=100, completed=100, service=times),
            RunEnded(t=start + 10, run=run, reason="completed"),
        ]
    file = str(recorded(tmp_path / "two.cockpit", [*events, SessionEnded(t=31)]))
    assert main(["check", file]) == 0
    assert main(["check", file, "--runs", "2"]) == 2
    assert "runs 1 and 2 have different loads (concurrency 10 → 20); choose one as FILE#2" in capsys.readouterr().err


def test_junit_has_one_case_per_threshold(ended: tuple[Path, dict[str, int]]) -> None:
    folder, _ = ended
    for name, failures in (("good", 0), ("broken", 1)):
        suite = ElementTree.parse(folder / f"{name}.xml").getroot().find("testsuite")
        assert suite is not None
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", str(failures), "0")
        cases = suite.findall("testcase")
        assert [case.get("name") for case in cases] == ["failed == 0"]
        assert len(suite.findall("testcase/failure")) == failures


def test_inconclusive_check_is_a_junit_failure(ended: tuple[Path, dict[str, int]]) -> None:
    """One run vs one run has no measured spread."""
    folder, _ = ended
    output = (folder / "one-run.out").read_text()
    assert "  INCONCLUSIVE  rate >= 100% of baseline  found " in output
    assert "n = 1 vs 1; a spread of 15% between runs is assumed); more runs on either side measure the spread" in output
    assert output.endswith("check: 1 of 1 thresholds inconclusive\n")
    failure = ElementTree.parse(folder / "one-run.xml").getroot().find("testsuite/testcase/failure")
    assert failure is not None and str(failure.get("message")).startswith("inconclusive: ")


def test_junit_has_error_if_target_is_unreachable(ended: tuple[Path, dict[str, int]]) -> None:
    xml = (ended[0] / "refused.xml").read_text()
    error = ElementTree.fromstring(xml).find("testsuite/testcase/error")
    assert error is not None
    assert "127.0.0.1 port 1 is unreachable" in str(error.get("message"))
    assert "sesame" not in xml
