"""Latencies beside other load, bounded by the run-queue wait of the server's processes."""

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.verdicts.verdict import judge_switch
from cockpit.analysis.windows import Window
from cockpit.analysis.words.verdicts import verdict_words
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import OPEN, window
from tests.statistics.waits import SERVERS, delays, quiet


@pytest.mark.parametrize("name", SERVERS)
def test_true_delay_is_within_the_delay_that_waits_allow(name: str) -> None:
    for seed in (1, 2):
        for delay in delays(SERVERS[name], 8, seed):
            assert delay.true <= 1.03 * delay.allowed, (seed, delay)


def test_server_that_does_not_wait_is_not_delayed() -> None:
    assert quiet(SERVERS["1 process, 4 CPUs, 70% busy, 2 hogs"], 8, seed=1).max() == pytest.approx(1, abs=0.02)


def with_wait(of: Window, wait: float | None, busiest: float = 30.0) -> Window:
    points = tuple(replace(point, wait=wait, busiest=busiest) for point in of.hosts["web1"])
    return replace(of, hosts={"web1": points})


def test_latency_under_open_load_has_a_verdict_if_the_server_hardly_waited() -> None:
    quiet_side, hogged = {"other": 1.0, "busy": 60.0, "plan": OPEN}, {"other": 29.0, "busy": 90.0, "plan": OPEN}

    def judged(slower: float, wait: float | None, before: float = 0.01) -> tuple[Outcome, str]:
        sides = window(1, **quiet_side), window(2, slower=slower, **hogged)
        verdict = judge_switch(with_wait(sides[0], before), with_wait(sides[1], wait))
        assert msgspec.json.decode(msgspec.json.encode(verdict_json(verdict)), type=dict)["outcome"] == verdict.outcome
        return verdict.outcome, verdict_words(verdict)

    outcome, words = judged(8.0, 0.5)
    assert outcome is Outcome.WORSE and "others 1% → 29% of CPU explain at most ×" in words, words
    assert "worse, at least: p99 ≥ ×" in words and "(measured ×" in words
    assert judged(8.0, None)[0] is Outcome.INVALID, "unknown"
    assert judged(8.0, 60.0)[0] is Outcome.INVALID, "waits explain all of it"
    assert judged(1.2, 10.0)[0] is not Outcome.WORSE
    outcome, words = judged(1 / 8, 60.0)
    assert outcome is Outcome.BETTER and "explain at most ÷1.0" in words, "waits made the better side worse"
    assert "any " in judged(1.0, 60.0)[1]
