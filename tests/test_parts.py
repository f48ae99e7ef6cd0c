"""`make test` runs all its parts and fails if one fails or CI skips; `make test-busy` ends what keeps the CPUs busy."""

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

# In a process of its own, so that it can be interrupted: keep the CPUs busy while a command waits for its end.
BUSY = "from tests import busy; busy.run(('sh', '-c', 'echo waits; exec sleep 1000'), 1)"


def test_a_failed_part_hides_no_later_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = tmp_path / "ran"
    found = parts.run(
        (parts.Part("first", ("true",)), parts.Part("second", ("false",))),
        (parts.Part("third", ("touch", str(marker))),),
    )
    assert found == 1
    assert marker.exists()
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line]
    assert rows == [["first", "passed"], ["second", "FAILED"], ["third", "passed"]]


def test_parts_that_all_pass_succeed() -> None:
    assert parts.run((parts.Part("first", ("true",)),)) == 0


def test_a_round_that_fails_fails_all_and_names_the_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert busy.run(("sh", "-c", "echo FAILED tests/a.py::test_b - because; exit 1"), 2) == 1
    assert "round 2: FAILED tests/a.py::test_b - because" in capsys.readouterr().out
    assert busy.run(("true",), 1) == 0


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_process_keeps_a_cpu_busy_after_an_interrupt(sign: signal.Signals) -> None:
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


# Tests that only show what tests/conftest.py does need no other plugin.
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def pytest_code(environment: dict[str, str], *arguments: str) -> int:
    """The exit code of a pytest of its own."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=False).returncode


def test_in_ci_a_skipped_test_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n\ndef test_it():\n    pytest.skip('nothing to test here')\n")
    arguments = ("-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    assert pytest_code({"CI": "true", "LAB": "1", **FEW_PLUGINS}, *arguments) == pytest.ExitCode.TESTS_FAILED
    assert pytest_code({"CI": "false", "LAB": "1", **FEW_PLUGINS}, *arguments) == pytest.ExitCode.OK
    left_out = str(Path(__file__).parent / "lab" / "test_two_hosts.py")
    assert pytest_code({"CI": "true", "LAB": "0"}, left_out) == pytest.ExitCode.OK


def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import asyncio\nfrom tests import conftest\nconftest.HANG = 0.5\n\n"
        "def test_it():\n    asyncio.run(asyncio.Event().wait())\n"
    )
    arguments = ("-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    assert pytest_code(FEW_PLUGINS, *arguments) == pytest.ExitCode.TESTS_FAILED
