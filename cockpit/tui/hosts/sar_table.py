"""All metrics of a host in the groups of sar and free: now, mean and maximum of the selected segment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.analysis.words.timeline import segment_label
from cockpit.metrics.catalogue import Metric, host_entry
from cockpit.metrics.units import number_text
from cockpit.model.host import sar
from cockpit.model.host.state import CpuShare, HostState, HostWindow, IoRates, MemoryUse, NetRates
from cockpit.model.host.window import current_metrics, means
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment
from cockpit.model.text import sanitize
from cockpit.tui.terminal.styled_line import Line, fit, right, side_by_side

# Cells of a name and of a value, and between two columns of metrics.
_NAME, _VALUE, _GAP = 17, 7, 2
_COLUMN = _NAME + 3 * _VALUE
# Maximum number of accept queues shown besides the target's.
_QUEUES = 8

# Metrics that should be 0.
_BAD = ("listen.ListenOverflows", "listen.ListenDrops")


class MetricBlock(NamedTuple):
    """A group of metrics with its title and the command that prints it."""

    title: str
    option: str
    metrics: Sequence[Metric]


class SarValues(NamedTuple):
    """Metrics by name: newest interval, mean and maximum of a segment."""

    now: Mapping[str, float]
    mean: Mapping[str, float]
    highest: Mapping[str, float]


def _block_of(title: str, option: str, group: str, *names: str) -> MetricBlock:
    """Return a block that is not in `model.sar`."""
    return MetricBlock(
        title, option, tuple(host_entry(f"{group}.{name}")._replace(name=f"{group}.{name}") for name in names)
    )


def _of(group: sar.SarGroup, title: str) -> MetricBlock:
    return _block_of(title, group.option, group.name, *group.metrics)


def _merged(option: str, *blocks: MetricBlock) -> MetricBlock:
    """Return the metrics of several blocks under the title of the first."""
    return MetricBlock(blocks[0].title, option, tuple(metric for block in blocks for metric in block.metrics))


_CPU = (*CpuShare.__struct_fields__, "other")
_FREE = tuple(name for name in MemoryUse.__struct_fields__ if name != "buff_cache")
_IO = IoRates.__struct_fields__
_NET = NetRates.__struct_fields__[1:]
_BLOCKS = (
    _merged("sar -u", _block_of("CPU", "", "cpu", *_CPU), _of(sar.INTERRUPTS, ""), _of(sar.SPEED, "")),
    _merged(
        "sar -q ALL",
        _of(sar.QUEUE, "queue, pressure"),
        _block_of("", "", "load", "1", "5", "15", "blocked"),
        _of(sar.PRESSURE, ""),
    ),
    _of(sar.TASKS, "tasks"),
    _block_of("memory", "free -w", "memory.mean", *_FREE),
    _merged("sar -r -S", _of(sar.RAM, "memory, swap"), _of(sar.SWAP, "")),
    _merged("sar -B -W", _of(sar.PAGING, "paging"), _of(sar.SWAPPING, "")),
    _block_of("I/O", "sar -b", "io", *_IO),
    _block_of("network", "sar -n DEV", "net", *_NET),
    _merged("sar -n SOCK, ss -s", _of(sar.SOCKETS, "sockets"), _of(sar.TCP_STATES, "")),
    _merged("sar -n TCP,ETCP", _of(sar.TCP, "TCP"), _of(sar.ETCP, "")),
)


def sar_rows(host: HostState, segment: Segment | None, role: str, width: int) -> tuple[Line, Line, Sequence[Line]]:
    """Return header, column titles, and rows with as many blocks side by side as fit."""
    point = host.point
    if point is None:
        return (("all metrics", "strong"),), (("waiting for data", "dim"),), []
    window = segment.hosts.get(host.config.name) if segment else None
    mean = means(window) if window else {}
    values = SarValues(current_metrics(point, host.sar), mean, window.highest if window else {})
    blocks = [*_BLOCKS, _listen_queues(host, values, segment.plan if segment else None), *_group(values)]
    count = max(1, (width + _GAP) // (_COLUMN + _GAP))
    drawn = [_block(block, values, role) for block in blocks]
    columns = _side_by_side(drawn, count)
    head = " " * _NAME + "".join(right(title, _VALUE) for title in ("now", "mean", "max"))
    titles = (" " * _GAP).join([head] * len(columns))
    return _of_segment(segment, window), ((titles, "dim"),), side_by_side(columns, _COLUMN, (" " * _GAP, ""))


def _of_segment(segment: Segment | None, window: HostWindow | None) -> Line:
    if segment is None:
        return (("No runs yet. Mean and max are per segment.", "dim"),)
    if window is None or window.seconds <= 0:
        return ((f"fewer than two samples of this host in segment {segment.number}", "dim"),)
    return (
        (f"mean and max of segment {segment.number}", ""),
        (f"  {sanitize(segment_label(segment))}  {window.seconds:.0f} s   –: unknown on this host", "dim"),
    )


def _group(values: SarValues) -> list[MetricBlock]:
    """Return the block of the server's control group, if it has its own."""
    block = _of(sar.CGROUP, "cgroup of the server")
    return [block] if any(metric.name in each for metric in block.metrics for each in values) else []


def _listen_queues(host: HostState, values: SarValues, plan: LoadPlan | None) -> MetricBlock:
    """Return overflows and accept queues: of the target's ports, then of other ports that were not empty."""
    block = _of(sar.LISTEN, "listen queues")
    reading = host.sample.reading if host.sample else None
    if reading is None:
        return block
    target = _ports(plan) & reading.accept.keys()
    used = {port for port in reading.accept if values.highest.get(_queue(port)) or values.now.get(_queue(port))}
    shown = [*sorted(target), *sorted(used - target)[:_QUEUES]] or sorted(reading.accept)[:_QUEUES]
    limits = {port: f" of {limit}" for port, limit in reading.backlog.items()}
    queues = [Metric(_queue(port), title=f":{port}{limits.get(port, '')}") for port in shown]
    return block._replace(option="nstat, ss -ltn", metrics=(*block.metrics, *queues))


def _queue(port: int) -> str:
    return f"{sar.ACCEPT}.{port}"


def _ports(plan: LoadPlan | None) -> set[int]:
    """Return the ports of the target's URLs."""
    if plan is None:
        return set()
    urls = [urlsplit(url) for url in (plan.url, *(request.url for request in plan.mix)) if url]
    return {url.port or (443 if url.scheme == "https" else 80) for url in urls}


def _block(block: MetricBlock, values: SarValues, role: str) -> list[Line]:
    lines: list[Line] = [((block.title, "strong"), (f"  {block.option}", "dim"))]
    for metric in block.metrics:
        numbers = [each.get(metric.name) for each in values]
        cells = [right("–" if value is None else number_text(metric.unit, value), _VALUE) for value in numbers]
        bad = metric.name in _BAD and any(numbers)
        lines.append(((fit(metric.title, _NAME), "dim"), ("".join(cells), "warn" if bad else role)))
    return lines


def _side_by_side(blocks: Sequence[Sequence[Line]], count: int) -> list[list[Line]]:
    """Return the blocks in at most `count` columns of minimum height; blocks are not split."""
    height = max(map(len, blocks))
    while len(columns := _columns(blocks, height)) > count:
        height += 1
    return columns


def _columns(blocks: Iterable[Sequence[Line]], height: int) -> list[list[Line]]:
    columns: list[list[Line]] = [[]]
    for block in blocks:
        if columns[-1] and len(columns[-1]) + len(block) > height:
            columns.append([])
        columns[-1] += block
    return columns
