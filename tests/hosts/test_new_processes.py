"""New processes are in the next frame, independent of the last PID in /proc/loadavg."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.script import FEW, ROUND
from tests.hosts.conftest import TAG, prepend_to_path, running
from tests.processes import newer_descendants

NAME = f"{TAG}-born"
# Starts as many processes as requested, prints a line once they have their name, and kills them at the end.
SPAWNER = """\
import os, subprocess, sys
made = []
for line in sys.stdin:
    made += [subprocess.Popen([sys.argv[1], "600"]) for _ in range(int(line))]
    while any(open(f"/proc/{process.pid}/comm").read()[:-1] != os.path.basename(sys.argv[1]) for process in made):
        pass
    print(flush=True)
for process in made:
    process.kill()
    process.wait()
"""
THREADS = """\
import sys, threading
for line in sys.stdin:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(flush=True)
"""
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="only root on Linux can make namespaces, with unshare"
)


def named_program(directory: Path, runs: str) -> Path:
    """A link to a program, whose name is the comm of its processes."""
    path = directory / NAME
    path.symlink_to(os.path.realpath(runs))
    return path


class ProcessSpawner:
    """A process that starts processes or threads on request."""

    def __init__(self, *command: str | Path) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def spawn(self, count: int = 1) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(b"%d\n" % count)
        self.process.stdout.readline()


@pytest.fixture
def spawner(tmp_path: Path) -> Iterator[ProcessSpawner]:
    sleep = shutil.which("sleep")
    assert sleep
    spawner = ProcessSpawner(sys.executable, "-ISc", SPAWNER, named_program(tmp_path, sleep))
    yield spawner
    spawner.process.communicate()


async def pids(probe: Probe) -> set[int]:
    return {row.pid for row in (await probe.read()).processes}


async def test_new_processes_are_in_next_frame(host_shell: str, spawner: ProcessSpawner) -> None:
    """0, 1 or more than FEW new processes per frame, in each frame of a round."""
    made = 0
    async with running(NAME) as probe:
        assert await pids(probe) == set()
        for count in (1, 0, FEW + 10, 2, 0, *[1] * ROUND):
            spawner.spawn(count)
            made += count
            assert len(await pids(probe)) == made


async def test_threads_are_not_counted_as_processes(host_shell: str, tmp_path: Path) -> None:
    """Threads have the comm of their process, and IDs from the same sequence as PIDs."""
    threads = ProcessSpawner(named_program(tmp_path, sys.executable), "-ISc", THREADS)
    threads.spawn()
    async with running(NAME) as probe:
        for _ in range(ROUND):
            assert await pids(probe) == {threads.process.pid}
            threads.spawn()
    threads.process.communicate()


@needs_root
@pytest.mark.parametrize("last", [0, 1, 4194000])
async def test_loadavg_of_another_pid_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawner: ProcessSpawner, last: int
) -> None:
    """In some containers, /proc/loadavg is that of the machine, with its last PID."""
    loadavg = tmp_path / "loadavg"
    loadavg.write_text(f"0.00 0.00 0.00 1/100 {last}\n")
    contained = f"mount --bind {loadavg} /proc/loadavg && exec {shutil.which('sh')} -s"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec unshare --mount /bin/sh -c '{contained}'\n")
    async with running(NAME) as probe:
        for made in range(ROUND):
            assert len(await pids(probe)) == made
            spawner.spawn()


@needs_root
async def test_pids_wrap_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the maximum PID, low PIDs follow."""
    sleep = named_program(tmp_path, shutil.which("sleep") or "")
    high = f"echo 30000 >/proc/sys/kernel/ns_last_pid; exec {shutil.which('sh')} -s"
    own = "unshare --pid --fork --mount-proc --kill-child"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec {own} /bin/sh -c '{high}'\n")
    started = newer_descendants()
    async with running(NAME) as probe:
        assert await pids(probe) == set()
        inside = next(process for process in started() if process.name() == "sh")
        for number in (300, 310, 320):
            start_with_pid(number, sleep, inside.pid)
            assert number in await pids(probe)


def start_with_pid(number: int, named_program: Path, within: int) -> None:
    """Start a process with that PID in the PID namespace of another.

    Wait for its name without a fork: how often a loop runs depends on the machine, and each fork takes a PID.
    """
    start = f'{named_program} 600 & until IFS= read -r name </proc/$!/comm && [ "$name" = {NAME} ]; do :; done'
    numbered = f"echo {number - 1} >/proc/sys/kernel/ns_last_pid; {start}"
    enter = ["nsenter", "--target", str(within), "--pid", "--mount", "/bin/sh", "-c"]
    subprocess.run([*enter, numbered], check=True, stdout=subprocess.DEVNULL)
