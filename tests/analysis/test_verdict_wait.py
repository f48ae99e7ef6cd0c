"""Waiting for the baseline and the verdict of a change under load."""

from collections.abc import Iterator

import numpy as np
import pytest

from cockpit.analysis.blocks import block_count
from cockpit.analysis.switch.switch import LEAST
from cockpit.analysis.verdicts.wait import BASELINE, awaits_verdict, baseline_power, baseline_seconds, baseline_wait
from cockpit.analysis.windows import segment_window
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State

PLAN = LoadPlan(url="http://web1/", concurrency=20, duration=160.0)
TIMES = Histogram.of([1_000_000 + 10_000 * (step * 7 % 100) for step in range(100)])


def switched(
    before: int, after: int, factor: float, *, warmup: float = 0.0, noise: float = 0.01
) -> Iterator[ev.AnyEvent]:
    """Yield a run with `before` and `after` seconds around a change that multiplies the rate by `factor`."""
    wander = np.random.default_rng(3).normal(0, noise, before + after)
    yield ev.RunStarted(t=0.0, run=1, plan=PLAN if not warmup else LoadPlan(url="http://web1/", warmup=warmup))
    for second in range(before + after):
        if second == before:
            setting = Setting(knob="X", old="1", new="2")
            yield ev.ChangeBegun(t=second - 0.5, change="A", host="web1", settings=(setting,))
            yield ev.ChangeEnded(t=float(second), change="A", outcome="applied")
        done = round(1000 * (factor if second >= before else 1.0) * (1 + wander[second]))
        start = float(second)
        yield ev.Tick(
            t=start + 1, start=start, run=1, worker=0, sent=done, completed=done, service=TIMES, warmup=second < warmup
        )


def after(*arguments: float, **values: float) -> State:
    return fold_all(switched(int(arguments[0]), int(arguments[1]), *arguments[2:], **values))


def test_verdict_is_awaited_while_inconclusive() -> None:
    for before, seconds, factor, noise, awaited in (
        (40, 10, 2.0, 0.01, True),
        (40, 60, 2.0, 0.01, False),
        (40, 60, 1.0, 0.1, True),
        (20, 10, 2.0, 0.01, False),
        (40, 2, 1.0, 0.01, True),
    ):
        assert awaits_verdict(after(before, seconds, factor, noise=noise), "A") is awaited
    state = after(40, 20, 1.0)
    assert awaits_verdict(state, "A")
    assert not awaits_verdict(state, "B")
    assert not awaits_verdict(fold_all((ev.LoadAdjusted(t=60.5, run=1, concurrency=40),), state), "A")
    assert not awaits_verdict(fold_all((ev.RunEnded(t=60.5, run=1, reason="completed"),), state), "A")


def test_baseline_of_25_s_starts_after_guard_and_warm_up() -> None:
    states = [after(seconds, 0, 1.0) for seconds in (1, 8, 27)]
    waits = [(baseline_seconds(state), baseline_wait(state)) for state in states]
    assert waits == [(0, BASELINE + 2), (5, 20), (24, 1)]
    assert baseline_wait(after(28, 0, 1.0)) == 0
    assert baseline_wait(State()) == 0 and baseline_seconds(State()) == 0
    assert baseline_wait(fold_all((ev.RunEnded(t=9.0, run=1, reason="stopped"),), after(8, 0, 1.0))) == 0
    state = after(4, 0, 1.0, warmup=10.0)
    assert (baseline_seconds(state), baseline_wait(state)) == (0, BASELINE + 3 + 6)


def test_longer_and_calmer_baselines_find_smaller_changes() -> None:
    short, long, uneven = (
        baseline_power(after(seconds, 0, 1.0, noise=noise)) for seconds, noise in ((30, 0.02), (66, 0.02), (30, 0.3))
    )
    assert (short.metric, short.seconds, short.after, long.seconds, long.longer) == ("rate", 25, 180.0, 60, None)
    assert short.longer is not None and short.longer < short.present < uneven.present
    assert long.present < short.present
    assert 0.01 < short.present < 0.1 and uneven.present > 0.3
    assert baseline_power(State()) is None and baseline_power(after(20, 0, 1.0)) is None


def ticked(begun: float) -> Iterator[ev.AnyEvent]:
    """Yield a load that starts at `begun`, ten ticks per second."""
    yield ev.RunStarted(t=begun, run=1, plan=PLAN)
    for number in range(600):
        start = round(begun + number / 10, 6)
        end = round(start + 0.1, 6)
        yield ev.Tick(t=end, start=start, run=1, worker=0, sent=100, completed=100, service=TIMES)


@pytest.mark.parametrize("begun", [0.0, 0.03, 0.396, 0.5, 0.95])
def test_change_right_after_wait_has_baseline(begun: float) -> None:
    state, ticks = State(), ticked(begun)
    while baseline_wait(state) or not state.seconds:
        state = fold(state, next(ticks))
    t = state.t + 0.001
    state = fold(state, ev.ChangeBegun(t=t, change="A", host="web1", settings=(Setting(knob="X", old="1", new="2"),)))
    state = fold_all((next(ticks) for _ in range(20)), state)
    state = fold(state, ev.ChangeEnded(t=t + 2, change="A", outcome="applied"))
    assert block_count(segment_window(state, state.segments[0])) >= LEAST
