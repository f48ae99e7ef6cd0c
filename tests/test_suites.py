"""`make test` runs all parts and fails if a part fails, a test hangs, or CI skips a test."""

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


def test_later_parts_run_after_failed_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = (parts.Part("first", ("true",)), parts.Part("second", ("false",)))
    assert parts.run(first, (parts.Part("third", ("touch", str(tmp_path / "ran"))),)) == 1
    assert (tmp_path / "ran").exists()
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines() if line]
    assert rows == [["first", "passed"], ["second", "FAILED"], ["third", "passed"]]
    assert parts.run(first[:1]) == 0


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
