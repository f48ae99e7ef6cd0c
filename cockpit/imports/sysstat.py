"""Parses the JSON of sysstat (`sadf -j FILE -- -A`): intervals of a host with the rates and levels of sar. Pure.

A file is hostile: types and ranges are checked during parsing. Raises ValueError.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from cockpit.hosts.probe.numbers import NAME_BYTES
from cockpit.hosts.probe.parse import CPUS_LIMIT
from cockpit.imports.formats import LATEST

AGAIN = "write it with sadf -j FILE -- -A"
# Maximum characters of a file: a day of sadf -A at an interval of 10 s. Parsed, it takes five times as much memory.
_LARGEST = 1 << 27

# Rates per second, levels (KiB or counts), and per cent; sums over a week fit into 64 bits.
_Rate = Annotated[float, Meta(ge=0, le=1e9)]
_Level = Annotated[int, Meta(ge=0, lt=1 << 50)]
_Percent = Annotated[float, Meta(ge=0, le=1e4)]
_Name = Annotated[str, Meta(min_length=1, max_length=NAME_BYTES)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """An object of the file. Its keys are the field names with hyphens; other keys are ignored."""


class Timestamp(_Part, frozen=True, kw_only=True):
    date: str
    time: str
    utc: int = 0
    tz: str = ""
    interval: Annotated[int, Meta(ge=0, le=604_800)]


class CpuLoad(_Part, frozen=True, kw_only=True):
    """Shares of CPU time. `sar -u` has user and system, `sar -u ALL` has their parts instead."""

    cpu: str
    user: _Percent | None = None
    system: _Percent | None = None
    usr: _Percent = 0.0
    nice: _Percent
    sys: _Percent = 0.0
    iowait: _Percent
    steal: _Percent
    irq: _Percent = 0.0
    soft: _Percent = 0.0
    guest: _Percent = 0.0
    gnice: _Percent = 0.0
    idle: _Percent


class IoReads(_Part, frozen=True, kw_only=True):
    rtps: _Rate
    bread: _Rate


class IoWrites(_Part, frozen=True, kw_only=True):
    wtps: _Rate
    bwrtn: _Rate


class IoDiscards(_Part, frozen=True, kw_only=True):
    dtps: _Rate = 0.0


class Io(_Part, frozen=True, kw_only=True):
    io_reads: IoReads
    io_writes: IoWrites
    io_discard: IoDiscards = IoDiscards()


class Memory(_Part, frozen=True, kw_only=True):
    """Memory in KiB. `avail` is missing on old kernels, `dirty` before sysstat 10.1.2, `slab` without `-r ALL`, and
    swap (`swp…`) without -S."""

    memfree: _Level
    avail: _Level | None = None
    memused: _Level
    memused_percent: _Percent
    buffers: _Level
    cached: _Level
    commit: _Level
    active: _Level
    inactive: _Level
    dirty: _Level = 0
    slab: _Level = 0
    swpfree: _Level = 0
    swpused: _Level = 0
    swpcad: _Level = 0

    @property
    def total(self) -> int:
        """Total memory. The oldest versions of sysstat count buffers, cache and slab in `memused`, those since 12.7.8
        what is not available; `memused_percent` shows which total is right. Raises ValueError if none is."""
        used_and_free = self.memused + self.memfree
        newest = self.memused + (self.avail or 0)
        for total in (used_and_free + self.buffers + self.cached + self.slab, used_and_free, newest):
            if abs(100 * self.memused - self.memused_percent * total) <= 0.006 * total:
                return total
        raise ValueError("the total memory is ambiguous: memused-percent does not match")


class Queue(_Part, frozen=True, kw_only=True):
    runq_sz: _Level
    plist_sz: _Level
    ldavg_1: _Rate = msgspec.field(name="ldavg-1")
    ldavg_5: _Rate = msgspec.field(name="ldavg-5")
    ldavg_15: _Rate = msgspec.field(name="ldavg-15")
    blocked: _Level = 0


class Disk(_Part, frozen=True, kw_only=True):
    """Requests/s, KiB/s or sectors/s (512 bytes), ms per request. Older versions have `avgqu-sz` and sectors."""

    disk_device: _Name
    tps: _Rate
    rd_sec: _Rate | None = msgspec.field(name="rd_sec", default=None)
    wr_sec: _Rate | None = msgspec.field(name="wr_sec", default=None)
    dc_sec: _Rate | None = msgspec.field(name="dc_sec", default=None)
    rkb: _Rate = msgspec.field(name="rkB", default=0.0)
    wkb: _Rate = msgspec.field(name="wkB", default=0.0)
    dkb: _Rate = msgspec.field(name="dkB", default=0.0)
    aqu_sz: _Rate | None = None
    avgqu_sz: _Rate = 0.0
    await_: _Rate = msgspec.field(name="await")
    util_percent: _Percent


class Interface(_Part, frozen=True, kw_only=True):
    iface: _Name
    rxpck: _Rate
    txpck: _Rate
    rxkb: _Rate = msgspec.field(name="rxkB")
    txkb: _Rate = msgspec.field(name="txkB")


class InterfaceErrors(_Part, frozen=True, kw_only=True):
    iface: _Name
    rxerr: _Rate
    txerr: _Rate
    rxdrop: _Rate
    txdrop: _Rate


class Network(_Part, frozen=True, kw_only=True):
    net_dev: list[Interface] = []
    net_edev: list[InterfaceErrors] = []
    net_sock: dict[str, _Level] | None = None
    net_tcp: dict[str, _Rate] | None = None
    net_etcp: dict[str, _Rate] | None = None


class Pressure(_Part, frozen=True, kw_only=True):
    """Share (per cent) of the interval in which some or all tasks waited."""

    some_avg: _Percent = msgspec.field(name="some_avg")
    full_avg: _Percent | None = msgspec.field(name="full_avg", default=None)


class Pressures(_Part, frozen=True, kw_only=True):
    psi_cpu: Pressure | None = None
    psi_io: Pressure | None = None
    psi_mem: Pressure | None = None


class Statistics(_Part, frozen=True, kw_only=True):
    """An interval, at its end time. None: sadf or sar was run without the option for it."""

    timestamp: Timestamp
    cpu_load: list[CpuLoad] = []
    cpu_load_all: list[CpuLoad] = []
    process_and_context_switch: dict[str, _Rate] | None = None
    swap_pages: dict[str, _Rate] | None = None
    paging: dict[str, _Rate] | None = None
    io: Io | None = None
    memory: Memory | None = None
    queue: Queue | None = None
    disk: list[Disk] = []
    network: Network = Network()
    psi: Pressures = Pressures()

    @property
    def epoch(self) -> float:
        """The end of the interval (epoch s). Raises ValueError."""
        stamp = self.timestamp
        if stamp.utc != 1 and stamp.tz != "UTC":
            zone = f"in the time zone {stamp.tz[:24]!r}" if stamp.tz else "local"
            raise ValueError(f"times are {zone}; {AGAIN}, without -T and -U")
        # Older versions write 14-05-00.
        when = f"{stamp.date}T{stamp.time.replace('-', ':')}+00:00"
        epoch = datetime.fromisoformat(when).timestamp()
        if not 0 <= epoch <= LATEST:
            raise ValueError(f"{stamp.date[:24]!r} is out of range")
        return epoch


class SysstatHost(_Part, frozen=True, kw_only=True):
    nodename: _Name
    release: _Name
    number_of_cpus: Annotated[int, Meta(ge=1, le=CPUS_LIMIT)]
    statistics: list[Statistics]


class _Hosts(_Part, frozen=True, kw_only=True):
    hosts: Annotated[list[SysstatHost], Meta(min_length=1, max_length=1)]


class _File(_Part, frozen=True, kw_only=True):
    sysstat: _Hosts


_decoder = msgspec.json.Decoder(_File)


def is_sysstat(head: str) -> bool:
    """Return whether a file with these first lines is JSON of sadf."""
    return "".join(head.split()).startswith('{"sysstat"')


def parse_sysstat(pieces: list[str]) -> SysstatHost:
    """Return the host of a file, with at least two intervals in chronological order. Raises ValueError."""
    if sum(map(len, pieces)) > _LARGEST:
        larger = f"larger than {_LARGEST >> 20} MiB"
        raise ValueError(f"{larger}; choose a time range: sadf -j FILE -s 14:00:00 -e 15:00:00 -- -A")
    try:
        host = _decoder.decode("".join(pieces)).sysstat.hosts[0]
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ValueError(f"{error}; {AGAIN}") from None
    return checked_host(host)


def checked_host(host: SysstatHost) -> SysstatHost:
    """Return the host. Raises ValueError if its intervals are too few or not in order."""
    if len(host.statistics) < 2:
        raise ValueError("fewer than two intervals; the first one is only the start of the counters")
    if not all(interval.cpu_load or interval.cpu_load_all for interval in host.statistics):
        raise ValueError(f"no CPU utilization (sar -u); {AGAIN}")
    epochs = [interval.epoch for interval in host.statistics]
    if any(later <= earlier for earlier, later in pairwise(epochs)):
        raise ValueError("intervals are not in chronological order")
    return host
