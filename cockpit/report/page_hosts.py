"""Hosts in the HTML report: their CPU, memory, I/O, network and processes over time, and their means by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cockpit.model.host_state import CpuShare, HostPoint, HostState
from cockpit.model.state import Segment, State
from cockpit.model.text import count_text, si, size
from cockpit.report.charts import Axis, ChartSeries, Point, SvgChart, TimelineMark, draw, from_zero, text
from cockpit.report.page_charts import lines_over_time, time_axis
from cockpit.report.page_parts import table
from cockpit.report.session_summary import host_means

Metric = Callable[[HostPoint], float | None]

_PERCENT = Axis(0.0, 100.0, ((0.0, "0%"), (50.0, "50%"), (100.0, "100%")))
# The busy states, stacked in this order.
_CPU: tuple[tuple[str, int, Callable[[CpuShare], float]], ...] = (
    ("user", 0, lambda cpu: cpu.user + cpu.nice),
    ("system", 1, lambda cpu: cpu.system),
    ("iowait", 4, lambda cpu: cpu.iowait),
    ("steal", 6, lambda cpu: cpu.steal),
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
    if host.condition not in ("up", "connecting"):
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
        self._signs = [TimelineMark(one.t, one.sign, one.text) for one in state.markers if one.kind == "change"]

    def points(self, metric: Metric) -> list[Point]:
        """Return the metric at each sample, with gaps for missing samples."""
        found: list[Point] = []
        for point in self.host.points:
            if found and point.t - found[-1][0] > max(_GAP * self.host.config.interval, _GAP):
                found.append((found[-1][0], None))
            found.append((point.t, metric(point)))
        return found

    def chart(self, title: str, *metrics: tuple[str, Metric], form: Callable[[float], str] = si) -> str:
        """Return a chart with one line per metric, from 0."""
        lines = [(name, self.points(metric)) for name, metric in metrics]
        highest = max((value for _, points in lines for _, value in points if value is not None), default=0.0)
        return lines_over_time(title, self._x, from_zero(highest, form), lines, self._signs)

    def cpu(self) -> str:
        """Return the stacked CPU states; the rest to 100% is idle. States that never occurred are left out."""
        series: list[ChartSeries] = []
        below: list[Point] = []
        shares = [point.cpu for point in self.host.points if point.cpu]
        occurring = [row for row in _CPU if max((row[2](cpu) for cpu in shares), default=0.0) >= _SEEN]
        for place, (name, colour, _) in enumerate(occurring):
            parts = [part for _, _, part in occurring[: place + 1]]

            def stacked(point: HostPoint, parts: Sequence[Callable[[CpuShare], float]] = parts) -> float | None:
                return sum(part(point.cpu) for part in parts) if point.cpu else None

            points = self.points(stacked)
            series.append(ChartSeries(name, points, colour, fill=True, floor=below))
            below = points
        return draw(SvgChart("CPU (% of all cores)", self._x, _PERCENT, series, self._signs))

    def memory(self) -> str:
        total = max(point.memory.total for point in self.host.points)
        metrics: list[tuple[str, Metric]] = [
            ("used", lambda point: point.memory.used),
            ("available", lambda point: point.memory.available),
        ]
        if any(point.rss for point in self.host.points):
            metrics.append(("RSS of the processes, summed", lambda point: point.rss))
            metrics.append(("rss−shr of the processes", lambda point: point.unshared))
        labels = tuple((total * part, f"{size(total * part)}B") for part in (0.0, 0.25, 0.5, 0.75, 1.0))
        lines = [(name, self.points(metric)) for name, metric in metrics]
        return lines_over_time("memory", self._x, Axis(0.0, float(total), labels), lines, self._signs)


def _charts(drawing: _HostCharts) -> Iterator[str]:
    host, chart = drawing.host, drawing.chart
    yield drawing.cpu()
    if any(point.memory.total for point in host.points):
        yield drawing.memory()
    yield chart(
        "disks (KiB/s)",
        ("read", lambda point: point.io.bread / 2 if point.io else None),
        ("written", lambda point: point.io.bwrtn / 2 if point.io else None),
    )
    yield chart(
        "network (KiB/s)",
        ("received", lambda point: point.net.rxkb if point.net else None),
        ("sent", lambda point: point.net.txkb if point.net else None),
    )
    if host.config.processes:
        yield chart(
            f"processes: {host.config.watched}",
            ("count", lambda point: point.count),
            ("spawned/s", lambda point: point.spawned),
            ("defunct", lambda point: point.defunct),
        )
    if any(point.group for point in host.points):
        yield chart(
            "control group: CPU (% of one CPU)",
            ("CPU", _of_group("cpu")),
            ("quota", _of_group("quota")),
            ("periods throttled", _of_group("throttled")),
        )
        memory = ("memory", _of_group("kbmemory", 1024)), ("limit", _of_group("kblimit", 1024))
        yield chart("control group: memory", *memory, form=lambda value: f"{size(value)}B")
        yield chart(
            "control group: tasks waited for (% of the time)",
            ("CPU", _of_group("scpu")),
            ("I/O", _of_group("sio")),
            ("memory", _of_group("smem")),
        )
    yield chart(
        "tasks",
        ("running", lambda point: point.running),
        ("blocked", lambda point: point.blocked),
        ("load average, 1 min", lambda point: point.load[0]),
    )


def _of_group(name: str, unit: float = 1) -> Metric:
    """Return a metric of the server's control group, multiplied by `unit`."""

    def metric(point: HostPoint) -> float | None:
        value = getattr(point.group, name) if point.group else None
        return None if value is None else unit * value

    return metric


def _means(host: HostState, segments: Sequence[Segment]) -> str:
    titles, lines = host_means(segments, host.config.name)
    if not lines:
        return "<p class=soft>Fewer than two samples during each run.</p>\n"
    return f"<details open><summary>averages by segment</summary>{table(titles, lines)}</details>\n"
