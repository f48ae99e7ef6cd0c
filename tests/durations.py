"""`pytest -p tests.durations`: print, per test file, the number of tests, their seconds, and the CPU seconds of them.

CPU seconds are those of the test process and of the child processes that it has waited for; the rest was waiting.
`COCKPIT_DURATIONS=FILE` also writes FILE, as JSON: for each test that passed its seconds, CPU seconds, and whether it
belongs to the lab.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

SHOWN = 40
_seconds: dict[str, float] = defaultdict(float)
_cpu: dict[str, float] = defaultdict(float)
_not_passed: set[str] = set()
_lab: set[str] = set()
_before = sum(os.times()[:4])


def _start_again() -> None:
    global _before
    _before = sum(os.times()[:4])


os.register_at_fork(after_in_child=_start_again)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the CPU seconds of the phase to its report, which xdist carries to the main process."""
    global _before
    report = yield
    now = sum(os.times()[:4])
    report.__dict__["cpu_seconds"] = now - _before
    _before = now
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    test = report.nodeid
    if not report.passed:
        _not_passed.add(test)
    if "lab" in report.keywords:
        _lab.add(test)
    _seconds[test] += report.duration
    _cpu[test] += report.__dict__.get("cpu_seconds", 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the slowest files and the total."""
    files: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for test, seconds in _seconds.items():
        row = files[test.partition("::")[0]]
        row[0] += 1
        row[1] += seconds
        row[2] += _cpu[test]
    rows = sorted(files.items(), key=lambda row: -row[1][1])
    total = [sum(column) for column in zip(*files.values(), strict=True)] or [0.0, 0.0, 0.0]
    terminalreporter.write_sep("=", "durations by file")
    terminalreporter.write_line(f"{'tests':>6} {'seconds':>8} {'CPU':>8} {'waiting':>8}  file")
    for name, (tests, seconds, cpu) in [*rows[:SHOWN], ("total", total)]:
        terminalreporter.write_line(f"{tests:6.0f} {seconds:8.1f} {cpu:8.1f} {max(0.0, seconds - cpu):8.1f}  {name}")
    if path := os.environ.get("COCKPIT_DURATIONS"):
        passed = {test: (_seconds[test], _cpu[test], test in _lab) for test in _seconds if test not in _not_passed}
        Path(path).write_text(json.dumps(passed))
