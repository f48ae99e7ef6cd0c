"""The verdict on one switch under load from two windows: effects from blocks, adjusted for CPU speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.blocks import BLOCK, Sample, block_sample
from cockpit.analysis.effects import (
    HEADLINE_SHARE,
    MeasuredAdjustment,
    MeasuredEffect,
    by_ratio,
    conclude,
    effects,
    margin_of,
    metrics,
)
from cockpit.analysis.intervals import ALPHA, Floats, Interval
from cockpit.analysis.replicates import counting_error
from cockpit.analysis.switch import speed as switch_speed
from cockpit.analysis.switch import switch
from cockpit.analysis.verdicts.outcome import Design, Effect, Outcome, Verdict
from cockpit.analysis.verdicts.speed import log_speeds, speed_names
from cockpit.analysis.windows import Window
from cockpit.metrics.margins import ERRORS_UNIT, MARGIN


class _Compared(NamedTuple):
    """Both sides in blocks, in the order in which the blocks nearest to the switch are adjacent."""

    windows: tuple[Window, Window]
    samples: tuple[Sample, Sample]
    backwards: bool
    between: int

    @classmethod
    def of(cls, before: Window, after: Window) -> _Compared:
        # If the side after was measured first, time is reversed, so that the blocks nearest to the switch are adjacent.
        backwards = after.start < before.start
        apart = before.start - after.end if backwards else after.start - before.end
        samples = block_sample(before), block_sample(after)
        return cls((before, after), samples, backwards, max(0, int(apart // BLOCK)))

    def blocks(self, name: str) -> switch_speed.SwitchBlocks:
        """Return the blocks in which the metric is known, with CPU speeds if the metric depends on them."""
        names = speed_names(self.samples[0].blocks, self.samples[1].blocks, name)
        known = [~np.isnan(sample.blocks[name]) for sample in self.samples]
        first, second = (sample.blocks[name][kept] for sample, kept in zip(self.samples, known, strict=True))
        if not (names and len(first) and len(second)) or not by_ratio(
            name, first.mean(keepdims=True), second.mean(keepdims=True)
        ):
            return self._ordered(switch_speed.SwitchBlocks(first, second))
        before, after = (
            log_speeds(sample.blocks, names)[kept] for sample, kept in zip(self.samples, known, strict=True)
        )
        return self._ordered(
            switch_speed.with_speeds(
                first, second, (before, after), _reading_error(self.windows, names), _speed_sign(name)
            )
        )

    def _ordered(self, blocks: switch_speed.SwitchBlocks) -> switch_speed.SwitchBlocks:
        if not self.backwards:
            return blocks
        return blocks._replace(**{name: getattr(blocks, name)[::-1] for name in blocks._fields if name != "error"})


def switch_verdict(before: Window, after: Window) -> Verdict:
    """Judge a change made under running load, without objections."""
    compared = _Compared.of(before, after)
    samples = compared.samples
    names = metrics([[sample.blocks] for sample in samples], before.plan.open)
    # While the time after grows, one block gives a first impression, without an interval.
    least = 1 if after.growing else switch.LEAST

    def measure(name: str, alpha: float) -> MeasuredEffect | None:
        blocks = compared.blocks(name)
        if len(blocks.before) < switch.LEAST or len(blocks.after) < least:
            return None
        return _measured_effect(compared, name, blocks, alpha)

    values = samples[0].size, samples[1].size
    measured = effects(names, measure) if values[0] >= switch.LEAST and values[1] >= least else ()
    needs = None
    if after.growing:
        few = min(values) < switch.LEAST
        needs = _seconds_to_first_test(*values) if few else _seconds_needed(compared, measured[0])
    return Verdict(
        outcome=Outcome.INCONCLUSIVE, design=Design.SWITCH, values=values, block=BLOCK, effects=measured, needs=needs
    )


def concluding_blocks(before: Window, after: Window) -> Iterator[int]:
    """Yield the numbers of blocks after the change at which the headline concludes. Later blocks change none of the
    earlier numbers."""
    compared = _Compared.of(before, after)
    if min(sample.size for sample in compared.samples) < switch.LEAST:
        return
    names = metrics([[sample.blocks] for sample in compared.samples], before.plan.open)
    blocks = compared.blocks(names[0])
    if min(len(blocks.before), len(blocks.after)) < switch.LEAST:
        return
    scale, unit = switch_scale(names[0], blocks.before, blocks.after[: switch.LEAST])
    blocks = blocks._replace(before=blocks.before / unit, after=blocks.after / unit)
    alpha = ALPHA * (HEADLINE_SHARE if len(names) > 1 else 1.0)
    relative = scale is not switch.unscaled
    for number, interval in switch_speed.effect_over_time(blocks, alpha, compared.between, scale):
        bounds = interval.as_shares() if relative else interval
        if conclude(names[0], bounds, relative, margin_of(names[0])) is not Outcome.INCONCLUSIVE:
            yield number


def _measured_effect(compared: _Compared, name: str, blocks: switch_speed.SwitchBlocks, alpha: float) -> MeasuredEffect:
    scale, unit = switch_scale(name, blocks.before, blocks.after)
    logarithmic = scale is not switch.unscaled
    blocks = blocks._replace(before=blocks.before / unit, after=blocks.after / unit)
    interval = _in_units(switch_speed.effect(blocks, alpha, compared.between, scale), unit)
    if name == "errors":
        before, after = compared.windows
        interval = interval.at_least(counting_error([[before]], [[after]]))
    overall = compared.samples[0].overall[name], compared.samples[1].overall[name]
    speed = None
    allowed = switch_speed.slopes(blocks, scale)
    if blocks.is_adjusted:
        plain = switch.effect(blocks.before, blocks.after, alpha, compared.between, scale)
        speed = MeasuredAdjustment(plain, _speed_sign(name) * blocks.shift, slopes=(allowed.low, allowed.high))
    likely = blocks.at(allowed.likely)
    if len(blocks.after) < switch.LEAST:
        tentative = _in_units(switch.tentative_effect(likely.before, likely.after, scale), unit)
        return MeasuredEffect(interval, logarithmic, *overall, tentative=tentative, speed=speed)
    reach = switch.detectable(likely.before, likely.after, alpha, scale)
    # The effect must be found at the least favourable slope.
    reach += abs(blocks.shift) * (allowed.high - allowed.low) if blocks.is_adjusted else 0.0
    return MeasuredEffect(interval, logarithmic, *overall, unit * reach, interval.tentative, speed)


def _in_units(interval: Interval, unit: float) -> Interval:
    return Interval(*(unit * value for value in interval))


def _speed_sign(name: str) -> int:
    """Return 1 if a metric rises with CPU speed, -1 if it falls."""
    return 1 if name == "rate" else -1


def switch_scale(name: str, before: Floats, after: Floats) -> tuple[switch.Scale, float]:
    """Return the scale on which a metric's blocks are compared, and their unit: ratios if the values allow, else
    differences.

    The rate is compared by arithmetic means, which include blocks without a response. A stall lowers a geometric mean
    by far more than the missing responses.
    """
    if name == "rate" and min(before.mean(), after.mean()) > 0:
        return switch.ratio_scale, 1.0
    if by_ratio(name, before, after):
        return np.log, 1.0
    return switch.unscaled, ERRORS_UNIT if name == "errors" else float(before.mean()) or 1.0


def _reading_error(windows: Sequence[Window], names: Sequence[str]) -> float:
    """Return the standard error of a block's mean speed over these hosts."""
    variances = []
    for name in names:
        host = name.partition(".")[0]
        points = [[(point.t, point.speed) for point in window.hosts.get(host, ()) if point.speed] for window in windows]
        steps = np.concatenate([np.diff([t for t, _ in side]) for side in points])
        per_block = max(1.0, BLOCK / float(np.median(steps))) if len(steps) else 1.0
        readings = [np.log([speed for _, speed in side]) for side in points]
        variances.append(switch_speed.reading_error(readings, per_block) ** 2)
    return math.sqrt(sum(variances)) / len(names)


def _seconds_to_first_test(before: int, after: int) -> float:
    if before < switch.LEAST:
        return math.inf
    return float((switch.LEAST + switch.IN_A_ROW - 1 - after) * BLOCK)


def _seconds_needed(compared: _Compared, headline: Effect) -> float | None:
    """Return the seconds until the headline can conclude, by its effect or by its margin, at the most likely slope.
    Infinite: the baseline is too short. None: unknown."""
    if not headline.relative or headline.change is None:
        return None
    blocks = compared.blocks(headline.name)
    scale, _ = switch_scale(headline.name, blocks.before, blocks.after)
    least = math.log1p(headline.margin or MARGIN)
    likely = blocks.at(switch_speed.slopes(blocks, scale).likely)
    number = switch.blocks_needed(likely.before, likely.after, least, 1 - headline.level, compared.between, scale)
    return math.inf if number is None else float((number - len(blocks.after)) * BLOCK)
