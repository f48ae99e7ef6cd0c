"""A slow line and a dead one: the pace adapts, samples stand at the instant they were taken, slow is not lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.hosts.host_clock import STEP, HostClock
from cockpit.hosts.pauses import slept
from cockpit.hosts.poll_interval import LONGEST, PollInterval
from cockpit.model.hosts import HostConfig
from tests.hosts.conftest import until
from tests.hosts.line import Line
from tests.hosts.sshd import Sshd
from tests.hosts.watching import watching


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine changes neither condition nor pace."""
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    monkeypatch.setattr("cockpit.hosts.poll_interval.LATE", 600.0)


@pytest.fixture
async def line(sshd: Sshd) -> AsyncIterator[Line]:
    """A line to the server, which ssh_config leads over."""
    line = await Line().start(sshd.port)
    sshd.write_config(Port=str(line.port), HostKeyAlias="web")
    sshd.trust(sshd.host_key, name="web")
    yield line
    await line.stop()


def web(interval: float) -> HostConfig:
    return HostConfig(name="web1", ssh="web", interval=interval)


async def test_a_slow_line_is_asked_less_often(sshd: Sshd, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.poll_interval.LATE", 0.5)
    monkeypatch.setattr("cockpit.hosts.poll_interval.EARLY", 0.4)
    monkeypatch.setattr("cockpit.hosts.poll_interval.EARLY_IN_A_ROW", 2)
    async with watching(web(0.5), sshd.ssh_config) as watch:
        await watch.sampled(1)
        line.there = line.back = 0.2
        await until(lambda: watch.samples[-1].interval >= 1.0)
        line.there = line.back = 0.0
        await until(lambda: watch.samples[-1].interval == 0.5)
    assert "lost" not in watch.conditions


async def test_samples_stand_where_the_host_took_them(sshd: Sshd, line: Line) -> None:
    """Both clocks are this machine's, so it is known when each was taken."""
    async with watching(web(0.05), sshd.ssh_config) as watch:
        # Uptime when the session began; between the two clocks that it is made of, others may have had the CPU.
        ahead = max(slept() for _ in range(99)) + watch.clock.origin
        for line.there, line.back in ((0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.0, 0.0)):
            await watch.sampled(2)
        quickest = min(sample.round_trip for sample in watch.samples)
        first = next(place for place, sample in enumerate(watch.samples) if sample.round_trip == quickest)
        for sample in watch.samples[first:]:
            off = sample.t - (sample.reading.uptime - ahead)
            assert abs(off) <= quickest / 2 + STEP, sample.round_trip
    for before, after in itertools.pairwise(watch.samples):
        assert before.t < after.t


async def test_a_host_is_asked_one_thing_at_a_time(sshd: Sshd, line: Line) -> None:
    """However slow its answers come: each is asked for when the one before it is there."""
    async with watching(web(0.05), sshd.ssh_config) as watch:
        await watch.sampled(1)
        line.back = 0.2
        await watch.sampled(2)
        slow = len(watch.samples)
        await watch.sampled(3)
    for before, after in itertools.pairwise(watch.samples[slow:]):
        assert after.reading.uptime - before.reading.uptime >= 0.2 - STEP


async def test_a_line_that_dies_is_slow_and_then_lost(sshd: Sshd, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh_login.SILENCE", 3.0)
    async with watching(web(0.05), sshd.ssh_config) as watch:
        await watch.sampled(2)
        monkeypatch.setattr("cockpit.hosts.ssh_login.CONNECT_TIMEOUT", 0.5)
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 0.3)
        await watch.sampled(2)  # the question that was under way knew nothing of this
        line.cut = True
        lost = await watch.until("lost")
        assert "slow" in watch.conditions
        assert lost.detail == "connection lost: keepalives were not answered"
        await until(lambda: watch.changes[-1].detail != lost.detail)
        assert watch.changes[-1].detail.startswith(f"127.0.0.1:{line.port} does not answer within 0.5 s; ")
        line.cut = False
        monkeypatch.setattr("cockpit.hosts.ssh_login.CONNECT_TIMEOUT", 30.0)
        await watch.until("up")
        await watch.sampled(2)
    assert watch.state().markers[0].kind == "gap"


def test_the_pace_doubles_up_to_the_longest_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pace = PollInterval(1.0)
    pace.took(0.6)
    pace.took(0.1)
    pace.took(0.6)
    assert pace.interval == 1.0
    for _ in range(20):
        pace.took(6.0)
    assert pace.interval == LONGEST
    for _ in range(9):
        pace.took(0.1)
        pace.took(2.0)
    assert pace.interval == LONGEST
    for _ in range(20):
        pace.took(0.01)
    assert pace.interval == 1.0


def test_a_pace_that_is_slower_by_wish_stays() -> None:
    pace = PollInterval(60.0)
    for _ in range(9):
        pace.took(50.0)
    assert pace.interval == 60.0


@given(
    uptime=st.floats(0, 1e7),
    trips=st.lists(st.tuples(st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=40),
)
def test_placing_is_off_by_no_more_than_half_the_quickest_trip(uptime: float, trips: list[tuple[float, float]]) -> None:
    placing, now = HostClock(), 10.0
    for there, back in trips:
        taken = now + there
        placed = placing.place(now, taken + back, math.floor(100 * (taken + uptime)) / 100)
        assert now <= placed <= taken + back
        quickest = min(sum(trip) for trip in trips[: trips.index((there, back)) + 1][-30:])
        assert abs(placed - taken) <= quickest / 2 + 2 * STEP
        now = taken + back + 1


def test_placing_forgets_when_a_clock_jumps() -> None:
    placing = HostClock()
    assert placing.place(10.0, 10.2, 500.1) == pytest.approx(10.1)
    assert placing.place(11.0, 11.2, 3.1) == pytest.approx(11.1)
    assert placing.place(12.0, 14.0, 4.05) == pytest.approx(12.05, abs=0.1)
