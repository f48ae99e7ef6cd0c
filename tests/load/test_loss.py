"""The load of a dead worker moves to the remaining workers: load levels and request counts."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from cockpit.model.load import PathList, Stage, ThinkTime
from tests.load.servers import DEADLINE, SMALL, Outcome, always, begin, plan, serving

pytestmark = pytest.mark.usefixtures("real_workers")
COUNTED = 600


async def run_with_loss(load: dict[str, Any], at: int = 20) -> Outcome:
    """Run a plan of two workers to its end; kill a worker after `at` responses."""
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, workers=2, **load), outcome)
        await outcome.until(lambda seen: seen.total("completed") >= at)
        os.kill(run.pids[1], signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert [lost.worker for lost in outcome.lost] == [1]
    return outcome


@pytest.mark.parametrize(
    "load",
    [
        {"rate": 150.0},
        {"rate": 150.0, "arrivals": "poisson"},
        {"rate": 150.0, "warmup": 0.5},
        {"concurrency": 8, "think_time": ThinkTime(seconds=0.04)},
        {"concurrency": 8, "think_time": ThinkTime(seconds=0.04), "warmup": 0.5},
    ],
)
async def test_all_requests_of_counted_run_are_sent(load: dict[str, Any]) -> None:
    outcome = await run_with_loss({**load, "requests": COUNTED})
    assert sum(tick.completed for tick in outcome.ticks if not tick.warmup) == COUNTED
    assert outcome.ended.reason == "completed" and "have no result" not in outcome.ended.detail


async def test_remaining_worker_takes_over_all_connections() -> None:
    """The remaining worker has as many connections as both workers had."""
    think = ThinkTime(seconds=0.2)
    outcome = await run_with_loss({"concurrency": 10, "requests": 60, "think_time": think}, at=1)
    assert outcome.total("completed") == 60
    assert max(tick.connections for tick in outcome.ticks if tick.worker == 0) > 5


async def test_paths_used_once_are_lost_with_their_worker() -> None:
    paths = PathList(pattern="/{1..600}", order="once")
    outcome = await run_with_loss({"rate": 150.0, "paths": paths})
    missing = COUNTED - outcome.total("completed")
    assert missing > 0
    assert f"{missing} of {COUNTED} requests have no result" in outcome.ended.detail


LEVELS: dict[str, tuple[Stage, ...]] = {
    "closed": (Stage(duration=4, concurrency=4), Stage(duration=3, concurrency=9)),
    "open": (Stage(duration=4, rate=100), Stage(duration=3, rate=200)),
}


async def test_load_levels_of_connections_keep_their_sum() -> None:
    outcome = await run_with_loss({"concurrency": 4, "stages": LEVELS["closed"], "think_time": ThinkTime(seconds=0.02)})
    after = [tick for tick in outcome.ticks if tick.start > outcome.lost[0].t]
    assert {max(tick.connections for tick in after if tick.stage == stage) for stage in (0, 1)} == {4, 9}


async def test_load_levels_of_rate_keep_their_sum() -> None:
    outcome = await run_with_loss({"rate": 100.0, "stages": LEVELS["open"]})
    last = [tick for tick in outcome.ticks if tick.stage == 1]
    assert sum(tick.sent for tick in last) == pytest.approx(600, rel=0.03)
    first = [tick for tick in outcome.ticks if tick.stage == 0 and tick.start > outcome.lost[0].t + 0.2]
    rate = sum(tick.sent for tick in first) / (first[-1].t - first[0].start)
    assert rate == pytest.approx(100, rel=0.1)
