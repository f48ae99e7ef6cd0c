"""Levels of concurrency of a session, and the Universal Scalability Law fitted to them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.analysis.capacity.usl import LevelExclusion, UslFit, UslLevel, fit_usl
from cockpit.analysis.plans import differences
from cockpit.analysis.verdicts.objections import FAILING
from cockpit.analysis.verdicts.segments import Settings, measured_segments
from cockpit.analysis.warnings import generator_bound
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State

# Seconds; a shorter level has mostly its first requests.
_SHORTEST = 1.0
# More connections are those of a hostile recording.
_MOST = 10_000_000


def usl_fits(state: State) -> tuple[UslFit, ...]:
    """Return a fit for each setting and plan of closed load with several levels of concurrency, over all runs."""
    groups: list[tuple[Settings, LoadPlan, list[Segment]]] = []
    for settings, segment in measured_segments(state):
        plan = segment.plan
        if plan.open or plan.ramp_to is not None or not 0 < plan.concurrency <= _MOST:
            continue
        alike = replace(plan, concurrency=1)
        known = (group for known, plan, group in groups if known == settings and not differences(plan, alike))
        if (group := next(known, None)) is None:
            group = []
            groups.append((settings, alike, group))
        group.append(segment)
    fits = (fit_usl([usl_level([segment]) for segment in group], _label(settings)) for settings, _, group in groups)
    return tuple(fit for fit in fits if fit is not None)


def usl_fit_with(state: State, segment: Segment) -> UslFit | None:
    """Return the fit over levels that include a segment; None without one."""
    fits = (fit for fit in usl_fits(state) if any(level.segment == segment.number for level in fit.levels))
    return next(fits, None)


def _label(settings: Settings) -> str:
    return ", ".join(f"{knob} {value or 'unset'}" for knob, value in settings)


def usl_level(segments: Sequence[Segment]) -> UslLevel:
    """Return the level of segments (at least one) with the same number of connections."""
    seconds = sum(segment.seconds for segment in segments)
    return UslLevel(
        segment=segments[-1].number,
        concurrency=segments[-1].plan.concurrency,
        rate=sum(segment.counts.completed for segment in segments) / seconds if seconds > 0 else 0.0,
        excluded=next(filter(None, map(_exclusion, segments)), None),
    )


def _exclusion(segment: Segment) -> LevelExclusion | None:
    if segment.seconds < _SHORTEST or not segment.counts.completed:
        return LevelExclusion.SHORT
    if segment.losses or segment.reason == "failed":
        return LevelExclusion.PARTIAL
    if segment.counts.failed > FAILING * segment.counts.ended:
        return LevelExclusion.FAILED
    return LevelExclusion.SATURATED if generator_bound(segment.seconds, segment.saturated) else None
