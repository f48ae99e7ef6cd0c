"""Shells of every kind of host: local, by SSH, and reached by a command (`via`)."""

import asyncio
import gc
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from cockpit.hosts.command_shell import CommandShell
from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import LINE_LIMIT, Shell
from cockpit.hosts.ssh.shell import connect
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError, UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.via import command_of, name_of
from cockpit.profiles.reader import parse_profile
from tests.data import data_of
from tests.hosts.conftest import prepend_to_path
from tests.hosts.connecting import WEB
from tests.hosts.sshd import Sshd
from tests.waiting import until

DATA = data_of(__file__)


@pytest.fixture(params=[("", ""), ("web", ""), ("", "env"), ("web", "env")], ids=["local", "ssh", "via", "ssh-via"])
async def shell(request: pytest.FixtureRequest, sshd: Sshd) -> AsyncIterator[Shell]:
    ssh, via = request.param
    kind = await open_shell(HostConfig(name="web1", ssh=ssh or None, via=via), sshd.ssh_config)
    yield kind
    await kind.close()


async def test_run_returns_status_stdout_and_stderr(shell: Shell) -> None:
    assert await shell.run("cat; echo oops >&2; exit 3", input=b"in\0put\n") == (3, b"in\0put\n", b"oops\n")
    assert (await shell.run("cat")).exit_status == 0, "without input, its standard input is closed"
    data = b"0123456789abcdef" * 65536
    assert (await shell.run("cat", input=data)).stdout == data
    assert (await shell.run("exit 3", input=b"x" * 10_000_000)).exit_status == 3, "unread input is ignored"


async def test_run_times_out(shell: Shell) -> None:
    with pytest.raises(HostError, match=r"a command took longer than 0\.2 s; it was stopped"):
        await shell.run("sleep 1000", timeout=0.2)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("yes", r"a command printed more than 16 MiB to its standard output"),
        ("yes >&2", r"a command printed more than 1 MiB to its standard error"),
    ],
)
async def test_run_kills_command_with_too_much_output(shell: Shell, command: str, problem: str) -> None:
    with pytest.raises(HostError, match=problem):
        await shell.run(command, timeout=120)
    assert (await shell.run("echo next")).stdout == b"next\n"


async def test_commands_of_one_shell_run_concurrently(shell: Shell) -> None:
    first, second = await shell.open("cat"), await shell.open("exec sed -u s/a/b/")
    await first.write(b"a 1\n")
    await second.write(b"a 2\n")
    assert (await second.readline(), await first.readline()) == (b"b 2\n", b"a 1\n")
    first.close()
    await second.write(b"a 3\n")
    assert await second.readline() == b"b 3\n"


async def test_channel_truncates_long_lines_and_keeps_last_errors(shell: Shell) -> None:
    channel = await shell.open("head -c 3000000 /dev/zero | tr '\\000' x; echo; printf last; echo gone >&2")
    assert await channel.readline() == b"x" * LINE_LIMIT + b"\n"
    assert await channel.readline() == b"last"
    assert await channel.readline() == b""
    assert channel.stderr == b"gone\n"
    channel = await shell.open("head -c 5000000 /dev/zero >&2; echo done")
    assert await channel.readline() == b"done\n", "unread errors do not block it"
    assert len(channel.stderr) <= 4096


async def test_closed_shell_raises(shell: Shell) -> None:
    await shell.close()
    await shell.wait_closed()
    with pytest.raises(HostError):
        await shell.run("true")


async def test_lost_connection_fails_all_users(sshd: Sshd) -> None:
    shell = await connect(WEB, sshd.ssh_config)
    channel = await shell.open("cat")
    await sshd.stop()
    with pytest.raises(HostError, match="web1: connection lost"):
        await channel.readline()
    with pytest.raises(HostError, match="web1: connection lost"):
        await shell.run("true")
    await shell.wait_closed()
    await shell.close()


async def test_run_can_be_cancelled_while_starting() -> None:
    shell = LocalShell()
    for steps in range(12):
        running = asyncio.create_task(shell.run("cat", input=b"x"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        # The end of a session cancels it again, while it waits for the process.
        await asyncio.sleep(0)
        running.cancel()
        done, _ = await asyncio.wait([running], timeout=120)
        assert done
        with pytest.raises(asyncio.CancelledError):
            await running
    await shell.close()
    # A process that was left behind is a warning.
    gc.collect()


def use_as_sh(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `sh` with this script for LocalShell."""
    (folder / "sh").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


async def test_cancelled_open_leaves_no_process_or_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    use_as_sh(f"mkdir {started}; exec sleep 1000", tmp_path, monkeypatch)
    tasks = asyncio.all_tasks()
    opening = asyncio.create_task(LocalShell().open("cat"))
    await until(started.exists)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert asyncio.all_tasks() == tasks


async def test_failed_open_leaves_no_process_or_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_as_sh("exit 1", tmp_path, monkeypatch)
    tasks = asyncio.all_tasks()
    with pytest.raises(HostError, match="the login shell ended before `sh -s` started"):
        await LocalShell().open("cat")
    assert asyncio.all_tasks() == tasks


@pytest.mark.parametrize(("via", "command", "name"), DATA["via_expands_to_command_and_name"])
def test_via_expands_to_command_and_name(via: str, command: str, name: str) -> None:
    assert command_of(via) == command and name_of(via) == name


async def test_unit_is_entered_by_its_main_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With programs in place of systemctl and nsenter, which enter nothing."""
    systemctl = '#!/bin/sh\n[ "$4" = web.service ] && echo 42 || echo 0\n'
    prepend_to_path(tmp_path, monkeypatch, systemctl=systemctl, nsenter='#!/bin/sh\nshift 3; exec "$@"\n')
    assert name_of("unit:web.service") == "web.service"
    shell = await open_shell(HostConfig(name="web1", via="unit:web.service"))
    assert await shell.run("echo up; exit 3") == (3, b"up\n", b"")
    await shell.close()
    shell = await open_shell(HostConfig(name="web1", via="unit:other.service"))
    problem = r"`unit:other\.service` did not start `sh -s`: unit other\.service is not running"
    with pytest.raises(HostError, match=problem):
        await shell.run("true")
    await shell.close()


@pytest.mark.parametrize(
    "via", [" ", "docker:", "docker:-v", "docker:a b", "kubectl:a/-n/c", "kubectl:a/b/c/d e", "'", "docker\n exec"]
)
def test_invalid_via_is_refused(via: str) -> None:
    with pytest.raises(UsageError, match="via = "):
        command_of(via)
    with pytest.raises(UsageError, match=r"host web1\.via: found .*; allowed: a command, e.g. 'docker exec"):
        parse_profile(f'[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\nvia = {json.dumps(via)}\n', "x", "x")


@asynccontextmanager
async def shell_via(folder: Path, script: str) -> AsyncIterator[CommandShell]:
    """A host that is reached by a command, which has this script and runs `"$@"`."""
    file = folder / "carrier"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    shell = await open_shell(HostConfig(name="web1", via=str(file)))
    assert isinstance(shell, CommandShell)
    yield shell
    await shell.close()


async def test_exit_status_is_that_of_remote_program(tmp_path: Path) -> None:
    async with shell_via(tmp_path, 'echo hello; echo careful >&2; "$@"; exit 9') as shell:
        assert await shell.run("cat; echo no >&2; exit 3", input=b"in") == (3, b"in", b"no\n")
        assert (await shell.run("true")).exit_status == 0


@pytest.mark.parametrize(
    ("script", "command", "problem"),
    [
        ('"$@" & sleep 0.2; kill -KILL $!; exit 0', "echo begun; sleep 60", "web1: "),
        (f'sed "s/ [$]? >&2/ {"9" * 5000} >\\&2/" | "$@"', "true", "web1: connection lost while a command ran"),
    ],
    ids=["killed carrier", "no exit status"],
)
async def test_cut_command_is_an_error(tmp_path: Path, script: str, command: str, problem: str) -> None:
    async with shell_via(tmp_path, script) as shell:
        with pytest.raises(HostError, match=problem):
            await shell.run(command)


@pytest.mark.parametrize(("script", "problem"), DATA["carrier_start_failure_is_reported"])
async def test_carrier_start_failure_is_reported(tmp_path: Path, script: str, problem: str) -> None:
    async with shell_via(tmp_path, script) as shell:
        with pytest.raises(HostError, match=problem):
            await shell.run("true")
        with pytest.raises(HostError, match=problem):
            await shell.open("cat")


async def test_lines_of_the_command_before_and_after_the_program(tmp_path: Path) -> None:
    """As kubectl has them: the container that it chose, and the exit code of another one."""
    first, last = 'Defaulted container "nginx" out of: nginx, sidecar', "command terminated with exit code 137"
    async with shell_via(tmp_path, f"echo '{first}' >&2; \"$@\"; echo '{last}' >&2; exit 137") as shell:
        assert await shell.run("cat; echo no >&2; exit 3", input=b"in") == (3, b"in", b"no\n")
        channel = await shell.open("cat; exit 4")
        await channel.write(b"out\n")
        assert await channel.read(4) == b"out\n"
        channel.close()
        await channel.wait_closed()


@pytest.mark.parametrize("status", [0, 1])
async def test_a_probe_whose_way_is_cut_is_lost_whatever_the_status(tmp_path: Path, status: int) -> None:
    """kubectl may end with 0 when its connection is cut."""
    numbers = tmp_path / "numbers"
    relay = f'exec 3<&0; cd {tmp_path}; mkfifo in out; "$@" <in >out & cat <&3 >in & i=$!; cat <out & o=$!'
    async with shell_via(tmp_path, f"{relay}; echo $i $o >{numbers}; wait $o; exit {status}") as shell:
        probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
        assert (await probe.read()).uptime > 0
        for number in map(int, numbers.read_text().split()):
            # One ends with the other.
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        with pytest.raises(HostError, match="web1"):
            await probe.read()
        probe.close()


async def test_a_command_that_joins_its_words_for_a_shell(tmp_path: Path) -> None:
    """As `ssh` and `tsh ssh` do."""
    async with shell_via(tmp_path, 'exec sh -c "$*"') as shell:
        assert await shell.run("printf '%s' \"a  b\"; exit 2") == (2, b"a  b", b"")


async def test_probe_runs_over_slow_carrier_with_banner(tmp_path: Path) -> None:
    slow = "python3 -uc 'import sys, time\nwhile b := sys.stdin.buffer.raw.read(512): time.sleep(0.001); "
    slow += "sys.stdout.buffer.write(b); sys.stdout.flush()'"
    async with shell_via(tmp_path, f'echo "Welcome to web1"; "$@" | {slow}') as shell:
        probe = await Probe.start(shell, HostConfig(name="web1", processes=("python*",)))
        reading = await probe.read()
        assert reading.uptime > 0 and reading.processes and probe.facts.cpus
        probe.close()


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a line."""
    await reader.readline()
    writer.write(b"hello")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("program", "address", "problem"),
    [
        ("bash", "127.0.0.1", ""),
        ("", "127.0.0.1", "no program to connect with; install socat, nc or bash"),
        pytest.param("socat", "127.0.0.1", "", marks=pytest.mark.lab),
        pytest.param("socat", "::1", "", marks=pytest.mark.lab),
    ],
)
async def test_stream_uses_available_program(tmp_path: Path, program: str, address: str, problem: str) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    # Without sleep, the watchdog would end the program at once.
    for name in filter(None, ("sh", "cat", "env", "sleep", program)):
        (tools / name).symlink_to(shutil.which(name) or "")
    async with (
        shell_via(tmp_path, f'PATH={tools} exec "$@"') as shell,
        await asyncio.start_server(hello, address, 0) as server,
    ):
        stream = await shell.open_stream(address, server.sockets[0].getsockname()[1])
        await stream.write(b"GET\n")
        if problem:
            with pytest.raises(HostError, match=problem):
                await stream.read(100)
        else:
            assert await stream.read(100) == b"hello"
        stream.close()


async def test_invalid_hosts_and_forwarding_are_refused(tmp_path: Path) -> None:
    async with shell_via(tmp_path, 'exec "$@"') as shell:
        with pytest.raises(HostError, match="web1: no ports can be forwarded"):
            await shell.forward_back(80)
        # A program would read more than a host's name.
        for host in ("v1.localhost:80!!exec:id", "-e", "a,b", "", "a b"):
            with pytest.raises(HostError, match="invalid host name"):
                await shell.open_stream(host, 80)
