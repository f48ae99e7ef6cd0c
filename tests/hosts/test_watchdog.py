"""Programs on a host end by themselves if their client vanished without closing their input."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from itertools import chain
from pathlib import Path

import psutil
import pytest

from cockpit.hosts import tails, watchdog
from cockpit.hosts.probe import script
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig
from tests.data import data_of
from tests.hosts.test_tails import SHELLS, in_session, marker, processes_with, started, tailing
from tests.processes import command_of, family, has_ended
from tests.waiting import until, wait_until

DATA = data_of(__file__)

__all__ = ("marker",)

# A client that copies its streams to a program which outlives it, as `docker exec -i` and `kubectl exec -i` do.
CLIENT = DATA["client"]


@pytest.fixture
def client(tmp_path: Path) -> str:
    """The command of a client."""
    file = tmp_path / "client.py"
    file.write_text(CLIENT)
    return f"python3 {file}"


def clients(command: str) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in processes_with(command.split()[-1])]


def host_with(shell: str, program: str, ready: bytes) -> subprocess.Popen[bytes]:
    return started([*shell.split(), "-s"], program, ready)


def end_naps(*processes: psutil.Process) -> None:
    """End the naps of IDLE seconds of the watchdogs among these processes and their descendants."""
    for process in chain.from_iterable(map(family, processes)):
        if command_of(process) == ["sleep", f"{watchdog.IDLE:g}"]:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize("shell", SHELLS)
def test_probe_ends_without_input(shell: str) -> None:
    """With and without awk."""
    program = script.script((), idle=0.2)
    hosts = [host_with(shell, text, b"#cockpit ready") for text in (program, f"awk() {{ return 1; }}\n{program}")]
    for host in hosts:
        wait_until(lambda host=host: host.poll() is not None and not in_session(host.pid))  # type: ignore[misc]
        host.communicate()


@pytest.mark.parametrize("shell", SHELLS)
def test_tail_ends_without_input_with_all_its_processes(
    shell: str, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "NAP", watchdog.IDLE)
    host = host_with(shell, tails.script(f"trap '' TERM; sh -c 'echo up; sleep 1000; : {marker}' | cat"), b"up")
    first = psutil.Process(host.pid)

    def ended() -> bool:
        end_naps(first)
        return host.poll() is not None and not in_session(host.pid) and not processes_with(marker)

    wait_until(ended)
    host.communicate()


@pytest.mark.parametrize("shell", SHELLS)
def test_watchdog_ends_with_its_program(shell: str) -> None:
    host = host_with(shell, script.script(()), b"#cockpit ready")
    wait_until(lambda: "sleep" in in_session(host.pid))
    host.communicate()
    wait_until(lambda: not in_session(host.pid))


async def test_probe_and_tail_of_a_stopped_client_end(
    client: str, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "IDLE", 5)
    shell = await open_shell(HostConfig(name="web1", via=client))
    probe = await Probe.start(shell, HostConfig(name="web1", via=client, processes=("python*",), interval=0.2))
    tail = await shell.open(tails.script(f"echo {marker}; while sleep 0.1; do echo {marker}; done"))
    await tail.readline()
    stopped = clients(client)
    programs = [one for each in stopped for one in each.children(recursive=True)]
    assert len(programs) > 2 * len(stopped) and processes_with(marker), "each sleep lasts 0.1 s"
    for process in stopped:
        process.send_signal(signal.SIGSTOP)
    await until(lambda: all(map(has_ended, programs)) and not processes_with(marker))
    for process in stopped:
        process.send_signal(signal.SIGCONT)
    with pytest.raises(HostError, match="web1: the probe ended"):
        await probe.read()
    probe.close()
    tail.close()
    await shell.close()


async def test_program_that_waits_for_its_input_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    """Its client sends the program, then neither the input nor its end."""
    monkeypatch.setattr("cockpit.hosts.command_shell.IDLE", 0.3)
    file = tmp_path / "client"
    holder = f"sleep 1000; : {file}"
    file.write_text(f"#!/bin/sh\n(sed -u '/exit; }}$/q'; exec setsid sh -c '{holder}') | setsid \"$@\"\n")
    file.chmod(0o755)
    shell = await open_shell(HostConfig(name="web1", via=str(file)))
    begun = tmp_path / "begun"

    async def begins() -> bool:
        """Run the program; return whether it has started within the time limit."""
        with pytest.raises(HostError, match=r"took longer than 0\.5 s"):
            await shell.run(f"sh -c 'touch {begun}; cat; : {marker}'", input=b"never", timeout=0.5)
        return begun.exists()

    await until(begins)
    await until(lambda: not processes_with(marker))
    for number in processes_with(holder):
        os.killpg(os.getpgid(number), signal.SIGKILL)
    await shell.close()


async def test_tail_that_prints_nothing_is_kept(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends a line from time to time. A tail that ends, because the client was late, starts again."""
    monkeypatch.setattr(watchdog, "IDLE", 2)
    monkeypatch.setattr(watchdog, "BEAT", 0.1)
    async with tailing("echo up; sleep 5; echo later; sleep 1000", None, client) as tail:
        await until(lambda: "later" in tail.lines)


async def test_short_program_does_not_wait_for_its_watchdog() -> None:
    """It ends while its watchdog starts: a lost signal would delay it by a minute."""
    shell = await open_shell(HostConfig(name="web1", via="env"))
    for _ in range(30):
        assert (await shell.run("cat; exit 3", input=b"x", timeout=watchdog.IDLE - 5)).exit_status == 3
    tail = tails.script("exit 3")
    for _ in range(10):
        channel = await shell.open(tail)
        async with asyncio.timeout(watchdog.IDLE - 5):
            assert await channel.readline() == b""
        channel.close()
        await channel.wait_closed()
    await shell.close()
