"""New processes are in the next frame, whatever the kernel says of the numbers it gives them."""

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
from tests.hosts.conftest import TAG, put_first, running
from tests.processes import newer_descendants

NAME = f"{TAG}-born"
# Starts as many processes as it is told, and answers when they have their name; they end with it.
MAKER = """\
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


def program(directory: Path, runs: str) -> Path:
    """Another name of a program: what its processes are called."""
    path = directory / NAME
    path.symlink_to(os.path.realpath(runs))
    return path


class Maker:
    """A process that makes others, or threads, one line each."""

    def __init__(self, *command: str | Path) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def make(self, count: int = 1) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(b"%d\n" % count)
        self.process.stdout.readline()


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[Maker]:
    sleep = shutil.which("sleep")
    assert sleep
    maker = Maker(sys.executable, "-ISc", MAKER, program(tmp_path, sleep))
    yield maker
    maker.process.communicate()


async def pids(probe: Probe) -> set[int]:
    return {row.pid for row in (await probe.read()).processes}


async def test_every_newborn_is_in_the_next_frame(host_shell: str, maker: Maker) -> None:
    """One, none or more than are looked for one by one, at any place of a round."""
    made = 0
    async with running(NAME) as probe:
        assert await pids(probe) == set()
        for count in (1, 0, FEW + 10, 2, 0, *[1] * ROUND):
            maker.make(count)
            made += count
            assert len(await pids(probe)) == made


async def test_threads_are_not_taken_for_processes(host_shell: str, tmp_path: Path) -> None:
    """They have the name of their process, and a number of the same row."""
    threads = Maker(program(tmp_path, sys.executable), "-ISc", THREADS)
    threads.make()
    async with running(NAME) as probe:
        for _ in range(ROUND):
            assert await pids(probe) == {threads.process.pid}
            threads.make()
    threads.process.communicate()


@needs_root
@pytest.mark.parametrize("last", [0, 1, 4194000])
async def test_a_loadavg_that_counts_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: Maker, last: int
) -> None:
    """As in a container whose /proc/loadavg is that of the machine below it."""
    loadavg = tmp_path / "loadavg"
    loadavg.write_text(f"0.00 0.00 0.00 1/100 {last}\n")
    contained = f"mount --bind {loadavg} /proc/loadavg && exec {shutil.which('sh')} -s"
    put_first(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec unshare --mount /bin/sh -c '{contained}'\n")
    async with running(NAME) as probe:
        for made in range(ROUND):
            assert len(await pids(probe)) == made
            maker.make()


@needs_root
async def test_numbers_that_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the highest number come low ones."""
    sleep = program(tmp_path, shutil.which("sleep") or "")
    high = f"echo 30000 >/proc/sys/kernel/ns_last_pid; exec {shutil.which('sh')} -s"
    own = "unshare --pid --fork --mount-proc --kill-child"
    put_first(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec {own} /bin/sh -c '{high}'\n")
    started = newer_descendants()
    async with running(NAME) as probe:
        assert await pids(probe) == set()
        inside = next(process for process in started() if process.name() == "sh")
        for number in (300, 310, 320):
            start_as(number, sleep, inside.pid)
            assert number in await pids(probe)


def start_as(number: int, program: Path, within: int) -> None:
    """Start a process with that PID in the PID namespace of another.

    Wait for its name without a fork: how often a loop runs depends on the machine, and each fork takes a PID.
    """
    start = f'{program} 600 & until IFS= read -r name </proc/$!/comm && [ "$name" = {NAME} ]; do :; done'
    numbered = f"echo {number - 1} >/proc/sys/kernel/ns_last_pid; {start}"
    enter = ["nsenter", "--target", str(within), "--pid", "--mount", "/bin/sh", "-c"]
    subprocess.run([*enter, numbered], check=True, stdout=subprocess.DEVNULL)
