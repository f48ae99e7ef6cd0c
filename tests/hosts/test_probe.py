"""The probe on this machine under each kind of host, compared with psutil."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe import Probe
from cockpit.hosts.script import LINE_BYTES, ROUND
from cockpit.load.generator import boot_id
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig, HostReading, ProcessCounters
from tests.hosts.conftest import TAG, Spawner, prepend_to_path, running, until
from tests.processes import newer_descendants

MIB = 1024 * 1024


async def read_once(*processes: str) -> HostReading:
    async with running(*processes) as probe:
        return await probe.read()


def row_of(reading: HostReading, pid: int) -> ProcessCounters:
    return next(process for process in reading.processes if process.pid == pid)


async def test_facts() -> None:
    async with running() as probe:
        facts = probe.facts
    system = os.uname()
    assert (facts.hostname, facts.kernel, facts.cpus) == (system.nodename, system.release, psutil.cpu_count())
    assert (facts.hz, facts.page) == (os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"))
    assert facts.boot == boot_id() != ""


async def test_counters_match_psutil(host_shell: str) -> None:
    async with running() as probe:
        before, disks_before = psutil.cpu_times(), whole_disks()
        reading = await probe.read()
        after, disks_after = psutil.cpu_times(), whole_disks()
        hz = probe.facts.hz
    for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"):
        spent = getattr(reading.cpu, name) / hz
        assert getattr(before, name) - 0.011 <= spent <= getattr(after, name) + 0.011, name
    assert disks_before[0] <= reading.io.reads <= disks_after[0]
    assert disks_before[1] <= reading.io.writes <= disks_after[1]
    assert disks_before[2] <= reading.io.sectors_read * 512 <= disks_after[2]
    memory = psutil.virtual_memory()
    assert reading.memory.total * 1024 == memory.total
    for read, expected in (
        (reading.memory.available, memory.available),
        (reading.memory.free, memory.free),
        (reading.memory.cached + reading.memory.reclaimable, memory.cached),
        (reading.memory.shmem, memory.shared),
    ):
        assert abs(read * 1024 - expected) < 256 * MIB  # other processes start and exit in between
    assert reading.wall - reading.uptime == psutil.boot_time()
    assert len(reading.load) == 3
    assert reading.forks > os.getpid()
    assert reading.processes == ()


def whole_disks() -> tuple[int, int, int]:
    """Reads, writes and bytes read of disks with a device, without loops and partitions."""
    counters = psutil.disk_io_counters(perdisk=True)
    disks = [counters[path.parent.name] for path in Path("/sys/block").glob("*/device") if path.parent.name in counters]
    return (
        sum(disk.read_count for disk in disks),
        sum(disk.write_count for disk in disks),
        sum(disk.read_bytes for disk in disks),
    )


async def test_awk_is_used_if_available(host_shell: str) -> None:
    started = newer_descendants()
    async with running() as probe:
        await probe.read()
        commands = [_command(process) for process in started()]
    assert any("ENVIRON" in word for command in commands for word in command) == (host_shell != "no awk")


async def test_loop_that_measures_the_cpu_takes_the_time_that_the_kernel_counts(host_shell: str) -> None:
    """At most one loop is between two readings; one after which the next tick did not have to wait is not counted."""
    async with running() as probe, asyncio.timeout(60):
        readings = [await probe.read()]
        while readings[-1].counters.get("loops", 0) < 5:
            await asyncio.sleep(0.05)
            readings.append(await probe.read())
    loops = [reading.counters.get("loops", 0) for reading in readings]
    assert loops[0] == 0 and all(0 <= after - before <= 1 for before, after in pairwise(loops))
    # A thousand steps of a shell take between 0.05 ms and 50 ms.
    assert 50 * 5 < readings[-1].counters["loop_us"] < 50_000 * 5


async def test_cores_disks_and_interfaces_match_psutil(host_shell: str) -> None:
    async with running() as probe:
        disks, nets = psutil.disk_io_counters(perdisk=True), psutil.net_io_counters(pernic=True)
        cores = psutil.cpu_times(percpu=True)
        reading = await probe.read()
        hz = probe.facts.hz
    assert len(reading.cores) == psutil.cpu_count()
    for core, before in zip(reading.cores, cores, strict=True):
        assert core.user / hz >= before.user - 0.011
        assert core.idle / hz >= before.idle - 0.011
    partitions = partitions_of_disks()
    used = {name for name, disk in disks.items() if disk.read_count + disk.write_count} - partitions
    assert used <= {disk.name for disk in reading.disks} <= set(disks) - partitions
    for disk in reading.disks:
        assert disk.reads >= disks[disk.name].read_count
        assert disk.busy >= disks[disk.name].busy_time
    now = psutil.net_io_counters(pernic=True)
    for net in reading.nets:
        if net.name in nets and net.name in now:
            assert nets[net.name].bytes_recv <= net.rx_bytes <= now[net.name].bytes_recv
            assert nets[net.name].packets_sent <= net.tx_packets <= now[net.name].packets_sent
    assert any(net.name == "lo" for net in reading.nets)
    assert reading.running >= 1
    assert not reading.hidden


def partitions_of_disks() -> set[str]:
    return {path.parent.name for path in Path("/sys/block").glob("*/*/partition")}


async def test_names_and_patterns_are_watched(host_shell: str, spawner: Spawner) -> None:
    expected = [spawner.start(name) for name in (f"{TAG}-web", f"{TAG}-php 1", f"{TAG}-php 2")]
    spawner.start(f"{TAG}-other")
    assert {row.pid for row in (await read_once(f"{TAG}-web", f"{TAG}-php*")).processes} == {
        row.pid for row in expected
    }


async def test_python_workers_are_watched_with_their_parent(host_shell: str, spawner: Spawner) -> None:
    """Like uvicorn's workers, they have the name of the interpreter."""
    spawn = "import subprocess, sys; subprocess.Popen([sys.argv[1], '-ISc', 'import sys; sys.stdin.read()'])"
    idle = f"{spawn}; print(flush=True); sys.stdin.read()"
    spawner.start(f"{TAG}-other", sys.executable, program=idle)
    parent = spawner.start(f"{TAG}-web", sys.executable, program=idle)
    processes = (await read_once(f"{TAG}-web")).processes
    assert {(row.pid == parent.pid, row.ppid == parent.pid) for row in processes} == {(True, False), (False, True)}


async def test_clock_offset_is_measured(host_shell: str) -> None:
    async with running() as probe:
        facts = probe.facts
    assert facts.clock_offset is not None
    # Host and cockpit have the same clock here.
    assert abs(facts.clock_offset) <= facts.clock_error + 0.001
    assert facts.clock_error < 15


async def test_process_changes_are_detected(host_shell: str, spawner: Spawner, tmp_path: Path) -> None:
    """Spawned and exited processes are in the next frame, a new name or title within a round."""
    first = spawner.start(f"{TAG}-one")
    changing = renaming_process(tmp_path, f"{TAG}-late")
    async with running(f"{TAG}-*") as probe:
        assert [row.pid for row in (await probe.read()).processes] == [first.pid]
        second = spawner.start(f"{TAG}-two")
        assert {row.pid for row in (await probe.read()).processes} == {first.pid, second.pid}
        spawner.end(first)
        assert [row.pid for row in (await probe.read()).processes] == [second.pid]
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


async def test_process_row_matches_psutil(host_shell: str, spawner: Spawner) -> None:
    child = spawner.start(f"{TAG} )b (c", "two words", "tab\there")
    async with running(f"{TAG} )b (c") as probe:
        reading = await probe.read()
        facts = probe.facts
    seen = psutil.Process(child.pid)
    [row] = reading.processes
    assert (row.pid, row.ppid, row.comm, row.threads) == (child.pid, os.getpid(), f"{TAG} )b (c", 1)
    assert (row.vsz, row.rss) == (seen.memory_info().vms, seen.memory_info().rss)
    assert row.shared == seen.memory_info().shared
    assert row.command == " ".join(seen.cmdline())
    assert abs(psutil.boot_time() + row.start / facts.hz - seen.create_time()) < 0.02
    assert row.stat == "S"


@pytest.mark.parametrize("pattern", ["-[ab]*", "-?-*", "*e"])
async def test_pattern_matches_by_name(host_shell: str, spawner: Spawner, pattern: str) -> None:
    expected = {spawner.start(f"{TAG}-a-one").pid, spawner.start(f"{TAG}-b-e").pid}
    spawner.start(f"x{TAG}-e")
    reading = await read_once(TAG + pattern)
    assert {row.pid for row in reading.processes} == expected


async def test_name_over_15_bytes_is_found(spawner: Spawner) -> None:
    child = spawner.start(f"{TAG}-longwinded-name")
    [row] = (await read_once(f"{TAG}-longwinded-name")).processes
    assert (row.pid, row.comm) == (child.pid, f"{TAG}-longwinded-name"[:15])


async def test_name_with_brackets_is_found(host_shell: str, spawner: Spawner) -> None:
    child = spawner.start(f"[{TAG}]")
    assert [row.pid for row in (await read_once(f"[{TAG}]")).processes] == [child.pid]


@pytest.mark.parametrize(
    "pattern",
    [
        "$(touch {0})",
        "`touch {0}`",
        "'; touch {0}; '",
        '"; touch {0}; "',
        "x) touch {0};; esac; case y in y",
        "x\ntouch {0}\n",
        "$(touch {0})*",
        "*'`touch {0}`'*",
        "\\",
    ],
)
async def test_pattern_is_never_executed(host_shell: str, tmp_path: Path, pattern: str) -> None:
    marker = tmp_path / "trace"
    reading = await read_once(pattern.replace("{0}", str(marker)))
    assert reading.processes == ()
    assert not marker.exists()


async def test_hostile_command_line_of_1_mb_is_only_text(host_shell: str, spawner: Spawner) -> None:
    hostile = "\x1b]0;pwned\x07\x1b[2J\n#cockpit end 1\n/proc/stat:cpu 1 1 1 1 1 1 1 1 1 1\n"
    titled = spawner.start(f"{TAG}-title", hostile, *["x" * 100_000] * 10)
    plain = spawner.start(f"{TAG}-plain", "last")
    async with running(f"{TAG}-*") as probe:
        readings = [await probe.read() for _ in range(3)]
    for reading in readings:
        assert {row.pid for row in reading.processes} == {titled.pid, plain.pid}
        assert reading.cpu.user > 1
        command = row_of(reading, titled.pid).command
        assert "\x1b]0;pwned\x07\x1b[2J" in command
        assert len(command) <= LINE_BYTES
        assert row_of(reading, plain.pid).command.endswith(" last")


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


async def test_pss_is_between_uss_and_rss(spawner: Spawner) -> None:
    children = [spawner.start(f"{TAG}-pss") for _ in range(3)]
    if not os.access(f"/proc/{children[0].pid}/smaps_rollup", os.R_OK):
        pytest.skip("this kernel has no smaps_rollup")
    gone = spawner.start(f"{TAG}-pss")
    gone.kill()
    await until(lambda: psutil.Process(gone.pid).status() == psutil.STATUS_ZOMBIE)
    async with running(f"{TAG}-pss") as probe:
        readings = [await probe.read() for _ in range(4)]
        alone = sum(psutil.Process(child.pid).memory_full_info().uss for child in children)
    assert readings[-1].pss is not None
    # The exact value depends on other processes that share the pages.
    assert alone < readings[-1].pss < sum(row.rss for row in readings[-1].processes)


async def test_defunct_process_is_listed(spawner: Spawner) -> None:
    child = spawner.start(f"{TAG}-zombie")
    child.kill()
    await until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    [row] = (await read_once(f"{TAG}-zombie")).processes
    assert (row.stat, row.command, row.vsz, row.rss) == ("Z", f"[{TAG}-zombie] <defunct>", 0, 0)


async def test_probe_reports_its_cpu_cost(host_shell: str) -> None:
    async with running("*") as probe:
        readings = [await probe.read() for _ in range(40)]
    assert 0 < readings[-1].probe_cpu < 0.25


async def test_missing_proc_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """#!/bin/sh
    sed -u 's#/proc/stat ]#/nowhere/stat ]#' | /bin/sh -s
    """
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=script, uname="#!/bin/sh\necho Darwin\n")
    with pytest.raises(HostError, match=r"here: no /proc \(Darwin\)"):
        await read_once()


@pytest.mark.parametrize(
    ("login", "message"),
    [
        ("echo This account is not available.; exit 1", "This account is not available"),
        ("echo >&2 no such thing; exit 127", "no such thing"),
        ("exit 0", "the login shell ended before `sh -s` started"),
    ],
)
async def test_failed_login_shell_error_quotes_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: str, message: str
) -> None:
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=f"#!/bin/sh\n{login}\n")
    with pytest.raises(HostError, match=message):
        await read_once()


def _command(process: psutil.Process) -> list[str]:
    """Its command line; empty if it has exited."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


async def test_closed_shell_leaves_no_process() -> None:
    started = newer_descendants()
    shell = LocalShell()
    await Probe.start(shell, HostConfig(name="here"))
    shells = [process for process in started() if _command(process) == ["sh", "-s"]]
    assert shells
    await shell.close()
    await until(lambda: not any(process.is_running() for process in shells))


WORK = """\
import sys, threading, time

def work():
    print(flush=True)
    while sys.stdin.readline():
        end = time.process_time() + 0.06
        while time.process_time() < end:
            pass
        print(flush=True)

if sys.argv[1] == "thread":
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
else:
    work()
"""


@pytest.fixture(params=["alone", "thread"])
def worker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process TAG-work that uses 60 ms of CPU time per line of input, then prints a line."""
    program = tmp_path / f"{TAG}-work"
    program.symlink_to(os.path.realpath(sys.executable))
    process = subprocess.Popen(
        [program, "-ISc", WORK, request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdout
    process.stdout.readline()
    yield process
    process.communicate()


async def test_cpu_time_after_idle_is_in_next_frame(host_shell: str, worker: subprocess.Popen[bytes]) -> None:
    """After one or several idle frames, in any thread."""
    assert worker.stdin and worker.stdout
    async with running(f"{TAG}-work") as probe:
        for idle_frames in (1, 4):
            for _ in range(idle_frames):
                before = row_of(await probe.read(), worker.pid)
            worker.stdin.write(b"\n")
            worker.stdout.readline()
            after = row_of(await probe.read(), worker.pid)
            assert after.utime + after.stime >= before.utime + before.stime + 4
