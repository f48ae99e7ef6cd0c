"""The probe's readings of this machine, under each kind of host: facts, CPU, memory, disks, networks, counters."""

import asyncio
import os
import shutil
import socket
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.probe.script import QUEUE_ROUND
from cockpit.load.generator import boot_id
from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig, HostFacts, HostReading
from cockpit.model.host.sar import COUNTERS
from tests.hosts.conftest import prepend_to_path, running
from tests.processes import command_of, newer_descendants
from tests.waiting import until

MIB = 1024 * 1024


async def test_reading_matches_psutil(host_shell: str) -> None:
    started = newer_descendants()
    async with running() as probe:
        before, disks_before, nets_before = psutil.cpu_times(), whole_disks(), psutil.net_io_counters(pernic=True)
        cores = psutil.cpu_times(percpu=True)
        reading = await probe.read()
        after, disks_after, nets_after = psutil.cpu_times(), whole_disks(), psutil.net_io_counters(pernic=True)
        commands = [word for process in started() for word in command_of(process)]
    assert any("ENVIRON" in word for word in commands) == (host_shell != "no awk"), "awk is used if there is one"
    check_facts(probe.facts)
    hz = probe.facts.hz
    for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"):
        spent = getattr(reading.cpu, name) / hz
        assert getattr(before, name) - 0.011 <= spent <= getattr(after, name) + 0.011, name
    for core, known in zip(reading.cores, cores, strict=True):
        assert core.user / hz >= known.user - 0.011 and core.idle / hz >= known.idle - 0.011
    read = (reading.io.reads, reading.io.writes, reading.io.sectors_read * 512)
    assert all(low <= value <= high for low, value, high in zip(disks_before, read, disks_after, strict=True))
    assert {disk.name for disk in reading.disks} <= set(psutil.disk_io_counters(perdisk=True)) - partitions()
    for net in reading.nets:
        if net.name in nets_before and net.name in nets_after:
            assert nets_before[net.name].bytes_recv <= net.rx_bytes <= nets_after[net.name].bytes_recv
            assert nets_before[net.name].packets_sent <= net.tx_packets <= nets_after[net.name].packets_sent
    assert any(net.name == "lo" for net in reading.nets)
    check_memory(reading)
    assert reading.wall - reading.uptime == psutil.boot_time()
    assert len(reading.load) == 3 and reading.forks > os.getpid() and reading.running >= 1
    assert reading.processes == () and not reading.hidden


def check_facts(facts: HostFacts) -> None:
    system = os.uname()
    assert (facts.hostname, facts.kernel, facts.cpus) == (system.nodename, system.release, psutil.cpu_count())
    assert (facts.hz, facts.page) == (os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"))
    assert facts.boot == boot_id() != ""
    # Host and cockpit have the same clock here.
    assert facts.clock_offset is not None and abs(facts.clock_offset) <= facts.clock_error + 0.001
    assert facts.clock_error < 15


def check_memory(reading: HostReading) -> None:
    memory = psutil.virtual_memory()
    assert reading.memory.total * 1024 == memory.total
    for read, expected in (
        (reading.memory.available, memory.available),
        (reading.memory.free, memory.free),
        (reading.memory.cached + reading.memory.reclaimable, memory.cached),
        (reading.memory.shmem, memory.shared),
    ):
        assert abs(read * 1024 - expected) < 256 * MIB  # other processes start and exit in between


def whole_disks() -> tuple[int, int, int]:
    """Reads, writes and bytes read of disks with a device, without loops and partitions."""
    counters = psutil.disk_io_counters(perdisk=True)
    disks = [counters[path.parent.name] for path in Path("/sys/block").glob("*/device") if path.parent.name in counters]
    return (
        sum(disk.read_count for disk in disks),
        sum(disk.write_count for disk in disks),
        sum(disk.read_bytes for disk in disks),
    )


def partitions() -> set[str]:
    return {path.parent.name for path in Path("/sys/block").glob("*/*/partition")}


def kernel_counters() -> dict[str, int]:
    """Current values of this machine's monotonic counters."""
    found = {}
    for line in Path("/proc/vmstat").read_text().splitlines():
        name, value = line.split()
        found[name] = int(value)
    for path, head in (("snmp", "Tcp"), ("netstat", "TcpExt")):
        lines = Path("/proc/net", path).read_text().splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith(f"{head}: "))
        found |= {f"{head}.{name}": int(value) for name, value in zip(names, values, strict=True)}
    for file in Path("/proc/pressure").glob("*"):
        for line in file.read_text().splitlines():
            found[f"{file.name}.{line.split()[0]}"] = int(line.rpartition("=")[2])
    return {name: value for name, value in found.items() if name in COUNTERS and name != "Tcp.CurrEstab"}


def slab_kib() -> int:
    return int(Path("/proc/meminfo").read_text().partition("\nSlab:")[2].split()[0])


async def test_counters_are_between_two_kernel_readings(host_shell: str) -> None:
    """In several frames: a full one, then delta frames."""
    async with running() as probe:
        for _ in range(4):
            before = kernel_counters()
            read = (await probe.read()).counters
            after = kernel_counters()
            wrong = [name for name in before if not before[name] <= read.get(name, -1) <= after[name]]
            assert not wrong, {name: (before[name], read.get(name), after[name]) for name in wrong}
            assert {"ctxt", "tasks", "runnable", "sockets.used", "TCP.tw", "pgfault", "Tcp.InSegs"} <= read.keys()
            assert {"SwapCached", "Active", "Inactive", "Dirty", "Committed_AS"} <= read.keys()
            assert abs(read["Slab"] - slab_kib()) < 256 * 1024


async def test_unreadable_pressure_is_unknown(host_shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without pressure information still has all other counters."""
    real = shutil.which("sh")
    script = f"#!{real}\nsed -u 's#/proc/pressure/#/proc/no-pressure/#g' | exec {real} -s\n"
    prepend_to_path(tmp_path / "outer", monkeypatch, sh=script)
    async with running() as probe:
        read = (await probe.read()).counters
    assert "pgfault" in read and not {"cpu.some", "io.some", "memory.full"} & read.keys()


async def test_accept_queue_and_backlog_are_read_per_port(host_shell: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=7))
        port = server.getsockname()[1]
        async with running() as probe:
            reading = await probe.read()
            if host_shell == "no awk":
                assert (reading.accept, reading.backlog) == ({}, {}), "unknown"
                return
            assert reading.accept[port] == 0
            for _ in range(3):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            reading = [await probe.read() for _ in range(QUEUE_ROUND)][-1]
            assert reading.accept[port] == 3
            assert reading.backlog.get(port) == (
                7 if shutil.which("ss", path=f"{os.environ['PATH']}:/usr/bin:/bin") else None
            )
            server.close()
            reading = [await probe.read() for _ in range(QUEUE_ROUND)][-1]
            assert port not in reading.accept


async def test_loop_that_measures_the_cpu_takes_the_time_that_the_kernel_counts(host_shell: str) -> None:
    """At most one loop is between two readings; one after which the next tick did not have to wait is not counted."""
    async with running() as probe, asyncio.timeout(60):
        readings = [await probe.read()]
        while readings[-1].counters.get("loops", 0) < 3:
            await asyncio.sleep(0.02)
            readings.append(await probe.read())
    loops = [reading.counters.get("loops", 0) for reading in readings]
    assert loops[0] == 0 and all(0 <= after - before <= 1 for before, after in pairwise(loops))
    # A thousand steps of a shell take between 0.05 ms and 50 ms.
    assert 50 * 3 < readings[-1].counters["loop_us"] < 50_000 * 3


async def test_open_files_are_those_of_the_host(host_shell: str, tmp_path: Path) -> None:
    async with running() as probe:
        before = (await probe.read()).counters.get("files.open")
        if host_shell == "no awk":
            assert before is None
            return
        with ExitStack() as stack:
            for number in range(800):
                stack.enter_context((tmp_path / str(number % 10)).open("w"))
            # Other programs close files meanwhile; the kernel adds up those of each CPU in batches.
            async with asyncio.timeout(60):
                while (await probe.read()).counters["files.open"] < (before or 0) + 400:
                    pass


async def test_probe_reports_its_cpu_cost(host_shell: str) -> None:
    async with running("*") as probe:
        readings = [await probe.read() for _ in range(10)]
    assert 0 < readings[-1].probe_cpu < 0.25


async def test_missing_proc_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "#!/bin/sh\nsed -u 's#/proc/stat ]#/nowhere/stat ]#' | /bin/sh -s\n"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=script, uname="#!/bin/sh\necho Darwin\n")
    with pytest.raises(HostError, match=r"here: no /proc \(Darwin\)"):
        async with running():
            pass


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
        async with running():
            pass


async def test_closed_shell_leaves_no_process() -> None:
    started = newer_descendants()
    shell = LocalShell()
    await Probe.start(shell, HostConfig(name="here"))
    shells = [process for process in started() if command_of(process) == ["sh", "-s"]]
    assert shells
    await shell.close()
    await until(lambda: not any(process.is_running() for process in shells))
