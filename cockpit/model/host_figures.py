"""Metrics of a host over a run, by the names that thresholds, tables and JSON use."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from cockpit.model.host_rates import memory_use
from cockpit.model.host_state import CpuShare, DiskRates, HostWindow, IoRates, MemoryUse, NetRates
from cockpit.model.host_window import closing_io, means, opening_io
from cockpit.model.pages import PAGE_FIGURES
from cockpit.servers.registry import STATUS_PAGES


def _names(group: str, struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(f"{group}.{name.rstrip('_')}" for name in struct.__struct_fields__ if name != "name")


_GROUPS = ("cpu", "io", "disk", "net", "memory", "load", "processes", "coverage", *STATUS_PAGES)
_IO_PARTS = ("io.start", "io.end")
_MEANS = (
    *_names("cpu", CpuShare),
    "cpu.other",
    *_names("io", IoRates),
    *_names("net", NetRates),
    *_names("memory.mean", MemoryUse),
    *(f"load.{name}" for name in ("1", "5", "15", "running", "blocked")),
    *(f"processes.{name}" for name in ("mean", "rss", "unshared", "pss", "user", "system")),
)
_COUNTS = (
    "count",
    "births",
    "deaths",
    "births_per_s",
    "deaths_per_s",
    "defunct",
    "unseen",
    "cpu",
    "rss_each",
    "unshared_each",
)
PROCESS_FIGURES = (
    *(name for name in _MEANS if name.startswith("processes.")),
    *(f"processes.{name}" for name in _COUNTS),
)
# All names except those of single disks and interfaces, which are `disk.sda.util`, `net.eth0.rxkb`.
HOST_FIGURES = (
    *_MEANS,
    *(name for part in _IO_PARTS for name in _names(part, IoRates)),
    *_names("memory", MemoryUse),
    *_names("memory.start", MemoryUse),
    *(f"processes.{name}" for name in _COUNTS),
    "coverage",
    *PAGE_FIGURES,
)


def _either(names: Iterable[str]) -> str:
    return "|".join(name.rpartition(".")[2] for name in names)


_SINGLE = re.compile(rf"disk\..+\.(?:{_either(_names('', DiskRates))})|net\..+\.(?:{_either(_names('', NetRates))})")


def is_host_figure(name: str) -> bool:
    """Return whether a host can have a metric of that name; any disk and interface name is accepted."""
    return name in HOST_FIGURES or _SINGLE.fullmatch(name) is not None


def host_figures(window: HostWindow, seconds: float = 0.0) -> dict[str, float]:
    """Return a host's means over a window, and its memory and processes; metrics without data are left out.

    `cpu.other` is the share that other programs took, neither the watched ones nor cockpit's. `memory.X` is at the end,
    `memory.start.X` at the start, `memory.mean.X` the mean; bytes. `io.start` and `io.end` are the first and the last
    5 s, or halves of a shorter window. `processes.count` is at the end, `births`, `deaths`, `unseen` over the window,
    `defunct` the maximum, `mean`, `rss`, `unshared` and `pss` means, `rss_each` and `unshared_each` per process,
    `user`, `system` and their sum `cpu` per cent of one core. `coverage` is the share of the window, or of
    `seconds` if that is longer, in which the host was sampled at its interval; per cent.
    All `processes.` are left out if /proc hides processes: a count of the visible ones would mislead.
    """
    mean = means(window)
    figures = {name: mean[name] for name in (*_MEANS, *mean) if name in mean}
    if "cpu.other" in figures:
        figures["cpu.other"] = min(100.0, max(0.0, figures["cpu.other"]))
    for part, told in zip(_IO_PARTS, (opening_io(window), closing_io(window)), strict=True):
        figures |= _values(part, told) if told else {}
    figures |= _values("memory", memory_use(window.last.reading))
    figures |= _values("memory.start", memory_use(window.first.reading))
    figures |= _processes(window) | _each(figures)
    figures["coverage"] = _coverage(window, seconds)
    if processes_hidden(window):
        figures = {name: value for name, value in figures.items() if not name.startswith("processes.")}
    return dict(sorted(figures.items(), key=_order))


def processes_hidden(window: HostWindow) -> bool:
    """Whether /proc hid the processes of others from the probe (hidepid)."""
    return window.first.reading.hidden or window.last.reading.hidden


def _order(figure: tuple[str, float]) -> int:
    """By the first part of the name; within it as they came."""
    return _GROUPS.index(figure[0].partition(".")[0])


def _values(group: str, struct: msgspec.Struct) -> dict[str, float]:
    return {f"{group}.{name}": float(getattr(struct, name)) for name in struct.__struct_fields__}


def _processes(window: HostWindow) -> dict[str, float]:
    return {
        "processes.count": window.count,
        "processes.births": window.births,
        "processes.deaths": window.deaths,
        "processes.births_per_s": window.births / window.seconds if window.seconds > 0 else 0.0,
        "processes.deaths_per_s": window.deaths / window.seconds if window.seconds > 0 else 0.0,
        "processes.defunct": window.most_defunct,
        "processes.unseen": window.unseen,
    }


def _each(figures: dict[str, float]) -> dict[str, float]:
    """Return the CPU of the watched processes, and the memory of all and of one of them."""
    found = {}
    if "processes.user" in figures:
        found["processes.cpu"] = figures["processes.user"] + figures["processes.system"]
    if figures.get("processes.mean"):
        for name in ("rss", "unshared"):
            found[f"processes.{name}_each"] = figures[f"processes.{name}"] / figures["processes.mean"]
    return found


def _coverage(window: HostWindow, seconds: float) -> float:
    span = max(seconds, window.last.t - window.first.t)
    # The clocks of the host and of the cockpit differ by a little, which is no lack.
    return min(100.0, round(100 * window.covered / span, 1)) if span > 0 else 0.0
