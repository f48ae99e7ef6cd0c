"""The hosts: each as a pane of what sar, free and ps would say, or as one line where there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.model.state import HostPoint, HostState
from cockpit.model.text import clock, neutral, size
from cockpit.tui.braille import trend
from cockpit.tui.cells import EMPTY, Line, clip, ends, length, packed, rule
from cockpit.tui.lines import Lines
from cockpit.tui.scene import Scene
from cockpit.tui.widgets.processes import process_table

# Title, cpu, mem, io, load, processes.
_SHORT = 6
# What makes a pane worth its name: figures and a few processes.
_WHOLE = 10

_MIB = 1024 * 1024

# Points in a trend, at most.
_TREND = 24

_IO_ON_ONE_LINE = 66


class HostPanes(Lines):
    """All hosts one under the other; the one looked at has the most room."""

    def draw(self, scene: Scene, width: int, height: int) -> list[Line]:
        hosts = scene.hosts
        if not hosts:
            return []
        at = scene.view.host % len(hosts)
        if scene.view.host_alone:
            return host_pane(hosts[at], scene, True, width, height)
        lines: list[Line] = []
        for place, (host, room) in enumerate(zip(hosts, share_out(height, len(hosts), at), strict=True)):
            pane = host_pane(host, scene, place == at and len(hosts) > 1, width, room) if room > 1 else []
            lines += pane or ([host_line(host, scene, width)] if room else [])
            lines += [EMPTY] * (room - len(pane) if pane else 0)
        return lines


class HostLines(Lines):
    """One line a host, no more hosts than half the screen."""

    def draw(self, scene: Scene, width: int, height: int) -> list[Line]:
        return [host_line(host, scene, width) for host in scene.hosts]


def share_out(height: int, hosts: int, looked_at: int) -> list[int]:
    """Lines for each host: equal where each gets a whole pane, else the one looked at takes what the others leave."""
    if hosts * _WHOLE <= height:
        each, over = divmod(height, hosts)
        return [each + (place < over) for place in range(hosts)]
    others = _SHORT if (hosts - 1) * _SHORT + _WHOLE <= height else 1
    mine = max(1, height - others * (hosts - 1))
    return [mine if place == looked_at else others for place in range(hosts)]


def host_pane(host: HostState, scene: Scene, chosen: bool, width: int, height: int) -> list[Line]:
    """Title, condition, figures, processes: as much as fits, in this order."""
    lines = [_title(host, scene, chosen, width), *_condition(host, scene)]
    if host.point:
        role = "" if host.condition == "up" else "dim"
        lines += _figures(host, host.point, role, width)
        lines += process_table(host, scene.view.order, role, width, height - len(lines))
    return lines[:height]


def host_line(host: HostState, scene: Scene, width: int) -> Line:
    """Name, condition and the chief figures, as many as fit."""
    chosen = host is scene.host and len(scene.hosts) > 1
    name: Line = ((f"{'▸' if chosen else ' '}{neutral(host.config.name)}", "strong"),)
    if host.condition != "up":
        said = _condition(host, scene)
        return clip((*name, ("  ", ""), *(said[0] if said else ())), width)
    point = host.point
    if point is None:
        return clip((*name, ("  up, first figures to come", "dim")), width)
    parts: list[Line] = [name]
    if point.cpu:
        parts.append((("cpu ", "dim"), (f"{100 - point.cpu.idle:.0f} %", "")))
    if host.config.processes is not None:
        parts.append(_pairs(((f"{neutral(host.config.processes)} ", f"{point.count}"), (" ", _churn(point))), ""))
        if point.defunct:
            parts.append((("Z ", "dim"), (str(point.defunct), "warn")))
    parts.append((("avail ", "dim"), (f"{point.memory.available / _MIB:.0f} MiB", "")))
    parts.append((("load ", "dim"), (f"{point.load[0]:.2f}", "")))
    if point.io:
        parts.append((("tps ", "dim"), (f"{point.io.tps:.0f}", "")))
    return packed(parts, width)


def _title(host: HostState, scene: Scene, chosen: bool, width: int) -> Line:
    name: Line = ((f"{'▸ ' if chosen else ''}{neutral(host.config.name)}", "strong"),)
    place = f"  ssh {neutral(host.config.ssh)}" if host.config.ssh is not None else "  this machine"
    if host.condition != "up" or host.point is None or host.seen is None:
        return rule((*name, (place, "dim")), (), width)
    since = f"{max(0.0, scene.now - host.seen):.1f} s ago · probe {1000 * host.point.probe_cpu:.0f} ms"
    return rule((*name, (place, "dim")), ((since, "dim"),), width)


def _condition(host: HostState, scene: Scene) -> list[Line]:
    """What there is to say about a host that is not up."""
    detail = f": {neutral(host.detail)}" if host.detail else ""
    ago = max(0.0, scene.now - host.since)
    if host.condition == "connecting":
        return [(("connecting …", "warn"), (detail.lstrip(":"), "dim"))]
    if host.condition == "refused":
        return [((" REFUSED ", "alarm"), (detail, ""))]
    if host.condition == "lost":
        lines: list[Line] = [((" LOST ", "alarm"), (f" {_ago(ago)} ago{detail}", ""))]
        if host.seen is not None:
            lines.append(((f"trying again by itself; figures of {clock(host.seen)}", "warn"),))
        return lines
    return []


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _figures(host: HostState, point: HostPoint, role: str, width: int) -> list[Line]:
    recent = host.points[-_TREND:]
    busy = [100 - at.cpu.idle for at in recent if at.cpu]
    used = [at.memory.used / at.memory.total for at in recent if at.memory.total]
    cpu, memory = _pairs(_cpu(point), role, "cpu"), _pairs(_memory(point), role, "mem")
    room = width - max(length(cpu), length(memory)) - 2
    lines = [
        _trended(cpu, busy, 100.0, room, width),
        _trended(memory, used, 1.0, room, width),
        *_io_and_load(point, role, width),
    ]
    if host.config.processes is not None:
        lines.append(_processes(host, point, role, width))
    return lines


def _cpu(point: HostPoint) -> tuple[tuple[str, str], ...]:
    if point.cpu is None:
        return (("", "to come"),)
    cpu = point.cpu
    shares = (("us ", cpu.user + cpu.nice), ("  sy ", cpu.system), ("  io ", cpu.iowait), ("  st ", cpu.steal))
    return (*((name, f"{share:2.0f}") for name, share in shares), ("  id ", f"{cpu.idle:2.0f}"))


def _memory(point: HostPoint) -> tuple[tuple[str, str], ...]:
    memory = point.memory
    figures = (("used ", memory.used), ("  free ", memory.free), ("  avail ", memory.available))
    return (*((name, f"{nbytes / _MIB:.0f}") for name, nbytes in figures), (" MiB", ""))


def _io_and_load(point: HostPoint, role: str, width: int) -> list[Line]:
    """Two lines; where the first would not hold all of I/O, its blocks share the second with the load average."""
    load = _load(point, role, 2)
    if point.io is None:
        return [_pairs((("", "to come"),), role, "io"), load]
    io = point.io
    transfers = (("tps ", f"{io.tps:.0f}"), ("  rtps ", f"{io.rtps:.0f}"), ("  wtps ", f"{io.wtps:.0f}"))
    blocks = (("bread/s ", f"{io.bread:.0f}"), ("  bwrtn/s ", f"{io.bwrtn:.0f}"))
    if width >= _IO_ON_ONE_LINE:
        return [(*_pairs(transfers, role, "io"), ("  ", ""), *_pairs(blocks, role)), load]
    second = (("     ", ""), *_pairs(blocks, role), ("  ", ""))
    if length((*second, *load)) > width:
        load = _load(point, role, 1)
    return [_pairs(transfers, role, "io"), clip((*second, *load), width)]


def _load(point: HostPoint, role: str, digits: int) -> Line:
    return _pairs((("", " ".join(f"{load:.{digits}f}" for load in point.load)),), role, "load")


def _processes(host: HostState, point: HostPoint, role: str, width: int) -> Line:
    """Name, number, churn, defunct, memory: pushed together where the room is short, then without what comes last."""
    parts: list[Line] = [
        ((f"{neutral(host.config.processes or '')} ", role or "strong"), (f"{point.count} procs", role)),
        ((_churn(point), role),),
        ((f"Z {point.defunct}", "warn" if point.defunct else "dim"),),
        _pairs((("rss ", size(point.rss)),), role),
        _pairs((("own ", size(point.unshared)),), role),
    ]
    parts = [part for part in parts if length(part)]
    roomy = sum(length(part) + 2 for part in parts) - 2 <= width
    return packed(parts, width, "  " if roomy else " ")


def _churn(point: HostPoint) -> str:
    if point.births is None or point.deaths is None:
        return ""
    return f"+{point.births:.0f} -{point.deaths:.0f}/s"


def _pairs(pairs: Sequence[tuple[str, str]], role: str, head: str = "") -> Line:
    """`name figure name figure`, names in the background."""
    line: list[tuple[str, str]] = [(f"{head:<5}", "dim")] if head else []
    for name, figure in pairs:
        line += [(name, "dim"), (figure, role)]
    return tuple(line)


def _trended(line: Line, values: list[float], top: float, room: int, width: int) -> Line:
    """The figures with what went before at the right, as much of it as fits into `room`."""
    if room < 4 or not values:
        return clip(line, width)
    return ends(line, ((trend(values[-room:], top), "chart"),), width)
