"""`make check` runs all checks and fails if one fails; suites fail if a test hangs or crashes, or CI skips a test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import busy, parts

HANGS = """\
import asyncio
from tests import conftest
conftest.HANG = 0.2

def test_it():
    asyncio.run(asyncio.Event().wait())
"""
CRASHES = "import os\n\ndef test_it():\n    os.kill(os.getpid(), 9)\n"
FAILS = "def test_it():\n    assert [1] == [2]\n"
SKIPS = "import pytest\n\ndef test_it():\n    pytest.skip('nothing to test here')\n"


def test_failed_check_prints_its_output_and_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {"first": ("echo", "quiet"), "second": ("sh", "-c", "echo because; exit 1"), "third": ("true",)}
    assert parts.run_checks(commands) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["because"], ["first", "passed"], ["second", "FAILED"], ["third", "passed"]]
    assert parts.run_checks({"first": ("true",)}) == 0


def test_busy_round_lists_failed_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert busy.run((("sh", "-c", "echo FAILED tests/a.py::test_b - because; exit 1"),), 2) == 1
    assert "round 2: FAILED tests/a.py::test_b - because" in capsys.readouterr().out
    assert busy.run((("true",),), 1) == 0


@pytest.mark.parametrize(
    ("text", "ci", "reason"),
    [
        (SKIPS, "true", "skipped, but CI=true"),
        (SKIPS, "false", ""),
        (HANGS, "false", "hung for 0.2 s"),
        (CRASHES, "false", "1 of 2 processes crashed in test_it.py::test_it"),
        (FAILS, "false", "At index 0 diff: 1 != 2"),
    ],
)
def test_suite_fails_with_the_reason(text: str, ci: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(text)
    plugins = ("-p", "tests.conftest", "-p", "tests.shared_collection", "--forks", "2")
    command = (sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", str(tmp_path))
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert done.returncode == (1 if reason else 0)
    assert reason in done.stdout
