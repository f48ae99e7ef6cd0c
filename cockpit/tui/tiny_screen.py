"""The screen for a terminal that is too small for charts: only numbers."""

from __future__ import annotations

from textwrap import wrap

from cockpit.analysis.warnings import segment_warnings
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.warnings import warning_words
from cockpit.model.text import milliseconds, sanitize, si
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.panes import host_line
from cockpit.tui.key_names import start_hint
from cockpit.tui.key_table import SessionKey
from cockpit.tui.runs.strip import strip
from cockpit.tui.runs.strip_lines import strip_words
from cockpit.tui.status_lines import generator, mode, recording
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, Piece, clip, length, pairs
from cockpit.tui.tuning.pending import pending_lines

# Minimum height (lines) for the line with the verdict.
_VERDICT = 10
_MS: Piece = (" ms", "dim")
_SATURATED: Line = ((" GENERATOR SATURATED ", "alarm"), (f" less load: {SessionKey.LESS}", "warn"))


class TinyScreen(Lines):
    """Mode and clock, a change that waits or is under way; rate, percentiles and errors of the selected segment; one
    line per host."""

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        lines: list[Line] = [clip((*mode(context), *recording(context)), width)]
        lines += pending_lines(context, width)
        lines += _segment_lines(context, width, height - len(lines) + 1)
        second = context.second
        if second is not None:
            line = generator(second)
            lines.append(line if length(line) <= width or not second.saturated else _SATURATED)
        hosts = [host_line(host, context, width) for host in context.hosts]
        room = max(1, height - len(lines))
        if len(hosts) < room:
            lines.append(EMPTY)
        return lines + hosts[:room]


def _segment_lines(context: DrawContext, width: int, height: int) -> list[Line]:
    segment = context.segment
    if segment is None:
        return [((text, role),) for text, role in start_hint(context) if text]
    latency = segment.counts.latency
    second = context.second
    now = si(second.rate) if second else "no load"
    # Failed requests are missing in the latencies, or were fast.
    weight = "failed" if segment.counts.failed else "strong"
    rate = pairs([("rate     ", now), (" now, segment ", si(segment.rate)), (" req/s", "")], "strong")
    times = [("p50 ", latency.percentile(50)), (" p99 ", latency.percentile(99)), (" max ", latency.max)]
    lines: list[Line] = [
        rate,
        ((f"{segment.counts.latency_name:<9}", "dim"), *pairs([(n, milliseconds(t)) for n, t in times], weight), _MS),
        pairs([("errors   ", si(segment.counts.failed))], weight),
        pairs([("segment  ", f"{segment.number} {sanitize(segment_label(segment))}")]),
    ]
    verdict = strip(context)
    if verdict is not None and height >= _VERDICT:
        lines.append(clip((("verdict  ", "dim"), *strip_words(verdict)), width))
    warnings = segment_warnings(segment)
    if not warnings:
        return lines
    # In full if one line per host still fits.
    text = warning_words(warnings[0])
    words = wrap(text, max(10, width - 9))
    if len(lines) + len(words) + len(context.hosts) + 2 > height:
        words = [text]
    return [*lines, *(((("" if at else "warning").ljust(9), "dim"), (part, "warn")) for at, part in enumerate(words))]
