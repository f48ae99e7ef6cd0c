"""The contract of all shells: local, SSH, and `via` on either."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cockpit.hosts.shell import LINE_LIMIT, Shell
from cockpit.hosts.ssh import connect
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from tests.hosts.connecting import WEB
from tests.hosts.sshd import Sshd


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
