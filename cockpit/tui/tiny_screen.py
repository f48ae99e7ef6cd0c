"""A terminal too small for charts: the figures alone."""

from __future__ import annotations

from textwrap import wrap

from cockpit.analysis.warning_words import warning_words
from cockpit.analysis.warnings import segment_warnings
from cockpit.model.text import milliseconds, neutral, si
from cockpit.tui.action_keys import how_to_begin
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.panes import host_line
from cockpit.tui.runs.strip import strip
from cockpit.tui.runs.strip_lines import strip_words
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, clip, length
from cockpit.tui.topline import generator, mode, recording

# From so many lines on there is one for the verdict.
_VERDICT = 10
_SATURATED: Line = ((" GENERATOR SATURATED ", "alarm"), (" less load: -", "warn"))


class TinyScreen(Lines):
    """Mode and clock, then rate, percentiles and errors of the row looked at, then a line a host."""

    def draw(self, scene: DrawContext, width: int, height: int) -> list[Line]:
        lines: list[Line] = [clip((*mode(scene), *recording(scene)), width)]
        lines += _row(scene, width, height)
        second = scene.second
        if second is not None:
            told = generator(second)
            lines.append(told if length(told) <= width or not second.saturated else _SATURATED)
        hosts = [host_line(host, scene, width) for host in scene.hosts]
        room = max(1, height - len(lines))
        if len(hosts) < room:
            lines.append(EMPTY)
        return lines + hosts[:room]


def _row(scene: DrawContext, width: int, height: int) -> list[Line]:
    row = scene.row
    if row is None:
        return [((text, role),) for text, role in how_to_begin(scene) if text]
    latency = row.counts.latency
    second = scene.second
    now = si(second.rate) if second else "no load"
    lines: list[Line] = [
        (
            ("rate     ", "dim"),
            (now, "strong"),
            (" now, segment ", "dim"),
            (si(row.rate), "strong"),
            (" req/s", "dim"),
        ),
        (
            (f"{row.counts.latency_name:<9}p50 ", "dim"),
            (milliseconds(latency.percentile(50)), "strong"),
            (" p99 ", "dim"),
            (milliseconds(latency.percentile(99)), "strong"),
            (" max ", "dim"),
            (milliseconds(latency.max), "strong"),
            (" ms", "dim"),
        ),
        (("errors   ", "dim"), (si(row.counts.failed), "warn" if row.counts.failed else "strong")),
        (("segment  ", "dim"), (f"{row.number} {neutral(row.label)}", "")),
    ]
    verdict = strip(scene)
    if verdict is not None and height >= _VERDICT:
        lines.append(clip((("verdict  ", "dim"), *strip_words(verdict)), width))
    warnings = segment_warnings(row)
    if not warnings:
        return lines
    # In full where that leaves a line to each host.
    text = warning_words(warnings[0])
    words = wrap(text, max(10, width - 9))
    if len(lines) + len(words) + len(scene.hosts) + 2 > height:
        words = [text]
    return [*lines, *(((("" if at else "warning").ljust(9), "dim"), (part, "warn")) for at, part in enumerate(words))]
