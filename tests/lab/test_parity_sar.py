"""sar's metrics from the probe's counters equal those of real sar, free, ss and nstat on the same host."""

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
from tests.lab.test_parity import (
    DEADLINE,
    MIB,
    ROUNDING,
    SECONDS,
    load,
    output_of,
    probe,
    readings_during,
    shell,
    time_ranges,
)

__all__ = ("probe", "shell")

RATES = (sar.PAGING, sar.SWAPPING, sar.TASKS, sar.TCP, sar.ETCP, sar.PRESSURE)
# Slow levels: between those of two readings, with this relative tolerance.
LEVELS = (sar.RAM, sar.SWAP, sar.SOCKETS)
TOLERANCE = 0.02
# Tolerance of pressure, in percentage points: sar's interval differs slightly.
POINTS = 5.0
OPTIONS = "-B -W -w -r -S -n SOCK -n TCP -n ETCP -q LOAD,CPU,IO,MEM"


async def averages(shell: Shell) -> dict[str, float]:
    """Return the averages of sar: column -> value, of all tables except those per CPU and device."""
    found: dict[str, float] = {}
    columns: list[str] = []
    for line in (await output_of(shell, f"sar {OPTIONS} 1 {SECONDS}")).splitlines():
        fields = line.split()
        if not fields or fields[0] != "Average:":
            continue
        if re.fullmatch(r"[\d.]+", fields[1]):
            found |= zip(columns, map(float, fields[1:]), strict=True)
        else:
            columns = fields[1:]
    return found


def wrong_rates(inner: Sequence[HostReading], outer: Sequence[HostReading], expected: Mapping[str, float]) -> list[str]:
    spans = [pair[1].uptime - pair[0].uptime for pair in (inner, outer)]
    least, most = (sar.rates(pair[0], pair[1], span) for pair, span in zip((inner, outer), spans, strict=True))
    wrong = []
    for group in RATES:
        for name, column in group.metrics.items():
            metric = f"{group.name}.{name}"
            assert (column in expected) == (metric in least), f"only one side has {metric}"
            if column not in expected:
                continue
            if group is sar.PRESSURE:
                matches = abs(expected[column] - least[metric]) <= POINTS
            else:
                low, high = least[metric] * spans[0] - ROUNDING, most[metric] * spans[1] + ROUNDING
                matches = low * 0.99 <= expected[column] * SECONDS <= high * 1.01
            if not matches:
                wrong.append(f"{metric}: {least[metric]:.2f}, sar {expected[column]}")
    return wrong


def wrong_levels(readings: Sequence[HostReading], expected: Mapping[str, float]) -> list[str]:
    wrong = []
    levels = [sar.levels(reading) for reading in readings]
    for group in LEVELS:
        for name, column in group.metrics.items():
            values = [each[f"{group.name}.{name}"] for each in levels]
            tolerance = 1 + TOLERANCE * max(values)
            if not min(values) - tolerance <= expected[column] <= max(values) + tolerance:
                wrong.append(f"{group.name}.{name}: {min(values)} to {max(values)}, sar {expected[column]}")
    return wrong


async def test_rates_and_levels_match_sar(lab: Lab, shell: Shell, probe: Probe, tmp_path: Path) -> None:
    async def compare() -> list[str]:
        reporting = asyncio.ensure_future(averages(shell))
        readings = await readings_during(probe, reporting, tmp_path / "file")  # type: ignore[arg-type]
        expected = await reporting
        assert expected["iseg/s"] > 10
        assert expected["cswch/s"] > 10
        if expected["pgpgout/s"] * SECONDS < 15000:
            return ["the file was written after sar's interval"]
        wrong = [wrong_rates(each.inner, each.outer, expected) for each in time_ranges(readings)]
        return min(wrong, key=len, default=["too few readings"]) + wrong_levels(readings, expected)

    deadline = time.monotonic() + DEADLINE
    async with load(lab.web1.url):
        while wrong := await compare():
            assert time.monotonic() < deadline, wrong


async def wait_until_between(
    probe: Probe,
    command: Callable[[], asyncio.Future[dict[str, int]]],
    metrics: Callable[[HostReading], dict[str, float]],
) -> None:
    """Repeat until each value of the command is between the readings before and after it."""
    deadline = time.monotonic() + DEADLINE
    while True:
        before = metrics(await probe.read())
        expected = await command()
        after = metrics(await probe.read())
        assert expected.keys() == before.keys()
        wrong = {
            name: (before[name], value, after[name])
            for name, value in expected.items()
            if not min(before[name], after[name]) <= value <= max(before[name], after[name])
        }
        if not wrong:
            return
        assert time.monotonic() < deadline, wrong


async def test_tcp_counters_match_nstat(lab: Lab, shell: Shell, probe: Probe) -> None:
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
        lines = (line.split() for line in (await output_of(shell, "nstat -asz")).splitlines())
        return {names[fields[0]]: int(fields[1]) for fields in lines if fields and fields[0] in names}

    def counters(reading: HostReading) -> dict[str, float]:
        return {name: reading.counters[name] for name in names.values()}

    async with load(lab.web1.url):
        await wait_until_between(probe, lambda: asyncio.ensure_future(nstat()), counters)


async def test_time_wait_sockets_match_ss(lab: Lab, shell: Shell, probe: Probe) -> None:
    async def ss() -> dict[str, int]:
        waiting = (await output_of(shell, "ss -Htan state time-wait")).splitlines()
        return {"TCP.tw": len(waiting)}

    async with load(lab.web1.url):
        await wait_until_between(
            probe, lambda: asyncio.ensure_future(ss()), lambda reading: {"TCP.tw": reading.counters["TCP.tw"]}
        )


async def test_backlogs_match_ss(lab: Lab, shell: Shell, probe: Probe) -> None:
    expected: dict[int, int] = {}
    for line in (await output_of(shell, "ss -Hltn")).splitlines():
        fields = line.split()
        port = int(fields[3].rpartition(":")[2])
        expected[port] = expected.get(port, 0) + int(fields[2])
    reading = await probe.read()
    assert 80 in expected
    assert reading.backlog == expected
    assert reading.accept.keys() == expected.keys()


async def test_swap_and_buffers_match_free(shell: Shell, probe: Probe) -> None:
    names = ("total", "used", "free", "shared", "buffers", "cache", "available")

    async def compare() -> list[str]:
        before = memory_use(await probe.read())
        memory, swap = (line.split()[1:] for line in (await output_of(shell, "free -w -m")).splitlines()[1:3])
        after = memory_use(await probe.read())
        expected = dict(zip((*names, "swap_total", "swap_used", "swap_free"), map(int, memory + swap), strict=True))
        wrong = []
        for name, mebibytes in expected.items():
            found = sorted((getattr(before, name) / MIB, getattr(after, name) / MIB))
            if not found[0] - 1 <= mebibytes <= found[1] + 1:
                wrong.append(f"{name}: {found}, free {mebibytes}")
        return wrong

    deadline = time.monotonic() + DEADLINE
    while wrong := await compare():
        assert time.monotonic() < deadline, wrong
