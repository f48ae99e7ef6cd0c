"""Hosts in the HTML report: their CPU, memory, I/O, network and processes over time, and their means by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.metrics.catalogue import host_entry
from cockpit.model.events import HostCondition
from cockpit.model.host.state import HostState
from cockpit.model.state import Segment, State
from cockpit.model.text import count_text, si, size
from cockpit.report.charts import Axis, ChartSeries, Point, SvgChart, TimelineMark, draw, from_zero, text
from cockpit.report.page_charts import lines_over_time, time_axis
from cockpit.report.page_parts import table
from cockpit.report.session_summary import host_means

_PERCENT = Axis(0.0, 100.0, ((0.0, "0%"), (50.0, "50%"), (100.0, "100%")))
# The busy states with their colours, stacked in this order.
_CPU = (
    ("user", 0, ("cpu.user", "cpu.nice")),
    ("system", 1, ("cpu.system",)),
    ("iowait", 4, ("cpu.iowait",)),
    ("steal", 6, ("cpu.steal",)),
)
# A gap of this many sampling intervals interrupts the line.
_GAP = 4.0
# CPU states below this share (percent) are not visible in a chart.
_SEEN = 0.05


def host_section(state: State, host: HostState, segments: Sequence[Segment]) -> str:
    facts = host.facts
    notes = [text(host.config.place)]
    if facts:
        notes += [f"kernel {text(facts.kernel)}", f"{count_text(facts.cpus, 'CPU')}"]
    if host.condition not in (HostCondition.UP, HostCondition.CONNECTING):
        notes.append(f'<span class="warn">{text(host.condition)} {text(host.detail)}</span>')
    head = f"<h3>{text(host.config.name)}</h3><p class=soft>{' · '.join(notes)}</p>\n"
    if not host.points:
        return f"{head}<p class=soft>No samples.</p>\n"
    return f'{head}<div class="charts">{"".join(_charts(_HostCharts(state, host)))}</div>\n{_means(host, segments)}'


class _HostCharts:
    """Charts of one host over the session, with changes as markers."""

    def __init__(self, state: State, host: HostState) -> None:
        self.host = host
        self._x = time_axis(state)
        self._signs = [
            TimelineMark(one.t, marker_sign(one), marker_text(one)) for one in state.markers if one.kind == "change"
        ]

    def points(self, *names: str, scale: float = 1.0) -> list[Point]:
        """Return the sum of metrics at each sample, with gaps for missing samples."""
        reads = [read for name in names if (read := host_entry(name).sample)]
        found: list[Point] = []
        for point in self.host.points:
            if found and point.t - found[-1][0] > max(_GAP * self.host.config.interval, _GAP):
                found.append((found[-1][0], None))
            values = [value for read in reads if (value := read(point)) is not None]
            found.append((point.t, scale * sum(values) if values else None))
        return found

    def chart(
        self, title: str, *metrics: tuple[str, str], scale: float = 1.0, form: Callable[[float], str] = si
    ) -> str:
        """Return a chart with one line per metric (its name in the chart, and in the catalogue), from 0."""
        lines = [(label, self.points(name, scale=scale)) for label, name in metrics]
        highest = max((value for _, points in lines for _, value in points if value is not None), default=0.0)
        return lines_over_time(title, self._x, from_zero(highest, form), lines, self._signs)

    def cpu(self) -> str:
        """Return the stacked CPU states; the rest to 100% is idle. States that never occurred are left out."""
        series: list[ChartSeries] = []
        below: list[Point] = []
        stacked: tuple[str, ...] = ()
        for label, colour, names in _CPU:
            if max((value or 0.0 for _, value in self.points(*names)), default=0.0) >= _SEEN:
                stacked += names
                points = self.points(*stacked)
                series.append(ChartSeries(label, points, colour, fill=True, floor=below))
                below = points
        return draw(SvgChart("CPU (% of all cores)", self._x, _PERCENT, series, self._signs))

    def memory(self) -> str:
        total = max(point.memory.total for point in self.host.points)
        metrics = [("used", "memory.used"), ("available", "memory.available")]
        if any(point.rss for point in self.host.points):
            metrics.append(("RSS of the processes, summed", "processes.rss"))
            metrics.append(("rss−shr of the processes", "processes.unshared"))
        labels = tuple((total * part, f"{size(total * part)}B") for part in (0.0, 0.25, 0.5, 0.75, 1.0))
        lines = [(name, self.points(metric)) for name, metric in metrics]
        return lines_over_time("memory", self._x, Axis(0.0, float(total), labels), lines, self._signs)


def _charts(drawing: _HostCharts) -> Iterator[str]:
    host, chart = drawing.host, drawing.chart
    yield drawing.cpu()
    if any(point.memory.total for point in host.points):
        yield drawing.memory()
    yield chart("disks (KiB/s)", ("read", "io.bread"), ("written", "io.bwrtn"), scale=0.5)
    yield chart("network (KiB/s)", ("received", "net.rxkb"), ("sent", "net.txkb"))
    if host.config.processes:
        yield chart(
            f"processes: {host.config.watched}",
            ("count", "processes.count"),
            ("spawned/s", "processes.spawned_per_s"),
            ("defunct", "processes.defunct"),
        )
    if any(point.group for point in host.points):
        yield chart(
            "control group: CPU (% of one CPU)",
            ("CPU", "cgroup.cpu"),
            ("quota", "cgroup.quota"),
            ("periods throttled", "cgroup.throttled"),
        )
        memory = ("memory", "cgroup.kbmemory"), ("limit", "cgroup.kblimit")
        yield chart("control group: memory", *memory, scale=1024, form=lambda value: f"{size(value)}B")
        yield chart(
            "control group: tasks waited for (% of the time)",
            ("CPU", "cgroup.scpu"),
            ("I/O", "cgroup.sio"),
            ("memory", "cgroup.smem"),
        )
    yield chart("tasks", ("running", "load.running"), ("blocked", "load.blocked"), ("load average, 1 min", "load.1"))


def _means(host: HostState, segments: Sequence[Segment]) -> str:
    titles, lines = host_means(segments, host.config.name)
    if not lines:
        return "<p class=soft>Fewer than two samples during each run.</p>\n"
    return f"<details open><summary>averages by segment</summary>{table(titles, lines)}</details>\n"
