"""New processes are in the next frame and are counted; failures of the probe's awk, and full frames."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.probe.script import FEW, ROUND, script
from tests.hosts.conftest import Spawner, prepend_to_path, running, tag
from tests.processes import newer_descendants
from tests.waiting import wait_until

TAG = tag("n")

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
    own_pids(tmp_path, monkeypatch, 30000)
    started = newer_descendants()
    async with running(NAME) as probe:
        assert await pids_of(probe) == set()
        inside = next(process for process in started() if process.name() == "sh")
        for number in (300, 310, 320):
            start_with_pid(number, named_sleep, inside.pid)
            assert number in await pids_of(probe)


@pytest.mark.lab
@pytest.mark.parametrize("assigned", [FEW // 2, FEW + 10])
async def test_pid_of_an_ended_process_is_new_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_sleep: Path, assigned: int
) -> None:
    """It is listed in both frames; with few and with many PIDs assigned between them."""
    own_pids(tmp_path, monkeypatch, 1000)
    other = tmp_path / f"{TAG}-other"
    other.symlink_to(shutil.which("sleep") or "")
    started = newer_descendants()
    async with running(NAME) as probe:
        assert await pids_of(probe) == set()
        inside = next(process for process in started() if process.name() == "sh")
        start_with_pid(900, other, inside.pid, 900 - assigned)
        for _ in range(2 * ROUND):
            assert await pids_of(probe) == set()
        [ended] = [process for process in started() if process.name() == other.name]
        ended.kill()
        wait_until(lambda: not Path(f"/proc/{ended.pid}").exists())
        start_with_pid(900, named_sleep, inside.pid)
        assert await pids_of(probe) == {900}


def own_pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """Run the probe in a PID namespace of its own, in which `last` is the last PID."""
    begin = f"echo {last} >/proc/sys/kernel/ns_last_pid; exec {shutil.which('sh')} -s"
    own = "unshare --pid --fork --mount-proc --kill-child"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\nexec {own} /bin/sh -c '{begin}'\n")


def start_with_pid(number: int, named_program: Path, within: int, last: int = 0) -> None:
    """Start a process with that PID in the PID namespace of another; then let `last` be the last PID.

    Wait for its name without a fork: how often a loop runs depends on the machine, and each fork takes a PID.
    """
    named = f'IFS= read -r name </proc/$!/comm && [ "$name" = {named_program.name} ]'
    start = f"{named_program} 600 & until {named}; do :; done"
    numbered = f"echo {number - 1} >/proc/sys/kernel/ns_last_pid; {start}"
    numbered += f"; echo {last} >/proc/sys/kernel/ns_last_pid" if last else ""
    enter = ["nsenter", "--target", str(within), "--pid", "--mount", "/bin/sh", "-c"]
    subprocess.run([*enter, numbered], check=True, stdout=subprocess.DEVNULL)


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
    monkeypatch.setattr("cockpit.hosts.probe.probe.COST_FRAMES", 3)
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
