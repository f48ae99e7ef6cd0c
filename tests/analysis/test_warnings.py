"""Warnings about a run and a segment, and their text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.analysis.warning_words import grouped, warning_label, warning_words
from cockpit.analysis.warnings import CPU_WAIT, RunWarning, WarningKind, run_warnings, segment_warnings
from cockpit.model.counts import Group
from cockpit.model.events import AnyEvent, RunStarted
from cockpit.model.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load import Expect, LoadPlan, Request
from cockpit.model.metrics import RunResult, run_result
from cockpit.model.state import Segment, State
from cockpit.model.tick import Tick

LATENCIES = Histogram.of([1_000_000] * 100)
PLAN = LoadPlan(url="http://a/", rate=100.0, duration=10.0, max_in_flight=20, workers=2)


def state_of(**values: float) -> State:
    """Return ten seconds of two workers; `values` apply to each tick of the second worker."""
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=PLAN)]
    plain = Tick(
        t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, statuses={200: 100}, cpu=0.5, service=LATENCIES
    )
    for second in range(10):
        tick = replace(plain, start=float(second), t=second + 1.0)
        events += [tick, replace(tick, worker=1, **values)]
    return fold_all(events)


def result_of(state: State) -> RunResult:
    return run_result(state, 1)


def texts(result: RunResult) -> tuple[str, ...]:
    return tuple(map(warning_words, run_warnings(result)))


def labelled(segment: Segment) -> list[tuple[str, str]]:
    return [(warning_label(each), warning_words(each)) for each in segment_warnings(segment)]


def test_requests_without_response_and_good_runs() -> None:
    (text,) = texts(result_of(state_of(errors={"timeout": 5})))
    assert text.startswith("50 of 2000 requests got no complete response: ")
    assert text.endswith("rate and latency exclude them, but latency includes timeouts")
    state = state_of(cpu_wait=0.99 * CPU_WAIT)
    assert texts(result_of(state)) == ()
    assert labelled(state.segment) == []
    state = state_of(queued=3, unsent=1)
    unsent, queued = texts(result_of(state))
    assert unsent == "10 due requests were never sent: the limit of 20 in flight was reached"
    assert queued.startswith("30 arrivals were queued: the limit of 20 in flight was reached; response time")
    assert labelled(state.segment) == [("unsent", unsent), ("queued", queued)]
    state = state_of(dropped=7)
    assert texts(result_of(state))[0].startswith("70 arrivals were dropped")


def test_generator_cpu_wait_is_a_warning() -> None:
    state = state_of(cpu_wait=0.12)
    result = result_of(state)
    assert result.cpu_wait == state.segment.cpu_wait == pytest.approx(0.12)
    assert [second.cpu_wait for second in state.seconds] == [pytest.approx(0.12)] * 10
    assert texts(result) == ("the generator waited 12% of the time for a CPU: latencies include that wait",)
    assert labelled(state.segment) == [("cpu-wait", texts(result)[0])]
    assert result.saturated == 0
    result = result_of(state_of(cpu_wait=0.46))
    # Half of the worker-seconds.
    assert result.saturated == pytest.approx(5.0)
    saturated, starved = texts(result)
    assert saturated.startswith("generator saturated for 50% of the time")
    assert starved.startswith("the generator waited 46% of the time for a CPU")


@pytest.mark.parametrize(
    ("statuses", "expect", "text"),
    [
        ({404: 100}, None, "all 2000 responses were 404: is the path right?"),
        ({404: 60, 503: 40}, None, "all 2000 responses were 404, 503: is this the right request?"),
        ({200: 1, 404: 99}, None, ""),
        ({404: 100}, Expect(statuses=(404,)), ""),
    ],
)
def test_all_error_responses_are_first_warning(statuses: dict[int, int], expect: Expect | None, text: str) -> None:
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=replace(PLAN, expect=expect))]
    tick = Tick(t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=LATENCIES)
    events += [replace(tick, start=float(at), t=at + 1.0, statuses=statuses) for at in range(20)]
    state = fold_all(events)
    assert "".join(texts(result_of(state))[:1]) == text
    assert labelled(state.segment)[:1] == ([("404!", text)] if text else [])


def _responses(plan: LoadPlan, **values: object) -> State:
    """Return a run of 100 responses."""
    tick = Tick(t=9.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=LATENCIES)
    return fold_all([RunStarted(t=0.0, run=1, plan=plan), replace(tick, **values)])


def test_redirects_are_a_warning_with_target_url() -> None:
    plan = LoadPlan(url="http://me:secret@a/x", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={302: 50, 200: 50}, redirect="../new?a=b")
    text = "50 of 100 responses redirect and are not followed: load http://a/new?a=b instead"
    assert texts(result_of(state))[0] == text
    assert labelled(state.segment)[0] == ("302!", text)
    few = _responses(plan, statuses={302: 49, 200: 51}, redirect="/new")
    assert not any("redirect" in each for each in texts(result_of(few)))
    mix = (Request(name="a", url="http://a/1"), Request(name="b", url="http://a/2", expect=Expect(statuses=(301,))))
    groups = {"a": Group(completed=10, statuses={302: 10}), "b": Group(completed=90, statuses={301: 30, 200: 60})}
    plan = LoadPlan(url="", mix=mix, concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 60, 301: 30, 302: 10}, groups=groups, redirect="/new")
    assert "10 of 10 responses redirect" in texts(result_of(state))[0]
    plan = LoadPlan(url="http://a/", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 100}, unclosed=98)
    assert "announced Connection: close 98 times and kept" in texts(result_of(state))[0]
    assert [label for label, _ in labelled(state.segment)] == ["unclosed"]
    assert not labelled(_responses(plan, statuses={200: 100}, unclosed=1).segment)


def waited(share: float) -> RunWarning:
    return RunWarning(kind=WarningKind.CPU_WAIT, values={"share": share})


def test_same_warning_of_cells_is_one_line() -> None:
    found = [(f"c={level}", waited(share)) for level, share in ((1, 0.11), (2, 0.09), (4, 0.25), (8, 0.04))]
    expected = "the generator waited 4–25% of the time for a CPU: latencies include that wait"
    assert grouped(found, 4) == [f"all 4: {expected}"]
    assert grouped(found, 7) == [f"4 of 7: {expected}"]
    few = RunWarning(kind=WarningKind.FEW_SAMPLES, values={"count": 10})
    found = grouped([("a", few), ("a", waited(0.07)), ("b", waited(0.07))], 9)
    assert found == [f"a: {warning_words(few)}", f"a, b: {warning_words(waited(0.07))}"]
    assert grouped([], 9) == []


def test_every_warning_kind_has_text() -> None:
    names = ("count", "total", "status", "share", "limit", "seconds")
    for kind in WarningKind:
        warning = RunWarning(kind=kind, subject="web1\x1b[2J", values=dict.fromkeys(names, 404))
        assert "\x1b" not in warning_words(warning)
        assert warning_words(warning) and "{" not in warning_words(warning)
