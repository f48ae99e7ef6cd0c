"""`make check` runs all checks and fails if one fails; suites fail if a test hangs, or CI skips a test."""

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


@pytest.mark.parametrize(("text", "ci", "code"), [(SKIPS, "true", 1), (SKIPS, "false", 0), (HANGS, "false", 1)])
def test_skipped_test_fails_in_ci_and_hanging_test_fails(text: str, ci: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(text)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == code
