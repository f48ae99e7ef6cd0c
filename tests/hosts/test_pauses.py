"""cockpit stopped and continued, or its machine suspended: a reported gap, then samples again."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable

import pytest

from cockpit.hosts.pauses import PauseDetector
from cockpit.model.events import AnyEvent, HostSample, decode
from cockpit.model.hosts import HostConfig
from tests.hosts.conftest import until
from tests.hosts.watching import watching

WATCH_THIS_MACHINE = """
import asyncio
from cockpit.hosts import pauses
from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.events import encode
from cockpit.model.hosts import HostConfig
pauses.WORTH_SAYING = 1.0
feed = HostFeed(HostConfig(name="here", interval=0.1), Clock(), lambda event: print(encode(event).decode(), flush=True))
asyncio.run(asyncio.wait_for(feed.run(), 120))
"""
STOPPED = 3.0


async def test_sigstop_is_reported_as_gap() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WATCH_THIS_MACHINE, stdout=asyncio.subprocess.PIPE, limit=1 << 24
    )
    try:
        before = (await read_events(process, sampled_after(0.0)))[-1]
        os.kill(process.pid, signal.SIGSTOP)
        stopped = time.monotonic()
        await until(lambda: time.monotonic() > stopped + STOPPED)
        os.kill(process.pid, signal.SIGCONT)
        events = await read_events(process, sampled_after(before.t + STOPPED))
        lost = [event for event in events if getattr(event, "condition", "") == "lost"]
        assert lost[-1].detail.startswith("cockpit itself was paused for ")  # type: ignore[union-attr]
        after = events[-1]
        up_times = [event.t for event in events if getattr(event, "condition", "") == "up"]
        assert lost[-1].t <= up_times[-1]
        assert isinstance(before, HostSample)
        assert isinstance(after, HostSample)
        assert after.reading.uptime - before.reading.uptime >= STOPPED - 0.1
    finally:
        process.kill()
        await process.communicate()


def sampled_after(t: float) -> Callable[[AnyEvent], bool]:
    return lambda event: isinstance(event, HostSample) and event.t > t


async def read_events(process: asyncio.subprocess.Process, is_last: Callable[[AnyEvent], bool]) -> list[AnyEvent]:
    """Its events up to the first one for which `is_last` holds."""
    assert process.stdout is not None
    events: list[AnyEvent] = []
    async with asyncio.timeout(60):
        while not events or not is_last(events[-1]):
            events.append(decode(await process.stdout.readline()))
    return events


async def test_suspend_is_reported_as_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """During suspend the session's clock stops; only the boot clock continues."""
    asleep = 0.0
    monkeypatch.setattr("cockpit.hosts.pauses.suspended_seconds", lambda: asleep)
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    async with watching(HostConfig(name="here", interval=0.05)) as watch:
        await watch.sampled(2)
        asleep = 3600.0
        await until(lambda: watch.conditions[-2:] == ["lost", "up"])
        await watch.sampled(2)
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail.startswith("cockpit itself was paused for 3")
    assert [marker.text for marker in watch.state().markers] == [f"here lost: {lost.detail}"]


def test_short_pauses_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("cockpit.hosts.pauses.time.monotonic", lambda: now)
    monkeypatch.setattr("cockpit.hosts.pauses.suspended_seconds", lambda: 0.0)
    detector = PauseDetector(1.0)
    now += 3.9
    assert detector.paused_seconds() == 0.0
    now += 4.5
    assert detector.paused_seconds() == pytest.approx(3.5)
    assert detector.paused_seconds() == 0.0
