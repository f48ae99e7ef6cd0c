"""A search for better settings, as text for all reports: its claim, its evaluations, the fitted metric by knob."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.analysis.rounds import rounds_verdict
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.autopilot.slices import search_fit
from cockpit.autopilot.words import metric_words, plan_lines, result_line, setting_text, trial_cells
from cockpit.model.autopilot import AutopilotState
from cockpit.model.state import State

TRIAL_TITLES = ("number", "purpose", "settings", "metric", "outcome")
SLICE_TITLES = ("knob", "value", "fitted", "95% from", "to")


def search_claim(state: State, known: AutopilotState) -> str:
    ended = known.ended
    verdict: Verdict | None = None
    if ended is not None and 0 < ended.rounds <= len(state.rounds):
        verdict = rounds_verdict(state, state.rounds[ended.rounds - 1])
    return result_line(known, verdict)


def search_plan(known: AutopilotState) -> tuple[str, ...]:
    return tuple(line.strip() for line in plan_lines(known.begun))


def trial_rows(known: AutopilotState) -> Iterator[tuple[str, ...]]:
    for trial in known.trials:
        yield (str(trial.number), trial.purpose, *trial_cells(trial, known))


def slice_rows(known: AutopilotState) -> Iterator[tuple[str, ...]]:
    """Yield the fitted metric by value of each knob, the other knobs at their best; the most important knob first."""
    metric = known.begun.plan.metric
    for one in search_fit(known).slices:
        for point in one.points:
            ends = (metric_words(metric, value) for value in (point.mean, point.low, point.high))
            yield (f"{one.knob} ({one.importance:.0%})", setting_text(point.value), *ends)
