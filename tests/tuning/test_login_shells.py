"""All operations on a host work under every login shell, even if its start-up file prints."""

from __future__ import annotations

import asyncio
import getpass
import os
import shlex
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh import connect
from cockpit.hosts.tails import HostTail
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, HostError
from cockpit.model.events import AnyEvent, TailText
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import ServerAction
from cockpit.profiles.reader import parse_profile
from cockpit.setup.doctor_host import diagnose_host
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.hosts.sshd import Sshd
from tests.tuning.conftest import ORIGINAL, Server, until

# The start-up file that each shell reads when sshd runs a command with it; bash reads it only under sshd.
SHELLS = {
    "bash": ".bashrc",
    "fish": ".config/fish/config.fish",
    "tcsh": ".tcshrc",
    "zsh": ".zshenv",
}
SILENT = ("dash", "mksh", "busybox")
NOISE = "echo 'Welcome! error: no such quota'; sh -c 'echo tset: unknown terminal >&2'\n"
KINDS = [kind for kind in (*SHELLS, *SILENT) if shutil.which(kind)]


@pytest.fixture(params=KINDS)
async def sshd(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> AsyncIterator[Sshd]:
    """A host whose user has this login shell, with a start-up file that prints."""
    kind = request.param
    home = tmp_path / "home"
    if kind in SHELLS:
        startup = home / SHELLS[kind]
        startup.parent.mkdir(parents=True)
        startup.write_text(NOISE)
    home.mkdir(exist_ok=True)
    program = shutil.which(kind) or kind
    host = Sshd(tmp_path, login=(program, "sh") if kind == "busybox" else (program,))
    host.noise = NOISE if kind in SILENT else ""
    host.environment = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "SHLVL": "0", "SSH_CLIENT": "here"}
    yield await host.start()
    await host.stop()


@pytest.fixture
async def shell(sshd: Sshd) -> AsyncIterator[Shell]:
    shell = await connect(HostConfig(name="web1", ssh="web"), sshd.ssh_config)
    yield shell
    await shell.close()


async def test_login_shell_prints_at_startup(sshd: Sshd) -> None:
    """Precondition of the other tests: the start-up file prints before a plain command."""
    login = await asyncio.create_subprocess_exec(
        *sshd.login,
        "-c",
        f"{sshd.noise}echo it",
        env={**os.environ, **sshd.environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert await login.communicate() == (
        b"Welcome! error: no such quota\nit\n",
        b"tset: unknown terminal\n",
    )


async def test_programs_run_with_input(shell: Shell) -> None:
    quoting = "printf '%s|' 'a b' \"c'd\" \\! '`x`' '$HOME' \\\\ '!!' '{a,b}' '*'\nexit 3"
    done = await shell.run(quoting)
    assert done == (3, b"a b|c'd|!|`x`|$HOME|\\|!!|{a,b}|*|", b"")
    assert await shell.run("exec 2>&1; echo up", input=b"echo taken for a command\n") == (0, b"up\n", b"")
    for size in (1, 5000, 2_000_000):  # also larger than the block size of a shell's reads, like the program
        data = (b"exit 7\n\0\xff#'" * (size // 10 + 1))[:size]
        padding = ": padding\n" * 2000
        assert await shell.run(f"{padding}cat; echo done >&2", input=data) == (0, data, b"done\n"), size
    channel = await shell.open('while read -r line; do echo "got $line"; done; echo bye >&2')
    for word in (b"one", b"two"):
        await channel.write(word + b"\n")
        assert await channel.readline() == b"got " + word + b"\n"
    channel.close()
    await channel.wait_closed()


async def test_changes_and_actions_work(server: Server, shell: Shell) -> None:
    tuner, knob = Tuner(who="adam@here"), server.keep_alive()
    assert await tuner.read(shell, knob) == "On"
    applied = await tuner.apply(shell, "web1", [(knob, "Off"), (server.knob(), "30")])
    assert server.other.read_bytes() == b"KeepAlive Off" and applied.notes == ()
    await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL and not server.locked()
    newest, oldest = await tuner.history(shell, "web1")
    assert (newest.state, oldest.state) == ("applied", "undone")
    assert (await tuner.read_record(shell, "web1", oldest)).files == applied.files
    with pytest.raises(ChangeRolledBack, match="line 1 of it: KeepAlive must be On or"):
        await tuner.apply(shell, "web1", [(server.keep_alive(), "${banana}")])
    assert server.bytes() == ORIGINAL and not server.locked()
    await tuner.act(shell, ServerAction(name="mark", host="web1", command=f": >{shlex.quote(str(server.state))}/acted"))
    assert (server.state / "acted").exists()
    with pytest.raises(ChangeRefused, match=r"^fail: web1: nothing to rotate$"):
        await tuner.act(shell, ServerAction(name="fail", host="web1", command="echo nothing to rotate >&2; exit 1"))


async def test_host_undoes_unconfirmed_change(server: Server, shell: Shell, sshd: Sshd) -> None:
    test = "[ -e once ] || { : >once; exec sleep 1000; }"
    knob = server.keep_alive(test=f"cd {shlex.quote(str(server.state))}; {test}")
    applying = asyncio.ensure_future(Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(knob, "Off")]))
    await until((server.state / "once").exists)
    sshd.cut()
    with suppress(Exception):
        await applying
    server.expire()
    await until(lambda: not server.locked())
    assert server.bytes() == ORIGINAL


async def test_discovery_and_doctor_work(server: Server, sshd: Sshd, shell: Shell) -> None:
    assert (await discover(shell, "web1", 80)).user == getpass.getuser()
    profile = parse_profile(
        f"""
[target]
url = "http://127.0.0.1/"
[[host]]
name = "web1"
ssh = "web"
tail = ["cat /etc/passwd", "no-such-tool"]
[[knob]]
name = "KeepAlive"
host = "web1"
file = "{server.other}"
directive = "KeepAlive"
test = "echo 'it is broken' >&2; exit 1"
reload = "true"
""",
        "p",
        "p.toml",
    )
    findings = [finding.text for finding in await diagnose_host(profile, profile.hosts[0], sshd.ssh_config)]
    assert any(line.startswith("ssh web as ") for line in findings)
    assert "tail: command 'no-such-tool' not found" in findings
    assert f"KeepAlive = On  ({server.other}: KeepAlive)" in findings
    assert "`echo 'it is broken' >&2; exit 1` fails: it is broken" in findings


async def test_tails_show_only_their_output(sshd: Sshd) -> None:
    events: list[AnyEvent] = []
    config = HostConfig(name="web1", ssh="web", tail=("echo first; echo second; exec sleep 1000",))
    feed = HostFeed(config, Clock(), events.append, ssh_config=sshd.ssh_config)
    running = [
        asyncio.ensure_future(coroutine) for coroutine in (feed.run(), HostTail(feed, 0, Clock(), events.append).run())
    ]
    try:
        await until(lambda: "second" in lines(events))
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    assert lines(events) == ["first", "second"]


def lines(events: list[AnyEvent]) -> list[str]:
    """Lines of the tail."""
    return [line for event in events if isinstance(event, TailText) for line in event.lines]


@pytest.mark.parametrize("sshd", KINDS[:1], indirect=True)
async def test_refused_login_error_quotes_its_output(sshd: Sshd) -> None:
    sshd.login, sshd.noise = ("/bin/sh",), "echo 'This account is closed.'; exit 1"
    shell = await connect(HostConfig(name="web1", ssh="web"), sshd.ssh_config)
    try:
        for attempt in (shell.run("true"), shell.open("true")):
            with pytest.raises(
                HostError, match=r"web1: the login shell ended before `sh -s` started: This account is closed\.$"
            ):
                await attempt
    finally:
        await shell.close()
