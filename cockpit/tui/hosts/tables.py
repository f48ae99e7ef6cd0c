"""Tables of cores (as `sar -P ALL`), disks (as `sar -d`) and interfaces (as `sar -n DEV`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cockpit.metrics.catalogue import Metric, host_entry
from cockpit.metrics.units import number_text
from cockpit.model.host.state import CpuShare, DiskRates, HostState, NetRates
from cockpit.model.text import sanitize
from cockpit.tui.charts.braille import bar
from cockpit.tui.terminal.styled_line import Line, Piece, fit, right

HostTable = tuple[Line, Sequence[Line]]


class MetricColumn(NamedTuple):
    """A column, shown from `need` cells of width on; `field` is the attribute of the metric."""

    metric: Metric
    width: int
    field: str
    need: int

    @classmethod
    def of(cls, name: str, width: int, need: int = 0) -> MetricColumn:
        last = name.partition(".")[2]
        return cls(host_entry(name), width, "await_" if last == "await" else last, need)


_CPU = (
    MetricColumn.of("cpu.user", 7),
    MetricColumn.of("cpu.nice", 7, 60),
    MetricColumn.of("cpu.system", 9),
    MetricColumn.of("cpu.iowait", 9),
    MetricColumn.of("cpu.steal", 8, 56),
    MetricColumn.of("cpu.idle", 7),
)
_DISK = (
    MetricColumn.of("disk.tps", 7),
    MetricColumn.of("disk.rkb", 8),
    MetricColumn.of("disk.wkb", 8),
    MetricColumn.of("disk.dkb", 8, 84),
    MetricColumn.of("disk.areq_sz", 8, 76),
    MetricColumn.of("disk.aqu_sz", 8, 68),
    MetricColumn.of("disk.await", 7, 46),
    MetricColumn.of("disk.util", 7),
)
_NET = (
    MetricColumn.of("net.rxpck", 9),
    MetricColumn.of("net.txpck", 9),
    MetricColumn.of("net.rxkb", 9),
    MetricColumn.of("net.txkb", 9),
    MetricColumn.of("net.errors", 8, 66),
    MetricColumn.of("net.drops", 8, 66),
)

# Minimum and maximum cells of a device's name.
_NAME = (5, 16)


def core_rows(host: HostState, role: str, width: int) -> HostTable:
    """Return the mean of all cores, then each core, with a bar of the CPU use in the remaining room."""
    columns = [column for column in _CPU if width >= column.need]
    head = _head("CPU", columns, _NAME[0])
    point = host.point
    if not host.cores and (point is None or point.cpu is None):
        return head, [_waiting()]
    shares: list[tuple[str, CpuShare | None]] = [("all", point.cpu if point else None)]
    shares += [(str(number), share) for number, share in enumerate(host.cores)]
    room = width - _NAME[0] - sum(column.width for column in columns) - 2
    return head, [_core(name, share, columns, room, role) for name, share in shares]


def _core(name: str, share: CpuShare | None, columns: Sequence[MetricColumn], room: int, role: str) -> Line:
    if share is None:
        return ((fit(name, _NAME[0]), role), ("  no data", "dim"))
    cells = "".join(right(f"{getattr(share, column.field):.1f}", column.width) for column in columns)
    busy = bar((100 - share.idle) / 100, room) if room >= 4 else ""
    return ((fit(name, _NAME[0]) + cells, role), ("  ", ""), (busy, "chart"))


def disk_rows(host: HostState, role: str, width: int) -> HostTable:
    """Return disks in the kernel's order; idle loop devices are only counted."""
    shown = [disk for disk in host.disks if disk.tps or not disk.name.startswith("loop")]
    head, rows = _devices("DEV", shown, _DISK, role, width)
    idle = len(host.disks) - len(shown)
    return head, [*rows, ((f"{idle} loop devices without I/O", "dim"),)] if idle else rows


def net_rows(host: HostState, role: str, width: int) -> HostTable:
    """Return every interface, including the loopback."""
    return _devices("IFACE", host.nets, _NET, role, width)


def _devices(
    title: str,
    devices: Sequence[DiskRates] | Sequence[NetRates],
    columns: Sequence[MetricColumn],
    role: str,
    width: int,
) -> HostTable:
    least, most = _NAME
    name = max(least, min(most, max((len(device.name) for device in devices), default=0)))
    shown = [column for column in columns if width >= column.need]
    head = _head(title, shown, name)
    if not devices:
        return head, [_waiting()]
    rows: list[Line] = []
    for device in devices:
        line: list[Piece] = [(fit(sanitize(device.name), name), role)]
        for column in shown:
            value = getattr(device, column.field)
            bad = column.field in ("errors", "drops") and value > 0
            line.append((right(number_text(column.metric.unit, value), column.width), "warn" if bad else role))
        rows.append(tuple(line))
    return head, rows


def _head(title: str, columns: Sequence[MetricColumn], name: int) -> Line:
    return ((fit(title, name) + "".join(right(column.metric.title, column.width) for column in columns), "dim"),)


def _waiting() -> Line:
    return (("waiting for data", "dim"),)
