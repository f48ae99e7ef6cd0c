"""cockpit stopped and continued, or its machine suspended: a reported gap, then samples again."""

from __future__ import annotations

import time

import pytest

from cockpit.hosts.pauses import PauseDetector
from cockpit.model.hosts import HostConfig
from tests.hosts.watching import watching
from tests.waiting import until

STOPPED = 1.5


@pytest.mark.parametrize("suspended", [False, True])
async def test_pause_is_reported_as_gap(monkeypatch: pytest.MonkeyPatch, suspended: bool) -> None:
    """While stopped, cockpit has no CPU time. During suspend only the boot clock continues."""
    asleep = 0.0
    monkeypatch.setattr("cockpit.hosts.pauses.suspended_seconds", lambda: asleep)
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.feed.CHECK_INTERVAL", 0.2)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    async with watching(HostConfig(name="here", interval=0.05)) as watch:
        await watch.sampled(2)
        before = watch.samples[-1]
        if suspended:
            asleep = 3600.0
        else:
            monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", STOPPED / 2)
            time.sleep(STOPPED)  # noqa: ASYNC251 - blocks the event loop, like SIGSTOP
        await until(lambda: watch.conditions[-2:] == ["lost", "up"])
        monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
        await watch.sampled(2)
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail.startswith(f"cockpit itself was paused for {'3' if suspended else ''}")
    assert f"here lost: {lost.detail}" in [marker.text for marker in watch.state().markers]
    assert watch.samples[-1].reading.uptime - before.reading.uptime >= (0 if suspended else STOPPED - 0.1)


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
