"""A host's averages over a segment of the runs table, like the last line of `sar`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.analysis.words.timeline import segment_label
from cockpit.metrics.catalogue import host_entry
from cockpit.metrics.units import number_text
from cockpit.metrics.values import host_metrics
from cockpit.model.host import sar
from cockpit.model.host.state import HostState
from cockpit.model.state import Segment
from cockpit.model.text import sanitize
from cockpit.tui.terminal.styled_line import Line, fit, length, pairs

# Cells for the group's name before a line of metrics.
_HEAD = 10

# Order of the groups, and their names if other than in thresholds.
_ORDER = ("cpu", "memory", "processes", "io", "net", "load", "disk")
_GROUP_NAMES = {"memory": "mem", "processes": "procs"}
# Groups, and metrics of memory, that are only in the table of all metrics.
_EXCLUDED = frozenset((*(group.name for group in sar.GROUPS), sar.ACCEPT))
_EXCLUDED |= {"buffers", "cache", "swap_total", "swap_used", "swap_free"}


def averages_rows(host: HostState, segment: Segment | None, width: int) -> tuple[Line, Sequence[Line]]:
    """Return header and rows: the metrics by group, with the group's parts below it."""
    if segment is None:
        return (("averages", "strong"),), [(("No runs yet.", "dim"),)]
    window = segment.hosts.get(host.config.name)
    head: Line = ((f"averages of segment {segment.number}", "strong"), (f"  {sanitize(segment_label(segment))}", "dim"))
    if window is None or window.seconds <= 0:
        return head, [(("fewer than two samples of this host in the segment", "dim"),)]
    metrics = host_metrics(window, segment.seconds)
    rows = _wrapped("over", _span(window.seconds, metrics.get("coverage")), width)
    for group, parts in sorted(_grouped(metrics).items(), key=lambda entry: _place(entry[0])):
        name = _GROUP_NAMES.get(group, sanitize(group))
        rows += _wrapped(name, parts.pop("", []), width) if "" in parts else [((name, "dim"),)] if parts else []
        for part, texts in parts.items():
            rows += _wrapped(f"  {sanitize(part)}", texts, width)
    return head, rows


def _span(seconds: float, coverage: float | None) -> list[tuple[str, str]]:
    """Return the length of the window, and the share of it with samples at the configured interval."""
    share = [] if coverage is None else [("sampled at the set interval: ", f"{coverage:.0f}%")]
    return [("", f"{seconds:.1f} s on the host's clock"), *share]


def _place(group: str) -> int:
    return _ORDER.index(group) if group in _ORDER else len(_ORDER)


def _grouped(metrics: Mapping[str, float]) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Return (name, text) of each metric by group and part; "" is the part for metrics of the group itself.

    Idle disks and interfaces are left out: many machines have a lot of them.
    """
    groups: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for name, value in metrics.items():
        path, _, last = name.rpartition(".")
        group, _, part = path.partition(".")
        if group in _EXCLUDED or (group == "memory" and last in _EXCLUDED):
            continue
        idle = part and group in ("disk", "net") and not _active(metrics, path)
        if path and not idle:
            metric = host_entry(name)
            shown = (metric.title, number_text(metric.unit, value))
            groups.setdefault(group, {}).setdefault(part, []).append(shown)
    return groups


def _active(metrics: Mapping[str, float], path: str) -> bool:
    return any(value for name, value in metrics.items() if name.rpartition(".")[0] == path)


def _wrapped(head: str, metrics: Sequence[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = []
    part: list[tuple[str, str]] = []
    for name, value in metrics:
        name = f"{name} " if name else ""
        longer = [*part, (f"{'  ' if part else ''}{name}", value)]
        if part and length(_line(head, longer)) > width:
            lines.append(_line("" if lines else head, part))
            longer = [(name, value)]
        part = longer
    return [*lines, _line("" if lines else head, part)] if part else lines


def _line(head: str, metrics: Sequence[tuple[str, str]]) -> Line:
    return ((fit(head, _HEAD), "dim"), *pairs(metrics))
