"""Hosts in reports: metrics over a run with the columns of sar and free, means by segment, and charts over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from cockpit.analysis.comparison import MAIN_HOST_METRICS
from cockpit.analysis.words.comparison import value_words
from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.document.model import Block, Pairs, Paragraph, Part, Plot, PlotSeries, Point, Sign, Table
from cockpit.document.scale import Axis, from_zero
from cockpit.metrics.catalogue import host_entry
from cockpit.metrics.values import host_metrics, processes_hidden
from cockpit.model.host.state import CpuShare, HostState, HostWindow, IoRates, NetRates
from cockpit.model.host.window import END_SECONDS
from cockpit.model.state import Segment, State
from cockpit.model.text import count_text, sanitize, si, size
from cockpit.report.plots import time_axis
from cockpit.servers.registry import STATUS_PAGES

_MIB = 1024 * 1024
# Maximum length of the names of disks and interfaces.
_NAME = 12
_CPU = (*CpuShare.__struct_fields__, "other")
_DISK = ("tps", "rkb", "wkb", "areq_sz", "aqu_sz", "await", "util")
_NET = NetRates.__struct_fields__[1:]
_MEMORY = ("total", "used", "free", "shared", "buff_cache", "available")
_GROUP_WAITS = {"cgroup.scpu": "CPU", "cgroup.sio": "I/O", "cgroup.smem": "memory"}


def host_section(name: str, window: HostWindow, seconds: float) -> Part:
    """Return a host's metrics over a run of this duration (s)."""
    if window.seconds <= 0:
        return Part(name, [Paragraph("fewer than two samples during the run")])
    means = host_metrics(window, seconds)
    coverage = means["coverage"]
    sampled = "" if coverage >= 99 else f", sampled for only {coverage:.0f}% of the run"
    ends = min(END_SECONDS, window.seconds / 2)
    io = (("io", "io"), (f"first {ends:.1f} s", "io.start"), (f"last {ends:.1f} s", "io.end"))
    memory = [(part, f"memory.{part}") for part in ("before", "start", "mean")]
    tables = (
        _table("%", _CPU, [("cpu", "cpu")], means),
        _table("/s", IoRates.__struct_fields__, io, means),
        _table("disk", _DISK, _active("disk", _DISK, means), means),
        _table("net /s", _NET, _active("net", _NET, means), means),
        _table("MiB", _MEMORY, [*memory, ("end", "memory"), ("after", "memory.after")], means, _MIB),
    )
    pairs = [*_load(means), *control_group(means), *_processes(window, means), *_pages(means)]
    return Part(f"{name}  over {window.seconds:.1f} s{sampled}", [*tables, Pairs(pairs)])


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, str]], means: Mapping[str, float], unit: float = 1.0
) -> Table:
    """Return a row for each (name, prefix of its metrics) with metrics."""
    known = [(name, [means.get(f"{prefix}.{column}") for column in columns]) for name, prefix in rows]
    digits = 1 if unit == 1 else 0
    cells = [
        (name, *("-" if value is None else f"{value / unit:.{digits}f}" for value in values))
        for name, values in known
        if any(value is not None for value in values)
    ]
    return Table((title, *columns), cells)


def _active(kind: str, columns: Sequence[str], means: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the active disks or interfaces as (name, prefix of its metrics)."""
    prefixes = dict.fromkeys(name.rpartition(".")[0] for name in means if name.startswith(f"{kind}."))
    return [
        (sanitize(prefix.partition(".")[2], _NAME), prefix)
        for prefix in prefixes
        if prefix != kind and any(means.get(f"{prefix}.{column}", 0) > 0 for column in columns)
    ]


def _load(means: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    if "load.1" in means:
        averages = " ".join(f"{means[f'load.{minutes}']:.2f}" for minutes in (1, 5, 15))
        tasks = f"{means['load.running']:.1f} tasks running, {means['load.blocked']:.1f} blocked, on average"
        yield "load", f"{averages}  {tasks}"


def control_group(means: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of the server's control group, from a host's means; nothing without one."""
    if "cgroup.cpu" not in means:
        return
    words = [f"{means['cgroup.cpu']:.1f}% of a CPU"]
    if "cgroup.quota" in means:
        throttled = means.get("cgroup.throttled", 0.0)
        words.append(f"quota {means['cgroup.quota']:.0f}%, used up in {throttled:.1f}% of the periods")
    if "cgroup.kbmemory" in means:
        limit = f" of {size(means['cgroup.kblimit'] * 1024)}" if "cgroup.kblimit" in means else ""
        words.append(f"memory {size(means['cgroup.kbmemory'] * 1024)}{limit}")
    yield "cgroup", "; ".join(words)
    waits = [f"{words} {means[name]:.1f}%" for name, words in _GROUP_WAITS.items() if name in means]
    if waits:
        yield "", f"tasks waited for {', '.join(waits)} of the time"


def _processes(window: HostWindow, means: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    if processes_hidden(window):
        yield "processes", "hidden from this user by /proc (hidepid); log in as root to see them"
        return
    mean, count, defunct, spawned, per_second, exited, unseen = (
        means.get(f"processes.{name}", 0.0)
        for name in ("mean", "count", "defunct", "spawned", "spawned_per_s", "exited", "unseen")
    )
    if not (mean or spawned or count):
        return
    yield "processes", f"{mean:.1f} on average, {count:.0f} at the end, at most {defunct:.0f} defunct"
    forks = f"at most {unseen:.0f} more between samples (forks of the whole host)"
    yield "", f"{spawned:.0f} spawned ({per_second:.1f}/s), {exited:.0f} exited; {forks}"
    if "processes.rss" in means:
        pss = f", {size(means['processes.pss'])} PSS" if "processes.pss" in means else ""
        rss, unshared = size(means["processes.rss"]), size(means["processes.unshared"])
        yield "proc. memory", f"{rss} RSS summed, {unshared} rss−shr{pss}"
    excluded = window.last.reading.excluded
    if excluded is None:
        yield "", "includes all servers of that name: the server of the target is unknown"
    elif excluded:
        yield "", f"excludes {excluded} processes of other servers of that name"


def _pages(means: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    for kind, page in STATUS_PAGES.items():
        columns = [*((name, "") for name in page.means), *((name, "/s") for name in page.rates)]
        shown = [
            f"{name.replace('_', ' ')} {si(means[key])}{unit}"
            for name, unit in columns
            if (key := f"{kind}.{name}") in means
        ]
        if shown:
            yield kind, "  ".join(shown)


def means_table(segments: Sequence[Segment], host: str) -> Table:
    """Return a table of a host's metrics, a column per segment; no rows without samples."""
    read = [segment for segment in segments if host in segment.hosts and segment.hosts[host].seconds > 0]
    metrics = [host_metrics(segment.hosts[host], segment.seconds) for segment in read]
    shown = [key for key in MAIN_HOST_METRICS if any(one.get(key) for one in metrics)]
    rows = [(key, *(value_words(key, one.get(key)) for one in metrics)) for key in shown]
    return Table(("mean over", *(f"segment {segment.number}" for segment in read)), rows)


def host_blocks(state: State, host: HostState, segments: Sequence[Segment]) -> list[Block | Part]:
    """Return a host's machine, its charts over the session, and its means by segment."""
    facts = host.facts
    words = [host.config.place, *([f"kernel {facts.kernel}", count_text(facts.cpus, "CPU")] if facts else ())]
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
_PERCENT = Axis(0.0, 100.0, ((0.0, "0%"), (50.0, "50%"), (100.0, "100%")))
# Charts of metrics: title, scale, format, and (name of the line, metric). Those without values are left out.
_CHARTS: tuple[tuple[str, float, Callable[[float], str], tuple[tuple[str, str], ...]], ...] = (
    ("disks (KiB/s)", 0.5, si, (("read", "io.bread"), ("written", "io.bwrtn"))),
    ("network (KiB/s)", 1, si, (("received", "net.rxkb"), ("sent", "net.txkb"))),
    (
        "processes: {watched}",
        1,
        si,
        (("count", "processes.count"), ("spawned/s", "processes.spawned_per_s"), ("defunct", "processes.defunct")),
    ),
    (
        "control group: CPU (% of one CPU)",
        1,
        si,
        (("CPU", "cgroup.cpu"), ("quota", "cgroup.quota"), ("periods throttled", "cgroup.throttled")),
    ),
    (
        "control group: memory",
        1024,
        lambda value: f"{size(value)}B",
        (("memory", "cgroup.kbmemory"), ("limit", "cgroup.kblimit")),
    ),
    (
        "control group: tasks waited for (% of the time)",
        1,
        si,
        (("CPU", "cgroup.scpu"), ("I/O", "cgroup.sio"), ("memory", "cgroup.smem")),
    ),
    ("tasks", 1, si, (("running", "load.running"), ("blocked", "load.blocked"), ("load average, 1 min", "load.1"))),
)
_MEMORY_LINES = (
    ("used", "memory.used"),
    ("available", "memory.available"),
    ("RSS of the processes, summed", "processes.rss"),
    ("rss−shr of the processes", "processes.unshared"),
)


def _charts(state: State, host: HostState) -> Iterator[Plot]:
    x = time_axis(state)
    changes = (marker for marker in state.markers if marker.kind == "change")
    signs = [Sign(marker.t, marker_sign(marker), marker_text(marker)) for marker in changes]

    def plot(title: str, y: Axis, series: Sequence[PlotSeries]) -> Plot:
        return Plot(kind="time", title=title, x=x, y=y, series=series, signs=signs)

    yield plot("CPU (% of all cores)", _PERCENT, list(_stacked(host)))
    total = max(point.memory.total for point in host.points)
    if total:
        labels = tuple((total * part, f"{size(total * part)}B") for part in (0.0, 0.25, 0.5, 0.75, 1.0))
        shown = _MEMORY_LINES if any(point.rss for point in host.points) else _MEMORY_LINES[:2]
        yield plot("memory", Axis(0.0, float(total), labels), _lines(host, shown))
    for title, scale, form, metrics in _CHARTS:
        watched = host.config.watched if host.config.processes else ""
        lines = _lines(host, metrics, scale) if watched or "{" not in title else []
        values = [y for series in lines for _, y in series.points if y is not None]
        if values:
            yield plot(title.format(watched=watched), from_zero(max(values), form), lines)


def _lines(host: HostState, metrics: Sequence[tuple[str, str]], scale: float = 1.0) -> list[PlotSeries]:
    lines = [PlotSeries(label, _points(host, [name], scale), colour) for colour, (label, name) in enumerate(metrics)]
    return [series for series in lines if any(value is not None for _, value in series.points)]


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


def _points(host: HostState, names: Sequence[str], scale: float = 1.0) -> list[Point]:
    """Return the sum of metrics at each sample, with gaps for missing samples."""
    reads = [read for name in names if (read := host_entry(name).sample)]
    gap = max(_GAP * host.config.interval, _GAP)
    points: list[Point] = []
    for point in host.points:
        if points and point.t - points[-1][0] > gap:
            points.append((points[-1][0], None))
        values = [value for read in reads if (value := read(point)) is not None]
        points.append((point.t, scale * sum(values) if values else None))
    return points
