"""Hosts reached by a command (`via`): short names, exit status, failures."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.hosts.command_shell import CommandShell
from cockpit.hosts.probe import Probe
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError, UsageError
from cockpit.model.hosts import HostConfig
from cockpit.model.via import command_of, name_of
from cockpit.profiles.reader import parse_profile
from tests.load.servers import SMALL, always, serving


@pytest.mark.parametrize(
    ("via", "command", "name"),
    [
        ("docker:web1", "docker exec -i web1", "web1"),
        ("podman:shop_2", "podman exec -i shop_2", "shop_2"),
        ("kubectl:web-0", "kubectl exec -i web-0 --", "web-0"),
        ("kubectl:shop/web-0", "kubectl exec -i -n shop web-0 --", "web-0"),
        ("kubectl:shop/web-0/nginx", "kubectl exec -i -n shop web-0 -c nginx --", "web-0"),
        ("lxc:web1", "lxc exec web1 --", "web1"),
        ("incus:web1", "incus exec web1 --", "web1"),
        ("machine:web1", "systemd-run -M web1 --uid=root -p KillMode=process --pipe --wait --collect -q", "web1"),
        ("sudo -n docker exec -i 'a b'", "sudo -n docker exec -i 'a b'", ""),
        ("env A=$(id) ;", "env 'A=$(id)' ';'", ""),
    ],
)
def test_via_expands_to_command_and_name(via: str, command: str, name: str) -> None:
    assert command_of(via) == command and name_of(via) == name


async def test_unit_is_entered_by_its_main_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With programs in place of systemctl and nsenter, which print their arguments."""
    tools = {"systemctl": '[ "$4" = web.service ] && echo 42 || echo 0', "nsenter": 'echo "$@" >&2; shift 3; exec "$@"'}
    for name, text in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert name_of("unit:web.service") == "web.service"
    shell = await open_shell(HostConfig(name="web1", via="unit:web.service"))
    assert await shell.run("echo up; exit 3") == (3, b"up\n", b"")
    await shell.close()
    shell = await open_shell(HostConfig(name="web1", via="unit:other.service"))
    with pytest.raises(
        HostError, match=r"`unit:other\.service` did not start `sh -s`: unit other\.service is not running"
    ):
        await shell.run("true")
    await shell.close()


@pytest.mark.parametrize(
    "via", [" ", "docker:", "docker:-v", "docker:a b", "kubectl:a/-n/c", "kubectl:a/b/c/d e", "'", "docker\n exec"]
)
def test_invalid_via_is_refused(via: str) -> None:
    with pytest.raises(UsageError, match="via = "):
        command_of(via)


def test_profile_with_invalid_via_is_refused() -> None:
    with pytest.raises(Exception, match=r"host web1\.via: found 'docker:-v'; allowed: a command, e.g. 'docker exec"):
        parse_profile('[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\nvia = "docker:-v"\n', "x", "x")


def carrier(folder: Path, script: str) -> str:
    """A command that reaches a host with this script, which runs `"$@"`."""
    file = folder / "carrier"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


async def shell_via(folder: Path, script: str) -> CommandShell:
    shell = await open_shell(HostConfig(name="web1", via=carrier(folder, script)))
    assert isinstance(shell, CommandShell)
    return shell


async def test_exit_status_is_that_of_remote_program(tmp_path: Path) -> None:
    shell = await shell_via(tmp_path, 'echo hello; echo careful >&2; "$@"; exit 9')
    assert await shell.run("cat; echo no >&2; exit 3", input=b"in") == (3, b"in", b"no\n")
    assert (await shell.run("true")).exit_status == 0
    await shell.close()


async def test_killed_carrier_is_error_despite_exit_status_0(tmp_path: Path) -> None:
    shell = await shell_via(tmp_path, '"$@" & sleep 0.2; kill -KILL $!; exit 0')
    with pytest.raises(HostError, match="web1: "):
        await shell.run("echo begun; sleep 60")
    await shell.close()


async def test_a_status_that_is_no_exit_status_is_an_error(tmp_path: Path) -> None:
    shell = await shell_via(tmp_path, f'sed "s/ [$]? >&2/ {"9" * 5000} >\\&2/" | "$@"')
    with pytest.raises(HostError, match="web1: connection lost while a command ran"):
        await shell.run("true")
    await shell.close()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exec /nowhere/docker", "/nowhere/docker: not found"),
        ("echo 'no such container: web1' >&2; exit 1", "no such container: web1"),
        ("exit 1", r"^web1: `/.*/carrier` did not start `sh -s`$"),
        (
            "echo 'OCI runtime exec failed: exec: \"sh\": executable file not found in $PATH: unknown' >&2; exit 127",
            "carrier` did not start `sh -s`: OCI .*it has no sh; `cockpit help hosts`",
        ),
        ("PATH=/nowhere exec /usr/bin/env sh", "No such file or directory; it has no sh"),
    ],
)
async def test_carrier_start_failure_is_reported(tmp_path: Path, script: str, problem: str) -> None:
    shell = await shell_via(tmp_path, script)
    with pytest.raises(HostError, match=problem):
        await shell.run("true")
    with pytest.raises(HostError, match=problem):
        await shell.open("cat")
    await shell.close()


async def test_lines_of_the_command_before_and_after_the_program(tmp_path: Path) -> None:
    """As kubectl has them: the container that it chose, and the exit code of another one."""
    first, last = 'Defaulted container "nginx" out of: nginx, sidecar', "command terminated with exit code 137"
    shell = await shell_via(tmp_path, f"echo '{first}' >&2; \"$@\"; echo '{last}' >&2; exit 137")
    assert await shell.run("cat; echo no >&2; exit 3", input=b"in") == (3, b"in", b"no\n")
    channel = await shell.open("cat; exit 4")
    await channel.write(b"out\n")
    assert await channel.read(4) == b"out\n"
    channel.close()
    await channel.wait_closed()
    await shell.close()


@pytest.mark.parametrize("status", [0, 1])
async def test_a_probe_whose_way_is_cut_is_lost_whatever_the_status(tmp_path: Path, status: int) -> None:
    """kubectl may end with 0 when its connection is cut."""
    numbers = tmp_path / "numbers"
    relay = f'exec 3<&0; cd {tmp_path}; mkfifo in out; "$@" <in >out & cat <&3 >in & i=$!; cat <out & o=$!'
    shell = await shell_via(tmp_path, f"{relay}; echo $i $o >{numbers}; wait $o; exit {status}")
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
    assert (await probe.read()).uptime > 0
    for number in map(int, numbers.read_text().split()):
        # One ends with the other.
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    with pytest.raises(HostError, match="web1"):
        await probe.read()
    probe.close()
    await shell.close()


async def test_a_command_that_joins_its_words_for_a_shell(tmp_path: Path) -> None:
    """As `ssh` and `tsh ssh` do."""
    shell = await shell_via(tmp_path, 'exec sh -c "$*"')
    assert await shell.run("printf '%s' \"a  b\"; exit 2") == (2, b"a  b", b"")
    await shell.close()


async def test_probe_runs_over_slow_carrier_with_banner(tmp_path: Path) -> None:
    slow = "python3 -uc 'import sys, time\nwhile b := sys.stdin.buffer.raw.read(512): time.sleep(0.001); "
    slow += "sys.stdout.buffer.write(b); sys.stdout.flush()'"
    shell = await shell_via(tmp_path, f'echo "Welcome to web1"; "$@" | {slow}')
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
    reading = await probe.read()
    assert reading.uptime > 0 and reading.processes and probe.facts.cpus
    probe.close()
    await shell.close()


async def test_reverse_forwarding_is_refused(tmp_path: Path) -> None:
    shell = await shell_via(tmp_path, 'exec "$@"')
    with pytest.raises(HostError, match="web1: no ports can be forwarded"):
        await shell.forward_back(80)
    await shell.close()


@pytest.mark.parametrize(
    ("program", "problem"), [("socat", ""), ("bash", ""), ("", "no program to connect with; install socat, nc or bash")]
)
async def test_stream_uses_available_program(tmp_path: Path, program: str, problem: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in filter(None, ("sh", "cat", "env", program)):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
        else:
            pytest.skip(f"{name} is not installed")
    shell = await shell_via(tmp_path, f'PATH={tools} exec "$@"')
    async with serving(always(SMALL)) as server:
        stream = await shell.open_stream("127.0.0.1", server.port)
        await stream.write(b"GET / HTTP/1.1\r\nHost: web1\r\n\r\n")
        if problem:
            with pytest.raises(HostError, match=problem):
                await stream.read(100)
        else:
            assert (await stream.read(100)).startswith(b"HTTP/1.1 200")
        stream.close()
    await shell.close()


@pytest.mark.skipif(shutil.which("socat") is None, reason="socat is not installed")
async def test_an_ipv6_address_is_connected_to(tmp_path: Path) -> None:
    shell = await shell_via(tmp_path, 'exec "$@"')

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "::1", 0) as server:
        wire = await shell.open_stream("::1", server.sockets[0].getsockname()[1])
        assert await wire.read(100) == b"hello"
        wire.close()
    await shell.close()


@pytest.mark.parametrize("host", ["v1.localhost:80!!exec:id", "-e", "a,b", "", "a b"])
async def test_a_host_that_a_program_would_take_for_more_is_refused(tmp_path: Path, host: str) -> None:
    shell = await shell_via(tmp_path, 'exec "$@"')
    with pytest.raises(HostError, match="invalid host name"):
        await shell.open_stream(host, 80)
    await shell.close()
