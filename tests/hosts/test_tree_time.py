"""CPU time of watched processes: exited children are included, nothing is counted twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from cockpit.hosts.tree_time import CpuTicks, ProcessTreeTime
from tests.hosts.conftest import TAG, running

HZ = 100
OLD = 5000  # clock ticks after boot


def ticks_after(*readings: dict[tuple[int, int], CpuTicks]) -> int:
    """Ticks after readings one second apart, the first 100 s after boot."""
    time = ProcessTreeTime(HZ)
    for second, reading in enumerate(readings):
        time.take(reading, 100.0 + second)
    return time.ticks


def test_time_before_first_reading_is_excluded() -> None:
    assert ticks_after({(1, OLD): CpuTicks(0, 900, 50)}) == 0
    assert ticks_after({(1, OLD): CpuTicks(0, 900, 50)}, {(1, OLD): CpuTicks(0, 930, 50)}) == 30


def test_exited_child_is_counted_once() -> None:
    parent, child = (1, OLD), (2, OLD)
    # 40 of its 55 ticks were read before it exited.
    before = {parent: CpuTicks(0, 10, 100), child: CpuTicks(1, 40, 0)}
    assert ticks_after(before, {parent: CpuTicks(0, 10, 155)}) == 15


def test_child_that_was_never_read_counts_fully() -> None:
    assert ticks_after({(1, OLD): CpuTicks(0, 10, 0)}, {(1, OLD): CpuTicks(0, 12, 70)}) == 72


def test_grandchild_exited_with_parent_is_counted_once() -> None:
    before = {(1, OLD): CpuTicks(0, 0, 0), (2, OLD): CpuTicks(1, 20, 0), (3, OLD): CpuTicks(2, 30, 0)}
    assert ticks_after(before, {(1, OLD): CpuTicks(0, 0, 60)}) == 10


def test_defunct_process_counts_until_reaped() -> None:
    readings = [
        {(1, OLD): CpuTicks(0, 0, 0), (2, OLD): CpuTicks(1, 20, 0)},
        {(1, OLD): CpuTicks(0, 0, 0), (2, OLD): CpuTicks(1, 25, 0)},
        {(1, OLD): CpuTicks(0, 0, 25)},
    ]
    assert ticks_after(*readings) == 5


def test_parent_ignoring_sigchld_keeps_its_own_time() -> None:
    before = {(1, OLD): CpuTicks(0, 10, 0), (2, OLD): CpuTicks(1, 300, 0)}
    assert ticks_after(before, {(1, OLD): CpuTicks(0, 17, 0)}) == 7


def test_new_process_counts_fully_renamed_from_now() -> None:
    before = {(1, OLD): CpuTicks(0, 0, 0)}
    new, renamed = (2, 10_050), (3, 20)
    after = {(1, OLD): CpuTicks(0, 0, 0), new: CpuTicks(1, 8, 0), renamed: CpuTicks(1, 7777, 0)}
    assert ticks_after(before, after) == 8
    assert ticks_after(before, after, after | {renamed: CpuTicks(1, 7780, 0)}) == 11


def test_reused_pid_counts_as_new_process() -> None:
    assert ticks_after({(2, OLD): CpuTicks(1, 500, 0)}, {(2, 10_050): CpuTicks(1, 3, 0)}) == 3


# Runs under another name. Per line of input, four children use 0.08 s of CPU time each, one with a child of its own;
# prints the CPU time of all of them and itself.
TREE = """
import os, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
def burn():
    end = time.process_time() + 0.08
    while time.process_time() < end: pass
print(flush=True)
for line in sys.stdin:
    began = os.times()
    for number in range(4):
        pid = os.fork()
        if not pid:
            if number == 3 and not os.fork():
                burn()
                os._exit(0)
            elif number == 3:
                os.wait()
            burn()
            os._exit(0)
    for _ in range(4): os.wait()
    ended = os.times()
    print(sum(ended[:4]) - sum(began[:4]), flush=True)
"""


async def test_short_lived_children_are_counted(host_shell: str) -> None:
    name = f"{TAG}tree"
    tree = await asyncio.to_thread(
        subprocess.Popen, [sys.executable, "-ISc", TREE, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert tree.stdin and tree.stdout
    try:
        tree.stdout.readline()
        async with running(name) as probe:
            before = await probe.read()
            tree.stdin.write(b"\n")
            tree.stdin.flush()
            used = float(tree.stdout.readline())
            after = await probe.read()
            ticks = (after.processes_cpu or 0) - (before.processes_cpu or 0)
    finally:
        tree.communicate()
    assert used > 0.34
    assert abs(ticks / probe.facts.hz - used) <= 0.05
