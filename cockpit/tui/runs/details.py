"""The pane below the runs table while there is no verdict: label, connections and notes of the selected segment."""

from __future__ import annotations

from textwrap import wrap

from rich.cells import cell_len

from cockpit.analysis.capacity.scaling import usl_fit_with
from cockpit.analysis.failures import failures
from cockpit.analysis.warnings import alters_reading, segment_warnings
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.usl import usl_line
from cockpit.analysis.words.verdicts import connection_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.model.state import Segment, State
from cockpit.model.text import sanitize
from cockpit.tui.alert import failed_words
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey
from cockpit.tui.terminal.styled_line import Line, clip, fit, rule

_INDENT = 3


def segment_lines(context: DrawContext, segment: Segment, width: int, height: int) -> list[Line]:
    """Return a title with the label, and the lines about the segment that fit."""
    title = rule(((f"segment {segment.number} ", "strong"), (sanitize(segment_label(segment)), "text")), (), width)
    failing = failures(context.state, segment)
    texts = [(failed_words(failing), "failed")] if failing else []
    texts += [(note, "text") for note in server_notes(segment, context.state)]
    # A growing level would be fitted with each frame.
    scalability = usl_fit_with(context.state, segment) if context.state.running is None else None
    if scalability is not None:
        texts.append((usl_line(scalability), "warn" if scalability.problem else "dim"))
    texts += [(warning_words(each), "warn" if alters_reading(each) else "dim") for each in segment_warnings(segment)]
    texts.append((connection_words(segment.counts), "dim"))
    lines: list[Line] = [
        ((" " * _INDENT + part, role),) for text, role in texts for part in wrap(text, width - _INDENT)
    ]
    room = height - 1
    if len(lines) > room > 0:
        (last, role), *_ = lines[room - 1]
        lines[room - 1] = ((ends_with(last, f"… {MainKey.COMPARE}: all", width), role),)
    return [title, *(clip(line, width) for line in lines[:room])]


def ends_with(text: str, end: str, width: int) -> str:
    """Return the text followed by `end`, cut at a word boundary so that both fit in `width` cells."""
    room = max(0, width - len(end) - 1)
    if cell_len(text) > room:
        cut = fit(text, room).removesuffix("…").rstrip()
        # Drop the word that was cut, unless it is the only one.
        text = cut if text.startswith(f"{cut} ") else cut.rpartition(" ")[0] or cut
    return f"{text.rstrip('… ,;:')} {end}"


def server_notes(segment: Segment, state: State) -> tuple[str, ...]:
    """Return the server's corrections of values that were changed at the start of the segment."""
    return tuple(
        f"{change.letter}: {sanitize(change.detail)}"
        for change in state.changes
        if change.letter in segment.changes and change.outcome == "applied" and change.detail
    )
