"""Settings, fixtures and hooks of all tests."""

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from cockpit.cli import GARBAGE
from tests.lab.requirements import missing

# The duration of an example depends on the machine, not on the code. `make test` has the same examples each time.
SLOW = [HealthCheck.too_slow]
settings.register_profile("cockpit", deadline=None, max_examples=30, derandomize=True, suppress_health_check=SLOW)
settings.register_profile(
    "fuzz", deadline=None, max_examples=int(os.environ.get("COCKPIT_EXAMPLES", "1000")), suppress_health_check=SLOW
)
settings.load_profile("fuzz" if "COCKPIT_EXAMPLES" in os.environ else "cockpit")

# A shell's background job ignores SIGINT, and nohup ignores SIGHUP. All commands that tests start would inherit that,
# and tests send them both signals. Child processes do not inherit a handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

LAB = Path(__file__).parent / "lab"
# Groups that take half a minute or more; they start first, so that none of them is left when the other processes end.
LONGEST = [
    "whole lab",
    "kinds in the lab",
    "study/test_runner.py",
    "autopilot/test_runner.py",
    "session/test_rounds.py",
    "autopilot/test_screen.py",
    "session/test_extending.py",
    "study/test_lost_host.py",
    "study/test_terminal.py",
    "cli/test_terminal.py",
    "tui/test_bindings.py",
    "tuning/test_faults.py",
]
# Seconds for one test with its fixtures: only a hanging test takes that long, even on a busy machine. `make fuzz` has
# more examples.
HANG = 1800.0 if "COCKPIT_EXAMPLES" in os.environ else 300.0


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
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    if item.get_closest_marker("lab") and (absent := missing()):
        pytest.skip(f"the lab cannot run here; missing: {', '.join(absent)}")
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
    """Fail skipped tests if CI=true: CI provides all requirements."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, but CI=true: {report.longrepr}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of the lab by place, and give all tests of a file, and files that share a lab, to one process."""
    places = {name: place for place, name in enumerate(LONGEST)}
    for item in items:
        if LAB in item.path.parents:
            item.add_marker("lab")
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: places.get(_group(item), len(LONGEST)))


def _group(item: pytest.Item) -> str:
    """Return the name of the tests that one process runs; every process starts its own lab, which takes seconds."""
    fixtures = getattr(item, "fixturenames", ())
    if "whole_lab" in fixtures:
        return "whole lab"
    if "lab" not in fixtures:
        return "/".join(item.path.parts[-2:])
    return next((f"{word}s in the lab" for word in ("fault", "kind") if word in item.path.stem), "lab")


def pytest_collection_finish() -> None:
    """Collect garbage as rarely as the commands do, and exclude modules and collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


def pytest_unconfigure() -> None:
    """Collect garbage once: pytest does it five times afterwards, half a second each after tests of the screen."""
    gc.collect()
    gc.freeze()
