"""A quick check of one segment against the session's thresholds and a baseline."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.analysis.baseline import baseline_of, baseline_run
from cockpit.analysis.quick_check import quick_check
from cockpit.analysis.thresholds import Status, ThresholdResult
from cockpit.model.metrics import run_result
from cockpit.model.state import State
from tests.tui.scenario import Scenario
from tests.tui.scripted import state_after


def with_thresholds(*texts: str) -> State:
    state = state_after(Scenario().events())
    assert state.started is not None
    return replace(state, started=replace(state.started, thresholds=texts))


def statuses(results: tuple[ThresholdResult, ...]) -> dict[str, Status]:
    return {each.threshold.text: each.status for each in results}


def test_session_or_default_thresholds_are_checked_for_segment() -> None:
    state = with_thresholds("p99 < 60s", "rate > 1m")
    results = quick_check(state, state.segments[0], None)
    assert statuses(results) == {"p99 < 60s": Status.HOLDS, "rate > 1m": Status.FAILED}
    assert results[1].found == state.segments[0].rate
    state = with_thresholds()
    assert statuses(quick_check(state, state.segments[0], None)) == {"failed == 0": Status.HOLDS}
    failing = next(segment for segment in state.segments if segment.counts.failed)
    assert statuses(quick_check(state, failing, None)) == {"failed == 0": Status.FAILED}


def test_baseline_adds_relative_threshold() -> None:
    state = with_thresholds("failed == 0")
    run = run_result(state, 2)
    baseline = baseline_of("spring", [baseline_run("x", 0.0, replace(run, seconds=run.seconds / 100))] * 3, run.plan)
    found = statuses(quick_check(state, state.segments[0], baseline))
    assert found == {"failed == 0": Status.HOLDS, "rate >= 95% of baseline": Status.FAILED}
