"""The metrics of sar from the probe's counters are those of real sar, free, ss and nstat on the same host."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.model import sar
from cockpit.model.host_rates import memory_use
from cockpit.model.hosts import HostReading
from tests.lab.lab import Lab
from tests.lab.test_parity import DEADLINE, MIB, ROUNDING, SECONDS, load, probe, said, shell, stretches, watched

__all__ = ("probe", "shell")

RATES = (sar.PAGING, sar.SWAPPING, sar.TASKS, sar.TCP, sar.ETCP, sar.PRESSURE)
# Levels that change slowly enough to lie between those of two readings, with a tolerance of this share.
LEVELS = (sar.RAM, sar.SWAP, sar.SOCKETS)
SLACK = 0.02
# Percentage points of pressure: sar's seconds are not exactly ours.
POINTS = 5.0
OPTIONS = "-B -W -w -r -S -n SOCK -n TCP -n ETCP -q LOAD,CPU,IO,MEM"


async def averages(shell: Shell) -> dict[str, float]:
    """What sar prints as averages: column -> value, of all tables but those of CPUs and devices."""
    found: dict[str, float] = {}
    columns: list[str] = []
    for line in (await said(shell, f"sar {OPTIONS} 1 {SECONDS}")).splitlines():
        words = line.split()
        if not words or words[0] != "Average:":
            continue
        if re.fullmatch(r"[\d.]+", words[1]):
            found |= zip(columns, map(float, words[1:]), strict=True)
        else:
            columns = words[1:]
    return found


def wrong_rates(inner: Sequence[HostReading], outer: Sequence[HostReading], theirs: Mapping[str, float]) -> list[str]:
    spans = [pair[1].uptime - pair[0].uptime for pair in (inner, outer)]
    least, most = (sar.rates(pair[0], pair[1], span) for pair, span in zip((inner, outer), spans, strict=True))
    wrong = []
    for group in RATES:
        for name, column in group.metrics.items():
            metric = f"{group.name}.{name}"
            assert (column in theirs) == (metric in least), f"only one of both knows {metric}"
            if column not in theirs:
                continue
            if group is sar.PRESSURE:
                near = abs(theirs[column] - least[metric]) <= POINTS
            else:
                low, high = least[metric] * spans[0] - ROUNDING, most[metric] * spans[1] + ROUNDING
                near = low * 0.99 <= theirs[column] * SECONDS <= high * 1.01
            if not near:
                wrong.append(f"{metric}: {least[metric]:.2f}, sar {theirs[column]}")
    return wrong


def wrong_levels(readings: Sequence[HostReading], theirs: Mapping[str, float]) -> list[str]:
    wrong = []
    ours = [sar.levels(reading) for reading in readings]
    for group in LEVELS:
        for name, column in group.metrics.items():
            values = [each[f"{group.name}.{name}"] for each in ours]
            slack = 1 + SLACK * max(values)
            if not min(values) - slack <= theirs[column] <= max(values) + slack:
                wrong.append(f"{group.name}.{name}: {min(values)} to {max(values)}, sar {theirs[column]}")
    return wrong


async def test_counters_are_what_sar_prints(lab: Lab, shell: Shell, probe: Probe, tmp_path: Path) -> None:
    async def agree() -> list[str]:
        reporting = asyncio.ensure_future(averages(shell))
        readings = await watched(probe, reporting, tmp_path / "file")  # type: ignore[arg-type]
        theirs = await reporting
        assert theirs["iseg/s"] > 10
        assert theirs["cswch/s"] > 10
        assert theirs["pgpgout/s"] * SECONDS > 15000
        wrong = [wrong_rates(stretch.inner, stretch.outer, theirs) for stretch in stretches(readings)]
        return min(wrong, key=len, default=["the readings did not come often enough"]) + wrong_levels(readings, theirs)

    deadline = time.monotonic() + DEADLINE
    async with load(lab.web1.url):
        while wrong := await agree():
            assert time.monotonic() < deadline, wrong


async def between(
    probe: Probe, command: Callable[[], asyncio.Future[dict[str, int]]], ours: Callable[[HostReading], dict[str, float]]
) -> None:
    """Repeat until each number of the command lies between those of the readings before and after it."""
    deadline = time.monotonic() + DEADLINE
    while True:
        before = ours(await probe.read())
        theirs = await command()
        after = ours(await probe.read())
        assert theirs.keys() == before.keys()
        wrong = {
            name: (before[name], value, after[name])
            for name, value in theirs.items()
            if not min(before[name], after[name]) <= value <= max(before[name], after[name])
        }
        if not wrong:
            return
        assert time.monotonic() < deadline, wrong


async def test_tcp_counters_are_what_nstat_prints(lab: Lab, shell: Shell, probe: Probe) -> None:
    names = {
        "TcpExtListenOverflows": "TcpExt.ListenOverflows",
        "TcpExtListenDrops": "TcpExt.ListenDrops",
        "TcpActiveOpens": "Tcp.ActiveOpens",
        "TcpPassiveOpens": "Tcp.PassiveOpens",
        "TcpInSegs": "Tcp.InSegs",
        "TcpOutSegs": "Tcp.OutSegs",
        "TcpRetransSegs": "Tcp.RetransSegs",
        "TcpInErrs": "Tcp.InErrs",
        "TcpOutRsts": "Tcp.OutRsts",
        "TcpAttemptFails": "Tcp.AttemptFails",
        "TcpEstabResets": "Tcp.EstabResets",
    }

    async def nstat() -> dict[str, int]:
        lines = (line.split() for line in (await said(shell, "nstat -asz")).splitlines())
        return {names[words[0]]: int(words[1]) for words in lines if words and words[0] in names}

    def ours(reading: HostReading) -> dict[str, float]:
        return {name: reading.counters[name] for name in names.values()}

    async with load(lab.web1.url):
        await between(probe, lambda: asyncio.ensure_future(nstat()), ours)


async def test_sockets_are_what_ss_counts(lab: Lab, shell: Shell, probe: Probe) -> None:
    async def ss() -> dict[str, int]:
        waiting = (await said(shell, "ss -Htan state time-wait")).splitlines()
        return {"TCP.tw": len(waiting)}

    async with load(lab.web1.url):
        await between(probe, lambda: asyncio.ensure_future(ss()), lambda read: {"TCP.tw": read.counters["TCP.tw"]})


async def test_backlogs_are_what_ss_prints(lab: Lab, shell: Shell, probe: Probe) -> None:
    theirs: dict[int, int] = {}
    for line in (await said(shell, "ss -Hltn")).splitlines():
        words = line.split()
        port = int(words[3].rpartition(":")[2])
        theirs[port] = theirs.get(port, 0) + int(words[2])
    reading = await probe.read()
    assert 80 in theirs
    assert reading.backlog == theirs
    assert reading.accept.keys() == theirs.keys()


async def test_swap_and_buffers_are_what_free_prints(shell: Shell, probe: Probe) -> None:
    names = ("total", "used", "free", "shared", "buffers", "cache", "available")

    async def agree() -> list[str]:
        before = memory_use(await probe.read())
        memory, swap = (line.split()[1:] for line in (await said(shell, "free -w -m")).splitlines()[1:3])
        after = memory_use(await probe.read())
        theirs = dict(zip((*names, "swap_total", "swap_used", "swap_free"), map(int, memory + swap), strict=True))
        wrong = []
        for name, mebibytes in theirs.items():
            ours = sorted((getattr(before, name) / MIB, getattr(after, name) / MIB))
            if not ours[0] - 1 <= mebibytes <= ours[1] + 1:
                wrong.append(f"{name}: {ours}, free {mebibytes}")
        return wrong

    deadline = time.monotonic() + DEADLINE
    while wrong := await agree():
        assert time.monotonic() < deadline, wrong
