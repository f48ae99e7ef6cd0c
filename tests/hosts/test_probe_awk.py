"""The awk of the probe: failures, and reading in blocks."""

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
from tests.hosts.conftest import TAG, Spawner, prepend_to_path, running
from tests.processes import newer_descendants

COUNT = 1000


@pytest.fixture
def last_line() -> str:
    """Pattern of the last line of a message to the machine's awk; for mawk, the padding of its block."""
    output = subprocess.run(["awk", "-W", "version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return "^ *$" if "mawk" in output.stdout else "^ *end$"


@pytest.mark.parametrize("exit_command", ["exit 2", "kill -9 $$"])
async def test_awk_is_restarted_after_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawner: Spawner, last_line: str, exit_command: str
) -> None:
    """mawk exits if a process exits between opening its file and reading; an awk may crash, too."""
    real = shutil.which("awk")
    failed_once = tmp_path / "failed-once"
    script = f"""#!/bin/sh
    rest() {{ sed -u '/{last_line}/q'; }}
    case $* in *forget_ended*) [ -e {failed_once} ] || {{ read -r word; read -r number; case $number in
      2) : >{failed_once}; rest >/dev/null; {exit_command};;
      *) {{ printf '%s\\n' $word $number; rest; }} | {real} "$@"; exit 2;; esac; }} ;; esac
    exec {real} "$@"
    """
    prepend_to_path(tmp_path / "bin", monkeypatch, awk=script)
    child = spawner.start(f"{TAG}-restarted", "title")
    async with running(f"{TAG}-restarted") as probe:
        readings = [await probe.read() for _ in range(4)]
    assert failed_once.exists()
    for reading in readings:
        assert [row.pid for row in reading.processes] == [child.pid]
        assert reading.processes[0].command.endswith(" title")


async def test_probe_cost_is_not_negative_after_awk_is_killed() -> None:
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
    """PID of the parent of COUNT processes."""
    loop = f"i=0; while [ $((i += 1)) -le {COUNT} ]; do sleep 600 & done; echo; wait"
    with subprocess.Popen(["/bin/sh", "-c", loop], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout and parent.stdout.readline()
        # The shell continues before its forked children have executed `sleep`.
        while any(child.name() != "sleep" for child in psutil.Process(parent.pid).children()):
            pass
        yield parent.pid
        os.killpg(parent.pid, signal.SIGKILL)


async def test_more_processes_than_fit_in_awk_block(host_shell: str, sleepers: int) -> None:
    """mawk reads 512 words at once: none may be lost or delayed."""
    async with running("sleep") as probe:
        readings = [await probe.read() for _ in range(3)]
    for reading in readings:
        assert sum(row.ppid == sleepers for row in reading.processes) == COUNT


def test_full_frame_includes_unchanged_processes(host_shell: str, spawner: Spawner) -> None:
    """A full frame follows a lost frame; delta frames only list unchanged processes."""
    pid = spawner.start(f"{TAG}-rests", "title").pid
    output = "#cockpit again"
    # mawk restarts if a process exits while its files are read; ticks that it had already read are lost.
    while "#cockpit again" in output:
        output = _six_delta_frames_and_a_full_one()
    for file in ("stat", "statm", "cmdline"):
        assert f"/proc/{pid}/{file}:" in output.partition("#cockpit begin 7\n")[2]


def _six_delta_frames_and_a_full_one() -> str:
    """Output of the probe."""
    with subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin and shell.stdout
        shell.stdin.write(script((f"{TAG}-rests",)).encode())
        shell.stdin.flush()
        while shell.stdout.readline() != b"#cockpit ready\n":
            pass
        shell.stdin.write(b"".join(b"%d changes\n" % number for number in range(1, 7)) + b"7 all\n")
        shell.stdin.close()
        return shell.stdout.read().decode()
