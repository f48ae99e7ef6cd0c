"""The probe's metrics equal those of real sar, free and ps on the same host over the same time, under load.

The exact time of sar's samples is unknown. The probe reads many times per second, and its counters are compared over a
time range as long as sar's: sar's counts must be between the probe's counts over the range shortened by one reading at
both ends, and over the range extended by one reading at both ends.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.host_rates import memory_use, step_between
from cockpit.model.hosts import HostConfig, HostFacts, HostReading
from tests.lab.command_host import by_command
from tests.lab.cpus import on_generator_cpu
from tests.lab.lab import Lab

DEADLINE = 300.0
MIB = 1024 * 1024
WEB1 = HostConfig(name="web1", ssh="web1", processes=("apache2",), interval=0.2)
SECONDS = 4
# Tolerance, in % of the CPU time.
POINT = 1.0
# Maximum interval (s) between readings for this tolerance.
CLOSE = 0.12
# sar prints two decimals of a rate, over SECONDS.
ROUNDING = 0.01 * SECONDS
CPU = ("user", "nice", "system", "iowait", "steal", "idle")
IO = {"tps": "tps", "rtps": "rtps", "wtps": "wtps", "bread": "bread/s", "bwrtn": "bwrtn/s"}
NET = {"rxpck": "rxpck/s", "txpck": "txpck/s", "rxkb": "rxkB/s", "txkb": "txkB/s"}
DISK = {"tps": "tps", "rkb": "rkB/s", "wkb": "wkB/s", "dkb": "dkB/s"}

Averages = dict[str, dict[str, float]]


@pytest.fixture(params=["ssh", "via"])
async def shell(request: pytest.FixtureRequest, lab: Lab) -> AsyncIterator[Shell]:
    """A shell on the host by SSH, and by a command."""
    shell = await open_shell(WEB1 if request.param == "ssh" else by_command(lab.web1), lab.ssh_config)
    yield shell
    await shell.close()


@pytest.fixture
async def probe(shell: Shell) -> AsyncIterator[Probe]:
    probe = await Probe.start(shell, WEB1)
    yield probe
    probe.close()


async def output_of(shell: Shell, command: str) -> str:
    done = await shell.run(f"LC_ALL=C S_TIME_FORMAT=ISO S_COLORS=never {command}")
    assert done.exit_status == 0, done.stderr
    return done.stdout.decode()


async def sar(shell: Shell) -> dict[str, Averages]:
    """Return the averages of sar: table (by the name of its first column) -> row -> column -> value."""
    tables: dict[str, Averages] = {}
    columns: list[str] = []
    for line in (await output_of(shell, f"sar -u -b -n DEV -d 1 {SECONDS}")).splitlines():
        fields = line.split()
        if not fields or fields[0] != "Average:":
            continue
        if any(column in fields for column in ("%user", "tps", "rxpck/s")):
            columns = fields[1:]
        else:
            named = columns[0] in ("CPU", "DEV", "IFACE")
            row, values = (fields[1], fields[2:]) if named else ("", fields[1:])
            names = columns[1:] if named else columns
            table = tables.setdefault(columns[0], {})
            table[row] = dict(zip(names, map(float, values), strict=True))
    return tables


@asynccontextmanager
async def load(url: str) -> AsyncIterator[None]:
    """Run ab on the generator's CPU until the end of the block, for at most 300 s."""
    command = on_generator_cpu(["ab", "-q", "-k", "-t", "300", "-n", "9000000", "-c", "8", url])
    ab = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    try:
        yield
        assert ab.returncode is None
    finally:
        with suppress(ProcessLookupError):
            ab.kill()
        await ab.wait()


def write_to_disk(path: Path) -> None:
    """Write 16 MiB (32768 blocks) to the disk of the machine, which the lab's hosts share."""
    with path.open("wb") as file:
        for _ in range(16):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


async def readings_during(
    probe: Probe, reporting: asyncio.Future[dict[str, Averages]], file: Path
) -> list[HostReading]:
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


def differences(time_range: TimeRange, facts: HostFacts, expected: dict[str, Averages]) -> list[str]:
    """Return the differences between the probe and sar for one time range."""
    inner, middle, outer = (step_between(*pair, facts) for pair in time_range)
    wrong = []
    for name in CPU:
        found, by_sar = getattr(middle.cpu, name), expected["CPU"]["all"][f"%{name}"]
        if abs(found - by_sar) > POINT:
            wrong.append(f"cpu {name}: {found:.2f}, sar {by_sar}")
    pairs = [("io", IO, inner.io, outer.io, expected["tps"][""])]
    pairs += [
        (f"disk {small.name}", DISK, small, large, expected["DEV"][small.name])
        for (small, _), (large, _) in zip(inner.disks, outer.disks, strict=True)
        if small.name in expected["DEV"]
    ]
    pairs += [
        (f"net {small.name}", NET, small, large, expected["IFACE"][small.name])
        for small, large in zip(inner.nets, outer.nets, strict=True)
    ]
    for group, names, small, large, row in pairs:
        for name, column in names.items():
            least = getattr(small, name) * inner.seconds - ROUNDING
            most = getattr(large, name) * outer.seconds + ROUNDING
            # sar's interval is SECONDS, apart from its own delay.
            counted = row[column] * SECONDS
            if not least * 0.99 <= counted <= most * 1.01:
                wrong.append(f"{group} {name}: {least:.1f} to {most:.1f}, sar {counted:.1f}")
    return wrong


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "under load"])
async def test_cpu_io_and_net_match_sar(lab: Lab, shell: Shell, probe: Probe, tmp_path: Path, busy: bool) -> None:
    async def compare() -> list[str]:
        reporting = asyncio.ensure_future(sar(shell))
        readings = await readings_during(probe, reporting, tmp_path / "file")
        expected = await reporting
        assert {"CPU", "tps", "DEV", "IFACE"} <= expected.keys()
        assert "eth0" in expected["IFACE"]
        if busy:
            assert expected["IFACE"]["eth0"]["txpck/s"] > 50
        if expected["tps"][""]["bwrtn/s"] * SECONDS < 30000:
            return ["the file was written after sar's interval"]
        found = [differences(time_range, probe.facts, expected) for time_range in time_ranges(readings)]
        return min(found, key=len, default=["too few readings"])

    @asynccontextmanager
    async def no_load() -> AsyncIterator[None]:
        yield

    deadline = time.monotonic() + DEADLINE
    async with load(lab.web1.url) if busy else no_load():
        while wrong := await compare():
            assert time.monotonic() < deadline, wrong


async def test_memory_matches_free(shell: Shell, probe: Probe) -> None:
    """Each metric of free is between the readings before and after it."""
    names = ("total", "used", "free", "shared", "buff_cache", "available")

    async def compare() -> list[str]:
        before = memory_use(await probe.read())
        expected = [int(field) for field in (await output_of(shell, "free -m")).splitlines()[1].split()[1:]]
        after = memory_use(await probe.read())
        wrong = []
        for name, mebibytes in zip(names, expected, strict=True):
            found = sorted((getattr(before, name) / MIB, getattr(after, name) / MIB))
            if not found[0] - 1 <= mebibytes <= found[1] + 1:
                wrong.append(f"{name}: {found}, free {mebibytes}")
        return wrong

    deadline = time.monotonic() + DEADLINE
    while wrong := await compare():
        assert time.monotonic() < deadline, wrong


async def test_processes_match_ps(lab: Lab, shell: Shell, probe: Probe) -> None:
    async def rows_of_ps() -> list[list[str]]:
        said_by_ps = await output_of(shell, "ps -ww -C apache2 -o pid=,ppid=,stat=,vsz=,rss=,nlwp=,comm=,args=")
        return [line.split(maxsplit=7) for line in said_by_ps.splitlines()]

    async def agree() -> bool:
        """Return whether the probe agrees with ps just before or just after it: a worker may spawn or exit."""
        before = await rows_of_ps()
        reading = await probe.read()
        rows = [
            [
                *(str(number) for number in (row.pid, row.ppid)),
                row.stat,
                *(str(number) for number in (row.vsz // 1024, row.rss // 1024, row.threads)),
                row.comm,
                row.command,
            ]
            for row in reading.processes
        ]
        assert len(rows) > 1
        return before == rows or rows == await rows_of_ps()

    # Load causes changes: the probe sends a process again only if it has changed.
    async with load(lab.web1.url):
        await probe.read()
    deadline = time.monotonic() + DEADLINE
    while not await agree():
        assert time.monotonic() < deadline
