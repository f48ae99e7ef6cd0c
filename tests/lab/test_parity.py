"""The probe's figures are those of real sar, free and ps on the same host over the same seconds, under load.

sar does not tell when exactly it took its counters. So the probe reads many times a second meanwhile, and its counters
are compared over a stretch as long as sar's: what sar counted lies between what the probe counted over the stretch less
a reading at both ends and the stretch with one more at both.
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
from tests.lab.cpus import on_generator_cpu
from tests.lab.entered import entered
from tests.lab.lab import Lab

DEADLINE = 300.0
MIB = 1024 * 1024
WEB1 = HostConfig(name="web1", ssh="web1", processes=("apache2",), interval=0.2)
SECONDS = 4
# Per cent of all CPU time.
POINT = 1.0
# Seconds between readings that are close enough for a point.
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
    """The host over SSH, and entered by a command."""
    shell = await open_shell(WEB1 if request.param == "ssh" else entered(lab.web1), lab.ssh_config)
    yield shell
    await shell.close()


@pytest.fixture
async def probe(shell: Shell) -> AsyncIterator[Probe]:
    probe = await Probe.start(shell, WEB1)
    yield probe
    probe.close()


async def said(shell: Shell, command: str) -> str:
    done = await shell.run(f"LC_ALL=C S_TIME_FORMAT=ISO S_COLORS=never {command}")
    assert done.exit_status == 0, done.stderr
    return done.stdout.decode()


async def sar(shell: Shell) -> dict[str, Averages]:
    """What sar prints as averages: table (by its first column's name) -> row -> column -> value."""
    tables: dict[str, Averages] = {}
    columns: list[str] = []
    for line in (await said(shell, f"sar -u -b -n DEV -d 1 {SECONDS}")).splitlines():
        words = line.split()
        if not words or words[0] != "Average:":
            continue
        if any(word in words for word in ("%user", "tps", "rxpck/s")):
            columns = words[1:]
        else:
            named = columns[0] in ("CPU", "DEV", "IFACE")
            row, values = (words[1], words[2:]) if named else ("", words[1:])
            names = columns[1:] if named else columns
            table = tables.setdefault(columns[0], {})
            table[row] = dict(zip(names, map(float, values), strict=True))
    return tables


@asynccontextmanager
async def load(url: str) -> AsyncIterator[None]:
    """ab against the server, on the CPU for load, for as long as it takes, at most 300 s."""
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
    """Writes 16 MiB (32768 blocks) through to the disk, of the machine that the lab's hosts share."""
    with path.open("wb") as file:
        for _ in range(16):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


async def watched(probe: Probe, meanwhile: asyncio.Future[dict[str, Averages]], file: Path) -> list[HostReading]:
    """Readings, as many as there can be, from before sar began until after it ended; some disk I/O in their middle."""
    readings = [await probe.read()]
    writing: asyncio.Future[None] | None = None
    while not meanwhile.done():
        readings.append(await probe.read())
        await asyncio.sleep(0.02)
        if writing is None and readings[-1].uptime - readings[0].uptime > SECONDS / 2:
            writing = asyncio.ensure_future(asyncio.to_thread(write_to_disk, file))
    readings.append(await probe.read())
    if writing:
        await writing
    return readings


class Stretch(NamedTuple):
    """Readings about as far apart as sar's: a little less, the same, a little more."""

    inner: tuple[HostReading, HostReading]
    middle: tuple[HostReading, HostReading]
    outer: tuple[HostReading, HostReading]


def stretches(readings: Sequence[HostReading]) -> Iterator[Stretch]:
    """All stretches of readings that lie close together at both ends."""
    for first in range(1, len(readings)):
        begun = readings[first].uptime
        last = min(range(len(readings)), key=lambda at: abs(readings[at].uptime - begun - SECONDS))
        if not first + 2 < last < len(readings) - 1:
            continue
        ends = (readings[first - 1], readings[first + 1], readings[last - 1], readings[last + 1])
        if ends[1].uptime - ends[0].uptime > CLOSE or ends[3].uptime - ends[2].uptime > CLOSE:
            continue
        yield Stretch((ends[1], ends[2]), (readings[first], readings[last]), (ends[0], ends[3]))


def disagreements(stretch: Stretch, facts: HostFacts, theirs: dict[str, Averages]) -> list[str]:
    """What the probe and sar do not say alike of one stretch."""
    inner, middle, outer = (step_between(*pair, facts) for pair in stretch)
    wrong = []
    for name in CPU:
        ours, sars = getattr(middle.cpu, name), theirs["CPU"]["all"][f"%{name}"]
        if abs(ours - sars) > POINT:
            wrong.append(f"cpu {name}: {ours:.2f}, sar {sars}")
    pairs = [("io", IO, inner.io, outer.io, theirs["tps"][""])]
    pairs += [
        (f"disk {small.name}", DISK, small, large, theirs["DEV"][small.name])
        for (small, _), (large, _) in zip(inner.disks, outer.disks, strict=True)
        if small.name in theirs["DEV"]
    ]
    pairs += [
        (f"net {small.name}", NET, small, large, theirs["IFACE"][small.name])
        for small, large in zip(inner.nets, outer.nets, strict=True)
    ]
    for what, names, small, large, row in pairs:
        for name, column in names.items():
            least = getattr(small, name) * inner.seconds - ROUNDING
            most = getattr(large, name) * outer.seconds + ROUNDING
            # Their seconds are whole ones, but for the time it takes sar to come round.
            counted = row[column] * SECONDS
            if not least * 0.99 <= counted <= most * 1.01:
                wrong.append(f"{what} {name}: {least:.1f} to {most:.1f}, sar {counted:.1f}")
    return wrong


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "under load"])
async def test_cpu_io_and_net_are_what_sar_says(
    lab: Lab, shell: Shell, probe: Probe, tmp_path: Path, busy: bool
) -> None:
    async def agree() -> list[str]:
        reporting = asyncio.ensure_future(sar(shell))
        readings = await watched(probe, reporting, tmp_path / "file")
        theirs = await reporting
        assert {"CPU", "tps", "DEV", "IFACE"} <= theirs.keys()
        assert "eth0" in theirs["IFACE"]
        if busy:
            assert theirs["IFACE"]["eth0"]["txpck/s"] > 50
        assert theirs["tps"][""]["bwrtn/s"] * SECONDS > 30000
        found = [disagreements(stretch, probe.facts, theirs) for stretch in stretches(readings)]
        return min(found, key=len, default=["the readings did not come often enough"])

    @asynccontextmanager
    async def nothing() -> AsyncIterator[None]:
        yield

    deadline = time.monotonic() + DEADLINE
    async with load(lab.web1.url) if busy else nothing():
        while wrong := await agree():
            assert time.monotonic() < deadline, wrong


async def test_memory_is_what_free_says(shell: Shell, probe: Probe) -> None:
    """Between one reading and the next, each figure of free lies between theirs."""
    names = ("total", "used", "free", "shared", "buff_cache", "available")

    async def agree() -> list[str]:
        before = memory_use(await probe.read())
        theirs = [int(word) for word in (await said(shell, "free -m")).splitlines()[1].split()[1:]]
        after = memory_use(await probe.read())
        wrong = []
        for name, mebibytes in zip(names, theirs, strict=True):
            ours = sorted((getattr(before, name) / MIB, getattr(after, name) / MIB))
            if not ours[0] - 1 <= mebibytes <= ours[1] + 1:
                wrong.append(f"{name}: {ours}, free {mebibytes}")
        return wrong

    deadline = time.monotonic() + DEADLINE
    while wrong := await agree():
        assert time.monotonic() < deadline, wrong


async def test_processes_are_what_ps_says(lab: Lab, shell: Shell, probe: Probe) -> None:
    async def rows_of_ps() -> list[list[str]]:
        said_by_ps = await said(shell, "ps -ww -C apache2 -o pid=,ppid=,stat=,vsz=,rss=,nlwp=,comm=,args=")
        return [line.split(maxsplit=7) for line in said_by_ps.splitlines()]

    async def agree() -> bool:
        """Whether the probe says what ps says just before and just after, in case a worker comes or goes meanwhile."""
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

    # So that there is something to follow: the probe sends a process anew only where it changed.
    async with load(lab.web1.url):
        await probe.read()
    deadline = time.monotonic() + DEADLINE
    while not await agree():
        assert time.monotonic() < deadline
