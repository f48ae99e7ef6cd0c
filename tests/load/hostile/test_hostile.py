"""Whatever a server does, a run ends, each of its requests is counted once and under the right name, and no worker
falls over it."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cockpit.model.load import LoadPlan, Request
from tests.load.hostile.bodies import CHUNKS, LENGTHS
from tests.load.hostile.connections import CONNECTIONS
from tests.load.hostile.heads import HEADS
from tests.load.hostile.registry import ROWS
from tests.load.hostile.rows import OK, SHORT, Row
from tests.load.hostile.secure import SECURE
from tests.load.servers import DEADLINE, Conversation, Outcome, begin, engine_load, plan, serving

REQUESTS = 5
# Runs at a time, each a worker process.
PARALLEL = 6

Outcomes = dict[tuple[str, bool], Outcome]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """A run against every behaviour that a test here was asked for, several side by side."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    cases = [(params.get("name"), params.get("keepalive")) for params in asked]
    wanted = {case for case in cases if case[0] in ROWS and case[1] is not None}
    return asyncio.run(_run_all(sorted(wanted)))


async def _run_all(wanted: list[tuple[str, bool]]) -> Outcomes:
    # Two ways: worker processes for the one half; for the other an engine in a thread, with the other poller, and one
    # at a time, because engines of one process share a buffer.
    processes, thread = asyncio.Semaphore(PARALLEL), asyncio.Semaphore(1)

    async def run(name: str, keepalive: bool) -> Outcome:
        row = ROWS[name]
        async with processes if keepalive else thread, row.serve() as server:
            load_plan = _plan(row, server.url, keepalive=keepalive)
            return await (bounded(load_plan) if keepalive else engine_load(load_plan, "level-triggered"))

    done = await asyncio.gather(*(run(*case) for case in wanted))
    return dict(zip(wanted, done, strict=True))


def _plan(row: Row, url: str, *, keepalive: bool) -> LoadPlan:
    values = {
        "requests": REQUESTS,
        "concurrency": 3,
        "timeout": row.timeout,
        "keepalive": keepalive,
        "tls": row.tls(),
        **row.plan,
    }
    return plan(url, **values)


async def bounded(load_plan: LoadPlan) -> Outcome:
    """A whole run; one that hangs is stopped, and counts as stopped."""
    outcome = Outcome()
    run = await begin(load_plan, outcome)
    try:
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    except TimeoutError:
        run.stop()
        await run.wait()
    return outcome


def check_end(outcome: Outcome) -> None:
    assert outcome.lost == []
    assert outcome.ended.reason == "completed"


def check_counts(outcome: Outcome) -> None:
    """Nothing counted twice, nothing lost, and the latencies agree with the counts."""
    errors = outcome.errors
    assert outcome.total("sent") == outcome.total("completed") + sum(errors.values()) + outcome.total("abandoned")
    assert outcome.total("completed") == sum(outcome.statuses.values())
    given_up = errors.get("timeout", 0) + errors.get("connect_timeout", 0)
    assert outcome.merged("service").count == outcome.total("completed") + given_up
    assert outcome.merged("response").count in (0, outcome.merged("service").count)
    assert outcome.ticks[-1].connections == 0


@pytest.mark.parametrize("keepalive", [True, False], ids=["kept", "unkept"])
@pytest.mark.parametrize("name", ROWS)
def test_each_request_is_counted_once_under_its_name(name: str, keepalive: bool, outcomes: Outcomes) -> None:
    outcome = outcomes[name, keepalive]
    check_counts(outcome)
    if keepalive:
        check_end(outcome)
    assert outcome.total("sent") == REQUESTS
    assert outcome.total("abandoned") == 0
    assert {*outcome.statuses, *outcome.errors} <= set(ROWS[name].ends)


def test_there_are_many_and_no_two_of_one_name() -> None:
    assert len(ROWS) == len((*HEADS, *LENGTHS, *CHUNKS, *CONNECTIONS, *SECURE)) >= 40


def _talkers() -> list[Row]:
    """Rows that any plain request provokes."""
    return [row for row in ROWS.values() if row.behave and not row.plan]


class Brief(Conversation):
    """A connection that takes three requests and is closed, so that others get their turn."""

    async def request(self) -> bytes:
        if self.requests == 3:
            raise EOFError
        return await super().request()


MODELS: dict[str, dict[str, Any]] = {
    "closed, kept": {"concurrency": 16},
    "closed, unkept": {"concurrency": 16, "keepalive": False},
    "open, kept": {"rate": 500.0},
    "open, unkept": {"rate": 500.0, "keepalive": False},
    "open, few at a time": {"rate": 500.0, "max_in_flight": 8},
}


BAD_ENDS = {"timeout", "closed_early", "closed_before_response", "reset", "malformed"}
GOOD_ENDS = {200, 204, 304, 408, 999}


@pytest.mark.parametrize("model", MODELS)
async def test_all_of_them_in_turn(model: str) -> None:
    rows = _talkers()
    turns: Iterator[Row] = itertools.cycle(rows)
    met: set[str] = set()

    async def behave(talk: Conversation) -> None:
        row = next(turns)
        met.add(row.name)
        assert row.behave
        await row.behave(Brief(talk.reader, talk.writer, talk.came))

    requests = 6 * len(rows)
    ended: set[int | str] = set()
    async with serving(behave) as server:
        # On a busy machine good replies may come too late for a short time-out.
        for timeout in (SHORT, 1.0, 3.0, 10.0):
            outcome = await bounded(plan(server.url, requests=requests, timeout=timeout, **MODELS[model]))
            check_counts(outcome)
            check_end(outcome)
            assert outcome.total("sent") == requests
            assert outcome.total("abandoned") == 0
            assert met == {row.name for row in rows}
            assert set(outcome.errors) <= BAD_ENDS
            ended |= {*outcome.errors, *outcome.statuses}
            if ended >= BAD_ENDS | GOOD_ENDS:
                return
    assert ended >= BAD_ENDS | GOOD_ENDS


IDLE_TALK: dict[str, bytes] = {
    "closes": b"",
    "says it was too slow": b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "sends garbage": b"\x00\x01\x02",
    "replies again": OK,
}


@pytest.mark.parametrize("idle", IDLE_TALK)
async def test_what_comes_over_an_idle_connection_is_no_reply_to_the_next_request(idle: str) -> None:
    """Open load keeps connections that nothing is under way on: the next request begins on a new one.

    Only a request that is sent before that talk arrives may be hit by it.
    """
    hit = 0

    async def behave(talk: Conversation) -> None:
        nonlocal hit
        await talk.request()
        await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await talk.send(IDLE_TALK[idle])
        if idle != "closes":
            await talk.request()
            hit += 1

    async with serving(behave) as server:
        outcome = await bounded(plan(server.url, requests=10, rate=20.0))
    check_counts(outcome)
    check_end(outcome)
    assert 10 - outcome.statuses[200] <= hit
    assert outcome.total("body_bytes") <= hit * len(OK)


class Asked(Conversation):
    """A connection whose first request has been read already."""

    first: bytes = b""

    async def request(self) -> bytes:
        first, self.first = self.first, b""
        return first or await super().request()


async def test_each_is_counted_under_the_name_of_its_request() -> None:
    """A mix with a request for every behaviour: the figures of one do not get into those of another."""
    rows = _talkers()

    async def behave(talk: Conversation) -> None:
        asked = Asked(talk.reader, talk.writer, talk.came)
        asked.first = await talk.request()
        row = rows[int(asked.first.split(b" ", 2)[1].rpartition(b"/")[2])]
        assert row.behave
        await row.behave(asked)

    async with serving(behave) as server:
        mix = tuple(Request(name=row.name, url=f"{server.url}/{number}") for number, row in enumerate(rows))
        outcome = await bounded(
            plan(server.url, mix=mix, requests=2 * len(rows), concurrency=16, timeout=1.0, keepalive=False)
        )
    check_counts(outcome)
    check_end(outcome)
    for row in rows:
        groups = [tick.groups[row.name] for tick in outcome.ticks]
        ended: Counter[int | str] = Counter()
        for group in groups:
            ended.update(group.statuses)
            ended.update(group.errors)
        assert sum(group.sent for group in groups) == ended.total() == 2, row.name
        # In one process with all the others a good reply may come too late.
        assert set(ended) <= {*row.ends, "timeout"}, row.name
