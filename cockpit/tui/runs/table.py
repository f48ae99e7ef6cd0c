"""The runs table: one line per segment, so one per run and per change under load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rich.cells import cell_len

from cockpit.analysis.verdicts.outcome import DIFFERENT
from cockpit.analysis.warnings import alters_reading, segment_warnings
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.verdicts import MARKS, brief
from cockpit.metrics.catalogue import host_entry
from cockpit.metrics.units import PERCENT, number_text
from cockpit.metrics.values import segment_metrics
from cockpit.model.host.state import HostState
from cockpit.model.state import Segment
from cockpit.model.text import count_text, milliseconds, sanitize, share_words, si
from cockpit.tui.charts.braille import trend
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_names import no_load_words
from cockpit.tui.key_table import MainKey
from cockpit.tui.runs.capacity_line import level_cell, pauses
from cockpit.tui.runs.details import detail_lines
from cockpit.tui.runs.strip_lines import ROLES
from cockpit.tui.terminal.lines import Pane
from cockpit.tui.terminal.styled_line import EMPTY, Line, Piece, Spot, centred, fit, join_fitting, length, right, rule

# Cells for mark and number on the left, and for the notes on the right.
_NUMBER = 5
_NOTES = 9

# Maximum cells of a host's name beside its averages.
_HOST = 8

# Minimum cells of the label; columns from rank _EXTRA on are shown only beside a wider label.
_LABEL = 8
_EXTRA, _ROOMY_LABEL = 6, 20

# Maximum number of bars in the title, and cells of their names and gaps.
_TREND, _TREND_NAMES = 16, 24

# Maximum number of hosts that share a column; with more hosts only the selected host is shown.
_MAX_HOSTS = 3


class RunColumn(NamedTuple):
    """A column right of the label; columns with the lowest `rank` are kept longest if the room is short. `key`: the
    values that are read first."""

    title: str
    width: int
    rank: int
    cell: Callable[[Segment, DrawContext], Piece]
    key: bool = False


class Runs(Pane):
    """The newest segments, or the segments around the selected one."""

    closes = True

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        segments = _shown_segments(context)
        columns = columns_for(context, width)
        legend = _legend(context, columns)
        rows = _visible(segments, context, max(1, height - 2))
        hidden = f" {len(segments) - len(rows)} hidden" if len(rows) < len(segments) else ""
        name: Line = (("runs", "title"), (hidden, "text"))
        title = rule((*name, *trends(segments, width - length(legend) - len(hidden))), legend, width)
        self.spots = ()
        if not segments:
            return [title, *centred([(no_load_words(context), "dim")], width, height - 1)]
        label = width - _NUMBER - sum(column.width for column in columns) - _NOTES
        head: list[Piece] = [(right("#", _NUMBER - 2) + "  " + fit("change", label), "dim")]
        head += [(right(column.title, column.width), "dim") for column in columns]
        head.append((f" ({MainKey.COMPARE})", "dim"))
        self.spots = [Spot(y, 0, width, "segment", (segment.number,)) for y, segment in enumerate(rows, 2)]
        lines = [title, tuple(head), *(_line(segment, context, columns, label) for segment in rows)]
        selected = context.segment
        if selected is None:
            return lines
        lines += detail_lines(context, selected, width, height - len(lines))
        return [*lines, *_host_means(selected, context, columns, width)][:height]


def trends(segments: Sequence[Segment], room: int) -> Line:
    """Return bars of rate and p99 of the last segments in at most `room` cells; EMPTY for fewer than two segments."""
    shown = [segment for segment in segments if segment.seconds > 0 and segment.counts.latency.count]
    shown = shown[-min(_TREND, max(1, (room - _TREND_NAMES) // 2)) :]
    if len(shown) < 2:
        return EMPTY
    rates = [segment.rate for segment in shown]
    p99s = [segment.counts.latency.percentile(99) for segment in shown]
    named = (("  req/s ", rates), ("  p99 ", p99s))
    return tuple(piece for name, values in named for piece in ((name, "dim"), (trend(values, max(values)), "chart")))


def _shown_segments(context: DrawContext) -> tuple[Segment, ...]:
    """Return the segments without those between levels of a search, except the selected segment."""
    left_out = pauses(context.state)
    return tuple(
        segment for segment in context.state.segments if segment.number not in left_out or segment is context.segment
    )


def _visible(segments: tuple[Segment, ...], context: DrawContext, room: int) -> tuple[Segment, ...]:
    """Return the last segments that fit, or earlier ones that include the selected segment; its baseline is added
    above or below if it is not among them."""
    selected = context.segment
    base = (context.before(selected) if selected else None) or context.baseline
    shown = _around(segments, selected, room)
    if base is None or base not in segments or room < 2 or base in shown:
        return shown
    shown = _around(segments, selected, room - 1)
    return (base, *shown) if base.number < shown[0].number else (*shown, base)


def _around(segments: tuple[Segment, ...], selected: Segment | None, room: int) -> tuple[Segment, ...]:
    last = len(segments)
    if selected in segments and (at := segments.index(selected)) < last - room:
        last = at + room
    return segments[max(0, last - room) : last]


def _line(segment: Segment, context: DrawContext, columns: Sequence[RunColumn], label: int) -> Line:
    chosen = segment is context.segment
    mark = "▸" if chosen else " "
    role = "strong" if chosen else ""
    line: list[Piece] = [(f"{mark}{segment.number:>2}  {fit(sanitize(segment_label(segment)), label)}", role)]
    for column in columns:
        text, its_role = column.cell(segment, context)
        weight = ("strong" if chosen else "") if column.key else ("" if chosen else "dim")
        line.append((right(text, column.width), its_role or weight))
    line.append(_notes(segment))
    return tuple(line)


def _notes(segment: Segment) -> Piece:
    """Return the number of notes on the segment, amber if one of them affects how its metrics are read."""
    warnings = segment_warnings(segment)
    if not warnings:
        return (" now" if segment.end is None else "", "dim")
    words = count_text(len(warnings), "note")
    return f" {words}", "warn" if any(map(alters_reading, warnings)) else "dim"


def _host_means(segment: Segment, context: DrawContext, columns: Sequence[RunColumn], width: int) -> list[Line]:
    """Return a line per host with its averages over the segment that have no column."""
    without = [name for name, *_ in _HOST_COLUMNS if _title(name) not in {column.title for column in columns}]
    hosts = table_hosts(context)
    name = min(_HOST, max((cell_len(sanitize(host.config.name)) for host in hosts), default=0))
    lines: list[Line] = []
    for host in hosts:
        metrics = segment_metrics(segment, host.config.name)
        parts: list[Line] = [
            ((f"{_title(name)} ", "dim"), (_shown(name)(metrics), "text")) for name in without if name in metrics
        ]
        if len(parts) > 1:
            lines.append(join_fitting([((f"   {fit(sanitize(host.config.name), name)}", "dim"),), *parts], width))
    return lines


def spawned_per_second(segment: Segment) -> float | None:
    """Return processes spawned per second on all hosts; None without two samples."""
    rates = [window.spawned / window.seconds for window in segment.hosts.values() if window.seconds > 0]
    return sum(rates) if rates else None


def _percentile(percent: float) -> Callable[[Segment, DrawContext], Piece]:
    def cell(segment: Segment, context: DrawContext) -> Piece:
        latency = segment.counts.latency
        if not latency.count:
            return "–", ""
        # Failed requests are missing in the latencies, or were fast.
        return _short(latency.percentile(percent)), "failed" if segment.counts.failed else ""

    return cell


def _errors(segment: Segment, context: DrawContext) -> Piece:
    """Return the share of failed requests."""
    counts = segment.counts
    return (share_words(counts.failed / max(1, counts.ended)), "failed") if counts.failed else ("0", "")


def _short(seconds: float) -> str:
    """Return milliseconds in at most four cells; from 10 s on seconds with their unit."""
    return milliseconds(seconds) if seconds < 9.9995 else f"{seconds:.0f}s"


def _verdict(segment: Segment, context: DrawContext) -> Piece:
    """Return the verdict in short, with a sign if there is a difference; of a level of a search whether it holds."""
    if level := level_cell(context.state, segment):
        return level
    verdict = context.verdict(segment)
    if verdict is None:
        base = context.baseline
        return ("base" if base is not None and base.number == segment.number else "–", "dim")
    sign = f"{MARKS[verdict.outcome]} " if verdict.outcome in DIFFERENT else ""
    return f"{sign}{brief(verdict)[0]}", ROLES[verdict.outcome]


def columns_for(context: DrawContext, width: int) -> list[RunColumn]:
    room = width - _NUMBER - _NOTES
    offered = _columns(context)
    kept: set[int] = set()
    for column in sorted(offered, key=lambda column: column.rank):
        label = _ROOMY_LABEL if column.rank >= _EXTRA else _LABEL
        if column.rank and column.width + label > room:
            break
        kept.add(column.rank)
        room -= column.width
    return [column for column in offered if column.rank in kept]


def _columns(context: DrawContext) -> list[RunColumn]:
    hosts = table_hosts(context)
    columns = [
        RunColumn("req/s", 6, 0, lambda segment, _: (si(segment.rate) if segment.seconds > 0 else "–", ""), True),
        RunColumn("p50", 5, 1, _percentile(50)),
        RunColumn("p99", 5, 0, _percentile(99), True),
        RunColumn("p99.9", 6, 3, _percentile(99.9)),
        RunColumn("max", 5, 2, _percentile(100)),
        RunColumn("err", 7, 0, _errors),
    ]
    if any(host.config.processes for host in context.hosts):

        def spawned(segment: Segment, _: DrawContext) -> Piece:
            return "–" if (rate := spawned_per_second(segment)) is None else f"{rate:.1f}", ""

        columns.append(RunColumn("spawns", 7, 4, spawned))
    for name, rank, most in _HOST_COLUMNS if hosts else ():
        title = _title(name)
        column_width = max(len(title) + 1, (most + 1) * len(hosts))
        cells = _of_hosts([host.config.name for host in hosts], _shown(name))
        columns.append(RunColumn(title, column_width, rank, cells))
    return [*columns, RunColumn("verdict", 10, 0, _verdict)]


def table_hosts(context: DrawContext) -> list[HostState]:
    """Return the hosts in the table: all, or the selected one if there are many."""
    hosts = context.hosts
    return [host for host in hosts if len(hosts) <= _MAX_HOSTS or host is context.host]


def _legend(context: DrawContext, columns: Sequence[RunColumn]) -> Line:
    if not context.state.segments:
        return ()
    legend = f"times: {context.state.segments[-1].counts.latency_name}, ms"
    hosts = table_hosts(context)
    if len(context.hosts) > 1 and any(column.title == _title(_HOST_COLUMNS[0][0]) for column in columns):
        legend = (
            f"{_title(_HOST_COLUMNS[0][0])}: {'/'.join(sanitize(host.config.name, 12) for host in hosts)} · {legend}"
        )
    return ((legend, "dim"),)


def _of_hosts(
    names: Sequence[str], metric: Callable[[Mapping[str, float]], str]
) -> Callable[[Segment, DrawContext], Piece]:
    def cell(segment: Segment, context: DrawContext) -> Piece:
        return ("/".join(metric(segment_metrics(segment, name)) for name in names), "")

    return cell


def _title(name: str) -> str:
    metric = host_entry(name)
    return metric.long if name == "memory.used" else metric.title


def _shown(name: str) -> Callable[[Mapping[str, float]], str]:
    unit = host_entry(name).unit
    # Percentages without decimals: several hosts share a column.
    form = "{:.0f}".format if unit is PERCENT else partial(number_text, unit)
    return lambda metrics: form(metrics[name]) if name in metrics else "–"


# Averages over the segment: metric, rank, maximum cells per host.
_HOST_COLUMNS = (("cpu.busy", 5, 3), ("cpu.iowait", 6, 3), ("io.tps", 7, 5), ("net.txkb", 8, 5), ("memory.used", 9, 5))
