"""`make test` runs all parts and fails if a part fails or CI skips a test; `make test-busy` stops its CPU hogs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import busy, parts

# Runs in its own process, which tests interrupt: keep the CPUs busy while a command waits.
BUSY = "from tests import busy; busy.run(('sh', '-c', 'echo waits; exec sleep 1000'), 1)"


def test_later_parts_run_after_failed_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = tmp_path / "ran"
    found = parts.run(
        (parts.Part("first", ("true",)), parts.Part("second", ("false",))),
        (parts.Part("third", ("touch", str(marker))),),
    )
    assert found == 1
    assert marker.exists()
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line]
    assert rows == [["first", "passed"], ["second", "FAILED"], ["third", "passed"]]


def test_exit_code_is_0_if_all_parts_pass() -> None:
    assert parts.run((parts.Part("first", ("true",)),)) == 0


# Tests in a group, as conftest.py makes them. `test_second_time` passes when it runs again.
TWO_TESTS = """\
from pathlib import Path
import pytest
pytestmark = pytest.mark.xdist_group("a folder/test_two.py")

def ran(name):
    with Path(name).open("a") as file:
        file.write("ran ")
    return Path(name).read_text()

@pytest.mark.parametrize("at", ["user@host"])
def test_second_time(at):
    assert ran("second") == "ran ran "

def test_first_time():
    assert ran("first") == "ran "
"""


@pytest.mark.parametrize("times", [1, 2])
def test_only_failed_tests_run_once_more_and_are_listed(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_two.py").write_text(TWO_TESTS.replace("ran ran", " ".join(["ran"] * (times + 1))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--rootdir={tmp_path}")
    part = parts.Part("tests", (*parts.PYTEST, "-n", "1", "--dist", "loadgroup"), again=parts.PYTEST)
    assert parts.run((part,)) == times - 1
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line]
    assert rows[-3:] == [["tests", "FAILED"], ["once", "more"], ["test_two.py::test_second_time[user@host]"]]
    assert (tmp_path / "second").read_text() == "ran ran " and (tmp_path / "first").read_text() == "ran "
    monkeypatch.setattr(parts, "FEW", 0)
    assert parts.run((part._replace(command=("false",)),)) == 1


def test_file_that_cannot_be_collected_is_named_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = tmp_path / "lastfailed"
    failed.write_text('{"tests/a.py": true, "tests/b.py::test[x@y]": true, "tests/c.py::test[x@y]@a group/c.py": true}')
    monkeypatch.setattr(parts, "LAST_FAILED", failed)
    assert parts.run((parts.Part("tests", ("false",), again=("true",)),)) == 0
    names = capsys.readouterr().out.splitlines()[-3:]
    assert names == ["tests/a.py", "tests/b.py::test[x@y]", "tests/c.py::test[x@y]"]


def test_failed_round_fails_run_and_lists_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert busy.run(("sh", "-c", "echo FAILED tests/a.py::test_b - because; exit 1"), 2) == 1
    assert "round 2: FAILED tests/a.py::test_b - because" in capsys.readouterr().out
    assert busy.run(("true",), 1) == 0


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_cpu_hogs_end_after_interrupt(sign: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True, process_group=0)
    try:
        assert process.stdout
        pids = re.findall(r"\d+", process.stdout.readline().split(" keep ")[0])
        hogs = [psutil.Process(int(pid)) for pid in pids]
        assert len(hogs) == len(os.sched_getaffinity(0))
        assert process.stdout.readline() == "waits\n"
        if sign == signal.SIGINT:
            os.killpg(process.pid, sign)
        else:
            process.kill()
        assert psutil.wait_procs(hogs, timeout=60)[1] == []
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


# Tests of tests/conftest.py need no other plugin.
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_code(environment: dict[str, str], *arguments: str) -> int:
    """Run pytest in a new process; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=False).returncode


def test_skipped_test_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n\ndef test_it():\n    pytest.skip('nothing to test here')\n")
    arguments = ("-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    assert pytest_code({"CI": "true", "LAB": "1", **FEW_PLUGINS}, *arguments) == pytest.ExitCode.TESTS_FAILED
    assert pytest_code({"CI": "false", "LAB": "1", **FEW_PLUGINS}, *arguments) == pytest.ExitCode.OK
    lab_test = str(Path(__file__).parent / "lab" / "test_two_hosts.py")
    assert pytest_code({"CI": "true", "LAB": "0"}, lab_test) == pytest.ExitCode.OK


def test_hanging_test_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import asyncio\nfrom tests import conftest\nconftest.HANG = 0.5\n\n"
        "def test_it():\n    asyncio.run(asyncio.Event().wait())\n"
    )
    arguments = ("-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    assert pytest_code(FEW_PLUGINS, *arguments) == pytest.ExitCode.TESTS_FAILED
