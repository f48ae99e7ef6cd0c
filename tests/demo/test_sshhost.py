"""The demo's SSH host, with asyncssh as the client and the ssh_config that the host writes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from cockpit.demo.layout import DemoFiles
from tests.demo.support import module
from tests.processes import is_gone
from tests.waiting import DEADLINE, until


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoFiles]:
    directory = tmp_path_factory.mktemp("a host")
    with module("sshhost", str(directory)) as (process, _):
        yield DemoFiles(directory)
    assert process.returncode == 0


def connect(host: DemoFiles, **options: Any) -> Any:
    return asyncssh.connect("demo", config=[str(host.ssh_config)], **options)


async def line(process: "asyncssh.SSHClientProcess[str]") -> str:
    return (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).strip()


async def test_command_has_streams_and_exit_status(host: DemoFiles) -> None:
    async with connect(host) as connection:
        result = await connection.run("cat; echo no >&2; exit 3", input="yes")
        assert (result.stdout, result.stderr, result.exit_status) == ("yes", "no\n", 3)
        large = await connection.run("head -c 3000000 /dev/zero | tr '\\0' x; cat >&2", input="y" * 1_000_000)
        assert (len(str(large.stdout)), len(str(large.stderr))) == (3_000_000, 1_000_000)
        killed = await connection.run("kill -9 $$")
        assert killed.exit_signal and killed.exit_signal[0] == "KILL"
        result = await connection.run("pwd; cd; pwd; echo ${XDG_STATE_HOME-unset}")
        assert str(result.stdout).splitlines() == [str(host.directory), str(host.directory), "unset"]


async def test_shell_reads_script_line_by_line(host: DemoFiles) -> None:
    async with connect(host) as connection:
        process = await connection.create_process("sh -s")
        process.stdin.write("echo up; while read n; do echo frame $n; done; echo end\n")
        assert await line(process) == "up"
        for tick in range(5):
            process.stdin.write(f"{tick}\n")
            assert await line(process) == f"frame {tick}"
        process.stdin.write_eof()
        assert await process.stdout.read() in ("end\n", "")  # a shell may exit at the end of input
        assert (await process.wait()).exit_status == 0
        # Without a command: a shell.
        process = await connection.create_process()
        process.stdin.write("echo hello; exit 4\n")
        result = await process.wait()
        assert (result.stdout, result.exit_status) == ("hello\n", 4)


async def test_concurrent_commands_on_one_connection(host: DemoFiles) -> None:
    async with connect(host) as connection:
        processes = [await connection.create_process("read x; echo $x; read y; echo $y") for _ in range(8)]
        for number, process in enumerate(processes):
            process.stdin.write(f"{number}\n")
        assert [await line(process) for process in processes] == [str(number) for number in range(8)]
        assert (await connection.run("echo between")).stdout == "between\n"
        for process in reversed(processes):
            process.stdin.write("last\n")
        assert [(await process.wait()).stdout for process in processes] == ["last\n"] * 8


async def test_signal_reaches_command(host: DemoFiles) -> None:
    async with connect(host) as connection:
        process = await connection.create_process("trap 'echo caught; exit 5' TERM; echo up; while :; do read x; done")
        assert await line(process) == "up"
        process.send_signal("TERM")
        result = await asyncio.wait_for(process.wait(), DEADLINE)
        assert (result.stdout, result.exit_status) == ("caught\n", 5)


@pytest.mark.parametrize("ignores_signals", [False, True])
@pytest.mark.parametrize("end", ["channel", "connection", "abort"])
async def test_command_ends_with_its_channel(host: DemoFiles, end: str, ignores_signals: bool) -> None:
    connection = await connect(host)
    trap = "trap '' HUP TERM; " if ignores_signals else ""
    process = await connection.create_process(f"{trap}echo $$; while :; do sleep 0.05; done")
    pid = int(await line(process))
    assert not is_gone(pid)
    if end == "channel":
        process.close()
    elif end == "connection":
        connection.close()
    else:
        connection.abort()
    await until(lambda: is_gone(pid))
    connection.close()
    await connection.wait_closed()


async def test_background_process_outlives_its_command(host: DemoFiles) -> None:
    async with connect(host) as connection:
        started = await connection.run("sleep 300 >/dev/null 2>&1 </dev/null & echo $!")
        pid = int(str(started.stdout))
    async with connect(host) as connection:
        assert (await connection.run(f"kill {pid}")).exit_status == 0


async def test_other_key_and_password_are_refused(host: DemoFiles) -> None:
    assert host.client_key.stat().st_mode & 0o077 == 0
    other = asyncssh.generate_private_key("ssh-ed25519")
    with pytest.raises(asyncssh.PermissionDenied):
        await connect(host, client_keys=[other])
    with pytest.raises(asyncssh.PermissionDenied):
        await connect(host, client_keys=[], password="demo")
    async with connect(host) as connection:
        assert (await connection.run("true")).exit_status == 0


async def test_host_key_is_checked(host: DemoFiles, tmp_path: Path) -> None:
    known = host.known_hosts.read_text()
    address = known.split()[0]
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    changed = tmp_path / "changed"
    changed.write_text(f"{address} {other}")
    config = tmp_path / "ssh_config"
    config.write_text(host.ssh_config.read_text().replace(str(host.known_hosts), str(changed)))
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        await asyncssh.connect("demo", config=[str(config)])
    changed.write_text(known)
    async with asyncssh.connect("demo", config=[str(config)]) as connection:
        assert (await connection.run("true")).exit_status == 0
