"""Open load through a stall: who waited, for how long, and in which of the two latencies it shows."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from bisect import bisect_right

import msgspec

from cockpit.load.pool import LoadRun
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from tests.load.servers import Outcome
from tests.load.truth.conditions import Truth, percentile, run_against
from tests.load.truth.server import Reply, Rule

RATE = 500
REQUESTS = 1500
QUIET = Rule(delay=0.002)
STALL = Rule(delay=0.002, stall_at=1.0, stall=1.0)
PERCENTILES = (50, 75, 90, 99, 99.9)


def plan(url: str) -> LoadPlan:
    return LoadPlan(url=url, rate=float(RATE), requests=REQUESTS, timeout=10.0)


def waits(truth: Truth) -> list[float]:
    """What each arrival waited by the schedule and the server's log: from when it was due until its reply was out."""
    pairs = zip(truth.due(RATE), truth.in_order(), strict=True)
    return [reply.left / 1e9 - due for due, reply in pairs]


def above(histogram: Histogram, seconds: float) -> int:
    """How many values lie above."""
    return histogram.count - sum(histogram.between([0, round(seconds * 1e9)]))


def responses_hold(truth: Truth, busy: float = 0.0) -> None:
    """Response times are those that the schedule and the server's log say; `busy` is for how long (s) the generator
    had so much to send that it came to replies late."""
    response, truths = truth.outcome.merged("response"), waits(truth)
    assert response.count == REQUESTS
    for percent in PERCENTILES:
        ours, wanted = response.percentile(percent), percentile(truths, percent)
        allowance = max(0.02 * wanted, 0.001)
        assert wanted - allowance <= ours <= wanted + allowance + busy + truth.slack(percent), f"p{percent}"


def stall_is_arithmetic(truth: Truth, begin: float, end: float, drained: float) -> None:
    """Of the arrivals due in a stall, evenly spread, R * (S - x) wait longer than x; some more for as long as it took
    to work off what had piled up."""
    response, slack = truth.outcome.merged("response"), truth.slack(99)
    for wait in (0.25, 0.5, 0.75):
        least, most = RATE * (end - begin - wait), RATE * (drained + slack - begin - wait)
        assert least - 2 <= above(response, wait) <= most + 2, f"longer than {wait} s"


def all_sent(truth: Truth) -> None:
    outcome = truth.outcome
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") == len(truth.log.replies) == REQUESTS
    assert outcome.total("queued") == 0


async def test_without_a_stall_response_is_service_and_what_the_generator_was_late() -> None:
    truth = await run_against(QUIET, plan)
    all_sent(truth)
    responses_hold(truth)
    outcome = truth.outcome
    late = outcome.merged("response").total_ns - outcome.merged("service").total_ns
    lag = outcome.merged("lag")
    # How late the ticks came is among it, and nothing else; each is rounded to a nanosecond.
    ticks = len(outcome.ticks) * lag.max * 1e9
    assert lag.total_ns - ticks - lag.count <= late <= lag.total_ns + 2 * REQUESTS


async def test_a_stall_of_the_server_holds_up_all_that_were_due_in_it() -> None:
    """All are sent when they are due, so all of them are in flight, and service time has them too."""
    truth = await run_against(STALL, plan)
    all_sent(truth)
    # All the replies come at once when it is over; the generator says itself how late it came to what was due then.
    busy = truth.outcome.merged("lag").max
    responses_hold(truth, busy)
    begin, end = (instant / 1e9 for instant in truth.log.stall)
    held = [reply for reply in truth.log.replies if begin <= reply.arrived / 1e9 <= end]
    stall_is_arithmetic(truth, begin, end, max(reply.left for reply in held) / 1e9 + busy)
    for wait in (0.25, 0.5, 0.75):
        really = long(truth.log.replies, wait)
        ours = above(truth.outcome.merged("service"), wait)
        assert really - 1 <= ours <= really + RATE * (0.002 + busy)


def long(replies: list[Reply], seconds: float) -> int:
    """How many requests the server had for longer than that."""
    return sum(reply.left - reply.arrived > seconds * 1e9 for reply in replies)


def found_full(truth: Truth, most: int, later: float) -> int:
    """How many arrivals found `most` requests under way, by the schedule and the server's log, if replies were read so
    much `later` (s) than they left."""
    left = sorted(reply.leaving / 1e9 + later for reply in truth.log.replies)
    return sum(number - bisect_right(left, due) >= most for number, due in enumerate(truth.due(RATE)))


async def test_a_stall_that_finds_the_cap_is_in_response_time_and_not_in_service_time() -> None:
    """What was due while so many were under way waits its turn: only those in flight see the stall in service time."""
    most = 20
    truth = await run_against(STALL, lambda url: msgspec.structs.replace(plan(url), max_in_flight=most))
    outcome = truth.outcome
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") == len(truth.log.replies) == REQUESTS
    assert outcome.total("unsent") == 0
    busy = outcome.merged("lag").max
    responses_hold(truth, busy)
    begin, end = (instant / 1e9 for instant in truth.log.stall)
    overdue = [reply for due, reply in zip(truth.due(RATE), truth.in_order(), strict=True) if begin <= due <= end]
    stall_is_arithmetic(truth, begin, end, max(reply.left for reply in overdue) / 1e9 + busy)
    late = busy + truth.slack(100)
    replies = truth.log.replies
    assert 1 <= sum(reply.arrived / 1e9 < end <= reply.leaving / 1e9 for reply in replies) <= most
    really = sum(reply.leaving - reply.arrived > 0.9e9 for reply in replies)
    # Twenty at the most, but where the server was away once more for so long.
    assert 1 <= really <= above(outcome.merged("service"), 0.9) <= long(replies, 0.9 - late)
    assert found_full(truth, most, 0.0) <= outcome.total("queued") <= found_full(truth, most, 0.001 + late) + 1
    # Waiting for room is waiting for the server.
    assert above(outcome.merged("lag"), 0.1 + truth.slack(100)) == 0


async def test_a_stall_of_the_generator_is_in_response_time_and_not_in_service_time() -> None:
    """What was due in it was sent late: the server saw nothing of the wait, whoever waited for a reply did."""
    stopped = resumed = 0.0

    async def hold_up(run: LoadRun, outcome: Outcome) -> None:
        nonlocal stopped, resumed
        await outcome.until(lambda seen: seen.total("completed") > 400)
        os.kill(run.pids[0], signal.SIGSTOP)
        stopped = time.monotonic()
        await asyncio.sleep(1.0)
        resumed = time.monotonic()
        os.kill(run.pids[0], signal.SIGCONT)

    truth = await run_against(QUIET, plan, hold_up)
    truth.meant = resumed - stopped
    all_sent(truth)
    pairs = zip(truth.due(RATE), truth.in_order(), strict=True)
    overdue = [reply for due, reply in pairs if stopped <= due <= resumed]
    busy = max(reply.arrived for reply in overdue) / 1e9 - resumed
    responses_hold(truth, busy)
    stall_is_arithmetic(truth, stopped, resumed, max(reply.left for reply in overdue) / 1e9 + busy)
    outcome = truth.outcome
    # Two milliseconds at this rate are one request in flight, or a few where the machine is slow, each time it stood.
    stood = sum(tick.pause >= 0.2 for tick in outcome.ticks)
    assert above(outcome.merged("service"), 0.25) <= 5 * stood
    assert above(outcome.merged("lag"), 0.25) >= RATE * (resumed - stopped - 0.25) - 2
    assert max(tick.pause for tick in outcome.ticks) >= resumed - stopped - 0.01
