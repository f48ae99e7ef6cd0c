"""A host's metrics over a run as a table for the terminal, with the columns of sar and free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.metrics.values import host_metrics, processes_hidden
from cockpit.model.host.state import CpuShare, HostWindow, IoRates, NetRates
from cockpit.model.host.window import END_SECONDS
from cockpit.model.text import sanitize, si, size
from cockpit.servers.registry import STATUS_PAGES

_MIB = 1024 * 1024
_NAME, _COLUMN = 13, 11
# Maximum length of disk and interface names, so that the table keeps its shape.
_SHOWN = _NAME - 1

_CPU = (*CpuShare.__struct_fields__, "other")
_IO = IoRates.__struct_fields__
_DISK = ("tps", "rkb", "wkb", "areq_sz", "aqu_sz", "await", "util")
_NET = NetRates.__struct_fields__[1:]
_GROUP_WAITS = {"cgroup.scpu": "CPU", "cgroup.sio": "I/O", "cgroup.smem": "memory"}
_MEMORY = ("total", "used", "free", "shared", "buff_cache", "available")


def host_table(name: str, window: HostWindow, seconds: float) -> list[str]:
    """Return the lines of the table, at most 96 columns wide. `seconds` is the duration of the run."""
    if window.seconds <= 0:
        return [f"  {sanitize(name)}  fewer than two samples during the run"]
    found = host_metrics(window, seconds)
    lines = [f"  {sanitize(name)}  over {window.seconds:.1f} s{_coverage_words(found['coverage'])}"]
    lines += _table("%", _CPU, [("cpu", "cpu")], found)
    ends = min(END_SECONDS, window.seconds / 2)
    parts = [("io", "io"), (f"first {ends:.1f} s", "io.start"), (f"last {ends:.1f} s", "io.end")]
    lines += _table("/s", _IO, parts, found)
    lines += _table("disk", _DISK, _active_devices("disk", found), found)
    lines += _table("net /s", _NET, _active_devices("net", found), found)
    parts = [(part, f"memory.{part}") for part in ("before", "start", "mean")]
    lines += _table("MiB", _MEMORY, [*parts, ("end", "memory"), ("after", "memory.after")], found, _MIB)
    return lines + _load(found) + control_group(found) + _processes(window, found) + _pages(found)


def _coverage_words(coverage: float) -> str:
    return "" if coverage >= 99 else f", sampled for only {coverage:.0f}% of the run"


def _table(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, str]], found: Mapping[str, float], unit: float = 1.0
) -> list[str]:
    known = [(name, group) for name, group in rows if any(f"{group}.{column}" in found for column in columns)]
    if not known:
        return []
    lines = [f"    {title:<{_NAME}}" + "".join(f"{column:>{_COLUMN}}" for column in columns)]
    for name, group in known:
        values = (found.get(f"{group}.{column}") for column in columns)
        lines.append(f"    {name:<{_NAME}}" + "".join(f"{_cell(value, unit):>{_COLUMN}}" for value in values))
    return lines


def _cell(value: float | None, unit: float) -> str:
    if value is None:
        return "-"
    return f"{value / unit:.1f}" if unit == 1 else f"{value / unit:.0f}"


def _active_devices(kind: str, found: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the active disks or interfaces as (displayed name, prefix of its metrics)."""
    columns = {"disk": _DISK, "net": _NET}[kind]
    groups = dict.fromkeys(name.rpartition(".")[0] for name in found if name.startswith(f"{kind}."))
    single = [group for group in groups if group != kind]
    return [
        (sanitize(group.partition(".")[2], _SHOWN), group)
        for group in single
        if any(found.get(f"{group}.{column}", 0) > 0 for column in columns)
    ]


def _load(found: Mapping[str, float]) -> list[str]:
    if "load.1" not in found:
        return []
    means = " ".join(f"{found[f'load.{minutes}']:.2f}" for minutes in (1, 5, 15))
    tasks = f"{found['load.running']:.1f} tasks running, {found['load.blocked']:.1f} blocked"
    return [f"    {'load':<{_NAME}}{means}  {tasks}, on average"]


def control_group(found: Mapping[str, float]) -> list[str]:
    """Return the lines of the server's control group, from a host's means; empty without one."""
    if "cgroup.cpu" not in found:
        return []
    words = [f"{found['cgroup.cpu']:.1f}% of a CPU"]
    if "cgroup.quota" in found:
        throttled = found.get("cgroup.throttled", 0.0)
        words.append(f"quota {found['cgroup.quota']:.0f}%, used up in {throttled:.1f}% of the periods")
    if "cgroup.kbmemory" in found:
        limit = f" of {size(found['cgroup.kblimit'] * 1024)}" if "cgroup.kblimit" in found else ""
        words.append(f"memory {size(found['cgroup.kbmemory'] * 1024)}{limit}")
    lines = [f"    {'cgroup':<{_NAME}}{'; '.join(words)}"]
    waits = [f"{words} {found[name]:.1f}%" for name, words in _GROUP_WAITS.items() if name in found]
    return [*lines, f"    {'':<{_NAME}}tasks waited for {', '.join(waits)} of the time"] if waits else lines


def _processes(window: HostWindow, found: Mapping[str, float]) -> list[str]:
    if processes_hidden(window):
        return [f"    {'processes':<{_NAME}}hidden from this user by /proc (hidepid); log in as root to see them"]
    if not (found.get("processes.mean", 0) or found["processes.spawned"] or found["processes.count"]):
        return []
    lines = [
        f"    {'processes':<{_NAME}}{found.get('processes.mean', 0):.1f} on average, {found['processes.count']:.0f} at "
        f"the end, at most {found['processes.defunct']:.0f} defunct",
        f"    {'':<{_NAME}}{found['processes.spawned']:.0f} spawned ({found['processes.spawned_per_s']:.1f}/s), "
        f"{found['processes.exited']:.0f} exited; at most {found['processes.unseen']:.0f} more between samples "
        "(forks of the whole host)",
    ]
    if "processes.rss" in found:
        pss = f", {size(found['processes.pss'])} PSS" if "processes.pss" in found else ""
        lines.append(
            f"    {'proc. memory':<{_NAME}}{size(found['processes.rss'])} RSS summed, "
            f"{size(found['processes.unshared'])} rss−shr{pss}"
        )
    excluded = window.last.reading.excluded
    if excluded is None:
        lines.append(f"    {'':<{_NAME}}includes all servers of that name: the server of the target is unknown")
    elif excluded:
        lines.append(f"    {'':<{_NAME}}excludes {excluded} processes of other servers of that name")
    return lines


def _pages(found: Mapping[str, float]) -> list[str]:
    lines = []
    for kind, page in STATUS_PAGES.items():
        columns = [(name, f"{kind}.{name}", "") for name in page.means]
        columns += [(name, f"{kind}.{name}", "/s") for name in page.rates]
        shown = [f"{name.replace('_', ' ')} {si(found[key])}{unit}" for name, key, unit in columns if key in found]
        if shown:
            lines.append(f"    {kind:<{_NAME}}{'  '.join(shown)}")
    return lines
