"""A search for better settings in reports: its claim, its evaluations, the fitted metric by knob."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.analysis.rounds import rounds_verdict
from cockpit.autopilot.slices import search_fit
from cockpit.autopilot.words import metric_words, plan_lines, result_line, setting_text, trial_cells
from cockpit.document.model import Block, Paragraph, Part, Table
from cockpit.model.autopilot import AutopilotState
from cockpit.model.state import State

_TRIAL_TITLES = ("number", "purpose", "settings", "metric", "outcome")
_SLICE_TITLES = ("knob", "value", "fitted", "95% from", "to")


def search_blocks(state: State) -> list[Block | Part]:
    known = state.autopilot
    if known is None:
        return []
    ended, rounds = known.ended, known.ended.rounds if known.ended else 0
    verdict = rounds_verdict(state, state.rounds[rounds - 1]) if ended and 0 < rounds <= len(state.rounds) else None
    trials = [(str(trial.number), trial.purpose, *trial_cells(trial, known)) for trial in known.trials]
    return [
        Paragraph(result_line(known, verdict)),
        *(Paragraph(line.strip()) for line in plan_lines(known.begun)),
        Table(_TRIAL_TITLES, trials),
        Part("Fitted metric by knob", [Table(_SLICE_TITLES, list(_slices(known)))]),
    ]


def _slices(known: AutopilotState) -> Iterator[tuple[str, ...]]:
    """Yield the fitted metric by value of each knob, the other knobs at their best; the most important knob first."""
    metric = known.begun.plan.metric
    for fitted in search_fit(known).slices:
        for point in fitted.points:
            estimates = (metric_words(metric, value) for value in (point.mean, point.low, point.high))
            yield (f"{fitted.knob} ({fitted.importance:.0%})", setting_text(point.value), *estimates)
