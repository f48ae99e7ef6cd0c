"""Open load: both latencies; arrivals over the limit in flight are queued, and dropped if the queue is full."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load import open_load
from cockpit.load.http.protocol import assignments
from cockpit.load.ramp import constant
from cockpit.load.schedule import ArrivalQueue, Arrivals
from cockpit.model.load.plan import PathList, Request, Stage
from cockpit.model.tick import Tick
from tests.load.servers import (
    POLLERS,
    SMALL,
    ClientConnection,
    Outcome,
    always,
    begin,
    closing_after,
    engine_load,
    engine_run,
    load,
    once,
    plan,
    serving,
)

RATE = 400.0


@dataclass
class Gate:
    """A server that sends no response before it is opened, and records the requested paths in order."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)
    requested: list[str] = field(default_factory=list)

    async def behave(self, client: ClientConnection) -> None:
        while True:
            request = await client.request()
            self.requested.append(request.split(b" ", 2)[1].decode())
            await self.opened.wait()
            await client.send(SMALL)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=200))
def test_backlog_is_first_in_first_out(steps: list[float | None]) -> None:
    """A step of None takes the first arrival."""
    backlog, expected = ArrivalQueue(), deque[float]()
    for step in steps:
        if step is not None:
            backlog.put(step)
            expected.append(step)
        elif expected:
            assert backlog.pop() == expected.popleft()
        assert len(backlog) == len(expected)


async def test_arrivals_queued_until_end_are_counted_as_unsent() -> None:
    async with serving(once(hold=True)) as server:
        outcome = await load(plan(server.url, rate=RATE, duration=0.5, max_in_flight=7, workers=2))
        assert server.requests <= 7
    assert outcome.total("sent") == outcome.total("abandoned") == 7
    assert outcome.total("queued") == outcome.total("unsent") == RATE * 0.5 - 7
    assert outcome.errors == {}
    # A lag value per sent request, and per tick except the last.
    assert outcome.merged("lag").count <= 7 + len(outcome.ticks)


@pytest.mark.parametrize("keepalive", [True, False])
async def test_queued_requests_are_all_sent_in_order(keepalive: bool) -> None:
    gate, outcome = Gate(), Outcome()
    async with serving(gate.behave) as server:
        paths = PathList(pattern="/{1..300}")
        run = await begin(
            plan(server.url, rate=RATE, requests=300, max_in_flight=1, paths=paths, keepalive=keepalive), outcome
        )
        await outcome.until(lambda seen: seen.total("queued") >= 100)
        gate.opened.set()
        await run.wait()
    assert outcome.total("sent") == outcome.total("completed") == 300
    assert outcome.total("unsent") == 0
    assert gate.requested == [f"/{number}" for number in range(1, 301)]
    assert outcome.merged("response").count == outcome.merged("service").count == 300
    # Each of the first hundred waited for the request in flight: counted in response time, not in service time.
    waited = outcome.merged("response").total_ns - outcome.merged("service").total_ns
    assert waited >= 49 * 100 / RATE * 1e9


async def test_queued_counts_in_own_level_and_sent_in_later_level() -> None:
    gate, outcome = Gate(), Outcome()
    stages = (Stage(duration=0.3, rate=100.0), Stage(duration=600.0, rate=1.0))
    async with serving(gate.behave) as server:
        run = await begin(plan(server.url, stages=stages, max_in_flight=1), outcome)
        await outcome.until(lambda seen: any(tick.stage == 1 for tick in seen.ticks))
        gate.opened.set()
        await server.until(lambda: server.requests >= 30)
        run.stop()
        await run.wait()
    sums = [_sums([tick for tick in outcome.ticks if tick.stage == stage]) for stage in (0, 1)]
    assert (sums[0]["sent"], sums[0]["queued"], sums[0]["unsent"]) == (1, 29, 0)
    assert sums[1]["sent"] >= 29


@pytest.mark.parametrize("mix", [False, True])
async def test_arrivals_of_warm_up_are_sent_later_and_not_counted(mix: bool) -> None:
    gate, outcome = Gate(), Outcome()
    async with serving(gate.behave) as server:
        requests = tuple(Request(name=name, url=f"{server.url}/{name}") for name in ("a", "b")) if mix else ()
        run = await begin(plan(server.url, rate=100.0, requests=20, warmup=0.3, max_in_flight=1, mix=requests), outcome)
        await outcome.until(lambda seen: any(not tick.warmup for tick in seen.ticks))
        gate.opened.set()
        await run.wait()
    warm = _sums([tick for tick in outcome.ticks if tick.warmup])
    counted = _sums([tick for tick in outcome.ticks if not tick.warmup])
    assert warm == {"sent": 1, "completed": 0, "abandoned": 1, "queued": 29, "unsent": 29}
    assert (counted["sent"], counted["completed"], counted["unsent"]) == (20, 20, 0)
    assert outcome.merged("response").count == 20
    assert len(gate.requested) == 1 + 29 + 20
    if mix:
        assert sum(group.sent for groups in outcome.groups.values() for group in groups) == 20 + 1


async def test_stopped_run_counts_unsent_arrivals() -> None:
    gate, outcome = Gate(), Outcome()
    async with serving(gate.behave) as server:
        run = await begin(plan(server.url, rate=RATE, duration=600.0, max_in_flight=3), outcome)
        await outcome.until(lambda seen: seen.total("queued") >= 10)
        run.adjust(rate=2 * RATE)
        queued = outcome.total("queued")
        await outcome.until(lambda seen: seen.total("queued") >= queued + 10)
        run.stop()
        await run.wait()
    assert outcome.total("sent") == outcome.total("abandoned") == 3
    assert outcome.total("unsent") == outcome.total("queued") >= 20


async def test_slots_of_timed_out_requests_are_reused_immediately() -> None:
    outcome, _ = await engine_run(once(hold=True), rate=RATE, requests=40, max_in_flight=10, timeout=0.1)
    assert outcome.errors == {"timeout": 40}
    assert outcome.total("sent") == 40
    # Ten at a time, 0.1 s each: the last ten were due in the first tenth of a second and sent after three time-outs.
    assert outcome.merged("response").max >= 0.3
    assert outcome.merged("service").count == 40


async def test_backlog_drains_if_all_connects_fail_immediately(tmp_path: Path) -> None:
    """connect() to a removed Unix socket fails immediately; thousands of such failures must not recurse."""
    path, gate, outcome = tmp_path / "socket", Gate(), Outcome()
    async with serving(gate.behave, path=str(path)) as server:
        run = await begin(plan("http://a/", unix=str(path), rate=10_000.0, requests=3000, max_in_flight=1), outcome)
        await server.until(lambda: server.requests == 1)
        path.unlink()
        await outcome.until(lambda seen: seen.total("queued") == 2999)
        server.connections[0].reset()
        await run.wait()
    assert outcome.lost == []
    assert outcome.total("sent") == 3000
    assert outcome.errors["unreachable"] >= 2999


def _sums(ticks: list[Tick]) -> dict[str, int]:
    names = ("sent", "completed", "abandoned", "queued", "unsent")
    return {name: sum(getattr(tick, name) for tick in ticks) for name in names}


async def test_backlog_is_limited_to_a_million_arrivals_at_absurd_rate() -> None:
    """A million arrivals of eight bytes; without the limit, this run would take 2 TB."""
    async with serving(once(hold=True)) as server:
        outcome = await load(plan(server.url, rate=1e12, duration=0.3, max_in_flight=3, timeout=20.0))
    assert outcome.total("sent") == outcome.total("abandoned") == 3
    assert outcome.total("unsent") == open_load.BACKLOG_LIMIT
    due = outcome.total("sent") + outcome.total("unsent") + outcome.total("dropped")
    assert due == pytest.approx(3e11, rel=1e-6)


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
async def test_counted_requests_are_sent_or_dropped_and_run_ends(
    arrivals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_load, "BACKLOG_LIMIT", 50)
    outcome, server = await engine_run(always(SMALL), rate=1e6, arrivals=arrivals, requests=500, max_in_flight=4)
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
    outcome, _ = await engine_run(once(hold=True), max_in_flight=2, timeout=20.0, **rates, **timing)
    counted = [tick for tick in outcome.ticks if not tick.warmup]
    due = sum(tick.sent + tick.unsent + tick.dropped for tick in counted)
    expected = 20_000 * 0.2 + 5000 * 0.2 if "stages" in timing else 20_000 * 0.4
    assert sum(tick.dropped for tick in counted) > 0
    # Arrivals queued in the warm-up are not counted, but occupy the backlog.
    assert due == pytest.approx(expected, abs=2)


@pytest.mark.parametrize("burst", [1, 7])
@pytest.mark.parametrize("rate", [10.0, 123.0, 1e6])
def test_skipping_even_arrivals_equals_advancing_over_each(rate: float, burst: int) -> None:
    advanced, skipped = (Arrivals(plan("http://x/", rate=rate, burst=burst), 1, 3) for _ in range(2))
    for arrivals in (advanced, skipped):
        arrivals.follow(5.0, constant(rate, 5.0))
    until = 5.0 + 1000.4 / rate
    passed = 0
    while advanced.due < until:
        advanced.advance()
        passed += 1
    assert skipped.skip(until) == passed
    assert skipped.due == pytest.approx(advanced.due, abs=1e-9)
    assert skipped.skip(until) == 0


@pytest.mark.parametrize("burst", [1, 100])
def test_skipping_random_arrivals_keeps_rate(burst: int) -> None:
    arrivals = Arrivals(plan("http://x/", rate=1e6, arrivals="poisson", seed=3, burst=burst), 0, 1)
    arrivals.follow(0.0, constant(1e6, 0.0))
    passed = sum(arrivals.skip(step / 100) for step in range(1, 101))
    # Six standard deviations.
    assert passed == pytest.approx(1e6, abs=6000 * burst**0.5)
    assert arrivals.due > 1.0


@pytest.mark.parametrize("arrivals", ["even", "poisson"])
def test_requests_of_a_burst_are_due_at_once_and_bursts_share_the_rate(arrivals: str) -> None:
    workers = [Arrivals(plan("http://x/", rate=100.0, burst=5, arrivals=arrivals), number, 2) for number in range(2)]
    dues = []
    for each in workers:
        each.follow(0.0, constant(100.0, 0.0))
        while each.due < 50.0:
            dues.append(each.due)
            each.advance()
    bursts = Counter(dues)
    assert set(bursts.values()) == {5}
    assert len(dues) == pytest.approx(5000, abs=1 if arrivals == "even" else 950)


def test_arrivals_are_shared_exactly() -> None:
    shares = assignments(plan("http://web1/", rate=10.0, requests=11, workers=4, max_in_flight=9), 1, ("x", 1))
    assert [share.requests for share in shares] == [3, 3, 3, 2]
    assert sum(share.in_flight for share in shares) == 9
    assert len(assignments(plan("http://web1/", rate=10.0, duration=1.0, workers=4, max_in_flight=3), 1, ("x", 1))) == 3


async def test_connections_are_reused_and_close_is_no_error() -> None:
    async with serving(closing_after(5)) as server:
        outcome = await engine_load(plan(server.url, rate=300.0, requests=150))
        assert 30 <= len(server.connections) < 150
    assert outcome.errors == {}
    assert outcome.total("completed") == outcome.total("sent") == 150


@pytest.mark.parametrize("poller", POLLERS)
async def test_connection_close_frees_slot_in_flight(poller: str) -> None:
    closing = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    outcome, _ = await engine_run(always(closing), poller, rate=100.0, requests=20, max_in_flight=1)
    assert outcome.statuses == {200: 20}


async def test_rate_of_current_run_is_adjusted() -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await begin(plan(server.url, rate=1.0, duration=600.0, workers=2), outcome)
        run.adjust(rate=500.0)
        await server.until(lambda: server.requests >= 150)
        run.stop()
        await run.wait()
    [adjusted] = outcome.adjusted
    assert (adjusted.run, adjusted.rate, adjusted.concurrency) == (1, 500.0, None)
    assert outcome.ended.reason == "stopped"
    ended = outcome.total("completed") + outcome.total("abandoned") + sum(outcome.errors.values())
    assert ended == outcome.total("sent")
