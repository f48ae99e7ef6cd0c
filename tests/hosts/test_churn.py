"""Workers spawned at a known rate: exact counts if they outlive a sample, else an upper bound."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe import Probe
from cockpit.model.events import HostChanged, HostSample, SessionStarted
from cockpit.model.fold import fold
from cockpit.model.host_state import HostState
from cockpit.model.hosts import HostConfig
from cockpit.model.state import State
from tests.hosts.conftest import TAG, until

WORKERS = 500
SPAWN_INTERVAL = 0.005  # seconds between two spawns
NAME = f"{TAG}-churn"
# Reads the lifetime of the workers in seconds, spawns them, and prints a line when the last has exited.
MAKER = f"""
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
for line in sys.stdin:
    lifetime, begun = float(line), time.monotonic()
    for number in range({WORKERS}):
        time.sleep(max(0.0, begun + number * {SPAWN_INTERVAL} - time.monotonic()))
        if os.fork() == 0:
            if lifetime:
                time.sleep(lifetime)
            os._exit(0)
    try:
        os.wait()
    except ChildProcessError:
        print(flush=True)
"""


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = tmp_path / NAME
    program.symlink_to(os.path.realpath(sys.executable))
    process = subprocess.Popen([program, "-ISc", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    yield process
    process.communicate()


class ProbeReader:
    """Reads the probe and folds; `max_interval` is the longest time (s) between two readings."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        config = HostConfig(name="here", processes=(NAME,))
        started = SessionStarted(t=0, wall=0, version="0", name="x", hosts=(config,))
        up = HostChanged(t=0, host="here", condition="up", facts=probe.facts)
        self._state = fold(fold(State(), started), up)
        self.max_interval = 0.0
        self.unseen = 0

    @property
    def host(self) -> HostState:
        return self._state.hosts["here"]

    async def read(self) -> None:
        before = self.host.sample
        reading = await self._probe.read()
        sample = HostSample(t=reading.uptime, host="here", round_trip=0, reading=reading)
        self._state = fold(self._state, sample)
        if before is not None:
            assert self.host.point is not None
            self.max_interval = max(self.max_interval, reading.uptime - before.reading.uptime)
            self.unseen += self.host.point.unseen or 0

    async def read_while_spawning(self, maker: subprocess.Popen[bytes], lifetime: float) -> None:
        """Spawn the workers, read until all have exited, and once more.

        Pauses before each reading, since two within one step of the host's clock (10 ms) yield no rates.
        """
        assert maker.stdin and maker.stdout
        maker.stdin.write(f"{lifetime}\n".encode())
        spawning = asyncio.ensure_future(asyncio.to_thread(maker.stdout.readline))
        while not spawning.done():
            await asyncio.sleep(0.05)
            await self.read()
        await asyncio.sleep(0.05)
        await self.read()


async def test_workers_outliving_sample_are_all_counted(maker: subprocess.Popen[bytes]) -> None:
    shell = LocalShell()
    try:
        lifetime = 0.5
        probe = await Probe.start(shell, HostConfig(name="here", processes=(NAME,)))
        await until(lambda: Path(f"/proc/{maker.pid}/comm").read_text() == f"{NAME}\n")
        while True:
            reader = ProbeReader(probe)
            await reader.read()
            await reader.read_while_spawning(maker, lifetime)
            host = reader.host
            assert host.spawned <= WORKERS <= host.spawned + reader.unseen
            if reader.max_interval < lifetime:
                break
            # The machine was busy: longer-lived workers are needed.
            lifetime = 4 * reader.max_interval
        assert (host.spawned, host.exited) == (WORKERS, WORKERS)
        assert [row.process.pid for row in host.processes] == [maker.pid]
    finally:
        await shell.close()


async def test_short_lived_workers_are_bounded_by_forks(maker: subprocess.Popen[bytes]) -> None:
    shell = LocalShell()
    try:
        probe = await Probe.start(shell, HostConfig(name="here", processes=(NAME,)))
        reader = ProbeReader(probe)
        await reader.read()
        first = reader.host.sample
        await reader.read_while_spawning(maker, 0.0)
        last = reader.host.sample
        assert first and last
        assert reader.host.spawned + reader.unseen == last.reading.forks - first.reading.forks >= WORKERS
        assert reader.host.spawned == reader.host.exited
    finally:
        await shell.close()
