"""Rounds on users' traffic: one mix of requests on both sides, excluded and invalid rounds, intervals."""

import math

import pytest
from msgspec.structs import replace

from cockpit.analysis.rounds import judge_switchback, rounds_verdict
from cockpit.analysis.strata import QUANTILES, arrivals, stratified
from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Outcome
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import Window
from cockpit.analysis.words.objections import objection_words
from cockpit.model import events as ev
from cockpit.model.counts import Group
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import AccessLog
from cockpit.model.load.seconds import LoadSecond
from tests.analysis.test_rounds import rounds_of
from tests.statistics.switchbacks import PLAN, siblings, switchbacks

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
    pair = (
        [window(100, fast=group(2, 900), slow=group(200, 300))],
        [window(100, fast=group(2, 300), slow=group(200, 900))],
    )
    ((before,), (after,)) = stratified([pair], 4).pairs[0]
    for name in QUANTILES:
        assert after.standardized[name] == pytest.approx(before.standardized[name], rel=0.02)
    assert 0.001 < before.standardized["p50"] < 0.2


def test_quantiles_show_where_it_differs() -> None:
    """The slow route is 20% slower, the other as before."""
    pair = (
        [window(100, fast=group(2, 600), slow=group(200, 600))],
        [window(100, fast=group(2, 600), slow=group(240, 600))],
    )
    ((before,), (after,)) = stratified([pair], 4).pairs[0]
    ratios = {name: after.standardized[name] / before.standardized[name] for name in QUANTILES}
    assert 1.05 < ratios["p50"] < 1.2 and ratios["p99"] == pytest.approx(1.2, rel=0.03)
    assert ratios["p25"] == pytest.approx(1.0, rel=0.01)


def test_failures_have_the_mix_of_all_rounds() -> None:
    pair = [window(100, a=group(2, 900), b=group(2, 300, 30))], [window(100, a=group(2, 300), b=group(2, 900, 90))]
    ((before,), (after,)) = stratified([pair], 4).pairs[0]
    assert before.standardized["errors"] == after.standardized["errors"] == pytest.approx(0.05)


def test_rounds_of_other_traffic_are_excluded() -> None:
    same = [window(100, a=group(2, 1500))], [window(100, a=group(2, 1500))]
    burst = [window(100, a=group(2, 1500))], [window(250, a=group(2, 3750))]
    other = [window(100, a=group(2, 1500))], [window(100, b=group(2, 1500))]
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
    pairs = [([window(100, a=group(2, 1500))], [window(130 + at % 3, a=group(2, 1950))]) for at in range(8)]
    verdict = judge_switchback(pairs, "", 8)
    assert verdict is not None and verdict.objection is not None
    assert verdict.objection.cause is Cause.TRAFFIC_DRIFTED and "+31% requests/s" in verdict.objection.detail


def test_arrivals_are_per_second() -> None:
    """Seconds of a log are as long as its host needed for a pass of the reader."""
    late = tuple(LoadSecond(second=at, start=1.3 * at, end=1.3 * (at + 1), completed=130) for at in range(11))
    assert arrivals([Window(start=0.0, end=15.0, plan=PLAN, seconds=late)]) == pytest.approx(100.0)


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
        assert side.logs["web1"].groups["GET /"].completed == pytest.approx(19 * 1000, rel=0.05)
    verdict = rounds_verdict(state, rounds)
    assert verdict is not None and [effect.name for effect in verdict.effects][:3] == ["p50", "p10", "p25"]
    assert verdict.effect("rate") is None


def test_servers_that_exchange_their_roles() -> None:
    """web2 is 20% slower, gets half as many requests, and the new values cost 10% on each."""
    logs = (*PLAN.traffic, AccessLog(host="web2", file="/log"))
    events: list[ev.AnyEvent] = []
    new_on = ""
    for event in rounds_of(1.0, rounds=6):
        match event:
            case ev.RunStarted():
                events.append(replace(event, plan=replace(PLAN, traffic=logs)))
            case ev.RoundsBegun():
                begun = replace(event, sibling="web2")
                events.append(begun)
            case ev.Tick():
                for worker, log in enumerate(logs):
                    slower = (1.2 if worker else 1.0) * (1.1 if log.host == new_on else 1.0)
                    done = event.completed // (10 * (worker + 1))
                    service = Histogram.of([round(slower * 1e6 * (1 + at / done)) for at in range(done)])
                    group = Group(completed=done, statuses={200: done}, service=service)
                    counts = {"sent": done, "completed": done, "service": service}
                    events.append(replace(event, worker=worker, groups={"GET /": group}, **counts))
            case _:
                new_on = begun.new_on(event.side) if isinstance(event, ev.RoundWindow) else new_on
                events.append(event)
    state = fold_all(events)
    verdict = rounds_verdict(state, state.rounds[0])
    assert verdict is not None and verdict.headline is not None
    assert verdict.outcome is Outcome.WORSE and verdict.label.endswith("(web1 vs web2)")
    assert verdict.headline.change == pytest.approx(0.1, abs=0.005)
    assert verdict.headline.before == pytest.approx(0.0015 * math.sqrt(1.2), rel=0.02)
    assert verdict.values == (6, 6)


def test_balance_that_drifts_is_excluded() -> None:
    """A server gets far more requests after the roles were exchanged: no wave of the users, which both would have."""

    def visits(second: int) -> tuple[list[Window], list[Window]]:
        rest = [window(100, a=group(2, 1500))]
        return [window(100, a=group(2, 1500)), *rest], [window(second, a=group(2, 1500)), *rest]

    steady, drifted = visits(120), visits(220)
    assert [len(stratified([pair], 4).pairs) for pair in (steady, drifted)] == [1, 0]
    verdict = judge_switchback([steady] * 3 + [drifted] * 3, "", 8)
    assert verdict is not None and verdict.objection is not None
    assert verdict.objection.cause is Cause.TRAFFIC_DRIFTED and "3 of 6 rounds" in verdict.objection.detail


def test_effect_on_one_of_two_servers_is_found_and_none_is_invented() -> None:
    """As below, on servers that differ by 20%."""
    none = siblings(REPETITIONS, 0.0, 100.0, seed=1, gap=0.2, rounds=6, first=6)
    ten = siblings(REPETITIONS, math.log(1.1), 100.0, seed=2, gap=0.2, rounds=6, first=6)
    assert sum(each.outcome in DIFFERENT for each in none) <= 1
    assert sum(each.outcome is Outcome.WORSE for each in ten) >= REPETITIONS - 2
    assert sum(each.covered for each in (*none, *ten)) >= 2 * REPETITIONS - 3


def test_effect_is_found_and_none_is_invented() -> None:
    """Users come in waves and bursts, and their mix drifts; one test after eight rounds."""
    none = switchbacks(REPETITIONS, 0.0, 100.0, seed=1, rounds=8, first=8)
    ten = switchbacks(REPETITIONS, math.log(1.1), 100.0, seed=2, rounds=8, first=8)
    assert sum(each.outcome in DIFFERENT for each in none) <= 1
    assert sum(each.outcome is Outcome.WORSE for each in ten) >= REPETITIONS - 2
    assert sum(each.covered for each in (*none, *ten)) >= 2 * REPETITIONS - 3
