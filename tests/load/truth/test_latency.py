"""The latencies of a run compared with those in the log of the server."""

from __future__ import annotations

import pytest

from cockpit.model.load import LoadPlan
from tests.load.truth.conditions import Truth, run_against
from tests.load.truth.server import Rule

PERCENTILES = (50, 90, 99, 99.9)

FIXED = Rule(delay=0.010)
SLOW_HUNDREDTH = Rule(delay=0.010, slow_every=100, slow=0.200)
STALL = Rule(delay=0.010, stall_at=0.5, stall=1.0)


async def closed(rule: Rule, requests: int) -> Truth:
    truth = await run_against(rule, lambda url: LoadPlan(url=url, concurrency=20, requests=requests, timeout=10.0))
    assert truth.outcome.errors == {}
    assert truth.outcome.total("completed") == len(truth.log.replies) == requests
    return truth


def check_percentiles(truth: Truth) -> None:
    """Check percentiles: at least the server's, at most 2% or 1 ms more plus the disturbance by the machine."""
    service = truth.outcome.merged("service")
    for percent in PERCENTILES:
        measured, lowest, about = service.percentile(percent), truth.at_least(percent), truth.about(percent)
        assert measured >= lowest, f"p{percent}"
        assert measured <= about + max(0.02 * about, 0.001) + truth.slack(percent), f"p{percent}"


@pytest.mark.parametrize(
    ("rule", "requests"),
    # One more than whole hundreds: p99 is then the fastest slow response, not the slowest fast response.
    [(FIXED, 3000), (SLOW_HUNDREDTH, 3001), (STALL, 3000)],
    ids=["fixed", "one in a hundred", "stall"],
)
async def test_percentiles_match_log_of_server(rule: Rule, requests: int) -> None:
    check_percentiles(await closed(rule, requests))


async def test_log_of_server_follows_rule() -> None:
    """The logged delays are those of the rule, and the client measures them."""
    truth = await closed(SLOW_HUNDREDTH, 501)
    service = truth.outcome.merged("service")
    delays = [reply.leaving - reply.arrived for reply in truth.log.replies]
    assert min(delays) >= 10_000_000
    assert sum(delay >= 200_000_000 for delay in delays) >= 6
    assert service.between([0, 10_000_000]) == [0]
    assert sum(service.between([199_000_000, 1 << 40])) >= 6


async def test_stall_delays_only_requests_in_flight_in_closed_load() -> None:
    truth = await closed(STALL, 3000)
    begin, end = truth.log.stall
    assert end - begin >= 1_000_000_000
    replies = truth.log.replies
    in_flight = [reply for reply in replies if reply.arrived < begin + 100_000_000 and reply.leaving >= end]
    assert 1 <= len(in_flight) <= 20
    delayed = sum(truth.outcome.merged("service").between([900_000_000, 1 << 40]))
    late = 900_000_000 - round(truth.slack(100) * 1e9)
    assert len(in_flight) <= delayed <= sum(reply.left - reply.arrived > late for reply in replies)
