"""The awk of the probe: failures, and full frames."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cockpit.hosts.script import script
from tests.hosts.conftest import TAG, Spawner, prepend_to_path, running
from tests.processes import newer_descendants


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


async def test_probe_cost_is_not_negative_after_awk_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.probe.COST_FRAMES", 3)
    started = newer_descendants()
    async with running("*") as probe:
        for _ in range(12):
            await probe.read()
        [awk] = [process for process in started() if "awk" in process.name()]
        awk.kill()
        costs = [(await probe.read()).probe_cpu for _ in range(5)]
    assert min(costs) >= 0


def test_full_frame_includes_unchanged_processes(host_shell: str, spawner: Spawner) -> None:
    """A full frame follows a lost frame; delta frames only list unchanged processes."""
    pid = spawner.start(f"{TAG}-rests", "title").pid
    ticks = "".join(f"{number} changes\n" for number in range(1, 7)) + "7 all\n"
    output = "#cockpit again"
    # mawk restarts if a process exits while its files are read; ticks that it had already read are lost.
    while "#cockpit again" in output:
        with subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
            assert shell.stdin and shell.stdout
            shell.stdin.write(script((f"{TAG}-rests",)))
            shell.stdin.flush()
            while shell.stdout.readline() != "#cockpit ready\n":
                pass
            output = shell.communicate(ticks)[0]
    for file in ("stat", "statm", "cmdline"):
        assert f"/proc/{pid}/{file}:" in output.partition("#cockpit begin 7\n")[2]
