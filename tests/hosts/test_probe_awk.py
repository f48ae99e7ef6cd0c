"""The awk that does the reading: one that fails, and one that reads in blocks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cockpit.hosts.probe import COST_FRAMES
from cockpit.hosts.script import script
from tests.hosts.conftest import TAG, Crowd, put_first, running
from tests.processes import newer_descendants

MANY = 1000


@pytest.fixture
def last_line() -> str:
    """What ends a message to the machine's awk, as a pattern: for mawk, what fills up its block."""
    told = subprocess.run(["awk", "-W", "version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return "^ *$" if "mawk" in told.stdout else "^ *end$"


@pytest.mark.parametrize("end", ["exit 2", "kill -9 $$"])
async def test_reading_begins_anew_where_awk_gave_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crowd: Crowd, last_line: str, end: str
) -> None:
    """As mawk does where a process ends between the opening of its file and the reading; or it crashes."""
    real = shutil.which("awk")
    given_up = tmp_path / "given-up"
    script = f"""#!/bin/sh
    rest() {{ sed -u '/{last_line}/q'; }}
    case $* in *forget_the_gone*) [ -e {given_up} ] || {{ read -r word; read -r number; case $number in
      2) : >{given_up}; rest >/dev/null; {end};;
      *) {{ printf '%s\\n' $word $number; rest; }} | {real} "$@"; exit 2;; esac; }} ;; esac
    exec {real} "$@"
    """
    put_first(tmp_path / "bin", monkeypatch, awk=script)
    child = crowd.start(f"{TAG}-anew", "title")
    async with running(f"{TAG}-anew") as probe:
        readings = [await probe.read() for _ in range(4)]
    assert given_up.exists()
    for reading in readings:
        assert [row.pid for row in reading.processes] == [child.pid]
        assert reading.processes[0].command.endswith(" title")


async def test_the_cost_of_the_probe_is_never_negative_after_its_awk_was_killed() -> None:
    started = newer_descendants()
    async with running("*") as probe:
        for _ in range(2 * COST_FRAMES):
            await probe.read()
        [awk] = [process for process in started() if "awk" in process.name()]
        awk.kill()
        costs = [(await probe.read()).probe_cpu for _ in range(5)]
    assert min(costs) >= 0


@pytest.fixture
def sleepers() -> Iterator[int]:
    """The parent of many processes."""
    each = f"i=0; while [ $((i += 1)) -le {MANY} ]; do sleep 600 & done; echo; wait"
    with subprocess.Popen(["/bin/sh", "-c", each], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout and parent.stdout.readline()
        # The shell goes on before what it forked has become a sleep.
        while any(child.name() != "sleep" for child in psutil.Process(parent.pid).children()):
            pass
        yield parent.pid
        os.killpg(parent.pid, signal.SIGKILL)


async def test_more_processes_than_a_block_holds(host_shell: str, sleepers: int) -> None:
    """mawk reads 512 words at once: none of them is lost or waited for."""
    async with running("sleep") as probe:
        readings = [await probe.read() for _ in range(3)]
    for reading in readings:
        assert sum(row.ppid == sleepers for row in reading.processes) == MANY


def test_a_frame_of_all_tells_those_that_rest_too(host_shell: str, crowd: Crowd) -> None:
    """After a frame that was lost on its way; in a frame of changes they are only named."""
    pid = crowd.start(f"{TAG}-rests", "title").pid
    told = "#cockpit again"
    # mawk restarts if a process ends while it reads its files; ticks that it had read by then are lost.
    while "#cockpit again" in told:
        told = _six_changes_and_all()
    for file in ("stat", "statm", "cmdline"):
        assert f"/proc/{pid}/{file}:" in told.partition("#cockpit begin 7\n")[2]


def _six_changes_and_all() -> str:
    """What the probe tells."""
    with subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin and shell.stdout
        shell.stdin.write(script((f"{TAG}-rests",)).encode())
        shell.stdin.flush()
        while shell.stdout.readline() != b"#cockpit ready\n":
            pass
        shell.stdin.write(b"".join(b"%d changes\n" % number for number in range(1, 7)) + b"7 all\n")
        shell.stdin.close()
        return shell.stdout.read().decode()
