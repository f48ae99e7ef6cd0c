"""Objections: reasons why a comparison, or one metric of it, is invalid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cockpit.analysis.effects import overall
from cockpit.analysis.stacks.difference import profiled_share
from cockpit.analysis.verdicts.outcome import Cause, Effect, Objection, Outcome, Period, Verdict
from cockpit.analysis.warnings import BOUND
from cockpit.analysis.windows import Windows
from cockpit.analysis.words.timeline import lost_words, settings_words
from cockpit.model.stacks import SLICE_SECONDS
from cockpit.model.text import clock

# Share of failed requests above which rate and latency describe different responses than on the other side.
FAILING = 0.01
# Share of the time in which one side was profiled, from which it is not compared with a side that was not.
PROFILED = 0.5


def objection(before: Windows, after: Windows) -> Objection | None:
    """Return the objection to the whole comparison; None: it is valid."""
    if altered := _altered_setting((*before, *after)):
        return altered
    for windows, side in ((before, Period.BEFORE), (after, Period.AFTER)):
        share = max(window.saturated_share for window in windows)
        if share > BOUND:
            return Objection(cause=Cause.GENERATOR_SATURATED, side=side, share=share)
        for segment in (segment for window in windows for segment in window.segments):
            if segment.reason == "failed":
                return Objection(cause=Cause.RUN_FAILED, side=side, detail=segment.detail)
            if segment.losses:
                return Objection(cause=Cause.PARTIAL, side=side, detail=lost_words(segment.losses))
    first, second = profiled_share(before), profiled_share(after)
    if min(first, second) == 0 and max(first, second) > PROFILED and not (first and _awaits_slice(after)):
        return Objection(cause=Cause.PROFILED, side=Period.BEFORE if first else Period.AFTER)
    return None


def _awaits_slice(windows: Windows) -> bool:
    """Return whether the first slice of a CPU profile may not have ended, or arrived, yet."""
    return any(window.growing and window.end - window.start < 2 * SLICE_SECONDS for window in windows)


def _altered_setting(windows: Windows) -> Objection | None:
    """Return an objection if others changed a setting between the first and the last second of the windows."""
    start, end = min(window.start for window in windows), max(window.end for window in windows)
    for marker in (marker for window in windows for marker in window.altered):
        if marker.since < end and marker.t > start:
            words = f"{settings_words([marker.setting])} at {clock(marker.t)}"
            return Objection(cause=Cause.SETTING_ALTERED, host=marker.host, detail=words)
    return None


def saturated_side(before: Windows, after: Windows) -> Period | None:
    """Return the only side on which the generator was saturated; None for no side or both."""
    first, second = (any(window.saturated_share > BOUND for window in windows) for windows in (before, after))
    if first == second:
        return None
    return Period.BEFORE if first else Period.AFTER


def lost_hosts(before: Windows, after: Windows) -> dict[str, Objection]:
    """Return objections to the hosts without samples for more than a tenth of a window."""
    objections: dict[str, Objection] = {}
    for windows, side in ((before, Period.BEFORE), (after, Period.AFTER)):
        for window in windows:
            for name in window.hosts:
                seconds = window.unread.get(name, 0)
                if seconds > BOUND * len(window.seconds):
                    objections.setdefault(name, Objection(cause=Cause.HOST_LOST, side=side, seconds=seconds, host=name))
    return objections


def failure_objection(effects: Sequence[Effect]) -> Objection | None:
    """Return an objection if the shares of failed requests differ so much that rate and latency are of different
    requests."""
    errors = next((effect for effect in effects if effect.name == "errors"), None)
    if errors is None or errors.before is None or errors.after is None:
        return None
    if max(errors.before, errors.after) <= FAILING or abs(errors.after - errors.before) <= FAILING:
        return None
    side = Period.AFTER if errors.after > errors.before else Period.BEFORE
    return Objection(cause=Cause.REQUESTS_FAILED, side=side, share=max(errors.before, errors.after))


def with_objections(verdict: Verdict, against: Objection | None, lost: Mapping[str, Objection]) -> Verdict:
    """Return the verdict with the outcome of its effects, or invalid for an objection `against` all of it. Effects on
    `lost` hosts are invalid."""
    if against is not None:
        return with_invalid_effects(verdict, against)
    if not verdict.effects:
        return verdict
    kept = [_without_lost(effect, lost) for effect in verdict.effects]
    failed = failure_objection(kept)
    if failed is not None:
        kept = [effect if effect.name == "errors" else invalid(effect, failed) for effect in kept]
    outcome = overall(kept)
    if outcome is Outcome.INVALID and (reason := kept[0].objection) is not None:
        return with_invalid_effects(replace(verdict, effects=tuple(kept)), reason)
    return replace(
        verdict,
        outcome=outcome,
        objection=None,
        effects=tuple(kept),
        needs=verdict.needs if outcome is Outcome.INCONCLUSIVE else None,
    )


def with_invalid_effects(verdict: Verdict, against: Objection) -> Verdict:
    """Return the verdict with all its effects invalid."""
    effects = tuple(invalid(effect, effect.objection or against) for effect in verdict.effects)
    return replace(verdict, outcome=Outcome.INVALID, objection=against, effects=effects, needs=None)


def invalid(effect: Effect, against: Objection) -> Effect:
    return replace(effect, outcome=Outcome.INVALID, objection=against, likely=None)


def _without_lost(effect: Effect, lost: Mapping[str, Objection]) -> Effect:
    host = effect.name.partition(".")[0]
    return invalid(effect, lost[host]) if host in lost else effect
