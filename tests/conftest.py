"""What all tests share."""

import gc
import itertools
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from cockpit.cli import GARBAGE

# How long an example takes says something about the machine, not about the code.
settings.register_profile("cockpit", deadline=None)
settings.load_profile("cockpit")

# A shell's background job ignores SIGINT, and nohup ignores SIGHUP. All commands that tests start would inherit that,
# and tests send them both signals. Child processes do not inherit a handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

TESTS = Path(__file__).parent
LAB = TESTS / "lab"
# Seconds for one test with its fixtures; only one that hangs takes so long, on a busy machine too.
HANG = 900.0
# The files that take longest begin first, so that no worker is left with one of them at the end.
LONG = (
    "test_probe_stream.py",
    "test_spare_servers.py",
    "test_fault_matrix.py",
    "test_transaction_faults.py",
    "test_studies.py",
    "test_parity.py",
    "test_knobs.py",
    "test_runner.py",
    "test_check.py",
    "test_change_matrix.py",
    "test_recordings.py",
    "test_open.py",
    "test_hangup.py",
    "test_hostile.py",
    "test_redaction.py",
    "test_ascii.py",
    "test_bindings.py",
    "test_screen_diff.py",
    "test_kinds.py",
)


@pytest.fixture(scope="session", autouse=True)
def state_of_its_own() -> Iterator[None]:
    """Recordings that nobody names are kept elsewhere than the user's own, also by commands that tests start."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = folder
        yield
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


def _fail_hung(number: int, frame: FrameType | None) -> None:
    pytest.fail(f"hung for {HANG:g} s")


@contextmanager
def _failing_if_hung() -> Iterator[None]:
    """Fail a test that hangs, with its stack, instead of hanging the run. Not while pytest itself reports a failure."""
    signal.signal(signal.SIGALRM, _fail_hung)
    # Again every second: an event loop catches what is raised within a callback.
    signal.setitimer(signal.ITIMER_REAL, HANG, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    with _failing_if_hung():
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with _failing_if_hung():
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    with _failing_if_hung():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips where CI=true: CI has all that a test may need. LAB=0 may leave out those of the lab."""
    report = yield
    left_out = os.environ.get("LAB") == "0" and item.path.is_relative_to(LAB)
    if report.skipped and os.environ.get("CI") == "true" and not left_out:
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI=true: {report.longrepr}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by place, and give all tests of a file, and files that share a lab, to one process."""
    for path, in_file in itertools.groupby(items, lambda item: item.path):
        found = list(in_file)
        group = _lab(path, found) if LAB in path.parents else "/".join(path.parts[-2:])
        for item in found:
            item.add_marker(pytest.mark.xdist_group(group))
            if LAB in path.parents:
                item.add_marker("lab")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def _lab(path: Path, items: list[pytest.Item]) -> str:
    """Return the group of a file of the lab; a process brings up a lab of its own, which takes seconds of CPU time."""
    if any("whole_lab" in getattr(item, "fixturenames", ()) for item in items):
        return "whole lab"
    return "faults in the lab" if "fault" in path.stem else "lab"


def pytest_collection_finish() -> None:
    """Look for garbage as seldom as the commands do, and never among modules and collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
