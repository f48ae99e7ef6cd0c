"""Processes of a host whose names and command lines are made to confuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from cockpit.tuning import files, pending
from cockpit.tuning.host_inventory import take_inventory
from cockpit.tuning.scripts import STARTED
from tests.tuning.conftest import FaultyShell

# PR_SET_NAME is 15. The child has the name too, and its end leaves no zombie.
NAMED = """\
import ctypes, os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0)
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(600)
"""


@contextmanager
def named(name: str, *arguments: str) -> Iterator[tuple[str, str]]:
    """A process of this name and its child, by their PIDs."""
    program = [sys.executable, "-c", NAMED, name, *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = parent.stdout.readline().strip()
        try:
            yield str(parent.pid), child
        finally:
            own = psutil.Process(int(child))
            own.kill()
            own.wait(60)
            parent.kill()


@pytest.mark.parametrize("name", ["cockpit-w\nx", "cockpit-w) S 1", "cockpit-w ("])
async def test_workers_are_found_beside_a_process_of_an_odd_name(name: str, tmp_path: Path, shell: FaultyShell) -> None:
    with named(name), named("cockpit-w") as (parent, child):
        found = await pending.poll(shell, str(tmp_path), 30, "cockpit-w")
        assert (child, parent) in {(one.pid, one.parent) for one in found}


async def test_a_name_with_a_line_end_hides_no_other_start(tmp_path: Path, shell: FaultyShell) -> None:
    with named("cockpit-w\nx") as (odd, _), named("cockpit-w") as (parent, child):
        done = await files.run(shell, STARTED, str(tmp_path), odd, parent, child)
    assert len(done.stdout.splitlines()) == 3


async def test_command_lines_of_megabytes_do_not_fill_an_inventory(shell: FaultyShell) -> None:
    """Five servers and their children, with 2 MB each."""
    with ExitStack() as stack:
        own = [stack.enter_context(named("gunicorn3", *["x" * 130_000] * 14)) for _ in range(5)]
        found = {process.pid: process for process in (await take_inventory(shell, "web1")).processes}
    for pid in (int(pid) for pids in own for pid in pids):
        assert sum(map(len, found[pid].command)) < 70_000
