"""Contents of the verdict strip: effects on the selected segment, its baseline, and the seconds still needed.

`strip` makes them from the context, `strip_lines` draws them. The compare screen has warnings, details and rules.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.duet import timed_metrics
from cockpit.analysis.effects import metric_of
from cockpit.analysis.rounds import progress
from cockpit.analysis.time_ranges import between
from cockpit.analysis.verdicts.other_load import load_since
from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Design, Effect, Outcome, Verdict
from cockpit.analysis.verdicts.sides import knobs_at
from cockpit.analysis.verdicts.wait import is_open
from cockpit.analysis.windows import counted_range, window_between
from cockpit.analysis.words.rounds import place_words, title_words
from cockpit.analysis.words.timeline import load_words, segment_label
from cockpit.model.state import RoundsState, Segment, State
from cockpit.model.text import sanitize
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey, SessionKey
from cockpit.tui.runs.details import server_notes

# Metrics with a line in the plot, in this order after the headline; "errors" only if the share of failures differs.
_PLOTTED = ("errors", "rate", "capacity", "p50", "p99", "cpu.per_request", "cpu.busy", "memory.used")
# The next step by cause of an invalid verdict.
_NEXT = {
    Cause.OTHER_LOAD: f"stop the other load, or rounds ({MainKey.ROUNDS})",
    Cause.GENERATOR_SATURATED: f"less load ({SessionKey.LESS}), or more workers (-w)",
    Cause.HOST_LOST: "run it again when the host answers",
    Cause.LOAD_DIFFERS: f"choose a segment of the same load and press {MainKey.BASELINE}",
    Cause.RUN_FAILED: f"see the run's error ({MainKey.COMPARE}), then run it again",
    Cause.PARTIAL: "run it again",
    Cause.SHARED_CPU: "a rate (-q)",
    Cause.SETTING_ALTERED: "find out who changes it, then run it again",
    Cause.TRAFFIC_DRIFTED: f"rounds ({MainKey.ROUNDS}) at a steadier time of the day",
    Cause.REQUESTS_FAILED: f"undo the change ({MainKey.UNDO})",
}
_AGAIN = "run it again"
# The next step after an inconclusive verdict, by design of the comparison.
_REPEAT = {
    Design.SWITCH: f"rounds ({MainKey.ROUNDS})",
    Design.ROUNDS: f"more rounds ({MainKey.ROUNDS})",
    Design.DUET: "more time (-z)",
    Design.RUNS: f"more runs, or rounds ({MainKey.ROUNDS})",
    Design.SINGLE_RUNS: f"more runs, or rounds ({MainKey.ROUNDS})",
    Design.TOTALS: f"run the same load here: {SessionKey.TOGGLE}",
}


class VerdictProgress(NamedTuple):
    """Counted seconds of load after the change, and estimated seconds until a verdict.

    `at_most`: `left` is a maximum, because the test may conclude before the last round.
    """

    counted: float
    left: float
    at_most: bool = False

    @property
    def words(self) -> str:
        amount = f"{math.ceil(self.left)} s" if self.left < 100 else f"{math.ceil(self.left / 60)} min"
        return f"{'at most ' if self.at_most else ''}{amount} more"


class StripContents(NamedTuple):
    """Contents of the verdict strip. `change` and `compared` are its title.

    `effects`: one line each, the headline first. `rate_change`: relative change of the rate before there is any effect.
    `progress`: None if no verdict is pending. `next`: the suggested next step, or "". `cap`: seconds after the change
    at which the run ends even without a verdict; None: the run is not extended. `notes`: the servers' corrections of
    changed values.
    """

    verdict: Verdict
    change: str
    compared: str
    effects: tuple[Effect, ...]
    rate_change: float | None = None
    progress: VerdictProgress | None = None
    next: str = ""
    cap: float | None = None
    notes: tuple[str, ...] = ()


def strip(context: DrawContext) -> StripContents | None:
    """Return the verdict strip of the selected segment; None without a baseline."""
    segment = context.segment
    if segment is None:
        return None
    rounds = _rounds_of(context.state, segment)
    if rounds is not None:
        return _rounds_strip(context, rounds, segment)
    base, verdict = context.before(segment), context.verdict(segment)
    host = next((change.host for change in context.state.changes if change.letter in segment.changes), "")
    if segment.plan.variants and verdict is not None:
        return _duet_strip(context.state, segment, verdict)
    if base is None or verdict is None:
        return None
    return StripContents(
        verdict=verdict,
        change=_change(context.state, segment, base),
        compared=f"vs segment {base.number}{_since(context.state, segment, verdict)}",
        effects=_plotted(verdict, host) or _expected(verdict, segment),
        rate_change=_so_far(context.state, segment, base),
        progress=_progress(context.state, segment, verdict),
        next="" if context.state.studying else _next(verdict),
        cap=_cap(context.state, segment),
        notes=server_notes(segment, context.state),
    )


def _duet_strip(state: State, segment: Segment, verdict: Verdict) -> StripContents:
    return StripContents(
        verdict=verdict,
        change=sanitize(verdict.label),
        compared=f"both at {load_words(segment.plan)}",
        effects=_plotted(verdict, "") or _expected(verdict, segment),
        progress=_progress(state, segment, verdict),
        next=_next(verdict),
        cap=_cap(state, segment),
    )


def _since(state: State, segment: Segment, verdict: Verdict) -> str:
    """Return what has differed since a final verdict: ` · since then others on web1 17%`; "" if nothing has."""
    if verdict.reached is None:
        return ""
    window = window_between(state, verdict.reached, segment.last, segment.plan)
    shares = (
        (sanitize(load.host) or "the generator’s machine", load_since(window, load)) for load in verdict.other_loads
    )
    words = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares if share is not None)
    return f" · since then others on {words}" if words else ""


def _cap(state: State, segment: Segment) -> float | None:
    """Return the seconds from the segment's start to the end of its extended run; None if it is not extended."""
    extension = state.extension
    awaited = segment.plan.variants or (extension is not None and extension.change in segment.changes)
    if extension is None or segment.end is not None or not awaited:
        return None
    return extension.until - segment.start


def _rounds_of(state: State, segment: Segment) -> RoundsState | None:
    """Return the rounds that the segment is part of or follows, or that are running; None if there are none."""
    if segment.end is None and state.running_rounds is not None:
        return state.running_rounds
    before = state.segments[segment.number - 2] if segment.number > 1 else segment
    if not segment.round and not (before.round and before.run == segment.run and not segment.changes):
        return None
    return next((rounds for rounds in reversed(state.rounds) if rounds.begun.t <= segment.start), None)


def _rounds_strip(context: DrawContext, rounds: RoundsState, segment: Segment) -> StripContents:
    """Return the strip of rounds: their verdict so far, or only their progress."""
    state = context.state
    verdict = context.verdicts.rounds(state, rounds)
    if verdict is None:
        growing = rounds.ended is None
        verdict = Verdict(outcome=Outcome.INCONCLUSIVE, design=Design.ROUNDS, growing=growing)
    now = math.floor(context.now)
    current = progress(state, now) if rounds.ended is None else None
    pending = current is not None and verdict.outcome is Outcome.INCONCLUSIVE
    compared = f"{len(rounds.complete)} of {rounds.budget} rounds" if current is None else place_words(current)
    return StripContents(
        verdict=verdict,
        change=title_words(rounds.begun),
        compared=compared,
        effects=_plotted(verdict, rounds.begun.host) or _expected(verdict, segment),
        progress=VerdictProgress(max(0.0, now - rounds.begun.t), max(1.0, current.left), True)
        if current and pending
        else None,
        next="" if current is not None else _next(verdict),
    )


def _plotted(verdict: Verdict, host: str) -> tuple[Effect, ...]:
    """Return the plotted effects: the headline, then in order of _PLOTTED; metrics of `host` before other hosts."""
    shown = [effect for effect in verdict.effects if metric_of(effect.name) in _PLOTTED]
    shown = [effect for effect in shown if effect.name != "errors" or effect.outcome in DIFFERENT]
    shown = [replace(effect, low=None, high=None) if effect.outcome is Outcome.INVALID else effect for effect in shown]

    def order(effect: Effect) -> tuple[bool, bool, bool, int]:
        on_host = "." in effect.name
        return not effect.headline, on_host, on_host and not effect.name.startswith(f"{host}."), _place(effect)

    return tuple(sorted(shown, key=order))


def _place(effect: Effect) -> int:
    return 0 if "." in effect.name else _PLOTTED.index(effect.name)


def _so_far(state: State, segment: Segment, base: Segment) -> float | None:
    """Return the relative change of the rate in a growing segment; None without counted seconds."""
    counted = counted_range(state, segment)
    seconds = between(state.seconds, counted.start, counted.stop)
    covered = sum(second.end - second.start for second in seconds)
    if segment.end is not None or covered <= 0 or base.rate <= 0:
        return None
    return sum(second.completed for second in seconds) / covered / base.rate - 1


def _expected(verdict: Verdict, segment: Segment) -> tuple[Effect, ...]:
    """Return placeholders for the effects of a pending verdict, so that the strip keeps its height."""
    if not verdict.growing or verdict.outcome is Outcome.INVALID:
        return ()
    if segment.plan.variants:
        return tuple(Effect(name=name, outcome=Outcome.INCONCLUSIVE) for name in timed_metrics(segment.plan))
    timed = ("p99", "rate", "p50") if segment.plan.open else ("rate", "p50", "p99")
    cost = "cpu.busy" if segment.plan.open else "cpu.per_request"
    names = [*timed, *(f"{host}.{metric}" for host in segment.hosts for metric in (cost, "memory.used"))]
    return tuple(Effect(name=name, outcome=Outcome.INCONCLUSIVE) for name in names)


def _change(state: State, segment: Segment, base: Segment) -> str:
    """Return the label of a segment that starts with a change, else the settings that differ from the baseline."""
    before, after = (knobs_at(state, each.start) for each in (base, segment))
    differing = [name for name in after if name in before and before[name] != after[name]]
    if segment.changes or not differing:
        return sanitize(segment_label(segment))
    return sanitize(", ".join(f"{name} {before[name] or 'unset'} → {after[name] or 'unset'}" for name in differing))


def _progress(state: State, segment: Segment, verdict: Verdict) -> VerdictProgress | None:
    if verdict.needs is None or math.isinf(verdict.needs) or segment.end is not None:
        return None
    passed = len(counted_range(state, segment))
    # `needs` counts from the last complete block.
    return VerdictProgress(passed, max(1.0, verdict.needs - passed % BLOCK))


def _next(verdict: Verdict) -> str:
    if verdict.outcome is Outcome.INVALID:
        return _NEXT.get(verdict.objection.cause, _AGAIN) if verdict.objection else _AGAIN
    if verdict.outcome is not Outcome.INCONCLUSIVE:
        return ""
    if verdict.growing and verdict.needs is not None and math.isfinite(verdict.needs):
        return ""
    repeat = _REPEAT[verdict.design]
    return f"leave the load running, or {repeat}" if verdict.design is Design.SWITCH and is_open(verdict) else repeat
