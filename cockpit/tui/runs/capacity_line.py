"""One line in place of the verdict strip: progress of a capacity search, or its conclusion."""

from __future__ import annotations

from cockpit.analysis.capacity_result import capacity_result
from cockpit.analysis.capacity_words import capacity_words, limits_words, progress_words
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, fit


def capacity_line(context: DrawContext) -> Line | None:
    """Return the line of the search in the selected segment's run; None if there is none."""
    segment, state = context.segment, context.state
    if segment is None:
        return None
    search = next((one for one in reversed(state.capacities) if one.begun.run == segment.run), None)
    if search is None:
        return None
    if search.ended is None:
        return ((progress_words(state, search, context.now), "text"),)
    result = capacity_result(state, search)
    return ((f"{capacity_words(result)}; ", "strong"), (limits_words(result), "dim"))


def fitted(line: Line, width: int) -> Line:
    """Return the line in at most `width` cells."""
    text = fit("".join(piece for piece, _ in line), width).rstrip()
    return ((text, "text"),)
