"""The probe's metrics equal those of real sar, free, ss and nstat on the same host over the same time, under load.

The exact time of sar's samples is unknown. The probe reads many times per second, and its counters are compared over a
time range as long as sar's: sar's counts must be between the probe's counts over the range shortened by one reading at
both ends, and over the range extended by one reading at both ends.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.host import sar
from cockpit.model.host.rates import memory_use, step_between
from cockpit.model.host.samples import HostConfig, HostFacts, HostReading
from tests.lab.cpus import on_generator_cpu
from tests.lab.lab import Lab
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024 * 1024
WEB1 = HostConfig(name="web1", ssh="web1", processes=("apache2",), interval=0.2)
SECONDS = 4
# Tolerance, in % of the CPU time, and the maximum interval (s) between readings for this tolerance.
POINT, CLOSE = 1.0, 0.12
# sar prints two decimals of a rate, over SECONDS.
ROUNDING = 0.01 * SECONDS
OPTIONS = "-u -b -n DEV -d -B -W -w -r -S -n SOCK -n TCP -n ETCP -q LOAD,CPU,IO,MEM"
CPU = ("user", "nice", "system", "iowait", "steal", "idle")
IO = {"tps": "tps", "rtps": "rtps", "wtps": "wtps", "bread": "bread/s", "bwrtn": "bwrtn/s"}
NET = {"rxpck": "rxpck/s", "txpck": "txpck/s", "rxkb": "rxkB/s", "txkb": "txkB/s"}
DISK = {"tps": "tps", "rkb": "rkB/s", "wkb": "wkB/s", "dkb": "dkB/s"}
RATES = (sar.PAGING, sar.SWAPPING, sar.TASKS, sar.TCP, sar.ETCP, sar.PRESSURE)
# Slow levels: between those of two readings, with this relative tolerance.
LEVELS, TOLERANCE = (sar.RAM, sar.SWAP, sar.SOCKETS), 0.02
# Tolerance of pressure, in percentage points: sar's interval differs slightly.
POINTS = 5.0
NSTAT = (
    *("TcpExt.ListenOverflows", "TcpExt.ListenDrops", "Tcp.ActiveOpens", "Tcp.PassiveOpens", "Tcp.InSegs"),
    *("Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.InErrs", "Tcp.OutRsts", "Tcp.AttemptFails", "Tcp.EstabResets"),
)
FREE = ("total", "used", "free", "shared", "buffers", "cache", "available", "swap_total", "swap_used", "swap_free")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell(lab: Lab) -> AsyncIterator[Shell]:
    """A shell on the host, whose Apache is under load."""
    command = on_generator_cpu(["ab", "-q", "-k", "-t", "600", "-n", "9000000", "-c", "8", lab.web1.url])
    ab = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    shell = await open_shell(WEB1, lab.ssh_config)
    yield shell
    await shell.close()
    with suppress(ProcessLookupError):
        ab.kill()
    await ab.wait()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def probe(shell: Shell) -> AsyncIterator[Probe]:
    probe = await Probe.start(shell, WEB1)
    yield probe
    probe.close()


async def output_of(shell: Shell, command: str) -> list[str]:
    """Return the lines of a command's output."""
    done = await shell.run(f"LC_ALL=C S_TIME_FORMAT=ISO S_COLORS=never {command}")
    assert done.exit_status == 0, done.stderr
    return done.stdout.decode().splitlines()


async def averages(shell: Shell) -> dict[tuple[str, str], dict[str, float]]:
    """Return the averages of sar: kind and name of a device -> column -> value; ("", "") is the host."""
    found: dict[tuple[str, str], dict[str, float]] = {("", ""): {}}
    columns: list[str] = []
    for line in await output_of(shell, f"sar {OPTIONS} 1 {SECONDS}"):
        fields = line.split()[1:]
        if not line.startswith("Average:"):
            continue
        named = columns[:1] in (["CPU"], ["DEV"], ["IFACE"])
        if not all(re.fullmatch(r"[\d.]+", field) for field in fields[named:]) or not fields[named:]:
            columns = fields
        elif named:
            found[columns[0], fields[0]] = dict(zip(columns[1:], map(float, fields[1:]), strict=True))
        else:
            found["", ""] |= zip(columns, map(float, fields), strict=True)
    return found


def write_to_disk(path: Path) -> None:
    """Write 16 MiB (32768 blocks) to the disk of the machine, which the lab's hosts share."""
    with path.open("wb") as file:
        for _ in range(16):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


async def readings_during(probe: Probe, reporting: asyncio.Future[object], file: Path) -> list[HostReading]:
    """Read continuously from before the start of sar until after its end, with disk I/O in the middle."""
    readings = [await probe.read()]
    writing: asyncio.Future[None] | None = None
    while not reporting.done():
        readings.append(await probe.read())
        await asyncio.sleep(0.02)
        if writing is None and readings[-1].uptime - readings[0].uptime > SECONDS / 2:
            writing = asyncio.ensure_future(asyncio.to_thread(write_to_disk, file))
    readings.append(await probe.read())
    if writing:
        await writing
    return readings


class TimeRange(NamedTuple):
    """Pairs of readings: a little less, about as far, and a little further apart than sar's."""

    inner: tuple[HostReading, HostReading]
    middle: tuple[HostReading, HostReading]
    outer: tuple[HostReading, HostReading]


def time_ranges(readings: Sequence[HostReading]) -> Iterator[TimeRange]:
    """Yield all time ranges with close readings at both ends."""
    for first in range(1, len(readings)):
        begun = readings[first].uptime
        last = min(range(len(readings)), key=lambda at: abs(readings[at].uptime - begun - SECONDS))
        if not first + 2 < last < len(readings) - 1:
            continue
        ends = (readings[first - 1], readings[first + 1], readings[last - 1], readings[last + 1])
        if ends[1].uptime - ends[0].uptime > CLOSE or ends[3].uptime - ends[2].uptime > CLOSE:
            continue
        yield TimeRange((ends[1], ends[2]), (readings[first], readings[last]), (ends[0], ends[3]))


def differences(times: TimeRange, facts: HostFacts, expected: Mapping[tuple[str, str], dict[str, float]]) -> list[str]:
    """Return the differences between the probe and sar for one time range."""
    inner, middle, outer = (step_between(*pair, facts) for pair in times)
    host, wrong = expected["", ""], []
    for name in CPU:
        measured, by_sar = getattr(middle.cpu, name), expected["CPU", "all"][f"%{name}"]
        if abs(measured - by_sar) > POINT:
            wrong.append(f"cpu {name}: {measured:.2f}, sar {by_sar}")
    rows = [("io", IO, inner.io, outer.io, host)]
    for kind, names, small, large in (
        ("DEV", DISK, [disk for disk, _ in inner.disks], [disk for disk, _ in outer.disks]),
        ("IFACE", NET, inner.nets, outer.nets),
    ):
        for least, most in zip(small, large, strict=True):
            if kind == "IFACE" or (kind, least.name) in expected:
                rows.append((f"{kind} {least.name}", names, least, most, expected[kind, least.name]))
    counts = [
        (f"{row} {name}", getattr(least, name) * inner.seconds, getattr(most, name) * outer.seconds, by_sar[column])
        for row, names, least, most, by_sar in rows
        for name, column in names.items()
    ]
    spans = [pair[1].uptime - pair[0].uptime for pair in (times.inner, times.outer)]
    low, high = (sar.rates(*pair, span) for pair, span in zip((times.inner, times.outer), spans, strict=True))
    for group in RATES:
        for name, column in group.metrics.items():
            metric = f"{group.name}.{name}"
            assert (column in host) == (metric in low), f"only one side has {metric}"
            if column in host and group is not sar.PRESSURE:
                counts.append((metric, low[metric] * spans[0], high[metric] * spans[1], host[column]))
            elif column in host and abs(host[column] - low[metric]) > POINTS:
                wrong.append(f"{metric}: {low[metric]:.2f}, sar {host[column]}")
    # sar's interval is SECONDS, apart from its own delay.
    return wrong + [
        f"{metric}: {least:.1f} to {most:.1f}, sar {by_sar * SECONDS:.1f}"
        for metric, least, most, by_sar in counts
        if not (least - ROUNDING) * 0.99 <= by_sar * SECONDS <= (most + ROUNDING) * 1.01
    ]


def wrong_levels(readings: Sequence[HostReading], expected: Mapping[str, float]) -> list[str]:
    levels = [sar.levels(reading) for reading in readings]
    wrong = []
    for group in LEVELS:
        for name, column in group.metrics.items():
            values = [each[f"{group.name}.{name}"] for each in levels]
            tolerance = 1 + TOLERANCE * max(values)
            if not min(values) - tolerance <= expected[column] <= max(values) + tolerance:
                wrong.append(f"{group.name}.{name}: {min(values)} to {max(values)}, sar {expected[column]}")
    return wrong


async def test_rates_and_levels_match_sar(shell: Shell, probe: Probe, tmp_path: Path) -> None:
    wrong: list[str] = []

    async def matches() -> bool:
        reporting = asyncio.ensure_future(averages(shell))
        readings = await readings_during(probe, reporting, tmp_path / "file")  # type: ignore[arg-type]
        expected = await reporting
        host = expected["", ""]
        assert expected["IFACE", "eth0"]["txpck/s"] > 50 and host["iseg/s"] > 10 and host["cswch/s"] > 10
        if host["bwrtn/s"] * SECONDS < 30000:
            wrong[:] = ["the file was written after sar's interval"]
            return False
        found = [differences(times, probe.facts, expected) for times in time_ranges(readings)]
        wrong[:] = min(found, key=len, default=["too few readings"]) + wrong_levels(readings, host)
        return not wrong

    try:
        await until(matches)
    except TimeoutError:
        raise AssertionError(wrong) from None


async def test_metrics_are_between_those_of_two_readings(shell: Shell, probe: Probe) -> None:
    """Counters of nstat, sockets of ss, and the memory of free in MiB, which is rounded."""

    def metrics(reading: HostReading) -> dict[str, float]:
        memory = memory_use(reading)
        counters = {name: reading.counters[name] for name in (*NSTAT, "TCP.tw")}
        return counters | {name: getattr(memory, name) / MIB for name in FREE}

    async def expected() -> dict[str, int]:
        words = [line.split() for line in await output_of(shell, "nstat -asz; ss -Htan state time-wait | wc -l")]
        found = {re.sub("^(TcpExt|Tcp)", r"\1.", row[0]): int(row[1]) for row in words if len(row) == 3}
        memory, swap = (line.split()[1:] for line in (await output_of(shell, "free -w -m"))[1:3])
        found |= zip(FREE, map(int, (*memory, *swap)), strict=True)
        return {name: found[name] for name in (*NSTAT, *FREE)} | {"TCP.tw": int(words[-1][0])}

    async def between() -> bool:
        before, values, after = metrics(await probe.read()), await expected(), metrics(await probe.read())
        assert values.keys() == before.keys()
        return all(
            min(before[name], after[name]) - (name in FREE) <= value <= max(before[name], after[name]) + (name in FREE)
            for name, value in values.items()
        )

    await until(between)
