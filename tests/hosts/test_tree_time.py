"""CPU time of watched processes: exited children are included, nothing is counted twice."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from cockpit.hosts.tree_time import CpuTicks, ProcessTreeTime
from tests.hosts.conftest import TAG, running

HZ = 100
OLD = 5000  # clock ticks after boot


P, C, G = (1, OLD), (2, OLD), (3, OLD)  # parent, child, grandchild
NEW = (2, 10_050)  # started after the first reading
Reading = dict[tuple[int, int], CpuTicks]
CASES: dict[str, tuple[list[Reading], int]] = {
    "time before the first reading": ([{P: CpuTicks(0, 900, 50)}], 0),
    "time since the first reading": ([{P: CpuTicks(0, 900, 50)}, {P: CpuTicks(0, 930, 50)}], 30),
    "exited child, of whose 55 ticks 40 were read": (
        [{P: CpuTicks(0, 10, 100), C: CpuTicks(1, 40, 0)}, {P: CpuTicks(0, 10, 155)}],
        15,
    ),
    "child that was never read": ([{P: CpuTicks(0, 10, 0)}, {P: CpuTicks(0, 12, 70)}], 72),
    "grandchild exited with parent": (
        [{P: CpuTicks(0, 0, 0), C: CpuTicks(1, 20, 0), G: CpuTicks(2, 30, 0)}, {P: CpuTicks(0, 0, 60)}],
        10,
    ),
    "defunct process until it is reaped": (
        [
            {P: CpuTicks(0, 0, 0), C: CpuTicks(1, 20, 0)},
            {P: CpuTicks(0, 0, 0), C: CpuTicks(1, 25, 0)},
            {P: CpuTicks(0, 0, 25)},
        ],
        5,
    ),
    "parent that ignores SIGCHLD": ([{P: CpuTicks(0, 10, 0), C: CpuTicks(1, 300, 0)}, {P: CpuTicks(0, 17, 0)}], 7),
    "new process fully, renamed one from now": (
        [
            {P: CpuTicks(0, 0, 0)},
            {P: CpuTicks(0, 0, 0), NEW: CpuTicks(1, 8, 0), (3, 20): CpuTicks(1, 7777, 0)},
            {P: CpuTicks(0, 0, 0), NEW: CpuTicks(1, 8, 0), (3, 20): CpuTicks(1, 7780, 0)},
        ],
        11,
    ),
    "reused PID as new process": ([{C: CpuTicks(1, 500, 0)}, {NEW: CpuTicks(1, 3, 0)}], 3),
}


@pytest.mark.parametrize("case", CASES)
def test_ticks_after_readings(case: str) -> None:
    """Readings are one second apart, the first 100 s after boot."""
    readings, expected = CASES[case]
    time = ProcessTreeTime(HZ)
    for second, reading in enumerate(readings):
        time.take(reading, 100.0 + second)
    assert time.ticks == expected


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


async def test_short_lived_children_are_counted() -> None:
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
