"""Workers that come and go at a known rate: all are counted that outlive a sample, and of the others the bound is."""

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
EVERY = 0.005  # seconds between two processes
NAME = f"{TAG}-churn"
# Makes workers when it is told for how many seconds each is to live, and says when the last one is gone.
MAKER = f"""
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
for line in sys.stdin:
    lifetime, begun = float(line), time.monotonic()
    for number in range({WORKERS}):
        time.sleep(max(0.0, begun + number * {EVERY} - time.monotonic()))
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


class Watch:
    """Reads as fast as it can and folds; `longest` is the longest time (s) between two readings."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        config = HostConfig(name="here", processes=(NAME,))
        start = SessionStarted(t=0, wall=0, version="0", name="x", hosts=(config,))
        up = HostChanged(t=0, host="here", condition="up", facts=probe.facts)
        self._state = fold(fold(State(), start), up)
        self.longest = 0.0
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
            self.longest = max(self.longest, reading.uptime - before.reading.uptime)
            self.unseen += self.host.point.unseen or 0

    async def while_made(self, maker: subprocess.Popen[bytes], lifetime: float) -> None:
        """Has the workers made, and reads until all are gone, and once more.

        Pauses before each reading: two within one step of the host's clock (10 ms) make no rates.
        """
        assert maker.stdin and maker.stdout
        maker.stdin.write(f"{lifetime}\n".encode())
        made = asyncio.ensure_future(asyncio.to_thread(maker.stdout.readline))
        while not made.done():
            await asyncio.sleep(0.05)
            await self.read()
        await asyncio.sleep(0.05)
        await self.read()


async def test_workers_that_outlive_a_sample_are_counted_without_loss(maker: subprocess.Popen[bytes]) -> None:
    shell = LocalShell()
    try:
        lifetime = 0.5
        probe = await Probe.start(shell, HostConfig(name="here", processes=(NAME,)))
        await until(lambda: Path(f"/proc/{maker.pid}/comm").read_text() == f"{NAME}\n")
        while True:
            watch = Watch(probe)
            await watch.read()
            await watch.while_made(maker, lifetime)
            host = watch.host
            assert host.spawned <= WORKERS <= host.spawned + watch.unseen
            if watch.longest < lifetime:
                break
            # Somebody else had this machine: they must live longer to be seen.
            lifetime = 4 * watch.longest
        assert (host.spawned, host.exited) == (WORKERS, WORKERS)
        assert [row.process.pid for row in host.processes] == [maker.pid]
    finally:
        await shell.close()


async def test_of_workers_that_do_not_outlive_a_sample_the_bound_is_told(maker: subprocess.Popen[bytes]) -> None:
    shell = LocalShell()
    try:
        probe = await Probe.start(shell, HostConfig(name="here", processes=(NAME,)))
        watch = Watch(probe)
        await watch.read()
        first = watch.host.sample
        await watch.while_made(maker, 0.0)
        last = watch.host.sample
        assert first and last
        assert watch.host.spawned + watch.unseen == last.reading.forks - first.reading.forks >= WORKERS
        assert watch.host.spawned == watch.host.exited
    finally:
        await shell.close()
