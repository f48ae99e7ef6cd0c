"""Rounds on users' traffic: one mix of requests on both sides, excluded and invalid rounds, intervals."""

import math

import pytest
from msgspec.structs import replace

from cockpit.analysis.rounds import judge_switchback, rounds_verdict
from cockpit.analysis.strata import QUANTILES, stratified
from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Outcome
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import Window
from cockpit.analysis.words.objections import objection_words
from cockpit.model import events as ev
from cockpit.model.counts import Group
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.seconds import LoadSecond
from tests.analysis.test_rounds import rounds_of
from tests.statistics.switchbacks import PLAN, switchbacks

# Enough repetitions to find a rate of wrong verdicts far above 5%, or of found effects far below 90%.
REPETITIONS = 8


def group(ms: float, number: int, failed: int = 0) -> Group:
    times = [round(ms * 1e6 * (0.5 + at / number)) for at in range(number)]
    statuses = {200: number - failed, 500: failed}
    return Group(completed=number, statuses=statuses, service=Histogram.of(times))


def window(rate: int, **groups: Group) -> Window:
    seconds = tuple(LoadSecond(second=at, start=at, end=at + 1, completed=rate) for at in range(15))
    return Window(start=0.0, end=15.0, plan=PLAN, seconds=seconds, groups=groups)


def test_mix_is_no_effect() -> None:
    """The second side has three times as many slow requests; each route is as fast as before."""
    pair = window(100, fast=group(2, 900), slow=group(200, 300)), window(100, fast=group(2, 300), slow=group(200, 900))
    ((before, after),) = stratified([pair], 4).pairs
    for name in QUANTILES:
        assert after.standardized[name] == pytest.approx(before.standardized[name], rel=0.02)
    assert 0.001 < before.standardized["p50"] < 0.2


def test_quantiles_show_where_it_differs() -> None:
    """The slow route is 20% slower, the other as before."""
    pair = window(100, fast=group(2, 600), slow=group(200, 600)), window(100, fast=group(2, 600), slow=group(240, 600))
    ((before, after),) = stratified([pair], 4).pairs
    ratios = {name: after.standardized[name] / before.standardized[name] for name in QUANTILES}
    assert 1.05 < ratios["p50"] < 1.2 and ratios["p99"] == pytest.approx(1.2, rel=0.03)
    assert ratios["p25"] == pytest.approx(1.0, rel=0.01)


def test_failures_have_the_mix_of_all_rounds() -> None:
    pair = window(100, a=group(2, 900), b=group(2, 300, 30)), window(100, a=group(2, 300), b=group(2, 900, 90))
    ((before, after),) = stratified([pair], 4).pairs
    assert before.standardized["errors"] == after.standardized["errors"] == pytest.approx(0.05)


def test_rounds_of_other_traffic_are_excluded() -> None:
    same = window(100, a=group(2, 1500)), window(100, a=group(2, 1500))
    burst = window(100, a=group(2, 1500)), window(250, a=group(2, 3750))
    other = window(100, a=group(2, 1500)), window(100, b=group(2, 1500))
    judged = stratified([same, burst, other], 8)
    assert len(judged.pairs) == 1 and judged.left_out == 2 and judged.objection is None
    verdict = judge_switchback([same] * 6 + [burst], "", 8)
    assert verdict is not None and verdict.outcome is not Outcome.INVALID and verdict.values == (6, 6)
    assert [warning.values for warning in verdict.warnings if warning.kind is WarningKind.ROUNDS_EXCLUDED] == [
        {"count": 1, "total": 7}
    ]
    verdict = judge_switchback([same] * 5 + [burst, other, burst], "", 8)
    assert verdict is not None and verdict.outcome is Outcome.INVALID and verdict.objection is not None
    assert objection_words(verdict.objection).endswith("3 of 8 rounds have another rate or mix of requests")
    assert judge_switchback([burst], "", 8) is None


def test_rate_that_follows_the_setting_is_invalid() -> None:
    pairs = [(window(100, a=group(2, 1500)), window(130 + at % 3, a=group(2, 1950))) for at in range(8)]
    verdict = judge_switchback(pairs, "", 8)
    assert verdict is not None and verdict.objection is not None
    assert verdict.objection.cause is Cause.TRAFFIC_DRIFTED and "+31% requests/s" in verdict.objection.detail


def test_windows_of_a_session_have_their_requests_by_route() -> None:
    """The time of a set-up after a window does not count."""
    events: list[ev.AnyEvent] = []
    for event in rounds_of(1.0, rounds=4):
        match event:
            case ev.RunStarted():
                events.append(replace(event, plan=PLAN))
            case ev.Tick():
                counts = Group(completed=event.completed, statuses={200: event.completed}, service=event.service)
                events.append(replace(event, groups={"GET /": counts}))
            case _:
                events.append(event)
    state = fold_all(events)
    rounds = state.rounds[0]
    for side in (side for pair in rounds.complete for side in pair):
        assert side.groups["GET /"].completed == pytest.approx(19 * 1000, rel=0.05)
    verdict = rounds_verdict(state, rounds)
    assert verdict is not None and [effect.name for effect in verdict.effects][:3] == ["p50", "p10", "p25"]
    assert verdict.effect("rate") is None


def test_effect_is_found_and_none_is_invented() -> None:
    """Users come in waves and bursts, and their mix drifts; one test after eight rounds."""
    none = switchbacks(REPETITIONS, 0.0, 100.0, seed=1, rounds=8, first=8)
    ten = switchbacks(REPETITIONS, math.log(1.1), 100.0, seed=2, rounds=8, first=8)
    assert sum(each.outcome in DIFFERENT for each in none) <= 1
    assert sum(each.outcome is Outcome.WORSE for each in ten) >= REPETITIONS - 2
    assert sum(each.covered for each in (*none, *ten)) >= 2 * REPETITIONS - 3
