"""Operations over SSH: under every login shell, with umask, locale, PATH and directory of a plain login."""

import asyncio
import getpass
import os
import shlex
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import asyncssh
import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh.shell import connect
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, Option, ServerAction
from cockpit.profiles.reader import parse_profile
from cockpit.setup.doctor_host import diagnose_host
from cockpit.tuning.discovery.servers import discover
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.hosts.sshd import Sshd
from tests.tuning.conftest import Server, expect_rolled_back
from tests.waiting import programs, until

DATA = data_of(__file__)

# The start-up file that each shell reads when sshd runs a command with it; bash reads it only under sshd.
SHELLS = {"bash": ".bashrc", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc", "zsh": ".zshenv"}
NOISE = "echo 'Welcome! error: no such quota'; sh -c 'echo tset: unknown terminal >&2'\n"


@pytest.fixture(params=programs(*SHELLS, "dash", "mksh", "busybox sh"))
async def sshd(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> AsyncIterator[Sshd]:
    """A host whose user has this login shell, with a start-up file that prints."""
    program, *rest = request.param.split()
    home = tmp_path / "home"
    startup = home / SHELLS.get(program, ".none")
    startup.parent.mkdir(parents=True)
    startup.write_text(NOISE)
    host = Sshd(tmp_path, login=(shutil.which(program) or program, *rest))
    host.noise = "" if program in SHELLS else NOISE
    host.environment = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "SHLVL": "0", "SSH_CLIENT": "here"}
    yield await host.start()
    await host.stop()


@pytest.fixture
async def shell(sshd: Sshd) -> AsyncIterator[Shell]:
    shell = await connect(HostConfig(name="web1", ssh="web"), sshd.ssh_config)
    yield shell
    await shell.close()


PROFILE = DATA["profile"]


async def test_programs_run_with_input(sshd: Sshd, shell: Shell) -> None:
    # Precondition: the start-up file prints before a plain command.
    login = await asyncio.create_subprocess_exec(
        *(*sshd.login, "-c", f"{sshd.noise}echo it"), env={**os.environ, **sshd.environment}, stdout=PIPE, stderr=PIPE
    )
    assert await login.communicate() == (b"Welcome! error: no such quota\nit\n", b"tset: unknown terminal\n")
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


async def test_host_is_tuned_and_examined(server: Server, shell: Shell, sshd: Sshd) -> None:
    tuner, knob = Tuner(who="adam@here"), server.keep_alive()
    assert await tuner.history(shell, "web1") == []
    assert await tuner.read(shell, knob) == "On"
    applied = await tuner.apply(shell, "web1", [(knob, "Off"), (server.knob(), "30")])
    assert server.other.read_bytes() == b"KeepAlive Off" and applied.notes == ()
    await tuner.undo(shell, applied)
    newest, oldest = await tuner.history(shell, "web1")
    assert (newest.state, oldest.state) == ("applied", "undone")
    assert (oldest.facts.who, oldest.facts.settings[0].new) == ("adam@here", "Off")
    assert (await tuner.read_record(shell, "web1", oldest)).files == applied.files
    with pytest.raises(ChangeRolledBack, match="line 1 of it: KeepAlive must be On or"):
        await tuner.apply(shell, "web1", [(server.keep_alive(), "${banana}")])
    expect_rolled_back(server)
    await tuner.act(shell, ServerAction(name="mark", host="web1", command=f": >{shlex.quote(str(server.state))}/acted"))
    assert (server.state / "acted").exists()
    with pytest.raises(ChangeRefused, match=r"^fail: web1: nothing to rotate$"):
        await tuner.act(shell, ServerAction(name="fail", host="web1", command="echo nothing to rotate >&2; exit 1"))
    assert (await discover(shell, "web1", 80)).user == getpass.getuser()
    profile = parse_profile(PROFILE.format(file=server.other), "p", "p.toml")
    findings = [finding.text for finding in await diagnose_host(profile, profile.hosts[0], sshd.ssh_config)]
    assert any(line.startswith("ssh web as ") for line in findings)
    assert "tail: command 'no-such-tool' not found" in findings
    assert f"KeepAlive = On  ({server.other}: KeepAlive)" in findings
    assert "`echo 'it is broken' >&2; exit 1` fails: it is broken" in findings


# Variables that shells set themselves.
SHELL_VARIABLES = ("_=", "SHLVL=", "OLDPWD=", "PWD=")
A_LOCALE, NO_LOCALE = "export LC_ALL=C.UTF-8", "unset LC_ALL"


class Recorder:
    """Commands that append their umask, directory and environment to a file."""

    def __init__(self, directory: Path, sshd: Sshd, shell: Shell) -> None:
        self._directory = directory
        self.sshd = sshd
        self.shell = shell

    def record(self, name: str, then: str = "") -> str:
        """A command that appends its umask, directory and environment to the file `name`, then runs `then`."""
        file = shlex.quote(str(self._directory / name))
        return f"{{ echo start; umask; pwd; env; }} >>{file}; {then}"

    async def check(self, **times: int) -> None:
        """Check that each command ran so often (0: any number), with the environment of a plain `ssh` by the user."""
        async with asyncssh.connect("web", config=[str(self.sshd.ssh_config)]) as connection:
            await connection.run(self.record("expected"), check=True)
        [expected] = self._recorded("expected")
        for name, number in times.items():
            recorded = self._recorded(name)
            assert recorded and recorded == [expected] * (number or len(recorded)), name

    def _recorded(self, name: str) -> list[list[str]]:
        runs = (self._directory / name).read_text().split("start\n")[1:]
        return [sorted(line for line in run.splitlines() if not line.startswith(SHELL_VARIABLES)) for run in runs]


@pytest.fixture
async def recorder(request: pytest.FixtureRequest, tmp_path: Path, server: Server) -> AsyncIterator[Recorder]:
    """A host whose logins set umask, PATH and locale, and a variable that cockpit uses, too."""
    host = Sshd(tmp_path)
    host.noise = f"umask 027; {getattr(request, 'param', A_LOCALE)}; cd {shlex.quote(str(tmp_path))}"
    host.environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LANG": "de_DE.UTF-8", "VERBOSE": "a  b\nc"}
    await host.start()
    shell = await connect(HostConfig(name="web1", ssh="web"), host.ssh_config)
    yield Recorder(server.state, host, shell)
    await shell.close()
    await host.stop()


@pytest.fixture
def live(recorder: Recorder, server: Server) -> Knob:
    """A command knob with its value in a file."""
    (server.state / "value").write_text("1\n")
    value = shlex.quote(str(server.state / "value"))
    get, set_ = recorder.record("get", f"cat {value}"), recorder.record("set", f'echo "$1" >{value}')
    return Knob(name="value", host="web1", kind="command", get=get, set=set_)


def first_time_only(server: Server, command: str) -> str:
    """A command that runs `command` only the first time."""
    tried = shlex.quote(str(server.state / "tried"))
    return f"[ -e {tried} ] || {{ : >{tried}; {command}; }}"


@pytest.mark.parametrize("recorder", [A_LOCALE, NO_LOCALE], indirect=True)
async def test_all_commands_have_login_environment(server: Server, recorder: Recorder, live: Knob) -> None:
    tuner, shell, file = (
        Tuner(),
        recorder.shell,
        server.keep_alive(test=recorder.record("test"), reload=recorder.record("reload")),
    )
    applied = await tuner.apply(shell, "web1", [(file, "Off"), (live, "2")])
    await tuner.undo(shell, applied)
    options = (Option(name="on", set=recorder.record("set"), when=recorder.record("when")),)
    assert await tuner.read(shell, Knob(name="mode", host="web1", kind="choice", option=options)) == "on"
    await tuner.act(shell, ServerAction(name="mark", host="web1", command=recorder.record("action")))
    # The rollback has the environment of the change, although files were replaced in between.
    file = replace(file, reload=recorder.record("reload", first_time_only(server, "exit 1")))
    with pytest.raises(ChangeRolledBack):
        await tuner.apply(shell, "web1", [(file, "Off"), (live, "2")])
    assert (server.state / "value").read_text() == "1\n"
    await recorder.check(get=0, set=4, test=0, reload=4, when=1, action=1)


async def test_rollback_by_host_has_login_environment(server: Server, recorder: Recorder, live: Knob) -> None:
    knob = replace(live, reload=recorder.record("reload", first_time_only(server, "exec sleep 1000")))
    tuner = Tuner(timeouts=Timeouts(reach=0.05))
    applying = asyncio.ensure_future(tuner.apply(recorder.shell, "web1", [(knob, "2")]))
    await until((server.state / "tried").exists)
    recorder.sshd.cut()
    with suppress(Exception):
        await applying
    server.expire()
    await until(lambda: not server.locked())
    assert (server.state / "value").read_text() == "1\n"
    await recorder.check(reload=2, set=2)
