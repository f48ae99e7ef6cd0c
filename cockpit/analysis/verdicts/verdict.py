"""Verdicts on one switch under load, on rounds, on several runs per setting, and on one run each. Of runs that were
imported from a summary only the change is known: without data per second there is no interval.

The headline is the rate under closed load, and p99 under open load, where the plan fixes the rate. The unit of
replication is a measurement with its own set-up: a round or a run. Seconds within it are not replications.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from statistics import NormalDist, fmean
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.baseline import assumed_spread
from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.duet import Sharing, cpu_sharing, duet_verdict, sides
from cockpit.analysis.effects import MeasuredAdjustment, MeasuredEffect, by_ratio, effects, metrics
from cockpit.analysis.intervals import (
    FIRST_TEST,
    POWER,
    Floats,
    Interval,
    PooledVariance,
    Speeds,
    anytime,
    anytime_detectable,
    estimate,
    few_runs,
    minimum_detectable,
    repeated_level,
    sequential,
)
from cockpit.analysis.plans import differences, partial_ramp
from cockpit.analysis.replicates import (
    ReplicatePairs,
    ReplicateValues,
    Visits,
    compare_whole_runs,
    counting_error,
    log_ratios,
    mean_of,
    side_values,
    sides_of,
    visit_values,
)
from cockpit.analysis.stacks.difference import profile_differences
from cockpit.analysis.switch.verdict import switch_verdict
from cockpit.analysis.verdicts.objections import invalid, lost_hosts, objection, saturated_side, with_objections
from cockpit.analysis.verdicts.other_load import MeasuredOtherLoad, other_loads, weighed_load, weighed_load_of_rounds
from cockpit.analysis.verdicts.outcome import (
    DIFFERENT,
    Cause,
    Design,
    Effect,
    Objection,
    OtherLoad,
    Outcome,
    Period,
    Verdict,
)
from cockpit.analysis.verdicts.waiting import with_delays
from cockpit.analysis.verdicts.weighing import weighed
from cockpit.analysis.warnings import WarningKind, comparison_warnings, speed_warnings, warning_of
from cockpit.analysis.windows import Window, discarded_seconds
from cockpit.metrics.catalogue import is_latency
from cockpit.model.load.plan import VERSUS

_NORMAL = NormalDist()
# Metrics that a saturated generator limits.
_TIMED = ("rate", "p50", "p99")
_Judge = Callable[[Visits, Visits], Verdict]
# Measures the effect on a metric from one value per visit and side, at level alpha; None: too few values.
_Compare = Callable[[str, Floats, Floats, float], MeasuredEffect | None]
# Works out what the other load on a machine can explain of an effect.
_WeighLoad = Callable[[MeasuredOtherLoad], OtherLoad]


def judge_switch(before: Window, after: Window, label: str = "", load_may_differ: bool = False) -> Verdict:
    """Judge a change made under running load. Different loads make it invalid unless `load_may_differ`."""
    return _judged([[before]], [[after]], label, load_may_differ, _by_window(switch_verdict))


def judge_duet(window: Window) -> Verdict:
    """Judge the time of a duet. Other load acts on both variants at the same time, and explains no difference."""
    before, after = sides(window)
    first, second = window.plan.variants
    label = f"{second.name}{VERSUS}{first.name}"
    sharing = cpu_sharing(window)
    judge = partial(duet_verdict, shared=sharing is Sharing.YES)
    verdict = _judged([[before]], [[after]], label, False, _by_window(judge), attrgetter("load"))
    if sharing is Sharing.UNKNOWN:
        verdict = replace(verdict, warnings=(*verdict.warnings, warning_of(WarningKind.SHARED_CPU)))
    return replace(verdict, objection=verdict.objection and replace(verdict.objection, side=None))


class PlannedComparisons(NamedTuple):
    """The planned comparisons of a study: their number, their metrics with the headline first (empty: the default), and
    the equivalence margin (share; None: that of each metric)."""

    comparisons: int = 1
    metrics: tuple[str, ...] = ()
    margin: float | None = None


ALONE = PlannedComparisons()


def judge_rounds(
    pairs: ReplicatePairs,
    label: str = "",
    budget: int | None = None,
    planned: PlannedComparisons = ALONE,
    others: Sequence[ReplicatePairs] = (),
) -> Verdict:
    """Judge rounds, each with both settings, oldest first. `budget` is the maximum number of rounds; None: no planned
    end. `others` are the rounds of the study's other comparisons under the same load: see `Speeds`."""
    before, after = sides_of(pairs)
    weigh = weighed_load if len(pairs) < FIRST_TEST else weighed_load_of_rounds
    judge = partial(_rounds, budget=budget, planned=planned, others=others)
    return _judged(before, after, label, False, judge, weigh)


def judge_runs(
    before: Visits, after: Visits, label: str = "", others: Sequence[Visits] = (), planned: PlannedComparisons = ALONE
) -> Verdict:
    """Judge several visits per setting by a single test. `others` are visits of further settings, whose variance is
    pooled."""
    return _judged(before, after, label, False, partial(_runs, others=others, planned=planned))


def judge_repeated_runs(before: Visits, after: Visits, label: str = "") -> Verdict:
    """Judge several visits per setting, repeated by hand and judged after each one: see `repeated_level`."""
    return _judged(before, after, label, False, partial(_runs, others=(), planned=ALONE, repeated=True))


def judge_single_runs(before: Window, after: Window, label: str = "", load_may_differ: bool = False) -> Verdict:
    """Judge one run per setting. The spread between runs is assumed, because a single run cannot show it."""
    return _judged([[before]], [[after]], label, load_may_differ, _by_window(_single_runs))


def _by_window(judge: Callable[[Window, Window], Verdict]) -> _Judge:
    return lambda before, after: judge(before[0][0], after[0][0])


def _judged(
    visits: Visits,
    others: Visits,
    label: str,
    load_may_differ: bool,
    judge: _Judge,
    weigh: _WeighLoad = weighed_load,
) -> Verdict:
    """Return the verdict of `judge`, weighed by other load, with warnings and objections. For a saturated generator see
    `_at_least`."""
    before, after = ([window for visit in side for window in visit] for side in (visits, others))
    windows = (*before, *after)
    unlike = sorted({words for window in windows for words in differences(before[0].plan, window.plan)})
    unlike += filter(None, (partial_ramp(window.plan, window.end - window.start) for window in windows))
    summaries = any(segment.totals for window in (*before, *after) for segment in window.segments)
    verdict = _totals(visits, others) if summaries else judge(visits, others)
    timed = [effect.name for effect in verdict.effects if is_latency(effect.name)]
    loads = [with_delays(weigh(load), before, after, timed) for load in other_loads(before, after)]
    against = objection(before, after)
    if unlike and not load_may_differ:
        against = Objection(cause=Cause.LOAD_DIFFERS, detail=", ".join(unlike))
        verdict = replace(verdict, effects=())
    verdict = replace(
        verdict,
        label=label,
        before=_numbers(before),
        after=_numbers(after),
        discarded=(discarded_seconds(before), discarded_seconds(after)),
        warnings=(
            *comparison_warnings((*before, *after), unlike if load_may_differ else ()),
            *(() if verdict.adjusted else speed_warnings(before, after)),
        ),
        growing=any(window.growing for window in (*before, *after)),
        # CPU/request is that of the server also while the generator was the bottleneck.
        profiles=profile_differences(*([each.with_saturated() for each in side] for side in (before, after))),
    )
    verdict = weighed(with_objections(verdict, against, lost_hosts(before, after)), loads, before[0].plan.open)
    side = saturated_side(before, after)
    if side is None or before[0].plan.open or (unlike and not load_may_differ):
        return verdict
    whole = _with_saturated(visits, side is Period.BEFORE), _with_saturated(others, side is Period.AFTER)
    return _at_least(verdict, _judged(*whole, label, load_may_differ, judge, weigh), _faster_side(*whole), side)


def _rounds(
    before: Visits,
    after: Visits,
    budget: int | None,
    planned: PlannedComparisons,
    others: Sequence[ReplicatePairs] = (),
) -> Verdict:
    if len(before) < FIRST_TEST:
        return replace(_runs(before, after, (), planned, repeated=budget is None), design=Design.ROUNDS)
    sides = side_values(before, after, planned.metrics)
    other_sides = [side_values(*sides_of(pairs), planned.metrics) for pairs in others]

    def compare(name: str, first: Floats, second: Floats, alpha: float) -> MeasuredEffect | None:
        both = ~(np.isnan(first) | np.isnan(second))
        if both.sum() < FIRST_TEST:
            return None
        first, second = first[both], second[both]
        ratios = log_ratios(sides, name)
        logarithmic = len(ratios.values) > 0
        values = ratios.values if logarithmic else second - first
        speeds = Speeds(ratios.speeds, [log_ratios(other, name) for other in other_sides])
        seen = estimate(values, speeds)
        if budget is None:
            interval, reach = anytime(values, alpha, speeds), anytime_detectable(seen.deviation, len(values), alpha)
        else:
            interval = sequential(values, budget, alpha, speeds)
            reach = minimum_detectable(seen.deviation, max(budget, FIRST_TEST), alpha)
        plain = anytime(values, alpha) if budget is None else sequential(values, budget, alpha)
        speed = (
            MeasuredAdjustment(plain, float(speeds.own.mean()), float(speeds.own.std(ddof=1)))
            if seen.adjusted and "arrivals" not in sides[0]
            else None
        )
        means = mean_of(name, first), mean_of(name, second)
        return MeasuredEffect(interval, logarithmic, *means, reach, interval.tentative, speed)

    return _verdict(Design.ROUNDS, before, after, sides, compare, planned)


def _runs(
    before: Visits, after: Visits, others: Sequence[Visits], planned: PlannedComparisons, repeated: bool = False
) -> Verdict:
    pools = [visit_values(cell, planned.metrics, compare_whole_runs(cell)) for cell in others if len(cell) > 1]

    def compare(name: str, first: Floats, second: Floats, alpha: float) -> MeasuredEffect | None:
        first, second = (side[~np.isnan(side)] for side in (first, second))
        if not len(first) or not len(second):
            return None
        logarithmic = by_ratio(name, first, second)
        cells = [cell[name] for cell in pools if name in cell and not np.isnan(cell[name]).any()]
        if logarithmic:
            cells = [np.log(cell) for cell in cells if bool((cell > 0).all())]
        means = mean_of(name, first), mean_of(name, second)
        first, second = (np.log(first), np.log(second)) if logarithmic else (first, second)
        level = repeated_level(len(first) + len(second), alpha) if repeated else alpha
        interval = few_runs(first, second, PooledVariance.of(cells), level)
        reach = (interval.high - interval.low) / 2 * 1.4 if math.isfinite(interval.high) else None
        return MeasuredEffect(interval, logarithmic, *means, reach)

    return _verdict(Design.RUNS, before, after, side_values(before, after, planned.metrics), compare, planned)


def _single_runs(before: Window, after: Window) -> Verdict:
    missing = max((2 * BLOCK - len(window.seconds) for window in (before, after) if window.growing), default=0)
    if missing > 0:
        # The first seconds of a run differ from the rest by more than the assumed spread.
        return Verdict(outcome=Outcome.INCONCLUSIVE, design=Design.SINGLE_RUNS, values=(1, 1), needs=float(missing))

    def compare(name: str, first: Floats, second: Floats, alpha: float) -> MeasuredEffect | None:
        change = _change(name, first, second)
        if change is None:
            return None
        estimate = change.interval.estimate
        if change.logarithmic:
            error = math.sqrt(2) * assumed_spread(name)
            half = _NORMAL.inv_cdf(1 - alpha / 2) * error
            detectable = half + _NORMAL.inv_cdf(POWER) * error
            return change._replace(interval=Interval.around(estimate, half), detectable=detectable)
        return change._replace(interval=Interval.around(estimate, 0.0)) if name == "errors" else change

    return _verdict(Design.SINGLE_RUNS, [[before]], [[after]], side_values([[before]], [[after]]), compare)


def _totals(before: Visits, after: Visits) -> Verdict:
    """Return the changes of whole runs without intervals, all of them inconclusive."""
    sides = visit_values(before, (), True), visit_values(after, (), True)
    return _verdict(Design.TOTALS, before, after, sides, lambda name, first, second, _: _change(name, first, second))


def _change(name: str, before: Floats, after: Floats) -> MeasuredEffect | None:
    """Return the change between the means of both sides, without an interval; None if one is unknown."""
    first, second = mean_of(name, before), mean_of(name, after)
    if math.isnan(first) or math.isnan(second):
        return None
    logarithmic = by_ratio(name, before, after)
    estimate = math.log(second / first) if logarithmic else second - first
    return MeasuredEffect(Interval.around(estimate, math.inf), logarithmic, first, second)


def _verdict(
    design: Design,
    before: Visits,
    after: Visits,
    sides: tuple[ReplicateValues, ReplicateValues],
    compare: _Compare,
    planned: PlannedComparisons = ALONE,
) -> Verdict:
    """Return the verdict by one value per visit of both `sides`; errors have at least the interval of their count."""

    def measure(name: str, alpha: float) -> MeasuredEffect | None:
        first, second = (side.get(name) for side in sides)
        effect = None if first is None or second is None else compare(name, first, second, alpha)
        if effect is None or name != "errors":
            return effect
        return effect._replace(interval=effect.interval.at_least(counting_error(before, after)))

    names = metrics([[side] for side in sides], before[0][0].plan.open, planned.metrics)
    measured = effects(names, measure, planned.comparisons, planned.margin)
    values = len(before), len(after)
    return Verdict(outcome=Outcome.INCONCLUSIVE, design=design, values=values, effects=measured)


def _with_saturated(visits: Visits, counted: bool) -> Visits:
    """Return the visits, with their saturated seconds included if `counted`."""
    return [[window.with_saturated() for window in visit] for visit in visits] if counted else visits


def _at_least(limited: Verdict, whole: Verdict, faster: Period, side: Period) -> Verdict:
    """Return the verdict on all data, with one-sided intervals, if the side with the saturated generator is still the
    faster one; else `limited`.

    On that side the measured rate is a lower bound, and latencies are an upper bound, of the server's. Timed metrics
    that differ in the other direction may be an effect of the generator.
    """
    headline = whole.headline
    if whole.outcome is Outcome.INVALID or faster is not side:
        return limited
    outcome = Outcome.BETTER if side is Period.AFTER else Outcome.WORSE
    if headline is None or headline.outcome not in DIFFERENT:
        open_ended = tuple(_one_sided(effect, side) for effect in whole.effects)
        return replace(whole, effects=open_ended, at_least=True) if whole.needs is not None else limited
    if whole.outcome is not outcome or headline.outcome is not outcome:
        return limited
    kept = tuple(
        invalid(effect, limited.objection)
        if limited.objection is not None
        and effect.name in _TIMED
        and effect.outcome in DIFFERENT
        and effect.outcome is not outcome
        else _one_sided(effect, side)
        for effect in whole.effects
    )
    return replace(whole, effects=kept, at_least=True)


def _one_sided(effect: Effect, side: Period) -> Effect:
    """Return the effect with its interval open at the end that the saturated generator limits."""
    if effect.name not in _TIMED or effect.low is None or effect.high is None:
        return effect
    outcome = Outcome.INCONCLUSIVE if effect.outcome is Outcome.EQUIVALENT else effect.outcome
    if (effect.name == "rate") == (side is Period.AFTER):
        return replace(effect, outcome=outcome, high=None)
    return replace(effect, outcome=outcome, low=None)


def _faster_side(before: Visits, after: Visits) -> Period:
    """Return the side with more responses per second, without a test."""
    before_counts, after_counts = (
        [second.completed for visit in visits for window in visit for second in window.seconds]
        for visits in (before, after)
    )
    return Period.BEFORE if fmean(before_counts or [0]) > fmean(after_counts or [0]) else Period.AFTER


def _numbers(windows: Iterable[Window]) -> tuple[int, ...]:
    return tuple(segment.number for window in windows for segment in window.segments)
