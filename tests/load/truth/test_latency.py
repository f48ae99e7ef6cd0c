"""Latencies of a run compared with those in the log of the server, also through stalls of server and generator."""

import asyncio
import os
import signal
import time
from bisect import bisect_right

import msgspec
import pytest

from cockpit.load.pool import LoadRun
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from tests.load.servers import Outcome
from tests.load.truth.conditions import Truth, percentile, run_against
from tests.load.truth.server import Reply, Rule

pytestmark = pytest.mark.usefixtures("real_workers")
RATE = 500
REQUESTS = 700
QUIET = Rule(delay=0.002)
STALL = Rule(delay=0.002, stall_at=0.3, stall=0.6)
# Seconds, less than the stall.
WAITS = (0.15, 0.3, 0.45)
PERCENTILES = (50, 75, 90, 99, 99.9)


def plan(url: str) -> LoadPlan:
    return LoadPlan(url=url, rate=float(RATE), requests=REQUESTS, timeout=10.0)


def waits(truth: Truth) -> list[float]:
    """Return the wait per arrival by the schedule and the server's log: from due time to end of the response."""
    pairs = zip(truth.due(RATE), truth.in_order(), strict=True)
    return [reply.left / 1e9 - due for due, reply in pairs]


def count_above(histogram: Histogram, seconds: float) -> int:
    """Count the values above a limit."""
    return histogram.count - sum(histogram.between([0, round(seconds * 1e9)]))


def check_responses(truth: Truth, busy: float = 0.0) -> None:
    """Check response times against the schedule and the server's log.

    `busy` is the time (s) by which the generator read responses late because it had to send requests after a stall.
    Then a disturbance delays many of the slow responses at once.
    """
    response, expected_waits = truth.outcome.merged("response"), waits(truth)
    assert response.count == REQUESTS
    for percent in PERCENTILES:
        measured, expected = response.percentile(percent), percentile(expected_waits, percent)
        allowance = max(0.02 * expected, 0.001)
        late = busy + truth.slack(100 if busy else percent)
        assert expected - allowance <= measured <= expected + allowance + late, f"p{percent}"


def check_stall(truth: Truth, begin: float, end: float, busy: float) -> None:
    """Check that R * (S - x) of the evenly spread arrivals due in a stall wait longer than x, and no more than by the
    schedule and the server's log."""
    response, expected, late = truth.outcome.merged("response"), waits(truth), busy + truth.slack(100)
    for wait in WAITS:
        most = sum(each > wait - late for each in expected)
        assert RATE * (end - begin - wait) - 2 <= count_above(response, wait) <= most + 2, f"waits above {wait} s"


def check_all_sent(truth: Truth) -> None:
    outcome = truth.outcome
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") == len(truth.log.replies) == REQUESTS
    assert outcome.total("queued") == 0


async def test_response_time_is_service_time_plus_lag_without_stall() -> None:
    truth = await run_against(QUIET, plan)
    check_all_sent(truth)
    check_responses(truth)
    outcome = truth.outcome
    late = outcome.merged("response").total_ns - outcome.merged("service").total_ns
    lag = outcome.merged("lag")
    # Lag also has the delays of the ticks, and nothing else; each value is rounded to a nanosecond.
    ticks = len(outcome.ticks) * lag.max * 1e9
    assert lag.total_ns - ticks - lag.count <= late <= lag.total_ns + 2 * REQUESTS


async def test_server_stall_delays_all_arrivals_due_in_it() -> None:
    """All requests are sent when due: all of them are in flight, so that service time has the stall, too."""
    truth = await run_against(STALL, plan)
    check_all_sent(truth)
    # All responses arrive at once after the stall; the lag is the generator's own delay at that time.
    busy = truth.outcome.merged("lag").max
    check_responses(truth, busy)
    begin, end = (instant / 1e9 for instant in truth.log.stall)
    check_stall(truth, begin, end, busy)
    for wait in WAITS:
        logged = count_longer(truth.log.replies, wait)
        measured = count_above(truth.outcome.merged("service"), wait)
        margin = 1 + RATE * (0.002 + busy + truth.slack(100))
        assert logged - margin <= measured <= logged + margin


def count_longer(replies: list[Reply], seconds: float) -> int:
    """Count the requests that took the server longer than `seconds`."""
    return sum(reply.left - reply.arrived > seconds * 1e9 for reply in replies)


def count_arrivals_at_limit(truth: Truth, most: int, later: float) -> int:
    """Count the arrivals with `most` requests in flight, by the schedule and the server's log, if responses are read
    `later` (s) than they are sent; negative: if arrivals are late by that."""
    left = sorted(reply.leaving / 1e9 + later for reply in truth.log.replies)
    return sum(number - bisect_right(left, due) >= most for number, due in enumerate(truth.due(RATE)))


async def test_stall_at_limit_in_flight_is_not_in_service_time() -> None:
    """Arrivals beyond the limit are queued: only requests in flight have the stall in service time."""
    most = 20
    truth = await run_against(STALL, lambda url: msgspec.structs.replace(plan(url), max_in_flight=most))
    outcome = truth.outcome
    assert outcome.errors == {}
    assert outcome.total("sent") == outcome.total("completed") == len(truth.log.replies) == REQUESTS
    assert outcome.total("unsent") == 0
    busy = outcome.merged("lag").max
    check_responses(truth, busy)
    begin, end = (instant / 1e9 for instant in truth.log.stall)
    check_stall(truth, begin, end, busy)
    late = busy + truth.slack(100)
    replies = truth.log.replies
    assert 1 <= sum(reply.arrived / 1e9 < end <= reply.leaving / 1e9 for reply in replies) <= most
    long = max(reply.leaving - reply.arrived for reply in replies) / 1e9 - 0.05
    logged = sum(reply.leaving - reply.arrived > long * 1e9 for reply in replies)
    # At most twenty, unless the server was stopped again for as long.
    assert logged <= count_above(outcome.merged("service"), long) <= count_longer(replies, long - late)
    assert (
        count_arrivals_at_limit(truth, most, -late)
        <= outcome.total("queued")
        <= count_arrivals_at_limit(truth, most, 0.001 + late) + 1
    )
    # A wait for a slot is a wait for the server, not lag of the generator.
    assert count_above(outcome.merged("lag"), 0.1 + truth.slack(100)) == 0


async def test_generator_stall_is_not_in_service_time() -> None:
    """Requests due in the stall are sent late: the wait is in response time, not in the server's log."""
    stopped = resumed = 0.0

    async def stop_generator(run: LoadRun, outcome: Outcome) -> None:
        nonlocal stopped, resumed
        await outcome.until(lambda seen: seen.total("completed") > 150)
        os.kill(run.pids[0], signal.SIGSTOP)
        stopped = time.monotonic()
        await asyncio.sleep(STALL.stall)
        resumed = time.monotonic()
        os.kill(run.pids[0], signal.SIGCONT)

    truth = await run_against(QUIET, plan, stop_generator)
    truth.intended_stall = resumed - stopped
    check_all_sent(truth)
    pairs = zip(truth.due(RATE), truth.in_order(), strict=True)
    overdue = [reply for due, reply in pairs if stopped <= due <= resumed]
    busy = max(reply.arrived for reply in overdue) / 1e9 - resumed
    check_responses(truth, busy)
    check_stall(truth, stopped, resumed, busy)
    outcome = truth.outcome
    # Two milliseconds at this rate are one request in flight, or a few on a slow machine, per pause; and what a busy
    # machine stopped in the server, from when the request could be sent.
    pauses = sum(tick.pause >= 0.2 for tick in outcome.ticks)
    sendable = [resumed if stopped <= due <= resumed else due for due in truth.due(RATE)]
    served = [reply.left / 1e9 - since for since, reply in zip(sendable, truth.in_order(), strict=True)]
    long = sum(each > 0.25 - busy - truth.slack(100) for each in served)
    assert count_above(outcome.merged("service"), 0.25) <= 5 * pauses + long
    assert count_above(outcome.merged("lag"), 0.25) >= RATE * (resumed - stopped - 0.25) - 2
    assert max(tick.pause for tick in outcome.ticks) >= resumed - stopped - 0.01


SLOW_HUNDREDTH = Rule(delay=0.010, slow_every=100, slow=0.200)


async def test_percentiles_match_log_of_server() -> None:
    """At least the server's, at most 2% or 1 ms more plus the disturbance by the machine.

    One more request than whole hundreds: p99 is the fastest slow response, not the slowest fast response.
    """
    truth = await run_against(
        SLOW_HUNDREDTH, lambda url: LoadPlan(url=url, concurrency=20, requests=1001, timeout=10.0)
    )
    assert truth.outcome.errors == {}
    assert truth.outcome.total("completed") == len(truth.log.replies) == 1001
    service = truth.outcome.merged("service")
    delays = [(reply.leaving - reply.arrived) / 1e9 for reply in truth.log.replies]
    completed = [(reply.left - reply.arrived) / 1e9 for reply in truth.log.replies]
    for percent in PERCENTILES:
        about = percentile(completed, percent)
        most = about + max(0.02 * about, 0.001) + truth.slack(percent)
        assert percentile(delays, percent) <= service.percentile(percent) <= most, f"p{percent}"
    assert min(delays) >= 0.010
    assert sum(delay >= 0.200 for delay in delays) >= 11
    assert service.between([0, 10_000_000]) == [0]
    assert sum(service.between([199_000_000, 1 << 40])) >= 11


@pytest.mark.parametrize(("connections", "streams", "requests"), [(20, 1, 1001), (4, 10, 1001), (1, 100, 2001)])
async def test_percentiles_over_http2_match_log_of_server(connections: int, streams: int, requests: int) -> None:
    """p50 is among the fast responses, p99 among the slow ones: at most 1% or 50 µs more, plus the disturbance."""
    truth = await run_against(
        Rule(delay=0.020, slow_every=50, slow=0.050, http2=True),
        lambda url: LoadPlan(
            url=url, http="2", concurrency=connections, streams=streams, requests=requests, timeout=10.0
        ),
    )
    assert truth.outcome.errors == {}
    assert truth.outcome.total("completed") == len(truth.log.replies) == requests
    service = truth.outcome.merged("service")
    delays = [(reply.leaving - reply.arrived) / 1e9 for reply in truth.log.replies]
    completed = [(reply.left - reply.earliest) / 1e9 for reply in truth.log.replies]
    for percent, least in ((50, 0.020), (99, 0.050)):
        about = percentile(completed, percent)
        most = about + max(0.01 * about, 50e-6) + truth.slack(percent)
        assert least <= percentile(delays, percent) <= service.percentile(percent) <= most, f"p{percent}"
