"""Shell and awk programs of the package: shellcheck, shells and awks accept them."""

import subprocess
import sys
from pathlib import Path

import pytest

import cockpit
from tests.waiting import programs

ROOT = Path(cockpit.__file__).parent
SHELL = sorted(ROOT.rglob("*.sh"))
AWK = sorted(ROOT.rglob("*.awk"))
# Set, used or called by another file or the caller: SC2154, SC2034, SC2317, SC2329, SC1091, SC2030, SC2031.
# Intended: word splitting, patterns in variables, `$1` for another shell, consecutive empty assignments, `cd` without a
# check, `a && b || c`, `[ -O ]` (supported by all shells), and `ls` for permissions.
IGNORED = (
    *("SC2154", "SC2034", "SC2317", "SC2329", "SC1091", "SC2030", "SC2031"),
    *("SC2086", "SC2046", "SC2254", "SC2016", "SC1007", "SC2164", "SC2015", "SC3067", "SC2012", "SC2174"),
)
# Warnings of gawk about valid programs.
HARMLESS = ("shadows global variable", "NUL characters", "is empty", "`unescaped' defined but never called")
SETTINGS = (
    *("patterns", "regex", "port", "nuls", "line_bytes", "round", "slow_round", "most_shares", "queue_round"),
    *("readable", "groups", "ports", "sockets", "roots", "everywhere", "seconds", "source", "parent", "clock_ticks"),
    *("most_stacks", "most_text", "most_length", "most_frames"),
)
SHELLS = programs("sh", "bash --posix", "dash", "busybox sh", "mksh")
AWKS = programs("awk", "gawk --lint", "mawk", "busybox awk")


def test_shellcheck_reports_nothing() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    command = (shellcheck, "--shell=sh", f"--exclude={','.join(IGNORED)}", *SHELL)
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_parse_scripts(shell: str) -> None:
    for file in SHELL:
        read = subprocess.run((*shell.split(), "-n", file), capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, ""), file


@pytest.mark.parametrize("awk", AWKS)
def test_awks_parse_programs(awk: str) -> None:
    settings = [f"{name}=1" for name in SETTINGS]
    for file in AWK:
        command = ("env", *settings, *awk.split(), "-f", file)
        read = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/proc")
        warnings = [line for line in read.stderr.splitlines() if not any(text in line for text in HARMLESS)]
        assert (read.returncode, warnings) == (0, []), file
