"""The verdict on a duet: two variants under the same load at the same time, compared block by block. Pure.

Before is the first variant, after the second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

import numpy as np
from msgspec.structs import replace

from cockpit.analysis import paired
from cockpit.analysis.blocks import BLOCK, block_sample
from cockpit.analysis.effects import MeasuredEffect, by_ratio, effects, more_is_better
from cockpit.analysis.intervals import Floats, Interval
from cockpit.analysis.replicates import counting_error
from cockpit.analysis.switch.switch import IN_A_ROW, LEAST, ratio_scale
from cockpit.analysis.verdicts.objections import invalid
from cockpit.analysis.verdicts.other_load import is_local
from cockpit.analysis.verdicts.outcome import Cause, Design, Effect, Objection, Outcome, Verdict
from cockpit.analysis.windows import Window
from cockpit.metrics.margins import ERRORS_UNIT, MARGIN
from cockpit.model.host.state import HostPoint
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond

# The name of the host of each variant's server, and its CPU seconds per response.
SERVER = "server"
COST = f"{SERVER}.cpu.per_request"
_SHARED = Objection(cause=Cause.SHARED_CPU)
# Idle CPU (per cent) from which targets on one machine do not take CPU from each other.
_IDLE = 20.0


class Loss(StrEnum):
    """What is known of a loss from the first to the second variant, compared with a margin."""

    WITHIN = "not worse by more than the margin"
    BEYOND = "worse by more than the margin"
    WORSE = "worse, and a loss beyond the margin is not excluded"
    OPEN = "a loss beyond the margin is not excluded"


def loss(verdict: Verdict) -> Loss:
    """Return what a duet says about a loss: the worst of its metrics; only the headline can exclude one."""
    if verdict.outcome is Outcome.INVALID or not verdict.effects:
        return Loss.OPEN
    losses = [_loss(effect) for effect in verdict.effects]
    return next((kind for kind in (Loss.BEYOND, Loss.WORSE) if kind in losses), losses[0])


def _loss(effect: Effect) -> Loss:
    if effect.low is None or effect.high is None or effect.outcome is Outcome.INVALID:
        return Loss.OPEN
    low, high = (-effect.high, -effect.low) if more_is_better(effect.name) else (effect.low, effect.high)
    if high <= effect.margin:
        return Loss.WITHIN
    if low > effect.margin:
        return Loss.BEYOND
    return Loss.WORSE if effect.outcome is Outcome.WORSE else Loss.OPEN


def is_settled(verdict: Verdict) -> bool:
    """Return whether a duet can end: it has a conclusion, and a loss is known to be within the margin or beyond it."""
    return verdict.outcome is not Outcome.INCONCLUSIVE and loss(verdict) is not Loss.WORSE


def sides(window: Window) -> tuple[Window, Window]:
    """Return the windows of both variants of a duet: the same seconds, each with the variant's own counts."""
    before, after = (
        replace(
            of_server(window, variant.host),
            seconds=_part(window.seconds, at),
            saturated=_part(window.saturated, at),
        )
        for at, variant in enumerate(window.plan.variants)
    )
    return before, after


def of_server(window: Window, host: str) -> Window:
    """Return the window with the metrics of only one host, under the name SERVER, which both sides share."""
    return replace(
        window,
        hosts={SERVER: _server(window.hosts[host])} if host in window.hosts else {},
        cpus={SERVER: window.cpus[host]} if host in window.cpus else {},
        unread={},
    )


def _server(points: tuple[HostPoint, ...]) -> tuple[HostPoint, ...]:
    """Return the points with the CPU of the server alone where it is known, since both may share a machine."""
    return tuple(
        point
        if point.servers is None or point.cpu is None
        else replace(point, cpu=replace(point.cpu, user=point.servers, nice=0.0, system=0.0))
        for point in points
    )


def _part(seconds: tuple[LoadSecond, ...], at: int) -> tuple[LoadSecond, ...]:
    return tuple(second.part(at) for second in seconds if len(second.variants) > at)


class Sharing(StrEnum):
    """Whether the variants compete for the CPU of one machine: it has no idle CPU, or that is not known."""

    NO = "no"
    UNKNOWN = "unknown"
    YES = "yes"


def cpu_sharing(window: Window) -> Sharing:
    """Return whether both variants compete for CPU. Arrivals at a fixed rate do not."""
    if window.plan.open or not on_one_host(window.plan):
        return Sharing.NO
    idle = [point.cpu.idle for points in window.hosts.values() for point in points if point.cpu is not None]
    if not idle and all(map(is_local, (address for segment in window.segments for address in segment.addresses))):
        idle = [second.idle for second in window.seconds if second.idle is not None]
    if not idle:
        return Sharing.UNKNOWN
    return Sharing.YES if sum(idle) / len(idle) < _IDLE else Sharing.NO


def on_one_host(plan: LoadPlan) -> bool:
    """Return whether the URLs of both variants have the same host."""
    return len({urlsplit(variant.url).hostname for variant in plan.variants}) == 1


def duet_verdict(before: Window, after: Window, shared: bool = False) -> Verdict:
    """Judge a duet by the differences of its blocks, without objections. If the CPU is `shared`, rate and latencies are
    those of the CPU shares that the variants got: only CPU per request compares them."""
    samples = block_sample(before), block_sample(after)
    blocks = [sample.blocks for sample in samples]
    names = [
        name
        for name in ((COST, *timed_metrics(before.plan)) if shared else (*timed_metrics(before.plan), COST))
        + ("errors",)
        if all(name in side and not np.isnan(side[name]).all() for side in blocks)
    ]
    number = min(sample.size for sample in samples)
    plan = before.plan

    def measure(name: str, alpha: float) -> MeasuredEffect | None:
        first, second = _known(name, blocks)
        if len(first) < LEAST:
            return None
        effect = _measured(name, first, second, alpha)
        if name == "errors":
            return effect._replace(interval=effect.interval.at_least(counting_error([[before]], [[after]])))
        return effect

    measured = effects(names, measure, margin=plan.margin) if number >= LEAST and names else ()
    if shared:
        timed = timed_metrics(before.plan)
        measured = tuple(invalid(each, _SHARED) if each.name in timed else each for each in measured)
    missing = LEAST + IN_A_ROW - 1 - number if not measured else _blocks_missing(names[0], blocks, measured[0])
    return Verdict(
        outcome=Outcome.INCONCLUSIVE,
        design=Design.DUET,
        values=(number, number),
        block=BLOCK,
        effects=measured,
        needs=float(missing * BLOCK) if before.growing and missing is not None else None,
    )


def timed_metrics(plan: LoadPlan) -> tuple[str, ...]:
    """Return the metrics of the load to compare, the headline first: at a fixed rate the median latency, else the
    rate."""
    return ("p50", "p99") if plan.open else ("rate", "p50", "p99")


def _known(name: str, blocks: Sequence[Mapping[str, Floats]]) -> tuple[Floats, Floats]:
    """Return the values of both variants in the blocks in which both are known."""
    first, second = (side[name] for side in blocks)
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both]


def _blocks_missing(name: str, blocks: Sequence[Mapping[str, Floats]], headline: Effect) -> int | None:
    """Return the number of further blocks with which the headline would conclude; None: unknown."""
    values, _, _ = _differences(name, *_known(name, blocks))
    if not headline.relative or not len(values):
        return None
    needed = paired.blocks_needed(values, math.log1p(headline.margin or MARGIN), 1 - headline.level)
    return None if needed is None else max(0, needed - len(values))


def _differences(name: str, first: Floats, second: Floats) -> tuple[Floats, float, bool]:
    """Return the differences of blocks, their unit, and whether they are logarithms of ratios."""
    if name == "rate" and min(first.mean(), second.mean()) > 0:
        return ratio_scale(second) - ratio_scale(first), 1.0, True
    if by_ratio(name, first, second):
        return np.log(second / first), 1.0, True
    unit = ERRORS_UNIT if name == "errors" else float(max(first.mean(), second.mean())) or 1.0
    return (second - first) / unit, unit, False


def _measured(name: str, first: Floats, second: Floats, alpha: float) -> MeasuredEffect:
    means = float(first.mean()), float(second.mean())
    values, unit, logarithmic = _differences(name, first, second)
    interval = Interval(*(unit * end for end in paired.effect(values, alpha)))
    if logarithmic:
        means = (means[0], means[0] * math.exp(interval.estimate))
    return MeasuredEffect(interval, logarithmic, *means, unit * paired.detectable(values, alpha), interval.tentative)
