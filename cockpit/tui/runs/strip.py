"""The verdict on the selected segment at a glance: its effects, its baseline, and the seconds still needed.

`strip` reads the scene; `strip_lines` draws it. Reasons, warnings and rules are left to the compare screen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.effects import metric_of
from cockpit.analysis.outcome import DIFFERENT, Cause, Design, Effect, Outcome, Verdict
from cockpit.analysis.rounds import progress
from cockpit.analysis.rounds_words import place_words, title_words
from cockpit.analysis.sides import knobs_at
from cockpit.analysis.time_ranges import between
from cockpit.analysis.windows import counted_range
from cockpit.model.state import RoundsState, Segment, State
from cockpit.model.text import neutral
from cockpit.tui.draw_context import DrawContext

# Metrics with a row in the plot, in this order after the headline; failed requests only if their share differs.
_PLOTTED = ("errors", "rate", "p50", "p99", "cpu.per_reply", "cpu.busy", "memory.used")
_NEXT = {
    Cause.OTHER_LOAD: "end the other load, then run it again",
    Cause.GENERATOR_SATURATED: "less load (-), or more workers (-w)",
    Cause.HOST_LOST: "run it again when the host answers",
    Cause.LOAD_ALTERED: "leave the load as it is, and apply the change again",
    Cause.LOAD_DIFFERS: "choose a row of the same load and press b",
    Cause.RUN_FAILED: "see the run's error (c), then run it again",
    Cause.PARTIAL: "run it again",
    Cause.REQUESTS_FAILED: "undo the change (t, then ^Z)",
}
_AGAIN = "run it again"
_REPEAT = {
    Design.SWITCH: "rounds (r)",
    Design.ROUNDS: "more rounds (r)",
    Design.RUNS: "more runs, or rounds (r)",
    Design.SINGLE_RUNS: "more runs, or rounds (r)",
}


class VerdictProgress(NamedTuple):
    """Counted seconds of load after the change, and the estimated seconds until a verdict: `at_most` of them
    if the test may conclude before the last round."""

    passed: float
    left: float
    at_most: bool = False

    @property
    def words(self) -> str:
        amount = f"{math.ceil(self.left)} s" if self.left < 100 else f"{math.ceil(self.left / 60)} min"
        return f"{'at most ' if self.at_most else ''}{amount} more"


class Strip(NamedTuple):
    """A comparison at a glance. `change` and `compared` are its title; `effects` have a row each, the headline first.

    `so_far`: the change of the rate (share) before there is any effect. `progress`: None if no verdict is pending.
    `next`: the next step if none is expected, or "". `cap`: seconds after the change at which the run ends
    even without a verdict; None: the run is not extended.
    """

    verdict: Verdict
    change: str
    compared: str
    effects: tuple[Effect, ...]
    so_far: float | None = None
    progress: VerdictProgress | None = None
    next: str = ""
    cap: float | None = None


def strip(scene: DrawContext) -> Strip | None:
    """Return the comparison of the selected segment; None without a baseline."""
    row = scene.row
    if row is None:
        return None
    rounds = _rounds_of(scene.state, row)
    if rounds is not None:
        return _rounds_strip(scene, rounds, row)
    base, verdict = scene.before(row), scene.verdict(row)
    if base is None or verdict is None:
        return None
    return Strip(
        verdict=verdict,
        change=_change(scene.state, row, base),
        compared=f"vs row {base.number}",
        effects=_plotted(verdict, _host_of(scene.state, row)) or _expected(verdict, row),
        so_far=_so_far(scene.state, row, base),
        progress=_progress(scene.state, row, verdict),
        next="" if scene.state.studying else _next(verdict),
        cap=_cap(scene.state, row),
    )


def _cap(state: State, row: Segment) -> float | None:
    """The seconds from a growing row's start to the end of the run that is extended for it."""
    extension = state.extension
    if extension is None or row.end is not None or extension.change not in row.changes:
        return None
    return extension.until - row.start


def _rounds_of(state: State, row: Segment) -> RoundsState | None:
    """Return the rounds that the row belongs to, follows, or waits for."""
    if row.end is None and state.running_rounds is not None:
        return state.running_rounds
    before = state.segments[row.number - 2] if row.number > 1 else row
    if not row.round and not (before.round and before.run == row.run and not row.changes):
        return None
    return next((one for one in reversed(state.rounds) if one.begun.t <= row.start), None)


def _rounds_strip(scene: DrawContext, rounds: RoundsState, row: Segment) -> Strip:
    """Return rounds as far as they are, at least their progress."""
    state = scene.state
    verdict = scene.verdicts.rounds(state, rounds)
    if verdict is None:
        growing = rounds.ended is None
        verdict = Verdict(outcome=Outcome.INCONCLUSIVE, design=Design.ROUNDS, growing=growing)
    now = math.floor(scene.now)
    where = progress(state, now) if rounds.ended is None else None
    waits = where is not None and verdict.outcome is Outcome.INCONCLUSIVE
    compared = f"{len(rounds.complete)} of {rounds.budget} rounds" if where is None else place_words(where)
    return Strip(
        verdict=verdict,
        change=title_words(rounds.begun),
        compared=compared,
        effects=_plotted(verdict, rounds.begun.host) or _expected(verdict, row),
        progress=VerdictProgress(max(0.0, now - rounds.begun.t), max(1.0, where.left), True)
        if where and waits
        else None,
        next="" if where is not None else _next(verdict),
    )


def _without_interval(effect: Effect) -> Effect:
    """The bare change, of a metric on which there is no verdict."""
    return replace(effect, low=None, high=None)


def _plotted(verdict: Verdict, host: str) -> tuple[Effect, ...]:
    """Return the effects with a row: the headline, then in order of _PLOTTED, those of `host` before other hosts."""
    shown = [one for one in verdict.effects if metric_of(one.name) in _PLOTTED]
    shown = [one for one in shown if one.name != "errors" or one.outcome in DIFFERENT]
    shown = [_without_interval(one) if one.outcome is Outcome.INVALID else one for one in shown]

    def order(one: Effect) -> tuple[bool, bool, bool, int]:
        on_host = "." in one.name
        return not one.headline, on_host, on_host and not one.name.startswith(f"{host}."), _place(one)

    return tuple(sorted(shown, key=order))


def _place(effect: Effect) -> int:
    """Hosts' metrics stay in the order in which they were compared."""
    return 0 if "." in effect.name else _PLOTTED.index(effect.name)


def _so_far(state: State, row: Segment, base: Segment) -> float | None:
    """The change of the rate over the whole seconds of a growing row that count; None before there are any."""
    counted = counted_range(state, row)
    seconds = between(state.seconds, counted.start, counted.stop)
    covered = sum(second.end - second.start for second in seconds)
    if row.end is not None or covered <= 0 or base.rate <= 0:
        return None
    return sum(second.completed for second in seconds) / covered / base.rate - 1


def _expected(verdict: Verdict, row: Segment) -> tuple[Effect, ...]:
    """Rows without values, as long as a growing verdict has none: the strip is as high from the start."""
    if not verdict.growing or verdict.outcome is Outcome.INVALID:
        return ()
    timed = ("p99", "rate", "p50") if row.plan.open else ("rate", "p50", "p99")
    cost = "cpu.busy" if row.plan.open else "cpu.per_reply"
    names = [*timed, *(f"{host}.{metric}" for host in row.hosts for metric in (cost, "memory.used"))]
    return tuple(Effect(name=name, outcome=Outcome.INCONCLUSIVE) for name in names)


def _change(state: State, row: Segment, base: Segment) -> str:
    """Return the change between two segments; the segment's label if it names its changes, or if no setting differs."""
    before, after = (knobs_at(state, one.start) for one in (base, row))
    differing = [name for name in after if name in before and before[name] != after[name]]
    if row.changes or not differing:
        return neutral(row.label)
    return neutral(", ".join(f"{name} {before[name] or 'unset'} → {after[name] or 'unset'}" for name in differing))


def _host_of(state: State, row: Segment) -> str:
    """The host that the row's changes were made on; "" for none."""
    return next((change.host for change in state.changes if change.letter in row.changes), "")


def _progress(state: State, row: Segment, verdict: Verdict) -> VerdictProgress | None:
    """How far a growing verdict is, by whole seconds."""
    if verdict.needs is None or math.isinf(verdict.needs) or row.end is not None:
        return None
    passed = len(counted_range(state, row))
    # The verdict was made after the last whole block.
    return VerdictProgress(passed, max(1.0, verdict.needs - passed % BLOCK))


def _next(verdict: Verdict) -> str:
    """Return the next step if waiting does not help."""
    if verdict.outcome is Outcome.INVALID:
        return _NEXT.get(verdict.objection.cause, _AGAIN) if verdict.objection else _AGAIN
    waits = verdict.growing and verdict.needs is not None and math.isfinite(verdict.needs)
    return _REPEAT[verdict.design] if verdict.outcome is Outcome.INCONCLUSIVE and not waits else ""
