"""The claim of a search, from the rounds that compare its values with the original ones. Pure.

Errors and the latencies p99 and those with a limit must not become worse by more than the margin of their metric, which
is set before anything is measured (analysis.effects.MARGINS); a latency that surely stays within its limit may. Such a
comparison continues until that is known, too: rounds alone end with the headline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.outcome import Effect, Outcome, Verdict
from cockpit.analysis.sides import side_of_segments
from cockpit.analysis.thresholds import Threshold, hold
from cockpit.model.metrics import is_latency
from cockpit.model.state import State

_GUARDED = ("errors", "p99")


class Proof(NamedTuple):
    """What the values of a search must show: more (or less) of `metric`, and the `constraints`."""

    metric: str
    constraints: tuple[Threshold, ...] = ()

    def is_better(self, verdict: Verdict) -> bool:
        effect = verdict.effect(self.metric)
        return verdict.outcome is not Outcome.INVALID and effect is not None and effect.outcome is Outcome.BETTER

    def is_decided(self, verdict: Verdict) -> bool:
        """Return whether more rounds could not change the claim."""
        if verdict.values[0] < FIRST_TEST:
            return False
        effect = verdict.effect(self.metric)
        if verdict.outcome is Outcome.INVALID or effect is None:
            return True
        if not self.is_better(verdict):
            return effect.outcome is not Outcome.INCONCLUSIVE
        doubtful = [one for one in self._guarded(verdict) if not self._is_harmless(one)]
        return not doubtful or any(one.low is not None and one.low > one.margin for one in doubtful)

    def objection(self, verdict: Verdict, state: State) -> str:
        """Return why the claim does not hold; "" if it does."""
        if not self.is_better(verdict):
            return "the rounds did not confirm it"
        for one in self._guarded(verdict):
            if not self._is_harmless(one):
                return _words(one)
        return next(self._broken(verdict, state), "")

    def _guarded(self, verdict: Verdict) -> Sequence[Effect]:
        limited = {one.name for one in self.constraints if is_latency(one.name)}
        names = {*_GUARDED, *limited} - {self.metric}
        return [one for one in verdict.effects if one.name in names]

    def _is_harmless(self, effect: Effect) -> bool:
        if effect.high is None:
            return False
        if effect.high < effect.margin:
            return True
        highest = None if effect.before is None or not effect.relative else effect.before * (1 + effect.high)
        limits = [one.value for one in self.constraints if one.name == effect.name and one.operator in ("<", "<=")]
        return highest is not None and bool(limits) and highest < min(limits)

    def _broken(self, verdict: Verdict, state: State) -> Iterator[str]:
        """Yield the constraints that do not hold over all windows with the new values."""
        segments = [one for one in state.segments if one.number in verdict.after]
        if not segments:
            return
        for one in hold(self.constraints, side_of_segments(state, segments, "the rounds").result):
            if not one.holds:
                found = "unknown" if one.found is None else f"{one.found:.4g}"
                yield f"{one.threshold.text} does not hold in the rounds ({one.threshold.name} {found})"


def _words(effect: Effect) -> str:
    if effect.high is None:
        return f"{effect.name} could not be compared"
    unit = "%" if effect.relative else " points"
    worst = 100 * effect.high
    instead = f"; --where '{effect.name} < TIME' allows more" if effect.relative else ""
    allowed = f"{100 * effect.margin:g}{unit} are allowed{instead}"
    return f"{effect.name} may have risen by {worst:.{0 if worst >= 10 else 1}f}{unit}, and {allowed}"
