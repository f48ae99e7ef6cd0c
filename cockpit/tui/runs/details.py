"""Facts about the selected segment: notes, below the segments of the runs table, and percentiles of the parts of its
latency, in the place of a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from rich.cells import cell_len

from cockpit.analysis.capacity.scaling import usl_fit_with
from cockpit.analysis.failures import failures
from cockpit.analysis.warnings import alters_reading, segment_warnings
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.usl import usl_line
from cockpit.analysis.words.verdicts import connection_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.model.histogram import Histogram
from cockpit.model.state import Segment, State
from cockpit.model.text import milliseconds, sanitize
from cockpit.tui.alert import failed_words
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_table import MainKey
from cockpit.tui.terminal.styled_line import Line, clip, fit, right, rule

_INDENT = 3
# Cells of the name of a percentile, of a part of the latency, and of the latency alone.
_PERCENTILE, _PART, _ALONE = 6, 15, 7
# Before a gauge, and its minimum cells.
_GAP = "  "
_GAUGE = 12
# The most important first; fewer in a small pane.
_PERCENTS = (50, 99, 100, 90, 95, 99.9, 75, 98, 80, 66)


def percentile_lines(segment: Segment, width: int, height: int, *, parts: bool = True) -> list[Line]:
    """Return a title with the label, and the percentiles that fit; without `parts` of the latency as a whole only."""
    columns = _columns_of(segment, width, parts)
    end: Line = ((f"{columns[0][0]}, ms", "dim"),) if len(columns) == 1 else ()
    title = rule(((f"segment {segment.number} ", "title"), (sanitize(segment_label(segment)), "text")), end, width)
    return [title, *_percentiles(segment, columns, width, height - 1)]


def detail_lines(context: DrawContext, segment: Segment, width: int, room: int) -> list[Line]:
    """Return failures, notes of servers, scalability, warnings and connections of the segment, in `room` lines."""
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
    if len(lines) > room > 0:
        (last, role), *_ = lines[room - 1]
        lines[room - 1] = ((ends_with(last, f"… {MainKey.COMPARE}: all", width), role),)
    return [clip(line, width) for line in lines[: max(0, room)]]


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


def _columns_of(segment: Segment, width: int, in_parts: bool) -> list[tuple[str, Histogram]]:
    """Return the columns that fit: response time (open load only), service time, and its parts: first byte, connect,
    the head of line waiting of HTTP/2, and TLS handshakes."""
    counts = segment.counts
    parts = [(counts.latency_name, counts.latency)]
    if in_parts:
        parts += [("service", counts.service)] if counts.response.count else []
        parts += [("first byte", counts.first_byte), ("connect", counts.connect), ("head of line", counts.head_of_line)]
        tls = ("TLS full", counts.tls), ("TLS resumed", counts.tls_resumed)
        parts += sorted(tls, key=lambda part: -part[1].count)
    parts = [part for part in parts if part[1].count]
    return parts[: max(1, (width - _PERCENTILE) // _PART)]


def _percentiles(segment: Segment, columns: Sequence[tuple[str, Histogram]], width: int, height: int) -> list[Line]:
    """Return a line per percentile, below the names of the columns if there are several."""
    if not columns:
        return []
    counts, cells = segment.counts, _PART if len(columns) > 1 else _ALONE
    names = tuple((right(f"{name} ms", cells), "dim") for name, _ in columns)
    lines: list[Line] = [((" " * _PERCENTILE, ""), *names)] if len(columns) > 1 else []
    room = width - _PERCENTILE - cells * len(columns) - len(_GAP)
    for percent in sorted(_PERCENTS[: max(1, height - len(lines))]):
        texts = ((right(_within(part, counts.service, percent, name), cells), "") for name, part in columns)
        gauge = _gauge(counts.latency, percent, room) if room >= _GAUGE else ()
        label = "max" if percent == 100 else f"p{percent:g}"
        lines.append(((right(label, _PERCENTILE), "dim"), *texts, *gauge))
    return lines


def _gauge(latency: Histogram, percent: float, room: int) -> Line:
    """Return a bar on a logarithmic scale from the first percentile, or a tenth of the maximum, to the maximum."""
    low, high = min(latency.percentile(1), latency.max / 10), latency.max
    value = high if percent == 100 else latency.percentile(percent)
    part = round(room * math.log(value / low) / math.log(high / low)) if value > low > 0 else 0
    return ((_GAP, ""), ("━" * part, "faint"), ("─" * (room - part), "rule"))


def _within(part: Histogram, service: Histogram, percent: float, name: str) -> str:
    """Return a percentile of a part, at most the service time's: histograms can differ in their bucket widths."""
    if not part.count:
        return "–"
    value = part.max if percent == 100 else part.percentile(percent)
    return milliseconds(
        value if name == "response" else min(value, service.max if percent == 100 else service.percentile(percent))
    )
