"""Acceptance of a search's values, from rounds that compare them with the original values. Pure.

Errors, p99 and each latency with a limit must be non-inferior: worse by less than the margin of the metric, which is
fixed in advance (metrics.margins). A latency may rise further if its whole interval is within its limit.
Rounds usually end with the headline; these continue until non-inferiority is decided, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.thresholds import Threshold, check_thresholds
from cockpit.analysis.verdicts.outcome import Effect, Outcome, Verdict
from cockpit.analysis.verdicts.sides import side_of_segments
from cockpit.metrics.catalogue import is_latency
from cockpit.model.state import State

_GUARDED = ("errors", "p99")


class Proof(NamedTuple):
    """Criteria of acceptance: `metric` is better, and the `constraints` hold."""

    metric: str
    constraints: tuple[Threshold, ...] = ()

    def is_better(self, verdict: Verdict) -> bool:
        effect = verdict.effect(self.metric)
        return verdict.outcome is not Outcome.INVALID and effect is not None and effect.outcome is Outcome.BETTER

    def is_decided(self, verdict: Verdict) -> bool:
        """Return whether more rounds cannot change the result."""
        if verdict.values[0] < FIRST_TEST:
            return False
        effect = verdict.effect(self.metric)
        if verdict.outcome is Outcome.INVALID or effect is None:
            return True
        if not self.is_better(verdict):
            return effect.outcome is not Outcome.INCONCLUSIVE
        undecided = [effect for effect in self._guarded(verdict) if not self._is_harmless(effect)]
        return not undecided or any(effect.low is not None and effect.low > effect.margin for effect in undecided)

    def rejection_reason(self, verdict: Verdict, state: State) -> str:
        """Return the reason against the values; "" if they are accepted."""
        if not self.is_better(verdict):
            return "not confirmed by the rounds"
        for guarded in self._guarded(verdict):
            if not self._is_harmless(guarded):
                return _words(guarded)
        return next(self._failed_constraints(verdict, state), "")

    def _guarded(self, verdict: Verdict) -> Sequence[Effect]:
        limited = {constraint.name for constraint in self.constraints if is_latency(constraint.name)}
        names = {*_GUARDED, *limited} - {self.metric}
        return [effect for effect in verdict.effects if effect.name in names]

    def _is_harmless(self, effect: Effect) -> bool:
        if effect.high is None:
            return False
        if effect.high < effect.margin:
            return True
        highest = None if effect.before is None or not effect.relative else effect.before * (1 + effect.high)
        limits = [
            limit.value for limit in self.constraints if limit.name == effect.name and limit.operator in ("<", "<=")
        ]
        return highest is not None and bool(limits) and highest < min(limits)

    def _failed_constraints(self, verdict: Verdict, state: State) -> Iterator[str]:
        segments = [segment for segment in state.segments if segment.number in verdict.after]
        if not segments:
            return
        for result in check_thresholds(self.constraints, side_of_segments(state, segments, "the rounds").result):
            if not result.holds:
                value = "unknown" if result.value is None else f"{result.value:.4g}"
                yield f"{result.threshold.text} failed in the rounds ({result.threshold.name} {value})"


def _words(effect: Effect) -> str:
    if effect.high is None:
        return f"{effect.name}: insufficient data"
    unit = "%" if effect.relative else " points"
    worst = 100 * effect.high
    option = f"; --where '{effect.name} < TIME' allows more" if effect.relative else ""
    allowed = f"allowed: {100 * effect.margin:g}{unit}{option}"
    return f"{effect.name} may be up to {worst:.{0 if worst >= 10 else 1}f}{unit} higher ({allowed})"
