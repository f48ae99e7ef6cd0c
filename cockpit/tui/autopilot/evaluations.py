"""All evaluations of a search, the best so far, and the fitted metric along each knob."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from cockpit.autopilot.slices import SearchFit, Slice, search_fit
from cockpit.autopilot.words import metric_words, plan_lines, setting_text, trial_line, values_words
from cockpit.model.autopilot import AutopilotState
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.tui.charts.braille import bar
from cockpit.tui.dialogs.live_text import LiveText
from cockpit.tui.key_names import close_binding
from cockpit.tui.key_table import ViewKey

# Maximum width (cells) of a bar.
_BAR = 30


class EvaluationsScreen(LiveText):
    """The list of evaluations, updated while the search runs."""

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(ViewKey.BOARD)]
    heading = "search"

    def part(self, state: State) -> object:
        return state.autopilot.trials if state.autopilot else None

    def lines(self, state: State) -> Iterator[Content]:
        return board_lines(state.autopilot) if state.autopilot else iter(())


def board_lines(state: AutopilotState) -> Iterator[Content]:
    for line in plan_lines(state.begun):
        yield Content.styled(line, "$cockpit-dim")
    fitted = search_fit(state)
    yield Content("")
    if fitted.best is not None:
        changed = {name: value for name, value in fitted.best.items() if value != state.begun.original.get(name)}
        best = values_words(changed) if changed else "the original values"
        yield Content.assemble("best so far, by the fitted mean: ", (best, "$cockpit-strong"))
    for trial in state.trials:
        is_best = trial.values == fitted.best
        style = "$cockpit-better" if is_best else "$cockpit-warn" if trial.outcome != "measured" else ""
        yield Content.styled(f"{'▸' if is_best else ' '} {trial_line(trial, state)}", style)
    yield from _slice_lines(fitted, state)


def _slice_lines(fitted: SearchFit, state: AutopilotState) -> Iterator[Content]:
    if not fitted.slices:
        yield Content.styled("metric per knob: waiting for more evaluations", "$cockpit-dim")
    for part in fitted.slices:
        yield Content("")
        head = f"{sanitize(part.knob)}: relative importance {part.importance:.0%}; other knobs at their best values"
        yield Content.styled(head, "$cockpit-strong")
        yield from _bars(part, state.begun.plan.metric, fitted.best or {})


def _bars(part: Slice, metric: str, best: dict[str, str]) -> Iterator[Content]:
    widest = max(len(setting_text(point.value)) for point in part.points)
    top = max(point.mean for point in part.points)
    for point in part.points:
        interval = f"95% CI {metric_words(metric, point.low)}–{metric_words(metric, point.high)}"
        chosen = "$cockpit-better" if best.get(part.knob) == point.value else "$cockpit-chart"
        yield Content.assemble(
            f"  {setting_text(point.value):>{widest}} ",
            (f"{bar(point.mean / top, _BAR):<{_BAR}}", chosen),
            f" {metric_words(metric, point.mean)}",
            (f"  ({interval})", "$cockpit-dim"),
        )
