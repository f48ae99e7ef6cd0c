"""A host behind a command: its short names, and commands that fail in their own ways."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from cockpit.hosts.carried import CarriedShell
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
        ("machine:web1", "systemd-run -M web1 --pipe --wait -q", "web1"),
        ("unit:nginx.service", 'nsenter -a -t "$(systemctl show -P MainPID nginx.service)"', "nginx.service"),
        ("sudo -n docker exec -i 'a b'", "sudo -n docker exec -i 'a b'", ""),
        ("env A=$(id) ;", "env 'A=$(id)' ';'", ""),
    ],
)
def test_what_a_short_name_stands_for(via: str, command: str, name: str) -> None:
    assert command_of(via) == command and name_of(via) == name


@pytest.mark.parametrize(
    "via", [" ", "docker:", "docker:-v", "docker:a b", "kubectl:a/-n/c", "kubectl:a/b/c/d e", "'", "docker\n exec"]
)
def test_what_is_no_way_to_a_host(via: str) -> None:
    with pytest.raises(UsageError, match="via = "):
        command_of(via)


def test_a_profile_with_one_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match=r"host web1\.via: found 'docker:-v'; allowed: a command, as 'docker exec"):
        parse_profile('[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\nvia = "docker:-v"\n', "x", "x")


def carrier(folder: Path, script: str) -> str:
    """A command that reaches a host by this script, as `"$@"`."""
    file = folder / "carrier"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


async def behind(folder: Path, script: str) -> CarriedShell:
    shell = await open_shell(HostConfig(name="web1", via=carrier(folder, script)))
    assert isinstance(shell, CarriedShell)
    return shell


async def test_the_programs_own_status_counts(tmp_path: Path) -> None:
    shell = await behind(tmp_path, 'echo hello; echo careful >&2; "$@"; exit 9')
    assert await shell.run("cat; echo no >&2; exit 3", input=b"in") == (3, b"in", b"no\n")
    assert (await shell.run("true")).exit_status == 0
    await shell.close()


async def test_a_way_that_is_cut_is_an_error_whatever_its_status(tmp_path: Path) -> None:
    shell = await behind(tmp_path, '"$@" & sleep 0.2; kill -KILL $!; exit 0')
    with pytest.raises(HostError, match="web1: "):
        await shell.run("echo begun; sleep 60")
    await shell.close()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exec /nowhere/docker", "/nowhere/docker: not found"),
        ("echo 'no such container: web1' >&2; exit 1", "no such container: web1"),
        ("echo 'exec: \"sh\": executable file not found in $PATH' >&2; exit 127", "executable file not found"),
    ],
)
async def test_why_it_does_not_begin_is_said(tmp_path: Path, script: str, why: str) -> None:
    shell = await behind(tmp_path, script)
    with pytest.raises(HostError, match=why):
        await shell.run("true")
    with pytest.raises(HostError, match=why):
        await shell.open("cat")
    await shell.close()


async def test_lines_of_the_command_before_and_after_the_program(tmp_path: Path) -> None:
    """As kubectl has them: the container that it chose, and the exit code of another one."""
    first, last = 'Defaulted container "nginx" out of: nginx, sidecar', "command terminated with exit code 137"
    shell = await behind(tmp_path, f"echo '{first}' >&2; \"$@\"; echo '{last}' >&2; exit 137")
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
    shell = await behind(tmp_path, f"{relay}; echo $i $o >{numbers}; wait $o; exit {status}")
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
    assert (await probe.read()).uptime > 0
    for number in map(int, numbers.read_text().split()):
        os.kill(number, signal.SIGKILL)
    with pytest.raises(HostError, match="web1"):
        await probe.read()
    probe.close()
    await shell.close()


async def test_a_command_that_joins_its_words_for_a_shell(tmp_path: Path) -> None:
    """As `ssh` and `tsh ssh` do."""
    shell = await behind(tmp_path, 'exec sh -c "$*"')
    assert await shell.run("printf '%s' \"a  b\"; exit 2") == (2, b"a  b", b"")
    await shell.close()


async def test_a_slow_way_with_a_banner_carries_a_probe(tmp_path: Path) -> None:
    slow = "python3 -uc 'import sys, time\nwhile b := sys.stdin.buffer.raw.read(512): time.sleep(0.001); "
    slow += "sys.stdout.buffer.write(b); sys.stdout.flush()'"
    shell = await behind(tmp_path, f'echo "Welcome to web1"; "$@" | {slow}')
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
    reading = await probe.read()
    assert reading.uptime > 0 and reading.processes and probe.facts.cpus
    probe.close()
    await shell.close()


async def test_no_port_leads_back(tmp_path: Path) -> None:
    shell = await behind(tmp_path, 'exec "$@"')
    with pytest.raises(HostError, match="web1: no port leads back"):
        await shell.forward_back(80)
    await shell.close()


@pytest.mark.parametrize(
    ("program", "said"), [("socat", ""), ("bash", ""), ("", "there is neither socat, nc nor bash")]
)
async def test_a_connection_is_made_by_what_is_there(tmp_path: Path, program: str, said: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in filter(None, ("sh", "cat", "env", program)):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
        else:
            pytest.skip(f"{name} is not installed")
    shell = await behind(tmp_path, f'PATH={tools} exec "$@"')
    async with serving(always(SMALL)) as server:
        wire = await shell.open_stream("127.0.0.1", server.port)
        await wire.write(b"GET / HTTP/1.1\r\nHost: web1\r\n\r\n")
        if said:
            with pytest.raises(HostError, match=said):
                await wire.read(100)
        else:
            assert (await wire.read(100)).startswith(b"HTTP/1.1 200")
        wire.close()
    await shell.close()
