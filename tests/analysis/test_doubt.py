"""What speaks against figures, said of a run and of a row alike."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.analysis.doubt import STARVED, doubts, row_doubts
from cockpit.model.events import AnyEvent, Group, RunStarted, Tick
from cockpit.model.figures import RunResult, run_result
from cockpit.model.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load import Expect, LoadPlan, Request
from cockpit.model.state import Segment, State

PLAN = LoadPlan(url="http://a/", rate=100.0, duration=10.0, max_in_flight=20, workers=2)


def state_of(**values: float) -> State:
    """Two workers for ten seconds, the second of which differs by these values in each of its ticks."""
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=PLAN)]
    plain = Tick(
        t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, statuses={200: 100}, cpu=0.5, service=_latencies()
    )
    for second in range(10):
        tick = replace(plain, start=float(second), t=second + 1.0)
        events += [tick, replace(tick, worker=1, **values)]
    return fold_all(events)


def _latencies() -> Histogram:
    return Histogram.of([1_000_000] * 100)


def of_run(state: State) -> RunResult:
    result = run_result(state, 1)
    assert result is not None
    return result


def of_row(state: State) -> Segment:
    assert state.segment is not None
    return state.segment


def test_nothing_is_said_of_a_good_run() -> None:
    state = state_of(cpu_wait=0.99 * STARVED)
    assert doubts(of_run(state)) == ()
    assert row_doubts(of_row(state)) == []


def test_what_waited_for_room_is_told_from_what_was_never_sent() -> None:
    state = state_of(held_back=3, unsent=1)
    unsent, held = doubts(of_run(state))
    assert unsent == "10 due requests were never sent: the cap of 20 in flight was reached"
    assert held.startswith("30 arrivals were queued: the cap of 20 in flight was reached; response time")
    assert row_doubts(of_row(state)) == [("unsent", unsent), ("held", held)]


def test_a_generator_that_waited_for_a_cpu_says_so() -> None:
    state = state_of(cpu_wait=0.12)
    result = of_run(state)
    assert result.cpu_wait == of_row(state).cpu_wait == pytest.approx(0.12)
    assert [second.cpu_wait for second in state.seconds] == [pytest.approx(0.12)] * 10
    assert doubts(result) == ("the generator waited 12% of the time for a CPU: latencies include that wait",)
    assert row_doubts(of_row(state)) == [("cpu!", doubts(result)[0])]
    assert result.saturated == 0


def test_one_that_was_never_idle_was_the_bottleneck_whoever_had_its_cpu() -> None:
    state = state_of(cpu_wait=0.46)
    result = of_run(state)
    # Half of the worker-seconds.
    assert result.saturated == pytest.approx(5.0)
    saturated, starved = doubts(result)
    assert saturated.startswith("generator saturated for 50% of the time")
    assert starved.startswith("the generator waited 46% of the time for a CPU")


@pytest.mark.parametrize(
    ("statuses", "expect", "said"),
    [
        ({404: 100}, None, "all 2000 responses were 404: is the path right?"),
        ({404: 60, 503: 40}, None, "all 2000 responses were 404, 503: is this the right request?"),
        ({200: 1, 404: 99}, None, ""),
        ({404: 100}, Expect(statuses=(404,)), ""),
    ],
)
def test_replies_that_were_all_refused_are_said_first(
    statuses: dict[int, int], expect: Expect | None, said: str
) -> None:
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=replace(PLAN, expect=expect))]
    tick = Tick(t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=_latencies())
    events += [replace(tick, start=float(at), t=at + 1.0, statuses=statuses) for at in range(20)]
    state = fold_all(events)
    assert "".join(doubts(of_run(state))[:1]) == said
    assert row_doubts(of_row(state))[:1] == ([("404!", said)] if said else [])


def _responses(plan: LoadPlan, **values: object) -> State:
    """A run of 100 responses."""
    tick = Tick(t=9.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=_latencies())
    return fold_all([RunStarted(t=0.0, run=1, plan=plan), replace(tick, **values)])


def test_redirects_are_a_warning_with_the_url_to_load() -> None:
    plan = LoadPlan(url="http://me:secret@a/x", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={302: 50, 200: 50}, redirect="../new?a=b")
    said = "50 of 100 responses redirect and are not followed: load http://a/new?a=b instead"
    assert doubts(of_run(state))[0] == said
    assert row_doubts(of_row(state))[0] == ("302!", said)
    few = _responses(plan, statuses={302: 49, 200: 51}, redirect="/new")
    assert not any("redirect" in doubt for doubt in doubts(of_run(few)))


def test_redirects_of_one_request_of_a_mix_are_a_warning() -> None:
    mix = (Request(name="a", url="http://a/1"), Request(name="b", url="http://a/2", expect=Expect(statuses=(301,))))
    groups = {"a": Group(completed=10, statuses={302: 10}), "b": Group(completed=90, statuses={301: 30, 200: 60})}
    plan = LoadPlan(url="", mix=mix, concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 60, 301: 30, 302: 10}, groups=groups, redirect="/new")
    assert "10 of 10 responses redirect" in doubts(of_run(state))[0]


def test_connections_that_the_server_announces_to_close_and_keeps_are_a_warning() -> None:
    plan = LoadPlan(url="http://a/", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 100}, unclosed=98)
    assert "announced Connection: close 98 times and kept" in doubts(of_run(state))[0]
    assert [word for word, _ in row_doubts(of_row(state))] == ["unclosed"]
    assert not row_doubts(of_row(_responses(plan, statuses={200: 100}, unclosed=1)))


def test_dropped_arrivals_are_a_warning() -> None:
    state = state_of(dropped=7)
    assert doubts(of_run(state))[0].startswith("70 arrivals were dropped")
