"""`make check` runs all checks and fails if one fails; suites fail if a test hangs or crashes, or CI skips a test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import parts

HANGS = """\
import asyncio
from tests import conftest
conftest.HANG = 3

def test_hangs():
    asyncio.run(asyncio.Event().wait())
"""
CRASHES = "import os\n\ndef test_crashes():\n    os.kill(os.getpid(), 9)\n"
FAILS = "def test_fails():\n    assert [1] == [2]\n"
SKIPS = "import pytest\n\ndef test_skips():\n    pytest.skip('nothing to test here')\n"


def test_failed_check_prints_its_output_and_others_run(capsys: pytest.CaptureFixture[str]) -> None:
    commands = {"first": ("echo", "quiet"), "second": ("sh", "-c", "echo because; exit 1"), "third": ("true",)}
    assert parts.run_checks(commands) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["because"], ["first", "passed"], ["second", "FAILED"], ["third", "passed"]]
    assert parts.run_checks({"first": ("true",)}) == 0


@pytest.mark.parametrize(
    ("files", "ci", "failed", "reasons"),
    [
        ([SKIPS, HANGS, FAILS], "true", 3, ["skipped, but CI=true", "hung for 3 s", "At index 0 diff: 1 != 2"]),
        ([SKIPS, CRASHES], "false", 0, ["1 skipped", "1 of 2 processes crashed in test_1.py::test_crashes"]),
    ],
)
def test_suite_fails_with_the_reasons(
    files: list[str], ci: str, failed: int, reasons: list[str], tmp_path: Path
) -> None:
    for number, text in enumerate(files):
        (tmp_path / f"test_{number}.py").write_text(text)
    plugins = ("-p", "tests.conftest", "-p", "tests.shared_collection", "--forks", "2")
    command = (sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", str(tmp_path))
    environment = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stdout.count("\nFAILED ") == failed
    assert all(reason in done.stdout for reason in reasons), done.stdout
