"""Runs: exact counts, requests in flight, ends, stops, and dead workers, whose load moves to the others."""

import asyncio
import os
import signal
from typing import Any

import pytest

from cockpit.load import pool, preflight
from cockpit.load.pool import launch
from cockpit.model.clock import Clock
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load.plan import Expect, PathList, Request, Stage, ThinkTime
from tests.load.servers import SMALL, ClientConnection, Outcome, always, begin, load, load_until, once, plan, serving
from tests.processes import newer_children
from tests.waiting import DEADLINE


async def test_requests_in_flight_at_end_are_abandoned_without_errors() -> None:
    async with serving(once(hold=True)) as server:
        outcome = await load_until(
            lambda factor: plan(server.url, duration=0.3 * factor, concurrency=5), lambda seen: seen.total("sent") == 5
        )
    assert (outcome.total("sent"), outcome.total("completed"), outcome.total("abandoned")) == (5, 0, 5)
    assert (outcome.errors, outcome.merged("service").count, outcome.ended.reason) == ({}, 0, "completed")


async def run_with_signal(number: signal.Signals, *, stop: bool = False, **values: Any) -> Outcome:
    """Send a signal to the last worker of an unlimited run once all workers have sent ticks; return after its end."""
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, **values), outcome)
        await outcome.until(lambda seen: len({tick.worker for tick in seen.ticks}) == len(run.pids))
        os.kill(run.pids[-1], number)
        if stop:
            run.stop()
        await run.wait()
    return outcome


async def test_dead_worker_is_reported_and_others_stop_if_planned() -> None:
    outcome = await run_with_signal(signal.SIGKILL, workers=2, on_loss="stop")
    [lost] = outcome.lost
    assert (lost.run, lost.worker) == (1, 1)
    assert "SIGKILL" in lost.detail
    assert outcome.ended.reason == "stopped"
    assert "partial" in outcome.ended.detail


async def test_run_fails_if_all_workers_die() -> None:
    outcome = await run_with_signal(signal.SIGKILL)
    assert outcome.ended.reason == "failed"
    assert "SIGKILL" in outcome.ended.detail


async def test_suspended_worker_does_not_block_end_of_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_STOP_TIMEOUT", 0.2)
    outcome = await run_with_signal(signal.SIGSTOP, stop=True)
    assert [lost.worker for lost in outcome.lost] == [0]


async def test_secrets_are_not_in_events() -> None:
    secrets = {"password": "pass", "Authorization": "Bearer abc", "Cookie": "def"}
    async with serving(always(SMALL)) as server:
        url = server.url.replace("//", f"//user:{secrets['password']}@")
        mix = (Request(name="a", url=url, headers=(("Cookie", secrets["Cookie"]),)),)
        for values in ({"headers": (("Authorization", secrets["Authorization"]), ("X", "y"))}, {"mix": mix}):
            outcome = await load(plan(url, requests=2, **values))
            assert outcome.total("completed") == 2
            assert not [name for name, secret in secrets.items() if secret in repr(outcome.events)]


@pytest.mark.usefixtures("real_workers")
async def test_workers_run_on_given_cpus() -> None:
    cpu = max(os.sched_getaffinity(0))
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, duration=600.0, cpus=(cpu,)), outcome)
        assert os.sched_getaffinity(run.pids[0]) == {cpu}
        run.stop()
        await run.wait()


URL = "http://127.0.0.1:9/"
INVALID: list[tuple[dict[str, Any], str]] = [
    ({"cpus": (4095,)}, "CPU 4095"),
    ({"concurrency": 0}, "load.concurrency: found 0"),
    ({"timeout": 0.0}, "load.timeout: found 0"),
    ({"concurrency": 50_000_000}, "ulimit -Hn"),
    ({"url": "ftp://127.0.0.1/"}, "http://"),
    ({"url": "http://no-such-host.invalid/"}, "no-such-host.invalid"),
    ({"rate": 0.0, "duration": 1.0}, "rate: found 0.0"),
    ({"warmup": -1.0}, "warmup"),
    ({"rate": 5.0, "max_in_flight": 0}, "max_in_flight"),
    ({"stages": (Stage(duration=1.0),)}, "exactly one"),
    ({"stages": (Stage(duration=1.0, rate=1.0), Stage(duration=1.0, concurrency=1))}, "all of one kind"),
    ({"stages": (Stage(duration=0.0, concurrency=1),)}, "stages.duration: found 0.0"),
    ({"stages": (Stage(duration=1.0, concurrency=1),), "requests": 5}, "stages alone"),
    ({"mix": (Request(name="a", url=URL), Request(name="a", url=URL))}, "choose unique names"),
    ({"mix": (Request(name="a", url=URL), Request(name="b", url="http://web2/"))}, "use the same target"),
    ({"mix": (Request(name="a", url=URL, weight=0),)}, "weight: found 0"),
    ({"mix": (Request(name="a", url=URL),), "paths": PathList(pattern="/a")}, "one of the two"),
    ({"paths": PathList()}, "either a pattern or a list"),
    ({"paths": PathList(pattern="/{5..2}")}, "invalid range"),
    ({"paths": PathList(pattern="/{1..99999}{1..99999}")}, "the maximum is"),
    ({"paths": PathList(listed=("a",))}, "begins with /"),
    ({"paths": PathList(pattern="/{1..9}", order="once"), "requests": 10}, "10 requests for 9 paths"),
    ({"expect": Expect(matches="(")}, "a regular expression"),
    ({"expect": Expect(sha256="abc")}, "64 hexadecimal digits"),
    ({"connect_to": "a:b"}, "not a host and a port"),
    ({"unix": "/x", "connect_to": "a:1"}, "Unix socket"),
    ({"local_addresses": ("web1",)}, "not an IP address"),
    ({"local_addresses": ("192.0.2.7",)}, "local address 192.0.2.7"),
]


@pytest.mark.parametrize(("values", "message"), INVALID)
async def test_invalid_plan_is_refused_before_any_event(values: dict[str, Any], message: str) -> None:
    outcome = Outcome()
    error = TargetError if "no-such-host" in message else UsageError
    with pytest.raises(error, match=message) as caught:
        await launch(plan(**{"url": URL, **values}), 1, Clock(), outcome.emit)
    assert outcome.events == [] and "\n" not in str(caught.value)


@pytest.mark.usefixtures("real_workers")
async def test_cancelled_launch_ends_and_leaves_no_process() -> None:
    load = plan("http://127.0.0.1:9/", rate=50.0, duration=600.0, workers=2)
    addresses = await preflight.resolve(load)
    found = preflight.Preflight(address=addresses[0])
    workers = newer_children()
    for iterations in (0, 1, 2, 3, 4, 6, 8, 12, 16, 20):
        outcome = Outcome()
        starting = asyncio.create_task(launch(load, 1, Clock(), outcome.emit, found))
        for _ in range(iterations):
            await asyncio.sleep(0)
        starting.cancel()
        done, _ = await asyncio.wait([starting], timeout=DEADLINE)
        assert done and starting.cancelled(), f"cancelled after {iterations} iterations of the event loop"
        assert workers() == []


@pytest.mark.parametrize("load", [{"concurrency": 4}, {"rate": 40.0}], ids=["closed", "open"])
async def test_unanswered_requests_are_in_flight_with_growing_age(load: dict[str, object]) -> None:
    released = asyncio.Event()

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            await released.wait()
            await client.send(SMALL)

    async with serving(behave) as server:
        outcome = Outcome()
        run = await begin(plan(server.url, duration=60.0, **load), outcome)
        await outcome.until(lambda seen: bool(seen.ticks) and seen.ticks[-1].oldest >= 0.2)
        stalled = outcome.ticks[-1]
        assert stalled.in_flight == outcome.total("sent"), "all sent requests are in flight"
        assert stalled.silence >= 0.2
        assert stalled.completed == 0
        released.set()
        await outcome.until(lambda seen: seen.ticks[-1].completed > 0)
        first = next(tick for tick in outcome.ticks if tick.completed)
        assert first.silence == 0.0
        await outcome.until(lambda seen: seen.ticks[-1].oldest < 0.2)
        run.stop()
        await run.wait()
    ended = outcome.total("completed") + outcome.total("abandoned") + sum(outcome.errors.values())
    assert outcome.total("sent") == ended
    assert outcome.ticks[-1].in_flight == 0


COUNTED = 600


async def run_with_loss(load: dict[str, Any], at: int = 20) -> Outcome:
    """Run a plan of two workers to its end; kill a worker at the `at`th request."""
    outcome = Outcome()

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            if server.requests == at:
                os.kill(run.pids[1], signal.SIGKILL)
            await client.send(SMALL)

    async with serving(behave) as server:
        run = await begin(plan(server.url, workers=2, **load), outcome)
        await run.wait()
    assert [lost.worker for lost in outcome.lost] == [1]
    assert "partial" in outcome.ended.detail
    assert all(tick.worker == 0 for tick in outcome.ticks if tick.start > outcome.lost[0].t)
    return outcome


@pytest.mark.parametrize(
    "load",
    [
        {"rate": 600.0},
        {"rate": 600.0, "arrivals": "poisson"},
        {"rate": 600.0, "warmup": 0.2},
        {"concurrency": 8, "think_time": ThinkTime(seconds=0.03)},
        {"concurrency": 8, "think_time": ThinkTime(seconds=0.03), "warmup": 0.2},
    ],
)
async def test_all_requests_of_counted_run_are_sent(load: dict[str, Any]) -> None:
    outcome = await run_with_loss({**load, "requests": COUNTED})
    assert sum(tick.completed for tick in outcome.ticks if not tick.warmup) == COUNTED
    assert outcome.ended.reason == "completed" and "have no result" not in outcome.ended.detail


async def test_remaining_worker_takes_over_all_connections() -> None:
    """The remaining worker has as many connections as both workers had."""
    think = ThinkTime(seconds=0.1)
    outcome = await run_with_loss({"concurrency": 10, "requests": 200, "think_time": think}, at=1)
    assert outcome.total("completed") == 200
    assert max(tick.connections for tick in outcome.ticks if tick.worker == 0) > 5


async def test_paths_used_once_are_lost_with_their_worker() -> None:
    paths = PathList(pattern="/{1..600}", order="once")
    outcome = await run_with_loss({"rate": 600.0, "paths": paths})
    missing = COUNTED - outcome.total("completed")
    assert missing > 0
    assert f"{missing} of {COUNTED} requests have no result" in outcome.ended.detail


async def test_load_levels_of_connections_keep_their_sum() -> None:
    stages = (Stage(duration=0.8, concurrency=4), Stage(duration=0.5, concurrency=9))
    outcome = await run_with_loss({"concurrency": 4, "stages": stages, "think_time": ThinkTime(seconds=0.01)})
    after = [tick for tick in outcome.ticks if tick.start > outcome.lost[0].t]
    assert {max(tick.connections for tick in after if tick.stage == stage) for stage in (0, 1)} == {4, 9}


async def test_load_levels_of_rate_keep_their_sum() -> None:
    stages = (Stage(duration=1, rate=300), Stage(duration=0.5, rate=600))
    outcome = await run_with_loss({"rate": 300.0, "stages": stages})
    first, last = (sum(tick.sent for tick in outcome.ticks if tick.stage == stage) for stage in (0, 1))
    assert last == pytest.approx(300, rel=0.03)
    # Requests of the lost worker after its last tick are not counted, and nobody sends its share until it is reported.
    unknown = outcome.lost[0].t - max((tick.t for tick in outcome.ticks if tick.worker == 1), default=outcome.started.t)
    assert first + 150 * unknown == pytest.approx(300, rel=0.1)
