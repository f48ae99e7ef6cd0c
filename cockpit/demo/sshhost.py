"""SSH host of the demo: runs commands on this machine, for one authorized key.

    python -m cockpit.demo.sshhost DIRECTORY

It writes its keys, a known_hosts and an ssh_config (Host demo) to DIRECTORY and prints `ready PORT` once it accepts
connections. It ends at the end of its standard input or at SIGTERM.
"""

import asyncio
import contextlib
import os
import signal
import site
import sys
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from pathlib import Path
from typing import Any

import asyncssh

from cockpit.demo import kernel
from cockpit.demo.layout import DemoFiles

NAME = "demo-sshd"
HOST = "demo"  # its name in the ssh_config

# Half the CPU time per command of asyncssh's first choice, ChaCha20.
CIPHER = "aes128-gcm@openssh.com"

_CHUNK = 65536
_GRACE = 2.0  # seconds between SIGHUP and SIGKILL of a command

_SSH_CONFIG = """\
Host {host}
    HostName 127.0.0.1
    Port {port}
    User demo
    IdentityFile "{identity}"
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile "{known_hosts}"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


async def serve(directory: Path) -> None:
    """Run the host until its standard input ends or SIGTERM arrives; hang up running commands."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin, _read_parent_pipe, stop)
    layout = DemoFiles(directory)
    host_key = _make_keys(layout)
    commands: set[asyncio.Task[None]] = set()

    async def run(session: asyncssh.SSHServerProcess[bytes]) -> None:
        task = asyncio.ensure_future(_run(session, layout.directory))
        commands.add(task)
        task.add_done_callback(commands.discard)
        await task

    listener = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[host_key],
        authorized_client_keys=str(layout.authorized_keys),
        encryption_algs=[CIPHER],
        process_factory=run,
        encoding=None,
        allow_pty=False,
        agent_forwarding=False,
    )
    port = listener.get_port()
    _write_client_files(layout, port, host_key)
    print(f"ready {port}", flush=True)
    await stop.wait()
    listener.close()
    for task in commands:
        task.cancel()
    await asyncio.gather(*commands, return_exceptions=True)


def _read_parent_pipe(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), _CHUNK):
        stop.set()


def _make_keys(layout: DemoFiles) -> asyncssh.SSHKey:
    client_key = asyncssh.generate_private_key("ssh-ed25519", comment="cockpit demo")
    layout.client_key.touch(0o600)
    client_key.write_private_key(layout.client_key)
    client_key.write_public_key(layout.authorized_keys)
    return asyncssh.generate_private_key("ssh-ed25519")


def _write_client_files(layout: DemoFiles, port: int, host_key: asyncssh.SSHKey) -> None:
    public = host_key.export_public_key().decode().strip()
    layout.known_hosts.write_text(f"[127.0.0.1]:{port} {public}\n")
    layout.ssh_config.write_text(
        _SSH_CONFIG.format(host=HOST, port=port, identity=layout.client_key, known_hosts=layout.known_hosts)
    )


async def _run(session: asyncssh.SSHServerProcess[bytes], directory: Path) -> None:
    argv = ["/bin/sh", "-c", session.command] if session.command else ["/bin/sh"]
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: SubprocessStreamProtocol(limit=_CHUNK, loop=loop),
        *argv,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=directory,
        env=_environment(directory),
        start_new_session=True,
    )
    command = Process(transport, protocol, loop)
    assert command.stdin and command.stdout and command.stderr
    feeding = asyncio.ensure_future(_feed(session, command))
    ending = asyncio.gather(
        _pump(command.stdout, session.stdout), _pump(command.stderr, session.stderr), command.wait()
    )
    closing = asyncio.ensure_future(session.wait_closed())
    tasks: list[asyncio.Future[Any]] = [feeding, ending, closing]
    try:
        await asyncio.wait(tasks[1:], return_when=asyncio.FIRST_COMPLETED)
        if command.returncode is not None and not closing.done():
            _send_exit(session, command.returncode)
    finally:
        if command.returncode is None:
            await _hang_up(command)
        transport.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _environment(home: Path) -> dict[str, str]:
    """Return a command's environment, with the demo's directory as home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    # cockpit may be installed in the user's site-packages.
    return {"PYTHONUSERBASE": site.getuserbase(), **kept, "HOME": str(home)}


async def _feed(session: asyncssh.SSHServerProcess[bytes], command: Process) -> None:
    """Pass the channel's input, its end and its signals to the command."""
    assert command.stdin
    with contextlib.suppress(asyncssh.Error, OSError):
        while True:
            try:
                data = await session.stdin.read(_CHUNK)
            except asyncssh.SignalReceived as received:
                _signal_group(command.pid, getattr(signal, f"SIG{received.signal}", signal.SIGTERM))
                continue
            if not data:
                break
            command.stdin.write(data)
            await command.stdin.drain()
    command.stdin.close()


async def _pump(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    with contextlib.suppress(asyncssh.Error, OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()


def _send_exit(session: asyncssh.SSHServerProcess[bytes], code: int) -> None:
    if code >= 0:
        session.exit(code)
    else:
        session.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))


async def _hang_up(command: Process) -> None:
    """End a command whose channel was closed, as a terminal hang-up does: SIGHUP, then SIGKILL."""
    _signal_group(command.pid, signal.SIGHUP)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await command.wait()


def _signal_group(leader: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, number)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m cockpit.demo.sshhost DIRECTORY", file=sys.stderr)
        return 2
    kernel.set_name(NAME)
    asyncio.run(serve(Path(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
