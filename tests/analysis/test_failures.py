"""Detection of stalls, and failures by kind with their start."""

import pytest
from msgspec.structs import replace

from cockpit.analysis.failures import failures, in_flight, stall
from cockpit.analysis.warnings import WarningKind, run_warnings, segment_warnings
from cockpit.metrics.results import run_result
from cockpit.model.events import AnyEvent, RunEnded, RunStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

MS = 1_000_000
CLOSED = LoadPlan(url="http://a/", concurrency=20, duration=20.0)


def tick(at: int, completed: int = 100, latency: float = 0.01, worker: int = 0, **values: object) -> Tick:
    """Return the tick that starts at `at` (0.1 s)."""
    return Tick(
        t=(at + 1) / 10,
        start=at / 10,
        run=1,
        worker=worker,
        completed=completed,
        statuses={200: completed} if completed else {},
        in_flight=20,
        oldest=latency,
        service=Histogram.of([round(latency * 1e9)] * completed),
        **values,  # type: ignore[arg-type]
    )


def silent(at: int, since: int, **values: object) -> Tick:
    seconds = (at + 1 - since) / 10
    return replace(tick(at, 0, **values), silence=seconds, oldest=seconds)  # type: ignore[arg-type]


def stalled(first: int, last: int, until: int, plan: LoadPlan = CLOSED) -> list[AnyEvent]:
    """Return a run without responses from `first` to `last` (0.1 s); the requests that waited complete after that."""
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=plan)]
    events += [tick(at) for at in range(first)]
    events += [silent(at, first) for at in range(first, last)]
    if until > last:
        waited = replace(tick(last, 20), service=Histogram.of([(last - first) * 100 * MS] * 20))
        events += [waited, *(tick(at) for at in range(last + 1, until))]
    return events


def test_stall_is_reported_after_half_a_second_until_it_ends() -> None:
    assert stall(fold_all(stalled(20, 22, 22))) is None, "too short to be reported"
    found = stall(fold_all(stalled(20, 25, 25)))
    assert (found.seconds, found.in_flight, found.oldest) == (0.5, 20, 0.5)
    assert stall(fold_all(stalled(20, 25, 30))) is None
    assert stall(fold_all([*stalled(20, 25, 25), RunEnded(t=2.6, run=1, reason="stopped")])) is None
    slow = [RunStarted(t=0.0, run=1, plan=CLOSED), *(tick(at, latency=2.0) for at in range(20)), silent(30, 20)]
    assert stall(fold_all(slow)) is None, "1.1 s of silence, while responses take 2 s"
    assert stall(fold_all([*slow, silent(65, 20)])) is not None


def test_responses_of_one_worker_rule_out_stall() -> None:
    plan = replace(CLOSED, workers=2)
    events = [RunStarted(t=0.0, run=1, plan=plan), tick(0), tick(0, worker=1)]
    assert stall(fold_all([*events, silent(20, 1), tick(20, worker=1)])) is None
    both = fold_all([*events, silent(20, 1), silent(20, 5, worker=1)])
    found = stall(both)
    assert found is not None and found.seconds == 1.6 and found.in_flight == 40
    assert in_flight(both) == (40, 2.0)
    assert both.segments[0].stalled == pytest.approx(0.1)


def test_stall_under_closed_load_warns_about_percentiles() -> None:
    state = fold_all(stalled(20, 90, 100))
    segment = state.segments[0]
    assert segment.counts.latency.percentile(99) < 0.02, "p99 hides the stall of 7 s"
    assert segment.counts.latency.max == 7.0
    assert segment.stalled == pytest.approx(7.0)
    result = run_result(state, 1)
    assert result is not None and result.stalled == segment.stalled
    for found in (segment_warnings(segment), run_warnings(result)):
        [warning] = [each for each in found if each.kind is WarningKind.STALLED]
        assert warning.values["share"] == pytest.approx(0.7)
        assert warning.is_about("p99") and not warning.is_about("rate")
    opened = fold_all(stalled(20, 90, 100, LoadPlan(url="http://a/", rate=1000.0, duration=20.0)))
    slow = [RunStarted(t=0.0, run=1, plan=CLOSED)]
    slow += [each for at in range(0, 100, 10) for each in (tick(at, 20, 1.0), silent(at + 9, at + 1))]  # type: ignore[misc]
    for state in (opened, fold_all(slow), fold_all(stalled(20, 22, 100))):
        assert WarningKind.STALLED not in [each.kind for each in segment_warnings(state.segments[0])]


def failed(at: int, **values: object) -> Tick:
    return replace(tick(at, 0, **values), errors={"refused": 40, "closed_early": 2})  # type: ignore[arg-type]


def test_failures_have_kinds_share_and_start() -> None:
    good = [tick(at) for at in range(30)]
    state = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), *good, *(failed(at) for at in range(30, 50))])
    found = failures(state, state.segments[0])
    assert found.kinds == (("refused", 800), ("closed early", 40))
    assert (found.failed, found.ended) == (840, 3840)
    assert (found.failing.since, found.failing.share, found.failing.down) == (3.0, 1.0, True)
    assert found.failing.rate == pytest.approx(420)
    over = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), *good, failed(30), *(tick(at) for at in range(31, 60))])
    past = failures(over, over.segments[0])
    assert past is not None and past.failing is None and past.last == 3


def test_server_is_down_since_its_first_connection_error() -> None:
    bad = [replace(tick(at), statuses={503: 20, 200: 80}) for at in range(20, 55)]
    dead = [failed(at) for at in range(55, 75)]
    state = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), *(tick(at) for at in range(20)), *bad])
    found = failures(state, state.segments[0])
    assert (found.failing.since, found.failing.down) == (2.0, False)
    state = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), *(tick(at) for at in range(20)), *bad, *dead])
    found = failures(state, state.segments[0])
    assert (found.failing.since, found.failing.down) == (5.0, True)
    bad = [replace(tick(at), statuses={503: 60, 200: 40}) for at in range(20)]
    state = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), *bad])
    found = failures(state, state.segments[0])
    assert found.kinds == (("503", 1200),)
    assert not found.failing.down and found.failing.share == pytest.approx(0.6)
    none = fold_all([RunStarted(t=0.0, run=1, plan=CLOSED), tick(0)])
    assert failures(none, none.segments[0]) is None
