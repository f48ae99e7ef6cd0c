"""Queued arrivals take bounded memory: arrivals at a full backlog are dropped, counted, and never sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cockpit.load import open_load
from cockpit.load.schedule import Arrivals
from cockpit.model.load import Stage
from tests.load.servers import SMALL, ClientConnection, always, engine_load, load, plan, serving


async def _silent(client: ClientConnection) -> None:
    await client.request()
    await asyncio.Event().wait()


async def test_backlog_is_limited_to_a_million_arrivals_at_absurd_rate() -> None:
    """A million arrivals of eight bytes; without the limit, the first second of this run would take 8 TB."""
    async with serving(_silent) as server:
        outcome = await load(plan(server.url, rate=1e12, duration=1.0, max_in_flight=3, timeout=20.0))
    assert outcome.total("sent") == outcome.total("abandoned") == 3
    assert outcome.total("unsent") == open_load.BACKLOG_LIMIT
    due = outcome.total("sent") + outcome.total("unsent") + outcome.total("dropped")
    assert due == pytest.approx(1e12, rel=1e-6)


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
async def test_counted_requests_are_sent_or_dropped_and_run_ends(
    arrivals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_load, "BACKLOG_LIMIT", 50)
    async with serving(always(SMALL)) as server:
        outcome = await engine_load(plan(server.url, rate=1e6, arrivals=arrivals, requests=500, max_in_flight=4))
    assert outcome.total("dropped") > 0
    assert outcome.total("sent") + outcome.total("dropped") == 500
    assert outcome.total("completed") == outcome.total("sent") == server.requests
    assert outcome.total("unsent") == 0
    assert outcome.merged("response").count == outcome.total("completed")


@pytest.mark.parametrize(
    "timing",
    [
        {"duration": 0.4},
        {"duration": 0.4, "warmup": 0.2},
        {"stages": (Stage(duration=0.2, rate=20_000.0), Stage(duration=0.2, rate=5000.0))},
    ],
    ids=["plain", "warm-up", "stages"],
)
async def test_each_arrival_is_sent_unsent_or_dropped(timing: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_load, "BACKLOG_LIMIT", 100)
    rates = {"rate": None} if "stages" in timing else {"rate": 20_000.0}
    async with serving(_silent) as server:
        outcome = await engine_load(plan(server.url, max_in_flight=2, timeout=20.0, **rates, **timing))
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    due = sum(tick.sent + tick.unsent + tick.dropped for tick in counted)
    expected = 20_000 * 0.2 + 5000 * 0.2 if "stages" in timing else 20_000 * 0.4
    assert sum(tick.dropped for tick in counted) > 0
    # Arrivals queued in the warm-up are not counted, but occupy the backlog.
    assert due == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("rate", [10.0, 123.0, 1e6])
def test_skipping_even_arrivals_equals_advancing_over_each(rate: float) -> None:
    advanced, skipped = (Arrivals(plan("http://x/", rate=rate), 1, 3) for _ in range(2))
    for arrivals in (advanced, skipped):
        arrivals.set_rate(5.0, rate)
    until = 5.0 + 1000.4 / rate
    passed = 0
    while advanced.due < until:
        advanced.advance()
        passed += 1
    assert skipped.skip(until) == passed
    assert skipped.due == pytest.approx(advanced.due, abs=1e-9)
    assert skipped.skip(until) == 0


def test_skipping_random_arrivals_keeps_rate() -> None:
    arrivals = Arrivals(plan("http://x/", rate=1e6, arrivals="poisson", seed=3), 0, 1)
    arrivals.set_rate(0.0, 1e6)
    passed = sum(arrivals.skip(step / 100) for step in range(1, 101))
    # Six standard deviations.
    assert passed == pytest.approx(1e6, abs=6000)
    assert arrivals.due > 1.0
