"""Counters read by the probe on this machine, under each kind of host."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from cockpit.hosts.counters import KNOWN
from cockpit.hosts.script import QUEUE_ROUND
from cockpit.model.hosts import HostReading
from tests.hosts.conftest import TAG, Spawner, prepend_to_path, running


def vmstat() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {name: int(value) for name, value in lines}


def table(path: str, head: str) -> dict[str, int]:
    lines = [line.split()[1:] for line in Path(path).read_text().splitlines() if line.startswith(f"{head}: ")]
    return {f"{head}.{name}": int(value) for name, value in zip(*lines, strict=True)}


def meminfo() -> dict[str, int]:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return {fields[0].rstrip(":"): int(fields[1]) for fields in lines}


def pressure() -> dict[str, int]:
    found = {}
    for path in Path("/proc/pressure").glob("*"):
        for line in path.read_text().splitlines():
            found[f"{path.name}.{line.split()[0]}"] = int(line.rpartition("=")[2])
    return found


def kernel_counters() -> dict[str, int]:
    """Current values of this machine's monotonic counters."""
    found = {**vmstat(), **table("/proc/net/snmp", "Tcp"), **table("/proc/net/netstat", "TcpExt"), **pressure()}
    return {name: value for name, value in found.items() if name in KNOWN}


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
            assert abs(read["Slab"] - meminfo()["Slab"]) < 256 * 1024
            assert {"SwapCached", "Active", "Inactive", "Dirty", "Committed_AS"} <= read.keys()


async def test_unreadable_pressure_is_unknown(host_shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without pressure information still has all other counters."""
    real = shutil.which("sh")
    script = f"#!{real}\nsed -u 's#/proc/pressure/#/proc/no-pressure/#g' | exec {real} -s\n"
    prepend_to_path(tmp_path / "outer", monkeypatch, sh=script)
    async with running() as probe:
        read = (await probe.read()).counters
    assert "pgfault" in read
    assert not {"cpu.some", "io.some", "memory.full"} & read.keys()


async def test_accept_queue_and_backlog_are_read_per_port(host_shell: str) -> None:
    if host_shell == "no awk":
        async with running() as probe:
            reading = await probe.read()
        assert (reading.accept, reading.backlog) == ({}, {}), "unknown"
        return
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=7))
        port = server.getsockname()[1]
        async with running() as probe:
            assert (await probe.read()).accept[port] == 0
            for _ in range(3):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            readings = [await probe.read() for _ in range(QUEUE_ROUND)]
            assert readings[-1].accept[port] == 3
            assert readings[-1].backlog.get(port) == (7 if shutil.which("ss") else None)
            server.close()
            readings = [await probe.read() for _ in range(QUEUE_ROUND)]
            assert port not in readings[-1].accept


async def test_user_and_pss_are_read_per_process(host_shell: str, spawner: Spawner) -> None:
    child = spawner.start(f"{TAG}-user")
    async with running(f"{TAG}-user") as probe:
        readings: list[HostReading] = [await probe.read() for _ in range(6)]
    [row] = readings[-1].processes
    assert row.pid == child.pid
    if host_shell == "no awk":
        assert (row.user, row.pss) == ("", None)
        return
    assert row.user == pwd.getpwuid(os.geteuid()).pw_name
    assert row.pss is not None
    assert 0 < row.pss <= row.rss
    assert readings[-1].pss == row.pss
