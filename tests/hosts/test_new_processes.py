"""New processes are in the next frame, independent of the last PID in /proc/loadavg, and are counted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.script import FEW, ROUND
from cockpit.model.events import HostChanged, HostSample, SessionStarted
from cockpit.model.fold import fold
from cockpit.model.hosts import HostConfig
from cockpit.model.state import State
from tests.hosts.conftest import TAG, Spawner, prepend_to_path, running
from tests.processes import newer_descendants
from tests.waiting import wait_until

NAME = f"{TAG}-born"


@pytest.fixture
def named_sleep(tmp_path: Path) -> Path:
    """A link to `sleep`, whose name is the comm of its processes."""
    path = tmp_path / NAME
    path.symlink_to(os.path.realpath(shutil.which("sleep") or ""))
    return path


@pytest.fixture
def spawn(named_sleep: Path) -> Iterator[Callable[[int], None]]:
    """Start processes, and wait until they have their name."""
    pids: list[int] = []

    def start(count: int = 1) -> None:
        started = [os.posix_spawn(named_sleep, [NAME, "600"], os.environ) for _ in range(count)]
        pids.extend(started)
        wait_until(lambda: all(Path(f"/proc/{pid}/comm").read_text() == f"{NAME}\n" for pid in started))

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


async def pids_of(probe: Probe) -> set[int]:
    return {row.pid for row in (await probe.read()).processes}


async def test_new_processes_are_in_next_frame(host_shell: str, spawn: Callable[[int], None]) -> None:
    """In each frame of a round; more than FEW at once; more than the 512 words that mawk reads at once."""
    made = 0
    async with running(NAME) as probe:
        assert await pids_of(probe) == set()
        for count in (1, 0, FEW + 10, 2, 0, *[1] * ROUND, 600, 0):
            spawn(count)
            made += count
            assert len(await pids_of(probe)) == made


# Starts a thread per line of input.
THREADS = """\
import sys, threading
print(flush=True)
for line in sys.stdin:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(flush=True)
"""


async def test_threads_are_not_counted_as_processes(host_shell: str, spawner: Spawner) -> None:
    """Threads have the comm of their process, and IDs from the same sequence as PIDs."""
    threads = spawner.start(NAME, program=THREADS)
    assert threads.stdin and threads.stdout
    async with running(NAME) as probe:
        for _ in range(ROUND):
            assert await pids_of(probe) == {threads.pid}
            threads.stdin.write(b"\n")
            threads.stdout.readline()


@pytest.mark.lab
@pytest.mark.parametrize("last", [0, 1, 4194000])
async def test_loadavg_of_another_pid_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawn: Callable[[int], None], last: int
) -> None:
    """In some containers, /proc/loadavg is that of the machine, with its last PID."""
    loadavg = tmp_path / "loadavg"
    loadavg.write_text(f"0.00 0.00 0.00 1/100 {last}\n")
    contained = f"mount --bind {loadavg} /proc/loadavg && exec {shutil.which('sh')} -s"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec unshare --mount /bin/sh -c '{contained}'\n")
    async with running(NAME) as probe:
        for made in range(ROUND):
            assert len(await pids_of(probe)) == made
            spawn(1)


@pytest.mark.lab
async def test_pids_wrap_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_sleep: Path) -> None:
    """After the maximum PID, low PIDs follow."""
    high = f"echo 30000 >/proc/sys/kernel/ns_last_pid; exec {shutil.which('sh')} -s"
    own = "unshare --pid --fork --mount-proc --kill-child"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec {own} /bin/sh -c '{high}'\n")
    started = newer_descendants()
    async with running(NAME) as probe:
        assert await pids_of(probe) == set()
        inside = next(process for process in started() if process.name() == "sh")
        for number in (300, 310, 320):
            start_with_pid(number, named_sleep, inside.pid)
            assert number in await pids_of(probe)


def start_with_pid(number: int, named_program: Path, within: int) -> None:
    """Start a process with that PID in the PID namespace of another.

    Wait for its name without a fork: how often a loop runs depends on the machine, and each fork takes a PID.
    """
    start = f'{named_program} 600 & until IFS= read -r name </proc/$!/comm && [ "$name" = {NAME} ]; do :; done'
    numbered = f"echo {number - 1} >/proc/sys/kernel/ns_last_pid; {start}"
    enter = ["nsenter", "--target", str(within), "--pid", "--mount", "/bin/sh", "-c"]
    subprocess.run([*enter, numbered], check=True, stdout=subprocess.DEVNULL)


WORKERS = 100
# Per line of input: start WORKERS children that wait for the next line, which ends them, or that exit at once; print a
# line when they have started or exited.
MAKER = f"""\
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
print(flush=True)
for line in sys.stdin:
    reading, writing = os.pipe()
    for _ in range({WORKERS}):
        if os.fork() == 0:
            os.close(writing)
            line == "brief\\n" or os.read(reading, 1)
            os._exit(0)
    if line != "brief\\n":
        print(flush=True)
        sys.stdin.readline()
    os.close(writing)
    try:
        os.wait()
    except ChildProcessError:
        print(flush=True)
"""


async def test_spawned_and_exited_workers_are_counted(spawner: Spawner) -> None:
    """Exactly if they outlive a reading; otherwise the forks of the host are an upper bound."""
    maker = spawner.start(NAME, program=MAKER)
    started = SessionStarted(t=0, wall=0, version="0", name="x", hosts=(HostConfig(name="here", processes=(NAME,)),))
    async with running(NAME) as probe:
        state = fold(State(), started)
        state = fold(state, HostChanged(t=0, host="here", condition="up", facts=probe.facts))
        counted, forks, unseen = [], [], []
        for command in ("", "stay\n", "end\n", "brief\n"):
            if command:
                assert maker.stdin and maker.stdout
                maker.stdin.write(command.encode())
                maker.stdout.readline()
            # Two readings within one step of the host's clock (10 ms) have no rates.
            await asyncio.sleep(0.02)
            reading = await probe.read()
            state = fold(state, HostSample(t=reading.uptime, host="here", round_trip=0, reading=reading))
            host = state.hosts["here"]
            counted.append((host.spawned, host.exited, len(host.processes)))
            forks.append(reading.forks)
            unseen.append((host.point and host.point.unseen) or 0)
    assert counted == [(0, 0, 1), (WORKERS, 0, WORKERS + 1), (WORKERS, WORKERS, 1), (WORKERS, WORKERS, 1)]
    assert unseen[-1] == forks[-1] - forks[-2] >= WORKERS
