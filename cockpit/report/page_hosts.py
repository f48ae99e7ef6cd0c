"""Hosts in the HTML report: their CPU, memory, I/O, network and processes over time, and their means by segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cockpit.model.host_state import CpuShare, HostPoint, HostState
from cockpit.model.state import Segment, State
from cockpit.model.text import counted, size
from cockpit.report.charts import Axis, ChartSeries, Point, Sign, SvgChart, draw, from_zero, text
from cockpit.report.page_charts import lines_over_time, time_axis
from cockpit.report.page_parts import table
from cockpit.report.session_summary import host_means

_PERCENT = Axis(0.0, 100.0, ((0.0, "0 %"), (50.0, "50 %"), (100.0, "100 %")))
# The busy states, stacked in this order.
_CPU: tuple[tuple[str, int, Callable[[CpuShare], float]], ...] = (
    ("user", 0, lambda cpu: cpu.user + cpu.nice),
    ("system", 1, lambda cpu: cpu.system),
    ("waiting for I/O", 4, lambda cpu: cpu.iowait),
    ("stolen", 6, lambda cpu: cpu.steal),
)
# A gap of this many sampling intervals interrupts the line.
_GAP = 4.0
# A share (per cent) below this cannot be seen in a chart.
_SEEN = 0.05


def host_section(state: State, host: HostState, segments: Sequence[Segment]) -> str:
    facts = host.facts
    notes = [text(host.config.place)]
    if facts:
        notes += [f"kernel {text(facts.kernel)}", f"{counted(facts.cpus, 'CPU')}"]
    if host.condition not in ("up", "connecting"):
        notes.append(f'<span class="warn">{text(host.condition)} {text(host.detail)}</span>')
    head = f"<h3>{text(host.config.name)}</h3><p class=soft>{' · '.join(notes)}</p>\n"
    if not host.points:
        return f"{head}<p class=soft>It was never read.</p>\n"
    signs = [Sign(one.t, one.sign, one.text) for one in state.markers if one.kind == "change"]
    return f'{head}<div class="charts">{_charts(state, host, signs)}</div>\n{_means(host, segments)}'


def _charts(state: State, host: HostState, signs: Sequence[Sign]) -> str:
    x, points = time_axis(state), host.points

    def series(metric: Callable[[HostPoint], float | None]) -> list[Point]:
        return _over_time(points, metric, host.config.interval)

    charts = [_cpu(host, x, signs)]
    if any(point.memory.total for point in host.points):
        charts.append(_memory(host, x, signs, series))
    io = [
        ("read", series(lambda point: point.io.bread / 2 if point.io else None)),
        ("written", series(lambda point: point.io.bwrtn / 2 if point.io else None)),
    ]
    net = [
        ("received", series(lambda point: point.net.rxkb if point.net else None)),
        ("sent", series(lambda point: point.net.txkb if point.net else None)),
    ]
    charts.append(lines_over_time("disks (KiB/s)", x, from_zero(_highest(io)), io, signs))
    charts.append(lines_over_time("network (KiB/s)", x, from_zero(_highest(net)), net, signs))
    if host.config.processes:
        counted = [
            ("there", series(lambda point: float(point.count))),
            ("spawned per second", series(lambda point: point.spawned)),
            ("defunct", series(lambda point: float(point.defunct))),
        ]
        charts.append(
            lines_over_time(f"processes: {host.config.watched}", x, from_zero(_highest(counted)), counted, signs)
        )
    charts += _control_group(host, x, signs, series)
    load = [
        ("running", series(lambda point: float(point.running))),
        ("blocked", series(lambda point: float(point.blocked))),
        ("load over 1 min", series(lambda point: point.load[0])),
    ]
    charts.append(lines_over_time("tasks", x, from_zero(_highest(load)), load, signs))
    return "".join(charts)


def _cpu(host: HostState, x: Axis, signs: Sequence[Sign]) -> str:
    """Return stacked shares; the rest to 100% is idle. States that never occurred are left out."""
    series: list[ChartSeries] = []
    below: list[Point] = []
    shares = [point.cpu for point in host.points if point.cpu]
    there = [row for row in _CPU if max((row[2](cpu) for cpu in shares), default=0.0) >= _SEEN]
    for place, (name, colour, _) in enumerate(there):
        parts = [part for _, _, part in there[: place + 1]]

        def piled(point: HostPoint, parts: Sequence[Callable[[CpuShare], float]] = parts) -> float | None:
            return sum(part(point.cpu) for part in parts) if point.cpu else None

        points = _over_time(host.points, piled, host.config.interval)
        series.append(ChartSeries(name, points, colour, fill=True, floor=below))
        below = points
    return draw(SvgChart("CPU (% of all cores)", x, _PERCENT, series, signs))


def _control_group(
    host: HostState,
    x: Axis,
    signs: Sequence[Sign],
    series: Callable[[Callable[[HostPoint], float | None]], list[Point]],
) -> list[str]:
    """Return the charts of the server's control group; none without one."""
    if not any(point.group for point in host.points):
        return []

    def lines(*names: tuple[str, str, float]) -> list[tuple[str, list[Point]]]:
        def read(name: str, unit: float) -> Callable[[HostPoint], float | None]:
            def metric(point: HostPoint) -> float | None:
                value = getattr(point.group, name) if point.group else None
                return None if value is None else unit * value

            return metric

        return [(title, series(read(name, unit))) for title, name, unit in names]

    cpu = lines(("CPU", "cpu", 1), ("quota", "quota", 1), ("periods with the quota used up", "throttled", 1))
    memory = lines(("memory", "kbmemory", 1024), ("limit", "kblimit", 1024))
    waits = lines(("CPU", "scpu", 1), ("I/O", "sio", 1), ("memory", "smem", 1))
    return [
        lines_over_time("control group: CPU (% of one CPU)", x, from_zero(_highest(cpu)), cpu, signs),
        lines_over_time("control group: memory", x, from_zero(_highest(memory), _bytes), memory, signs),
        lines_over_time("control group: tasks waited for (% of the time)", x, from_zero(_highest(waits)), waits, signs),
    ]


def _bytes(value: float) -> str:
    return f"{size(value)}B"


def _memory(
    host: HostState,
    x: Axis,
    signs: Sequence[Sign],
    series: Callable[[Callable[[HostPoint], float | None]], list[Point]],
) -> str:
    total = max(point.memory.total for point in host.points)
    lines = [
        ("used", series(lambda point: float(point.memory.used))),
        ("available", series(lambda point: float(point.memory.available))),
    ]
    if any(point.rss for point in host.points):
        lines.append(("processes, shared counted again", series(lambda point: float(point.rss))))
        lines.append(("not shared", series(lambda point: float(point.unshared))))
    labels = tuple((total * part, f"{size(total * part)}B") for part in (0.0, 0.25, 0.5, 0.75, 1.0))
    return lines_over_time("memory", x, Axis(0.0, float(total), labels), lines, signs)


def _over_time(
    points: Sequence[HostPoint], metric: Callable[[HostPoint], float | None], interval: float
) -> list[Point]:
    """Return the metric at each sample, with a gap if there were none."""
    found: list[Point] = []
    for point in points:
        if found and point.t - found[-1][0] > max(_GAP * interval, _GAP):
            found.append((found[-1][0], None))
        found.append((point.t, metric(point)))
    return found


def _highest(lines: Sequence[tuple[str, Sequence[Point]]]) -> float:
    return max((value for _, points in lines for _, value in points if value is not None), default=0.0)


def _means(host: HostState, segments: Sequence[Segment]) -> str:
    titles, lines = host_means(segments, host.config.name)
    if not lines:
        return "<p class=soft>It was not read twice during a run.</p>\n"
    return f"<details open><summary>averages by segment</summary>{table(titles, lines)}</details>\n"
