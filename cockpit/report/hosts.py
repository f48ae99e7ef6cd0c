"""Hosts in reports: metrics over a run, means by segment, and charts over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cockpit.analysis.comparison import MAIN_HOST_METRICS
from cockpit.analysis.growth import growths
from cockpit.analysis.words.comparison import value_words
from cockpit.analysis.words.growth import growth_words
from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.document.model import Block, Items, Pairs, Paragraph, Part, Plot, PlotSeries, Point, Sign, Table
from cockpit.document.scale import PERCENT, binary, from_zero
from cockpit.metrics.catalogue import host_entry
from cockpit.metrics.units import BYTES
from cockpit.metrics.values import host_metrics, processes_hidden, segment_metrics
from cockpit.model.host.state import HostState, HostWindow
from cockpit.model.state import Segment, State
from cockpit.model.text import count_text, sanitize
from cockpit.report.plots import time_axis

# The order of the rows of a group: the system before the run, its parts, and after it.
_ORDER = {"before": 0, "start": 1, "mean": 2, "": 3, "end": 4, "after": 5}
# Groups that are shown as tables, with the name of the row of the whole group.
_WHOLE = {"io": "run", "disk": "all", "net": "all", "memory": "end"}
# Maximum length of the names of disks and interfaces.
_NAME = 12


def host_section(name: str, window: HostWindow, seconds: float, rate: float = 0.0) -> Part:
    """Return a host's metrics over a run of this duration (s) and rate (responses/s), named as in thresholds; those of
    0 are left out."""
    if window.seconds <= 0:
        return Part(name, [Paragraph("fewer than two samples during the run")])
    means = host_metrics(window, seconds, rate)
    coverage = means.pop("coverage")
    sampled = "" if coverage >= 99 else f", sampled for only {coverage:.0f}% of the run"
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for metric, value in means.items():
        prefix, _, _ = metric.rpartition(".")
        group, _, row = prefix.partition(".")
        groups.setdefault(group, {}).setdefault(row, {})[metric] = value
    used = [(group, {row: each for row, each in rows.items() if any(each.values())}) for group, rows in groups.items()]
    tables = [_table(group, rows) for group, rows in used if group in _WHOLE]
    lines = [
        (f"{group} {row}".strip(), _line(values))
        for group, rows in used
        if group not in _WHOLE
        for row, values in rows.items()
    ]
    notes = Items(_notes(window) if "processes" in groups or processes_hidden(window) else [], "soft")
    return Part(f"{name}  over {window.seconds:.1f} s{sampled}", [*tables, Pairs(lines), notes])


def growth_block(state: State, segments: Sequence[Segment]) -> Block:
    """Return the growth of memory and threads of each host in the longest segment, if it is long enough."""
    return Items([sanitize(growth_words(growth)) for growth in growths(state, segments)])


def _title(metric: str) -> str:
    return host_entry(metric).title or metric.rpartition(".")[2]


def _line(values: Mapping[str, float]) -> str:
    return "  ".join(f"{_title(metric)} {value_words(metric, value)}" for metric, value in values.items() if value)


def _table(group: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    shown = [
        {_title(metric): value_words(metric, value) for metric, value in values.items()} for values in rows.values()
    ]
    used = {_title(metric) for values in rows.values() for metric, value in values.items() if value}
    columns = [title for title in dict.fromkeys(title for row in shown for title in row) if title in used]
    ordered = sorted(zip(rows, shown, strict=True), key=lambda row: _ORDER.get(row[0], len(_ORDER)))
    cells = [
        (sanitize(name or _WHOLE[group], _NAME), *(row.get(title, "–") for title in columns)) for name, row in ordered
    ]
    return Table((group, *columns), cells)


def _notes(window: HostWindow) -> list[str]:
    """Return what the metrics of processes include, if that differs from the server of the target."""
    excluded = window.last.reading.excluded
    if processes_hidden(window):
        return ["processes are hidden from this user by /proc (hidepid); log in as root to see them"]
    if excluded is None:
        return ["processes include all servers of that name: the server of the target is unknown"]
    return [f"processes exclude {excluded} of other servers of that name"] if excluded else []


def means_table(segments: Sequence[Segment], host: str) -> Table:
    """Return a table of a host's metrics, a column per segment; no rows without samples."""
    read = [segment for segment in segments if host in segment.hosts and segment.hosts[host].seconds > 0]
    metrics = [segment_metrics(segment, host) for segment in read]
    shown = [key for key in MAIN_HOST_METRICS if any(means.get(key) for means in metrics)]
    rows = [(key, *(value_words(key, means.get(key)) for means in metrics)) for key in shown]
    return Table(("mean over", *(f"segment {segment.number}" for segment in read)), rows)


def host_blocks(state: State, host: HostState, segments: Sequence[Segment]) -> list[Block | Part]:
    """Return a host's machine, its charts over the session, and its means by segment."""
    facts = host.facts
    words = [host.config.place, *([f"kernel {facts.kernel}", count_text(facts.cpus, "CPU")] if facts else ())]
    words += [f"processes {host.config.watched}"] if host.config.processes else []
    lost = "" if host.condition in ("up", "connecting") else f"{host.condition} {host.detail}"
    table = means_table(segments, host.config.name)
    missing = "" if table.rows else "Fewer than two samples during each run." if host.points else "No samples."
    charts = _charts(state, host) if host.points else ()
    return [Paragraph(" · ".join(words), "soft"), Paragraph(lost, "warn"), *charts, table, Paragraph(missing, "soft")]


# The busy states with their colours, stacked in this order.
_STACKED = (
    ("user", 0, ("cpu.user", "cpu.nice")),
    ("system", 1, ("cpu.system",)),
    ("iowait", 4, ("cpu.iowait",)),
    ("steal", 6, ("cpu.steal",)),
)
# CPU states below this share (percent) are not visible in a chart.
_SEEN = 0.05
# A gap of this many sampling intervals interrupts the line.
_GAP = 4.0
# Charts and their metrics, which have one unit or are numbers. Those without values are left out.
_CHARTS = {
    "memory": ("memory.used", "memory.available", "processes.rss", "processes.unshared"),
    "disks (blocks of 512 bytes)": ("io.bread", "io.bwrtn"),
    "network": ("net.rxkb", "net.txkb"),
    "processes": ("processes.count", "processes.spawned_per_s", "processes.defunct"),
    "control group": ("cgroup.cpu", "cgroup.quota", "cgroup.throttled"),
    "memory of the control group": ("cgroup.kbmemory", "cgroup.kblimit"),
    "tasks of the control group that waited": ("cgroup.scpu", "cgroup.sio", "cgroup.smem"),
    "tasks": ("load.running", "load.blocked", "load.1"),
}


def _charts(state: State, host: HostState) -> Iterator[Plot]:
    x = time_axis(state)
    changes = (marker for marker in state.markers if marker.kind == "change")
    signs = [Sign(marker.t, marker_sign(marker), marker_text(marker)) for marker in changes]
    charts = [("CPU (% of all cores)", PERCENT, list(_stacked(host)))]
    for title, metrics in _CHARTS.items():
        lines = [PlotSeries(_title(name), _points(host, [name]), colour) for colour, name in enumerate(metrics)]
        values = [y for series in lines for _, y in series.points if y is not None]
        kept = [series for series in lines if any(series_y for _, series_y in series.points)] or lines[:1]
        if values:
            form = partial(value_words, metrics[0])
            charts.append(
                (title, (binary if host_entry(metrics[0]).unit is BYTES else from_zero)(max(values), form), kept)
            )
    for title, y, series in charts:
        yield Plot(kind="time", title=title, x=x, y=y, series=series, signs=signs)


def _stacked(host: HostState) -> Iterator[PlotSeries]:
    """Yield the stacked CPU states; the rest to 100% is idle. States that never occurred are left out."""
    floor: list[Point] = []
    stacked: list[str] = []
    for label, colour, names in _STACKED:
        if max((value or 0.0 for _, value in _points(host, names)), default=0.0) >= _SEEN:
            stacked += names
            points = _points(host, stacked)
            yield PlotSeries(label, points, colour, fill=True, floor=floor)
            floor = points


def _points(host: HostState, names: Sequence[str]) -> list[Point]:
    """Return the sum of metrics at each sample, with gaps for missing samples."""
    reads = [read for name in names if (read := host_entry(name).sample)]
    gap = max(_GAP * host.config.interval, _GAP)
    points: list[Point] = []
    for point in host.points:
        if points and point.t - points[-1][0] > gap:
            points.append((points[-1][0], None))
        values = [value for read in reads if (value := read(point)) is not None]
        points.append((point.t, sum(values) if values else None))
    return points
