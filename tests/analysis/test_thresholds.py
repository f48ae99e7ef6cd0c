"""Absolute thresholds, and a quick check of one segment."""

import re

import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import baseline_of, baseline_run
from cockpit.analysis.quick_check import quick_check
from cockpit.analysis.thresholds import Status, ThresholdResult, check_thresholds, parse_threshold
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.counts import Counts
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from tests.data import data_of
from tests.tui.scenario import Scenario
from tests.tui.scripted import state_after

DATA = data_of(__file__)

RESULT = RunResult(
    run=1,
    plan=LoadPlan(url="http://a/", requests=1000),
    counts=Counts(
        sent=1000,
        completed=998,
        statuses={200: 990, 503: 8},
        refused=8,
        errors={"reset": 2},
        service=Histogram.of([n * 1_000_000 for n in range(1, 101)]),
    ),
    seconds=2.0,
    hosts={},
    saturated=0.0,
    stalled=0.0,
    losses=(),
    reason="completed",
    detail="",
)


def test_thresholds() -> None:
    for text, holds in DATA["thresholds_cases"]:
        (outcome,) = check_thresholds([parse_threshold(text)], RESULT)
        assert outcome.holds is holds
        assert (outcome.value is None) == (text.startswith(("connect", "web1")))


TOO_LARGE = [
    f"p99 < {'9' * 400}m1s",
    "p99 < 100000001s",
    f"p99 < {'9' * 400}s",
    f"rate > {'9' * 400}",
    f"p99 < {'9' * 400}% of baseline",
]


@pytest.mark.parametrize(
    "text", ["", "p99", "p99 < ", "p99 < fast", "speed > 3", "rate > 3ms", "web1.cpu.heat > 3", *TOO_LARGE]
)
def test_invalid_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


def test_ambiguous_value_is_refused_with_suggestion() -> None:
    for text, suggestion in (
        ("p99 < 50", "a time needs a unit; write 50ms or 50s"),
        ("duration < 1.5", "write 1.5ms or 1.5s"),
        ("p99 < 50.", "a time needs a unit"),
        ("rate > 90%", "rate is not a percentage; write a number"),
    ):
        with pytest.raises(UsageError, match=re.escape(suggestion)):
            parse_threshold(text)


def with_thresholds(*texts: str) -> State:
    state = state_after(Scenario().events())
    return replace(state, started=replace(state.started, thresholds=texts))


def statuses(results: tuple[ThresholdResult, ...]) -> dict[str, Status]:
    return {each.threshold.text: each.status for each in results}


def test_quick_check_of_segment() -> None:
    state = with_thresholds("p99 < 60s", "rate > 1m")
    results = quick_check(state, state.segments[0], None)
    assert statuses(results) == {"p99 < 60s": Status.HOLDS, "rate > 1m": Status.FAILED}
    assert results[1].value == state.segments[0].rate
    state = with_thresholds()
    assert statuses(quick_check(state, state.segments[0], None)) == {"failed == 0": Status.HOLDS}
    failing = next(segment for segment in state.segments if segment.counts.failed)
    assert statuses(quick_check(state, failing, None)) == {"failed == 0": Status.FAILED}
    state = with_thresholds("failed == 0")
    run = run_result(state, 2)
    baseline = baseline_of("spring", [baseline_run("x", 0.0, replace(run, seconds=run.seconds / 100))] * 3, run.plan)
    found = statuses(quick_check(state, state.segments[0], baseline))
    assert found == {"failed == 0": Status.HOLDS, "rate >= 95% of baseline": Status.FAILED}
