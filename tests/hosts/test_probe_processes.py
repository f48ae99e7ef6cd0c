"""The processes that the probe watches, under each kind of host, compared with psutil; their CPU time."""

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cockpit.hosts.probe.script import LINE_BYTES, QUEUE_ROUND, ROUND
from cockpit.hosts.probe.tree_time import CpuTicks, ProcessTreeTime
from cockpit.model.host.rates import ProcessTimes, step_between
from cockpit.model.host.samples import HostReading, ProcessCounters
from tests.data import data_of
from tests.hosts.conftest import Spawner, prepend_to_path, running, tag
from tests.waiting import until

DATA = data_of(__file__)
TAG = tag("c")

# The flag of ps for this process's own niceness, which the processes of the tests inherit.
NICE = "N" if os.nice(0) > 0 else ""


async def read_once(*processes: str) -> HostReading:
    async with running(*processes) as probe:
        return await probe.read()


def row_of(reading: HostReading, pid: int) -> ProcessCounters:
    return next(process for process in reading.processes if process.pid == pid)


# Each pattern, and the name of the only process that it matches; the kernel cuts names after 15 bytes.
WATCHED = {
    f"{TAG}-web": f"{TAG}-web",
    f"{TAG}-php*": f"{TAG}-php 1",
    f"{TAG}-[ab]*": f"{TAG}-a-one",
    f"{TAG}-?": f"{TAG}-x",
    f"{TAG}*end": f"{TAG}.end",
    f"[{TAG}]": f"[{TAG}]",
    f"{TAG}-longwinded-name": f"{TAG}-longwinded-name",
}
NOT_WATCHED = (f"{TAG}-other", f"x{TAG}-x", f"{TAG}-c-one", f"{TAG}-xy")


async def test_names_and_patterns_are_watched(host_shell: str, spawner: Spawner) -> None:
    expected = {spawner.start(name).pid: name[:15] for name in WATCHED.values()}
    for name in NOT_WATCHED:
        spawner.start(name)
    rows = (await read_once(*WATCHED)).processes
    assert {row.pid: row.comm for row in rows} == expected


async def test_patterns_are_never_executed(host_shell: str, tmp_path: Path, spawner: Spawner) -> None:
    marker = tmp_path / "trace"
    touch = f"touch {marker}"
    patterns = (
        *(f"$({touch})", f"`{touch}`", f"'; {touch}; '", f'"; {touch}; "', f"x) {touch};; esac; case y in y"),
        *(f"x\n{touch}\n", f"$({touch})*", f"*'`{touch}`'*", "\\"),
    )
    plain = spawner.start(f"{TAG}-plain")
    assert [row.pid for row in (await read_once(*patterns, f"{TAG}-plain")).processes] == [plain.pid]
    assert not marker.exists()


async def test_python_workers_are_watched_with_their_parent(host_shell: str, spawner: Spawner) -> None:
    """Like uvicorn's workers, they have the name of the interpreter."""
    spawn = "import subprocess, sys; subprocess.Popen([sys.argv[1], '-ISc', 'import sys; sys.stdin.read()'])"
    idle = f"{spawn}; print(flush=True); sys.stdin.read()"
    spawner.start(f"{TAG}-other", sys.executable, program=idle)
    parent = spawner.start(f"{TAG}-web", sys.executable, program=idle)
    processes = (await read_once(f"{TAG}-web")).processes
    assert {(row.pid == parent.pid, row.ppid == parent.pid) for row in processes} == {(True, False), (False, True)}


@pytest.mark.lab
async def test_worker_with_lower_pid_than_its_parent_is_watched(spawner: Spawner) -> None:
    """The kernel starts again after its highest PID. Only root may set the last one."""
    path = Path("/proc/sys/kernel")
    spawn = "import subprocess, sys; subprocess.Popen([sys.argv[1], '-ISc', 'import sys; sys.stdin.read()'])"
    (path / "ns_last_pid").write_text(str(int((path / "pid_max").read_text()) - 2))
    parent = spawner.start(f"{TAG}-web", sys.executable, program=f"{spawn}; print(flush=True); sys.stdin.read()")
    processes = (await read_once(f"{TAG}-web")).processes
    assert parent.pid in {row.pid for row in processes} and [row.pid < row.ppid for row in processes].count(True) == 1


async def test_names_with_line_breaks_are_watched_and_forge_nothing(host_shell: str, spawner: Spawner) -> None:
    named = spawner.start(f"{TAG}\nx) R 1")
    ending = spawner.start(f"{TAG}-y\n")
    rows = (await read_once(f"{TAG}*")).processes
    assert {row.pid: row.comm for row in rows} == {named.pid: f"{TAG} x) R 1", ending.pid: f"{TAG}-y "}
    assert {row.ppid for row in rows} == {os.getpid()}


async def test_rows_match_psutil_and_hostile_titles_are_text(host_shell: str, spawner: Spawner) -> None:
    hostile = "\x1b]0;pwned\x07\x1b[2J\n#cockpit end 1\n/proc/stat:cpu 1 1 1 1 1 1 1 1 1 1\n"
    child = spawner.start(f"{TAG} )b (c", "two words", "tab\there")
    titled = spawner.start(f"{TAG}-title", hostile, *["x" * 100_000] * 10)
    async with running(f"{TAG} )b (c", f"{TAG}-title") as probe:
        readings = [await probe.read() for _ in range(6)]
    for reading in readings:
        assert {row.pid for row in reading.processes} == {child.pid, titled.pid}
        assert reading.cpu.user > 1
        command = row_of(reading, titled.pid).command
        assert "\x1b]0;pwned\x07\x1b[2J" in command and len(command) <= LINE_BYTES
    seen, row = psutil.Process(child.pid), row_of(readings[-1], child.pid)
    memory = seen.memory_info()
    assert (row.pid, row.ppid, row.comm, row.threads) == (child.pid, os.getpid(), f"{TAG} )b (c", 1)
    assert (row.vsz, row.rss, row.shared) == (memory.vms, memory.rss, memory.shared)
    assert row.command == " ".join(seen.cmdline())
    assert abs(psutil.boot_time() + row.start / probe.facts.hz - seen.create_time()) < 0.02
    assert row.stat == f"S{NICE}"
    if host_shell == "no awk":
        assert (row.user, row.pss) == ("", None)
    else:
        assert row.user == pwd.getpwuid(os.geteuid()).pw_name
        assert row.pss is not None and 0 < row.pss <= row.rss


async def test_process_changes_are_detected(host_shell: str, spawner: Spawner, tmp_path: Path) -> None:
    """An exited process is missing in the next frame; a new name or title is found within a round."""
    first = spawner.start(f"{TAG}-one")
    changing = renaming_process(tmp_path, f"{TAG}-late")
    async with running(f"{TAG}-*") as probe:
        assert [row.pid for row in (await probe.read()).processes] == [first.pid]
        spawner.end(first)
        assert (await probe.read()).processes == ()
        assert changing.stdin and changing.stdout
        changing.stdin.write(b"now\n")
        changing.stdout.readline()
        readings = [await probe.read() for _ in range(ROUND + 1)]
        assert row_of(readings[-1], changing.pid).comm == f"{TAG}-late"
        assert row_of(readings[-1], changing.pid).command.endswith(" a title")
    changing.communicate()


def renaming_process(directory: Path, name: str) -> subprocess.Popen[bytes]:
    """A process that takes the name, and a title, after a line of input; it exits at the end of its input."""
    program = directory / name
    program.symlink_to(os.path.realpath(sys.executable))
    idle = "import sys; print(flush=True); sys.stdin.read()"
    wait = f"import os, sys; sys.stdin.readline(); os.execv({str(program)!r}, [{name!r}, '-ISc', {idle!r}, 'a title'])"
    return subprocess.Popen([sys.executable, "-c", wait], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


async def test_command_lines_are_complete_if_grep_drops_nuls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawner: Spawner
) -> None:
    real = shutil.which("grep")
    prepend_to_path(tmp_path / "bin", monkeypatch, grep=f"#!/bin/sh\n{real} \"$@\" | sed 's/\\x00.*//'\n")
    children = [spawner.start(f"{TAG}-nul", "one", "two\nlines", str(number)) for number in range(2)]
    reading = await read_once(f"{TAG}-nul")
    assert [row.pid for row in reading.processes] == [child.pid for child in children]
    for number, row in enumerate(reading.processes):
        assert row.command.endswith(f" one two lines {number}")


async def test_pss_and_defunct_processes(spawner: Spawner) -> None:
    children = [spawner.start(f"{TAG}-pss") for _ in range(3)]
    gone = spawner.start(f"{TAG}-pss")
    gone.kill()
    await until(lambda: psutil.Process(gone.pid).status() == psutil.STATUS_ZOMBIE)
    async with running(f"{TAG}-pss") as probe:
        reading = [await probe.read() for _ in range(4)][-1]
        alone = sum(psutil.Process(child.pid).memory_full_info().uss for child in children)
    row = row_of(reading, gone.pid)
    assert (row.stat, row.command, row.vsz, row.rss) == (f"Z{NICE}", f"[{TAG}-pss] <defunct>", 0, 0)
    # The exact value depends on other processes that share the pages.
    assert reading.pss is not None and alone < reading.pss < sum(row.rss for row in reading.processes)


# Uses 60 ms of CPU time per line of input, then prints a line.
WORK = DATA["work"]


async def test_cpu_time_after_idle_is_in_next_frame(host_shell: str, spawner: Spawner) -> None:
    """After one or several idle frames, in any thread."""
    workers = [spawner.start(f"{TAG}-work", kind, program=WORK) for kind in ("alone", "thread")]
    async with running(f"{TAG}-work") as probe:
        for idle_frames in (1, 4):
            before = [await probe.read() for _ in range(idle_frames)][-1]
            for worker in workers:
                assert worker.stdin and worker.stdout
                worker.stdin.write(b"\n")
                worker.stdout.readline()
            await until(lambda: all(psutil.Process(each.pid).status() == psutil.STATUS_SLEEPING for each in workers))
            after = await probe.read()
            for worker in workers:
                old, new = (row_of(reading, worker.pid) for reading in (before, after))
                assert new.utime + new.stime >= old.utime + old.stime + 4
                if host_shell != "no awk":
                    assert (new.ran, new.waited) == schedstat(worker.pid)
            assert (after.processes_cpu or 0) >= (before.processes_cpu or 0) + 8


def schedstat(pid: int) -> tuple[int | None, int | None]:
    """Return the time (ns) that a process ran and waited for a CPU; None: it has several threads."""
    if len(list(Path(f"/proc/{pid}/task").iterdir())) > 1:
        return None, None
    ran, waited, _ = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
    return int(ran), int(waited)


async def test_processes_that_share_a_cpu_wait_for_it(spawner: Spawner) -> None:
    workers = [spawner.start(f"{TAG}-work", "alone", program=WORK) for _ in range(2)]
    for worker in workers:
        os.sched_setaffinity(worker.pid, {min(os.sched_getaffinity(0))})
    async with running(f"{TAG}-work") as probe:

        async def busy() -> ProcessTimes | None:
            """Let both compute; return their times, or None if this test was late: they idled, or computed in turn."""
            before = await probe.read()
            for worker in workers:
                assert worker.stdin
                worker.stdin.write(4 * b"\n")
            for worker in workers:
                assert worker.stdout
                for _ in range(4):
                    worker.stdout.readline()
            times = step_between(before, await probe.read(), probe.facts).times
            assert times is not None and times.wait is not None and times.wait < 100
            return times if times.wait > 25 and times.busiest > 50 else None

        on_cpu, waiting, _, sleeping = (await until(busy)).shares
    assert on_cpu > 0 and waiting > 0 and on_cpu + waiting + sleeping == pytest.approx(100, abs=5)


async def test_context_switches_of_a_process_are_read_by_cause(host_shell: str, spawner: Spawner) -> None:
    """At intervals; a process that waits for input leaves the CPU of its own accord."""
    worker = spawner.start(f"{TAG}-work", "alone", program=WORK)
    async with running(f"{TAG}-work") as probe:
        for _ in range(QUEUE_ROUND):
            before = await probe.read()
        # At the first of two intervals the worker may have just started.
        for _ in range(2 * QUEUE_ROUND):
            assert worker.stdin and worker.stdout
            worker.stdin.write(b"\n")
            worker.stdout.readline()
            after = await probe.read()
    old, new = (row_of(reading, worker.pid) for reading in (before, after))
    if host_shell == "no awk":
        assert new.left is None and new.switches is None
        return
    assert old.left and new.left and new.left[0] > old.left[0]
    assert old.switches and new.switches and new.switches >= old.switches + QUEUE_ROUND
    times = step_between(before, after, probe.facts).times
    assert times is not None and times.switches == new.switches - old.switches
    assert times.left == (new.left[0] - old.left[0], new.left[1] - old.left[1])


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
        time.update(reading, 100.0 + second)
    assert time.ticks == expected
