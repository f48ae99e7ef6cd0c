"""The latencies that a run reports, against those that the server knows it caused."""

from __future__ import annotations

import pytest

from cockpit.model.load import LoadPlan
from tests.load.truth.conditions import Truth, run_against
from tests.load.truth.server import Rule

PERCENTILES = (50, 90, 99, 99.9)

FIXED = Rule(delay=0.010)
ONE_IN_A_HUNDRED = Rule(delay=0.010, slow_every=100, slow=0.200)
STALL = Rule(delay=0.010, stall_at=0.5, stall=1.0)


async def closed(rule: Rule, requests: int) -> Truth:
    truth = await run_against(rule, lambda url: LoadPlan(url=url, concurrency=20, requests=requests, timeout=10.0))
    assert truth.outcome.errors == {}
    assert truth.outcome.total("completed") == len(truth.log.replies) == requests
    return truth


def holds(truth: Truth) -> None:
    """No reply came before it was sent; none seems to have come later than by 2 % or 1 ms, and what the machine did."""
    service = truth.outcome.merged("service")
    for percent in PERCENTILES:
        ours, least, about = service.percentile(percent), truth.at_least(percent), truth.about(percent)
        assert ours >= least, f"p{percent}"
        assert ours <= about + max(0.02 * about, 0.001) + truth.slack(percent), f"p{percent}"


@pytest.mark.parametrize(
    ("rule", "requests"),
    # One more than whole hundreds: the 99th percentile is then the quickest of the slow, not the slowest of the quick.
    [(FIXED, 3000), (ONE_IN_A_HUNDRED, 3001), (STALL, 3000)],
    ids=["fixed", "one in a hundred", "stall"],
)
async def test_percentiles_are_the_servers_own(rule: Rule, requests: int) -> None:
    holds(await closed(rule, requests))


async def test_the_rule_is_what_the_server_did() -> None:
    """The truth is no invention of the server's log: its delays are those of the rule, and the client sees them."""
    truth = await closed(ONE_IN_A_HUNDRED, 501)
    service = truth.outcome.merged("service")
    delays = [reply.leaving - reply.arrived for reply in truth.log.replies]
    assert min(delays) >= 10_000_000
    assert sum(delay >= 200_000_000 for delay in delays) >= 6
    assert service.between([0, 10_000_000]) == [0]
    assert sum(service.between([199_000_000, 1 << 40])) >= 6


async def test_a_stall_holds_up_what_is_in_flight_and_no_more_in_the_closed_model() -> None:
    truth = await closed(STALL, 3000)
    begin, end = truth.log.stall
    assert end - begin >= 1_000_000_000
    replies = truth.log.replies
    through = [reply for reply in replies if reply.arrived < begin + 100_000_000 and reply.leaving >= end]
    assert 1 <= len(through) <= 20
    held = sum(truth.outcome.merged("service").between([900_000_000, 1 << 40]))
    late = 900_000_000 - round(truth.slack(100) * 1e9)
    assert len(through) <= held <= sum(reply.left - reply.arrived > late for reply in replies)
