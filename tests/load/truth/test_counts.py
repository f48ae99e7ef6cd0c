"""Random small plans with the real engine and its worker processes: the counts of all ticks equal the requests sent and
those that the server received."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan, Request
from tests.load.servers import SMALL, ClientConnection, Outcome, Server, load, serving

_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"

ends = st.one_of(
    st.fixed_dictionaries({"requests": st.integers(1, 150)}), st.fixed_dictionaries({"duration": st.floats(0.05, 0.3)})
)
closed = st.fixed_dictionaries({"concurrency": st.integers(1, 20)})
opened = st.fixed_dictionaries(
    {
        "rate": st.floats(100.0, 3000.0),
        "arrivals": st.sampled_from(["even", "poisson"]),
        "seed": st.integers(1, 1000),
        "max_in_flight": st.integers(1, 60),
    }
)
common = st.fixed_dictionaries(
    {"workers": st.integers(1, 3), "keepalive": st.booleans(), "tick": st.sampled_from([0.01, 0.05, 0.1])}
)
weights = st.lists(st.integers(1, 4), max_size=3)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(closed, opened), ends, common, weights, st.integers(1, 8))
@example({"concurrency": 20}, {"requests": 1}, {"workers": 3, "keepalive": True, "tick": 0.1}, [], 1)
@example(
    {"rate": 3000.0, "max_in_flight": 1}, {"requests": 150}, {"workers": 2, "keepalive": False, "tick": 0.01}, [1, 3], 3
)
def test_counts_add_up(
    model: dict[str, Any], end: dict[str, Any], rest: dict[str, Any], mix: list[int], kept_for: int
) -> None:
    values = {**model, **end, **rest}
    # Connections without a request, and workers without a connection, are refused.
    if "concurrency" in values:
        values["concurrency"] = min(values["concurrency"], values.get("requests", values["concurrency"]))
    values["workers"] = min(values["workers"], values.get("concurrency") or values["max_in_flight"])
    asyncio.run(_counts_add_up(values, mix, kept_for))


async def _counts_add_up(values: dict[str, Any], mix: list[int], kept_for: int) -> None:
    sent: Counter[bytes] = Counter()

    async def behave(client: ClientConnection) -> None:
        """Respond, with 404 to paths that end in 1, and close after `kept_for` responses."""
        for _ in range(kept_for):
            request = await client.request()
            reply = _MISSING if request.split(b" ", 2)[1].endswith(b"1") else SMALL
            sent[reply] += 1
            await client.send(reply)

    async with serving(behave) as server:
        requests = tuple(
            Request(name=f"r{number}", url=f"{server.url}/{number}", weight=weight) for number, weight in enumerate(mix)
        )
        plan = LoadPlan(url=server.url, mix=requests, timeout=10.0, **values)
        outcome = await load(plan)
    _check_totals(plan, outcome, server)
    if plan.requests is not None:
        _check_bytes(outcome, sent)
    _check_ticks(outcome, plan.workers)
    if mix:
        _check_groups(outcome)


def _check_totals(plan: LoadPlan, outcome: Outcome, server: Server) -> None:
    assert outcome.events[0] is outcome.started and outcome.events[-1] is outcome.ended
    assert (outcome.lost, outcome.errors, outcome.ended.reason) == ([], {}, "completed")
    assert outcome.started.addresses == ("127.0.0.1",)
    total, completed, abandoned = (outcome.total(name) for name in ("sent", "completed", "abandoned"))
    assert total == completed + abandoned
    assert completed == sum(outcome.statuses.values())
    assert outcome.merged("service").count == outcome.merged("first_byte").count == completed
    assert outcome.merged("response").count == (completed if plan.open else 0)
    if plan.requests is not None:
        assert (total, abandoned, server.requests) == (plan.requests, 0, plan.requests)
        assert outcome.total("unsent") == 0
        assert outcome.merged("connect").count == len(server.connections)
    else:
        assert completed <= server.requests <= total
        assert abandoned <= (plan.max_in_flight if plan.open else plan.concurrency)
    if plan.open and plan.duration is not None and plan.arrivals == "even":
        due = total + outcome.total("unsent")
        assert abs(due - (plan.rate or 0.0) * plan.duration) <= 1


def _check_bytes(outcome: Outcome, sent: Counter[bytes]) -> None:
    assert outcome.total("bytes_received") == sum(len(reply) * count for reply, count in sent.items())
    bodies = {reply: len(reply.partition(b"\r\n\r\n")[2]) for reply in sent}
    assert outcome.total("body_bytes") == sum(bodies[reply] * count for reply, count in sent.items())
    assert outcome.statuses == {404 if reply is _MISSING else 200: count for reply, count in sent.items()}


def _check_ticks(outcome: Outcome, workers: int) -> None:
    """Check that the ticks of a worker have no gap, and that all connections are closed at the end."""
    assert outcome.ended.t >= max(tick.t for tick in outcome.ticks)
    assert {tick.worker for tick in outcome.ticks} == set(range(workers))
    assert outcome.total("cpu") > 0
    for worker in range(workers):
        ticks = [tick for tick in outcome.ticks if tick.worker == worker]
        assert ticks[0].start == pytest.approx(outcome.started.t)
        assert all(before.t == after.start for before, after in pairwise(ticks))
        assert all(tick.lag.count for tick in ticks[:-1])
        assert all(tick.silence == 0.0 for tick in ticks if tick.completed)
        assert all(tick.sent >= 0 and tick.completed == sum(tick.statuses.values()) for tick in ticks)
        assert ticks[-1].connections == 0


def _check_groups(outcome: Outcome) -> None:
    """Check that the groups of each tick add up to the tick."""
    for tick in outcome.ticks:
        groups = list(tick.groups.values())
        assert sum(group.completed for group in groups) == tick.completed
        assert sum(group.sent for group in groups) == tick.sent
        assert sum((Counter(group.statuses) for group in groups), Counter[int]()) == Counter(tick.statuses)
        assert Histogram.merged(group.service for group in groups) == tick.service
        assert Histogram.merged(group.response for group in groups) == tick.response
