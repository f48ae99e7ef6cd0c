"""Slow and dead links: adaptive poll interval, sample times, slow vs lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.hosts.host_clock import STEP, HostClock
from cockpit.hosts.pauses import suspended_seconds
from cockpit.hosts.poll_interval import LONGEST, PollInterval
from cockpit.model.hosts import HostConfig
from tests.hosts.link import Link
from tests.hosts.sshd import Sshd
from tests.hosts.watching import watching
from tests.waiting import until


@pytest.fixture(autouse=True)
def no_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep condition and poll interval constant on a busy machine."""
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    monkeypatch.setattr("cockpit.hosts.poll_interval.LATE", 600.0)


@pytest.fixture
async def link(sshd: Sshd) -> AsyncIterator[Link]:
    """A link to the server; ssh_config connects through it."""
    link = await Link().start(sshd.port)
    sshd.write_config(Port=str(link.port), HostKeyAlias="web")
    sshd.trust(sshd.host_key, name="web")
    yield link
    await link.stop()


def web(interval: float) -> HostConfig:
    return HostConfig(name="web1", ssh="web", interval=interval)


async def test_slow_link_is_polled_less_often(sshd: Sshd, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.poll_interval.LATE", 0.5)
    monkeypatch.setattr("cockpit.hosts.poll_interval.EARLY", 0.4)
    monkeypatch.setattr("cockpit.hosts.poll_interval.EARLY_IN_A_ROW", 2)
    async with watching(web(0.5), sshd.ssh_config) as watch:
        await watch.sampled(1)
        link.request_delay = link.response_delay = 0.2
        await until(lambda: watch.samples[-1].interval >= 1.0)
        link.request_delay = link.response_delay = 0.0
        await until(lambda: watch.samples[-1].interval == 0.5)
    assert "lost" not in watch.conditions


async def test_sample_time_is_time_of_host_reading(sshd: Sshd, link: Link) -> None:
    """Both clocks are this machine's, so the exact time of each sample is known."""
    async with watching(web(0.05), sshd.ssh_config) as watch:
        # Uptime at the start of the session; the maximum, since the two clocks may be read with a delay between them.
        boot_offset = max(suspended_seconds() for _ in range(99)) + watch.clock.origin
        for link.request_delay, link.response_delay in ((0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.0, 0.0)):
            await watch.sampled(2)
        best_round_trip = min(sample.round_trip for sample in watch.samples)
        first = next(place for place, sample in enumerate(watch.samples) if sample.round_trip == best_round_trip)
        for sample in watch.samples[first:]:
            error = sample.t - (sample.reading.uptime - boot_offset)
            assert abs(error) <= best_round_trip / 2 + STEP, sample.round_trip
    for before, after in itertools.pairwise(watch.samples):
        assert before.t < after.t


async def test_dead_link_is_slow_then_lost(sshd: Sshd, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh_login.SILENCE", 2.0)
    async with watching(web(0.05), sshd.ssh_config) as watch:
        await watch.sampled(2)
        monkeypatch.setattr("cockpit.hosts.ssh_login.CONNECT_TIMEOUT", 0.5)
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 0.3)
        await watch.sampled(2)  # the pending request has the old limits
        link.drops = True
        lost = await watch.until("lost")
        assert "slow" in watch.conditions
        assert lost.detail == "connection lost: keepalives were not answered"
        await until(lambda: watch.changes[-1].detail != lost.detail)
        assert watch.changes[-1].detail.startswith(f"no answer from 127.0.0.1:{link.port} within 0.5 s; ")
        link.drops = False
        monkeypatch.setattr("cockpit.hosts.ssh_login.CONNECT_TIMEOUT", 30.0)
        await watch.until("up")
        await watch.sampled(2)
    assert watch.state().markers[0].kind == "gap"


def test_poll_interval_doubles_to_maximum_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    poll = PollInterval(1.0)
    poll.took(0.6)
    poll.took(0.1)
    poll.took(0.6)
    assert poll.interval == 1.0
    for _ in range(20):
        poll.took(6.0)
    assert poll.interval == LONGEST
    for _ in range(9):
        poll.took(0.1)
        poll.took(2.0)
    assert poll.interval == LONGEST
    for _ in range(20):
        poll.took(0.01)
    assert poll.interval == 1.0
    configured = PollInterval(60.0)
    for _ in range(9):
        configured.took(50.0)
    assert configured.interval == 60.0, "longer than the maximum"


@given(
    uptime=st.floats(0, 1e7),
    delays=st.lists(st.tuples(st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=40),
)
def test_clock_error_is_at_most_half_best_round_trip(uptime: float, delays: list[tuple[float, float]]) -> None:
    clock, now = HostClock(), 10.0
    for request_delay, response_delay in delays:
        taken = now + request_delay
        estimate = clock.place(now, taken + response_delay, math.floor(100 * (taken + uptime)) / 100)
        assert now <= estimate <= taken + response_delay
        best_round_trip = min(sum(pair) for pair in delays[: delays.index((request_delay, response_delay)) + 1][-30:])
        assert abs(estimate - taken) <= best_round_trip / 2 + 2 * STEP
        now = taken + response_delay + 1


def test_clock_estimate_resets_after_clock_jump() -> None:
    clock = HostClock()
    assert clock.place(10.0, 10.2, 500.1) == pytest.approx(10.1)
    assert clock.place(11.0, 11.2, 3.1) == pytest.approx(11.1)
    assert clock.place(12.0, 14.0, 4.05) == pytest.approx(12.05, abs=0.1)
