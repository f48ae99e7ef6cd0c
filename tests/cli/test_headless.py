"""Commands without the screen: data on stdout, progress on stderr, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cockpit.model.events import Tick
from cockpit.recording.reader import Recording
from tests.cli.terminals import on_terminal
from tests.commands import cockpit
from tests.servers import http_server

COCKPIT = (sys.executable, "-m", "cockpit")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


def test_run_counts_exactly(url: str) -> None:
    done = cockpit("run", url, "-c", "7", "-n", "1001", "--no-tui", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["completed"], result["sent"], result["failed"]) == (1001, 1001, 0)
    assert result["statuses"] == {"200": 1001}
    assert result["bytes"] > 1001 * 92
    assert result["service"]["p50"] <= result["service"]["p99"] <= result["service"]["max"]
    assert "closed c=7 n=1001" in done.stderr


def test_run_prints_summary_if_stdout_is_no_terminal(url: str) -> None:
    done = cockpit("run", url, "-n", "200", "--disable-keepalive")
    assert done.returncode == 0, done.stderr
    assert "200 of 200 sent, 0 failed" in done.stdout
    assert "few samples" in done.stdout


def test_run_is_recorded_and_reported(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    secret = ("-H", "Authorization: Bearer sesame", "-H", "Cookie: sesame")
    done = cockpit("run", url, "-n", "300", "--record", file, "--json", *secret)
    assert done.returncode == 0, done.stderr
    report = cockpit("report", file, "--json")
    assert json.loads(report.stdout) == [json.loads(done.stdout)]
    with Recording(file) as recording:
        assert "sesame" not in repr(list(recording.events()))


def test_check_passes_and_fails(url: str) -> None:
    good = cockpit("check", url, "-n", "200", "--threshold", "errors == 0", "--threshold", "p99 < 10s")
    assert good.returncode == 0, good.stderr
    assert good.stdout.count("ok ") == 2
    failed = cockpit("check", url, "-n", "200", "--threshold", "rate > 100M", "--json")
    assert failed.returncode == 99
    assert [threshold["holds"] for threshold in json.loads(failed.stdout)["thresholds"]] == [False]


def test_check_without_thresholds_requires_no_failures(url: str) -> None:
    assert cockpit("check", url, "-n", "50").returncode == 0
    refused = cockpit("check", f"{url}/status/503", "-n", "50")
    assert refused.returncode == 99
    assert "FAILED  failed == 0  found 50" in refused.stdout


def test_check_of_profile(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 100\n[check]\nthresholds = ["completed == 100"]\n')
    assert cockpit("check", profile).returncode == 0


def test_local_host_is_watched_without_ssh(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(
        f'[target]\nurl = "{url}"\n[load]\nduration = "2s"\n[[host]]\nname = "here"\nprocesses = ["python*"]\n'
    )
    done = cockpit("run", "--trust", profile, "--json")
    assert done.returncode == 0, done.stderr
    here = json.loads(done.stdout)["hosts"]["here"]
    assert 0 <= here["cpu.idle"] < 100
    assert here["processes.count"] >= 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "http://127.0.0.1:1/", "--no-tui"), 3, "127.0.0.1 port 1"),
        (("run", "http://no-such-host.invalid/", "--no-tui"), 3, "no-such-host.invalid"),
        (("run", "ftp://x/", "--no-tui"), 2, "found 'ftp://x/'"),
        (("run", "none.toml", "--no-tui"), 2, "none.toml: no such profile"),
        (
            ("run", "http://127.0.0.1:1/", "-c", "20", "-n", "5"),
            2,
            "-n: found 5; allowed: at least the concurrency, 20",
        ),
        (("run", "http://127.0.0.1:1/", "-H", "broken"), 2, "write it as 'Name: value'"),
        (("run", "http://127.0.0.1:1/", "-D", "none"), 2, "-D: none: no such file"),
        (("check", "http://127.0.0.1:1/", "--threshold", "speed > 3"), 2, "unknown metric 'speed'"),
        (("replay", "none.cockpit"), 2, "none.cockpit: no such recording"),
        (("report", "none.cockpit"), 2, "none.cockpit: no such recording"),
    ],
)
def test_user_error_is_one_line(arguments: tuple[str, ...], code: int, message: str) -> None:
    done = cockpit(*arguments)
    assert done.returncode == code
    errors = [line for line in done.stderr.splitlines() if line.startswith("cockpit: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_zero_concurrency_is_refused() -> None:
    done = cockpit("run", "http://127.0.0.1:1/", "-c", "0")
    assert done.returncode == 2
    assert "must be more than 0" in done.stderr


def test_unwritable_recording_is_refused_before_load(url: str, tmp_path: Path) -> None:
    done = cockpit("run", url, "-n", "100", "--record", tmp_path / "none" / "s.cockpit")
    assert done.returncode == 2
    assert "cannot create the recording: No such file or directory" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_stops_run_and_keeps_results(url: str, tmp_path: Path, sign: signal.Signals) -> None:
    file = tmp_path / "s.cockpit"
    command = [*COCKPIT, "run", url, "-z", "60s", "--record", str(file), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_for_responses(file, process)
    os.kill(process.pid, sign)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    result = json.loads(stdout)
    assert result["ended"] == "stopped"
    assert result["completed"] > 0
    assert result["sent"] == result["completed"] + result["abandoned"]
    with Recording(file) as recording:
        kinds = [type(event).__name__ for event in recording.events()]
    assert kinds[-2:] == ["RunEnded", "SessionEnded"]
    assert not list(tmp_path.glob("*-wal"))


def test_nohup_run_continues_after_sighup(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    command = ["nohup", *COCKPIT, "run", url, "-q", "100", "-n", "300", "--record", str(file), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _wait_for_responses(file, process)
    os.kill(process.pid, signal.SIGHUP)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["completed"] == 300


def test_repeated_hangup_keeps_summary_and_recording(url: str, tmp_path: Path) -> None:
    file, output = tmp_path / "s.cockpit", tmp_path / "summary"
    command = [*COCKPIT, "run", url, "-z", "10m", "--no-tui", "--record", str(file)]
    with on_terminal(["sh", "-c", f"exec {shlex.join(command)} >{output}"]) as screen:
        _wait_for_responses(file, screen.process)
        screen.close()
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                os.kill(screen.process.pid, signal.SIGHUP)
        assert screen.end() == 130
    assert "0 failed" in output.read_text()
    with Recording(file) as recording:
        assert recording.ended and not recording.damage


def test_sigkill_leaves_readable_recording_and_no_processes(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    command = [*COCKPIT, "run", url, "-z", "60s", "--record", str(file), "--no-tui"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # The recording is written during the run; the tests of the writer check how often.
    _wait_for_responses(file, process, until=2.5)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert workers
    written = _end(file)
    process.kill()
    process.wait()
    assert _end(file) >= written
    gone, alive = psutil.wait_procs(workers, timeout=120)
    assert (len(gone), alive) == (len(workers), [])


def _end(file: Path) -> float:
    """Return the time (s) up to which the session is recorded."""
    with Recording(file) as recording:
        return recording.end


def _wait_for_responses(
    file: Path, process: subprocess.Popen[str] | subprocess.Popen[bytes], until: float = 0.0
) -> None:
    """Wait until responses are recorded, and the session up to `until` (s)."""
    while not _has_responses(file) or _end(file) < until:
        assert process.poll() is None
        time.sleep(0.05)


def _has_responses(file: Path) -> bool:
    try:
        with Recording(file) as recording:
            return any(isinstance(event, Tick) and event.completed for event in recording.events())
    except Exception:
        return False


def test_headless_commands_import_no_textual(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    calls = [
        ["run", url, "-n", "20", "--json", "--record", str(file)],
        ["check", url, "-n", "20"],
        ["report", str(file), "--format", "html"],
        ["compare", str(file), str(file)],
        ["export", str(file), "--format", "csv"],
    ]
    script = (
        "import sys; from cockpit.cli import main\n"
        f"for call in {calls!r}:\n"
        "    code = main(call)\n"
        "    found = [name for name in sys.modules if name.split('.')[0] == 'textual']\n"
        "    if found or code: sys.exit(f'{call[0]}: {code}, imported {found[:3]}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
