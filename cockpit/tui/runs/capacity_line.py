"""A capacity search on the screen: a line in place of the verdict strip, and whether each level holds the limits."""

from __future__ import annotations

from cockpit.analysis.capacity.levels import level_of
from cockpit.analysis.capacity.result import capacity_result, limits_of, search_of
from cockpit.analysis.words.capacity import capacity_words, limits_words, progress_words
from cockpit.metrics.results import segments_result
from cockpit.model.state import Segment, State
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import Line, Piece


def capacity_line(context: DrawContext) -> Line | None:
    """Return the line of the search in the selected segment's run; None if there is none."""
    segment, state = context.segment, context.state
    if segment is None:
        return None
    search = search_of(state, segment.run)
    if search is None:
        return None
    if search.ended is None:
        return ((progress_words(state, search, context.now), "text"),)
    result = capacity_result(state, search)
    return ((f"{capacity_words(result)}; ", "strong"), (limits_words(result), "dim"))


def pauses(state: State) -> frozenset[int]:
    """Return the numbers of the segments between the levels of searches."""
    levels = {level.segment for search in state.capacities for level in search.levels}
    runs = {search.begun.run for search in state.capacities}
    return frozenset(
        segment.number for segment in state.segments if segment.run in runs and segment.number not in levels
    )


def level_cell(state: State, segment: Segment) -> Piece | None:
    """Return whether the segment's level holds the limits of its search; None: it is not in a search."""
    search = search_of(state, segment.run)
    if search is None:
        return None
    level = next((level for level in search.levels if level.segment == segment.number), None)
    limits = limits_of(search)
    if level is None or level.end is None or level.rate <= 0 or not limits:
        return "–", "dim"
    outcome = level_of(level.rate, segments_result([segment], segment.plan, segment.seconds), limits)
    if outcome.saturated:
        return "–", "dim"
    return ("✓ holds", "better_value") if outcome.holds else ("✗ fails", "worse_value")
