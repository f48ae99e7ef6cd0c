"""For any behaviour of a server, a run ends, each request is counted once with the right kind, and no worker fails."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from cockpit.model.load import LoadPlan, Request
from tests.load.hostile.bodies import CHUNKS, LENGTHS
from tests.load.hostile.cases import OK, SHORT, HostileCase
from tests.load.hostile.connections import CONNECTIONS
from tests.load.hostile.heads import HEADS
from tests.load.hostile.registry import CASES
from tests.load.hostile.tls import TLS_CASES
from tests.load.servers import DEADLINE, ClientConnection, Outcome, begin, engine_load, plan, serving

REQUESTS = 5
# Concurrent runs, each with a worker process.
PARALLEL = 6

Outcomes = dict[tuple[str, bool], Outcome]


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """Run load against all cases that the selected tests need, several runs at a time."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    cases = [(params.get("name"), params.get("keepalive")) for params in parameters]
    requested = {case for case in cases if case[0] in CASES and case[1] is not None}
    return asyncio.run(_run_all(sorted(requested)))


async def _run_all(requested: list[tuple[str, bool]]) -> Outcomes:
    # Half of the runs use worker processes. The other half use an engine in a thread with the other poller, one run at
    # a time, because engines of a process share a buffer.
    processes, thread = asyncio.Semaphore(PARALLEL), asyncio.Semaphore(1)

    async def run(name: str, keepalive: bool) -> Outcome:
        case = CASES[name]
        async with processes if keepalive else thread, case.serve() as server:
            load_plan = _plan(case, server.url, keepalive=keepalive)
            return await (bounded(load_plan) if keepalive else engine_load(load_plan, "level-triggered"))

    done = await asyncio.gather(*(run(*case) for case in requested))
    return dict(zip(requested, done, strict=True))


def _plan(case: HostileCase, url: str, *, keepalive: bool) -> LoadPlan:
    values = {
        "requests": REQUESTS,
        "concurrency": 3,
        "timeout": case.timeout,
        "keepalive": keepalive,
        "tls": case.tls(),
        **case.plan,
    }
    return plan(url, **values)


async def bounded(load_plan: LoadPlan) -> Outcome:
    """Run a plan; stop it at the deadline, so that it counts as stopped."""
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
    """Check that each request is counted exactly once, and that the latencies agree with the counts."""
    errors = outcome.errors
    assert outcome.total("sent") == outcome.total("completed") + sum(errors.values()) + outcome.total("abandoned")
    assert outcome.total("completed") == sum(outcome.statuses.values())
    given_up = errors.get("timeout", 0) + errors.get("connect_timeout", 0)
    assert outcome.merged("service").count == outcome.total("completed") + given_up
    assert outcome.merged("response").count in (0, outcome.merged("service").count)
    assert outcome.ticks[-1].connections == 0


@pytest.mark.parametrize("keepalive", [True, False], ids=["kept", "unkept"])
@pytest.mark.parametrize("name", CASES)
def test_each_request_is_counted_once_as_expected(name: str, keepalive: bool, outcomes: Outcomes) -> None:
    outcome = outcomes[name, keepalive]
    check_counts(outcome)
    if keepalive:
        check_end(outcome)
    assert outcome.total("sent") == REQUESTS
    assert outcome.total("abandoned") == 0
    assert {*outcome.statuses, *outcome.errors} <= set(CASES[name].expected)


def test_names_of_cases_are_unique() -> None:
    assert len(CASES) == len((*HEADS, *LENGTHS, *CHUNKS, *CONNECTIONS, *TLS_CASES)) >= 40


def _plain_cases() -> list[HostileCase]:
    """Return the cases that any plain request provokes."""
    return [case for case in CASES.values() if case.behave and not case.plan]


class ShortConnection(ClientConnection):
    """A connection that is closed after three requests, so that all cases have their turn."""

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
async def test_all_cases_in_turn(model: str) -> None:
    cases = _plain_cases()
    turns: Iterator[HostileCase] = itertools.cycle(cases)
    seen: set[str] = set()

    async def behave(client: ClientConnection) -> None:
        case = next(turns)
        seen.add(case.name)
        assert case.behave
        await case.behave(ShortConnection(client.reader, client.writer, client.request_arrived))

    requests = 6 * len(cases)
    ended: set[int | str] = set()
    async with serving(behave) as server:
        # On a busy machine valid responses may be too late for a short time-out.
        for timeout in (SHORT, 1.0, 3.0, 10.0):
            outcome = await bounded(plan(server.url, requests=requests, timeout=timeout, **MODELS[model]))
            check_counts(outcome)
            check_end(outcome)
            assert outcome.total("sent") == requests
            assert outcome.total("abandoned") == 0
            assert seen == {case.name for case in cases}
            assert set(outcome.errors) <= BAD_ENDS
            ended |= {*outcome.errors, *outcome.statuses}
            if ended >= BAD_ENDS | GOOD_ENDS:
                return
    assert ended >= BAD_ENDS | GOOD_ENDS


IDLE_BYTES: dict[str, bytes] = {
    "closes": b"",
    "sends 408": b"HTTP/1.1 408 Too Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "sends garbage": b"\x00\x01\x02",
    "responds again": OK,
}


@pytest.mark.parametrize("idle", IDLE_BYTES)
async def test_bytes_on_idle_connection_are_no_response(idle: str) -> None:
    """Open load keeps idle connections; after unexpected bytes, the next request uses a new connection.

    Only a request that is sent before these bytes arrive may be affected.
    """
    hit = 0

    async def behave(client: ClientConnection) -> None:
        nonlocal hit
        await client.request()
        await client.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await client.send(IDLE_BYTES[idle])
        if idle != "closes":
            await client.request()
            hit += 1

    async with serving(behave) as server:
        outcome = await bounded(plan(server.url, requests=10, rate=20.0))
    check_counts(outcome)
    check_end(outcome)
    assert 10 - outcome.statuses[200] <= hit
    assert outcome.total("body_bytes") <= hit * len(OK)


class PrereadConnection(ClientConnection):
    """A connection whose first request is already read."""

    first: bytes = b""

    async def request(self) -> bytes:
        first, self.first = self.first, b""
        return first or await super().request()


async def test_mix_counts_each_request_under_its_name() -> None:
    """A mix with a request per case: the metrics of different requests are not mixed up."""
    cases = _plain_cases()

    async def behave(client: ClientConnection) -> None:
        connection = PrereadConnection(client.reader, client.writer, client.request_arrived)
        connection.first = await client.request()
        case = cases[int(connection.first.split(b" ", 2)[1].rpartition(b"/")[2])]
        assert case.behave
        await case.behave(connection)

    async with serving(behave) as server:
        mix = tuple(Request(name=case.name, url=f"{server.url}/{number}") for number, case in enumerate(cases))
        outcome = await bounded(
            plan(server.url, mix=mix, requests=2 * len(cases), concurrency=16, timeout=1.0, keepalive=False)
        )
    check_counts(outcome)
    check_end(outcome)
    for case in cases:
        groups = [tick.groups[case.name] for tick in outcome.ticks]
        ended: Counter[int | str] = Counter()
        for group in groups:
            ended.update(group.statuses)
            ended.update(group.errors)
        assert sum(group.sent for group in groups) == ended.total() == 2, case.name
        # With all cases in a single process, a valid response may be too late.
        assert set(ended) <= {*case.expected, "timeout"}, case.name
