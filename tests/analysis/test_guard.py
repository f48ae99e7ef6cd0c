"""Limits of changes: which are exceeded, by which evidence, and when nothing is known."""

import pytest
from msgspec.structs import replace

from cockpit.analysis.guard import exceeded, guarded_result, newest_count, parse_guard
from cockpit.model import events as ev
from cockpit.model.errors import UsageError
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import AccessLog
from cockpit.model.state import State
from cockpit.model.tick import Tick
from tests.statistics.switchbacks import PLAN

LIMITS = parse_guard("errors < 2%, p99 < 500ms")


def state_of(*seconds: tuple[int, int, int], t: float = 0.0) -> State:
    """Return the state after seconds of (successful, failed, slow) requests, 100 ms and 1 s; at `t` a note follows."""
    ticks = [
        Tick(
            t=at + 1.0,
            start=float(at),
            run=1,
            worker=0,
            sent=good + failed + slow,
            completed=good + failed + slow,
            statuses={200: good + slow, 500: failed},
            service=Histogram.of([100_000_000] * (good + failed) + [1_000_000_000] * slow),
        )
        for at, (good, failed, slow) in enumerate(seconds)
    ]
    return fold_all([ev.RunStarted(t=0.0, run=1, plan=PLAN), *ticks, *([ev.Note(t=t, text="x")] if t else [])])


@pytest.mark.parametrize(
    ("seconds", "since", "limit"),
    [
        ([(95, 5, 0)], 0.0, "errors < 2%"),
        ([(99, 1, 0)], 0.0, None),
        # Two of ten requests are no evidence.
        ([(8, 2, 0)], 0.0, None),
        ([(7, 3, 0)], 0.0, "errors < 2%"),
        ([(97, 0, 3)], 0.0, "p99 < 500ms"),
        ([(8, 0, 2)], 0.0, None),
        # What was before the change, or more than ten seconds ago, does not count.
        ([(50, 50, 0), (100, 0, 0)], 1.0, None),
        ([(50, 50, 0), *[(100, 0, 0)] * 10], 0.0, None),
        ([(0, 0, 0)], 0.0, None),
        # One slow request, or two, are no evidence, even without others.
        ([(0, 0, 2)], 0.0, None),
        ([(0, 0, 3)], 0.0, "p99 < 500ms"),
    ],
)
def test_exceeded_limit(seconds: list[tuple[int, int, int]], since: float, limit: str | None) -> None:
    failed = exceeded(state_of(*seconds), LIMITS, since)
    assert (failed and failed.threshold.text) == limit


def test_failures_before_the_change_do_not_count_in_its_second() -> None:
    statuses = [{500: 10} if at == 101 else {200: 10} for at in range(118)]
    ticks = [
        Tick(t=(at + 1) / 10, start=at / 10, run=1, worker=0, completed=10, statuses=each)
        for at, each in enumerate(statuses)
    ]
    state = fold_all([ev.RunStarted(t=0.0, run=1, plan=PLAN), *ticks])
    assert exceeded(state, parse_guard("errors < 0.5%"), 0.0) and not exceeded(state, LIMITS, 10.6)


def test_rate_is_that_of_the_newest_seconds() -> None:
    plan = replace(PLAN, traffic=(AccessLog(host="web1", file="/x"),))
    ticks = [Tick(t=at + 1.0, start=float(at), run=1, worker=0, completed=100 if at < 50 else 10) for at in range(60)]
    state = fold_all([ev.RunStarted(t=0.0, run=1, plan=plan), *ticks])
    result = guarded_result(state, 0.0)
    assert result is not None and result.rate == 10.0


def test_quiet_site_has_a_rate() -> None:
    (limit,) = parse_guard("rate > 1")
    assert exceeded(state_of((0, 0, 0)), [limit], 0.0) and not exceeded(State(), [limit], 0.0)


def test_time_of_the_newest_count() -> None:
    assert (newest_count(state_of((10, 0, 0), (10, 0, 0), t=9.0), "x"), newest_count(State(), "x")) == (2.0, 0.0)


def test_seconds_in_which_a_log_was_not_read_are_not_counted() -> None:
    logs = tuple(AccessLog(host=host, file="/x") for host in ("web1", "web2"))
    ticks = [
        Tick(t=at + 1.0, start=float(at), run=1, worker=worker, unread=float(worker == 0 and at > 1), completed=1)
        for at in range(6)
        for worker in range(2)
    ]
    state = fold_all([ev.RunStarted(t=0.0, run=1, plan=replace(PLAN, traffic=logs, workers=2)), *ticks])
    assert [newest_count(state, host) for host in ("web1", "web2", "app1")] == [2.0, 6.0, 6.0]
    (log,) = logs[:1]
    alone = fold_all([ev.RunStarted(t=0.0, run=1, plan=replace(PLAN, traffic=(log,))), *ticks[::2]])
    assert newest_count(alone, "web1") == 2.0


@pytest.mark.parametrize("text", ["rate >= 95% of baseline", "completed > 5", "generator.cpu < 80%", "speed < 2", ""])
def test_invalid_limits(text: str) -> None:
    with pytest.raises(UsageError):
        parse_guard(text)
