"""Settings, fixtures and hooks of all tests."""

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

# The duration of an example depends on the machine, not on the code.
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
# Seconds for one test with its fixtures: only a hanging test takes that long, even on a busy machine.
HANG = 900.0
# The slowest files start first, so that no worker still runs one of them at the end.
LONG = (
    "test_probe_stream.py",
    "test_started_programs.py",
    "test_spare_servers.py",
    "test_kinds.py",
    "test_fault_matrix.py",
    "test_transaction_faults.py",
    "test_knobs.py",
    "test_kind_profiles.py",
    "test_studies.py",
    "test_parity.py",
    "test_containers.py",
    "test_two_masters.py",
    "test_replayed_logs.py",
    "test_docker.py",
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
)
# Files whose cases are shared out to two processes, each with a lab of its own: in one, they would last to the end.
HALVED = (LAB / "test_kinds.py",)


@pytest.fixture(scope="session", autouse=True)
def private_state_home() -> Iterator[None]:
    """Keep automatic recordings out of the user's library, also those of commands that tests start."""
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
    # Repeat every second: an event loop catches exceptions in callbacks.
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
    """Fail skipped tests if CI=true: CI provides all requirements. LAB=0 may still skip the lab's tests."""
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
        cases = list(dict.fromkeys(map(_case, found)))
        for item in found:
            half = f" {cases.index(_case(item)) % 2}" if path in HALVED else ""
            item.add_marker(pytest.mark.xdist_group(group + half))
            if LAB in path.parents:
                item.add_marker("lab")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def _case(item: pytest.Item) -> str:
    """Return the parameters of a test, as in its name; "" without any."""
    return item.name.partition("[")[2]


def _lab(path: Path, items: list[pytest.Item]) -> str:
    """Return the group of a lab file; every process starts its own lab, which takes seconds of CPU time."""
    fixtures = {name for item in items for name in getattr(item, "fixturenames", ())}
    if "whole_lab" in fixtures:
        return "whole lab"
    if "lab" not in fixtures:
        # It has servers or containers of its own.
        return "/".join(path.parts[-2:])
    for word in ("fault", "kind"):
        if word in path.stem:
            return f"{word}s in the lab"
    return "lab"


def pytest_collection_finish() -> None:
    """Collect garbage as rarely as the commands do, and exclude modules and collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
