"""Effects on metrics: which metrics are compared, at which level, and the outcome of an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.baseline import is_tail
from cockpit.analysis.intervals import ALPHA, Floats, Interval
from cockpit.analysis.verdicts.outcome import DIFFERENT, Effect, Outcome, SpeedAdjustment
from cockpit.metrics.margins import MARGIN, MARGINS

# A change below this share is never better or worse, even if it is significant: machines drift by as much.
LEAST = 0.01
# Share of alpha for the headline; the other metrics split the rest.
HEADLINE_SHARE = 0.5
# Suffixes of metrics of which higher is better.
_HIGHER_IS_BETTER = (
    *("rate", "capacity", "completed", ".free", ".available", ".idle", "_free", "kbavail", "kbmemfree", "kbswpfree"),
    *("hit_ratio", ".hits", ".requests", ".resumed"),
)
# Metrics that decide the verdict if the headline shows no difference.
_DECIDING = ("p50", "p99", "cpu.busy", "cpu.per_request")


class MeasuredAdjustment(NamedTuple):
    """An adjustment for CPU speed: `plain` is the unadjusted interval, `shift` the mean log ratio of speeds; `spread`
    and `slopes` are as in SpeedAdjustment."""

    plain: Interval
    shift: float
    spread: float | None = None
    slopes: tuple[float, float] | None = None


class MeasuredEffect(NamedTuple):
    """The measured effect on one metric. `before` and `after` are the values over each whole side.

    `interval`, `detectable` (the minimum detectable effect) and `tentative` (a narrower interval that shows a likely
    direction) are on the scale of the comparison: `logarithmic`, or the metric's own unit. None: unknown. `speed` is as
    in Effect.
    """

    interval: Interval
    logarithmic: bool
    before: float
    after: float
    detectable: float | None = None
    tentative: Interval | None = None
    speed: MeasuredAdjustment | None = None


# Measures the effect on a metric at significance level alpha; None: too few values.
Measure = Callable[[str, float], MeasuredEffect | None]


def metric_of(name: str) -> str:
    """Return the metric's name without its host: `cpu.busy` of `web1.cpu.busy`."""
    return name.partition(".")[2] or name


def metrics(
    sides: Sequence[Sequence[Mapping[str, Floats]]], open_load: bool, requested: Sequence[str] = ()
) -> list[str]:
    """Return the names of the metrics to compare: those that every sample of both sides has, the headline first.

    With `requested`, only these and errors; the first one is the headline, even if no sample has it. A capacity is
    alone: its search limits the errors, and other metrics depend on its levels. By default rate, percentiles and
    errors, and of each host CPU (open load) or CPU per request (closed load), spawned processes and memory.
    """
    samples = [sample for side in sides for sample in side]
    known = set.intersection(*(set(sample) for sample in samples)) if samples else set()
    if requested:
        chosen = dict.fromkeys(requested if requested[0] == "capacity" else (*requested, "errors"))
        return [name for name in chosen if name == requested[0] or (name in known and not _has_no_data(samples, name))]
    hosts = sorted({name.partition(".")[0] for name in known if "." in name})
    cost = "cpu.busy" if open_load else "cpu.per_request"
    first = ["p99", "rate"] if open_load else ["rate", "p99"]
    defaults = [*first, "p50", "errors"]
    defaults += [f"{host}.{metric}" for host in hosts for metric in (cost, "processes.spawned_per_s", "memory.used")]
    return [defaults[0], *(name for name in defaults[1:] if name in known and not _has_no_data(samples, name))]


def effects(
    names: Sequence[str], measure: Measure, comparisons: int = 1, margin: float | None = None
) -> tuple[Effect, ...]:
    """Return the effect on each metric. The intervals have a simultaneous confidence level of 95% over `comparisons`
    such tables. `margin`: see margin_of."""
    concluded = []
    for name in names:
        share = HEADLINE_SHARE if name == names[0] else (1 - HEADLINE_SHARE) / (len(names) - 1)
        alpha = ALPHA / comparisons * (share if len(names) > 1 else 1.0)
        concluded.append(_effect(name, name == names[0], measure(name, alpha), 1 - alpha, margin_of(name, margin)))
    return tuple(concluded)


def overall(all_effects: Sequence[Effect]) -> Outcome:
    """Return the outcome of a verdict: that of the headline.

    It is worse if more requests fail. If the headline shows no difference, the deciding metrics that differ determine
    the outcome, provided that they agree.
    """
    errors = next((effect for effect in all_effects if effect.name == "errors"), None)
    if errors is not None and errors.outcome is Outcome.WORSE:
        return Outcome.WORSE
    headline = all_effects[0].outcome
    if headline in DIFFERENT or headline is Outcome.INVALID:
        return headline
    deciding = {effect.outcome for effect in all_effects if metric_of(effect.name) in _DECIDING} & {*DIFFERENT}
    return deciding.pop() if len(deciding) == 1 else headline


def conclude(name: str, interval: Interval, relative: bool, margin: float) -> Outcome:
    """Return the outcome of an interval, whose ends are shares if `relative`. `margin`: see margin_of."""
    if (interval.low > 0 or interval.high < 0) and (not relative or abs(interval.estimate) >= LEAST):
        return Outcome.BETTER if (interval.estimate > 0) == more_is_better(name) else Outcome.WORSE
    if (relative or name == "errors") and -margin < interval.low and interval.high < margin:
        return Outcome.EQUIVALENT
    return Outcome.INCONCLUSIVE


def margin_of(name: str, given: float | None = None) -> float:
    """Return the equivalence margin of a metric: the one that is given, or its default if that has a reason of its own
    and is larger."""
    own = MARGINS.get("p99" if is_tail(name) else metric_of(name), MARGIN)
    if given is None or name == "errors":
        return own
    return given if own == MARGIN else max(own, given)


def more_is_better(name: str) -> bool:
    return name.endswith(_HIGHER_IS_BETTER)


def by_ratio(name: str, *sides: Floats) -> bool:
    """Return whether a metric is compared as a ratio (log scale): all values are above 0. Errors differ by points."""
    return name != "errors" and all(bool((side > 0).all()) for side in sides)


def _has_no_data(samples: Sequence[Mapping[str, Floats]], name: str) -> bool:
    """Return whether a sample has no readings of a metric, or the metric was always 0."""
    values = [sample[name] for sample in samples]
    return any(np.isnan(value).all() for value in values) or not any(np.nan_to_num(value).any() for value in values)


def _effect(name: str, headline: bool, measured: MeasuredEffect | None, level: float, margin: float) -> Effect:
    if measured is None:
        return Effect(name=name, outcome=Outcome.INCONCLUSIVE, headline=headline, level=level, margin=margin)
    shown = measured.interval.as_shares() if measured.logarithmic else measured.interval
    known = math.isfinite(measured.interval.low) and math.isfinite(measured.interval.high)
    detectable = measured.detectable
    if detectable is not None:
        detectable = math.expm1(detectable) if measured.logarithmic else detectable
    outcome = conclude(name, shown, measured.logarithmic, margin) if known else Outcome.INCONCLUSIVE
    return Effect(
        name=name,
        outcome=outcome,
        headline=headline,
        before=measured.before,
        after=measured.after,
        relative=measured.logarithmic,
        change=shown.estimate,
        low=shown.low if known else None,
        high=shown.high if known else None,
        level=level,
        margin=margin,
        detectable=detectable,
        speed=_adjustment(measured.speed),
        likely=_likely(name, measured, margin) if outcome is Outcome.INCONCLUSIVE else None,
    )


def _adjustment(adjustment: MeasuredAdjustment | None) -> SpeedAdjustment | None:
    if adjustment is None:
        return None
    known = math.isfinite(adjustment.plain.low) and math.isfinite(adjustment.plain.high)
    plain = adjustment.plain.as_shares()
    return SpeedAdjustment(
        change=plain.estimate,
        low=plain.low if known else None,
        high=plain.high if known else None,
        ratio=math.exp(adjustment.shift),
        spread=adjustment.spread,
        slopes=adjustment.slopes,
    )


def _likely(name: str, measured: MeasuredEffect, margin: float) -> Outcome | None:
    """Return the likely outcome: the tentative interval excludes 0, and the change exceeds the margin. Else None."""
    tentative = measured.tentative
    if tentative is None or tentative.low <= 0 <= tentative.high:
        return None
    change = math.expm1(tentative.estimate) if measured.logarithmic else tentative.estimate
    if (measured.logarithmic or name == "errors") and abs(change) < margin:
        return None
    return Outcome.BETTER if (change > 0) == more_is_better(name) else Outcome.WORSE
