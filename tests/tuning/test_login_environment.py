"""Commands of a profile have the umask, locale, PATH and directory of a plain SSH login."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import asyncssh
import pytest

from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh import connect
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Option, ServerAction
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.hosts.sshd import Sshd
from tests.tuning.conftest import Server, until

# Variables that shells set themselves.
SHELL_VARIABLES = ("_=", "SHLVL=", "OLDPWD=", "PWD=")
LOCALES = {"a locale": "export LC_ALL=C.UTF-8", "no locale": "unset LC_ALL"}


class Recorder:
    """Commands that append their umask, directory and environment to a file."""

    def __init__(self, directory: Path, connection: asyncssh.SSHClientConnection) -> None:
        self._directory = directory
        self._connection = connection

    def record(self, name: str, then: str = "") -> str:
        """A command that appends its umask, directory and environment to the file `name`, then runs `then`."""
        file = shlex.quote(str(self._directory / name))
        return f"{{ echo start; umask; pwd; env; }} >>{file}; {then}"

    async def expected(self) -> list[str]:
        """The lines recorded when the user runs the command with `ssh`."""
        await self._connection.run(self.record("without cockpit"), check=True)
        [found] = self.recorded("without cockpit")
        return found

    def recorded(self, name: str) -> list[list[str]]:
        """The recorded lines of each run of the command."""
        runs = (self._directory / name).read_text().split("start\n")[1:]
        return [sorted(line for line in run.splitlines() if not line.startswith(SHELL_VARIABLES)) for run in runs]


@pytest.fixture(params=LOCALES)
async def sshd(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Sshd]:
    """A host whose logins set umask, PATH and locale, and a variable that cockpit uses, too."""
    host = Sshd(tmp_path)
    host.noise = f"umask 027; {LOCALES[request.param]}; cd {shlex.quote(str(tmp_path))}"
    host.environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LANG": "de_DE.UTF-8", "VERBOSE": "a  b\nc"}
    yield await host.start()
    await host.stop()


@pytest.fixture
async def shell(sshd: Sshd) -> AsyncIterator[Shell]:
    shell = await connect(HostConfig(name="web1", ssh="web"), sshd.ssh_config)
    yield shell
    await shell.close()


@pytest.fixture
async def recorder(sshd: Sshd, server: Server) -> AsyncIterator[Recorder]:
    async with asyncssh.connect("web", config=[str(sshd.ssh_config)]) as connection:
        yield Recorder(server.state, connection)


def live_knob(recorder: Recorder, server: Server, **changed: object) -> Knob:
    """A command knob with its value in a file."""
    value = shlex.quote(str(server.state / "value"))
    values: dict[str, object] = {
        "name": "value",
        "host": "web1",
        "kind": "command",
        "get": recorder.record("get", f"cat {value}"),
        "set": recorder.record("set", f'echo "$1" >{value}'),
    }
    (server.state / "value").write_text("1\n")
    return Knob(**(values | changed))  # type: ignore[arg-type]


def first_time_only(server: Server, command: str) -> str:
    """A command that runs `command` only the first time."""
    tried = shlex.quote(str(server.state / "tried"))
    return f"[ -e {tried} ] || {{ : >{tried}; {command}; }}"


async def test_get_set_test_and_reload_have_login_environment(server: Server, shell: Shell, recorder: Recorder) -> None:
    file = server.keep_alive(test=recorder.record("test"), reload=recorder.record("reload"))
    applied = await Tuner().apply(shell, "web1", [(file, "Off"), (live_knob(recorder, server), "2")])
    await Tuner().undo(shell, applied)
    expected = await recorder.expected()
    for name in ("get", "set", "test", "reload"):
        found = recorder.recorded(name)
        assert len(found) > 1 and all(each == expected for each in found), name


async def test_choice_and_action_have_login_environment(server: Server, shell: Shell, recorder: Recorder) -> None:
    options = (Option(name="on", set=recorder.record("set"), when=recorder.record("when")),)
    choice = Knob(name="mode", host="web1", kind="choice", option=options)
    assert await Tuner().read(shell, choice) == "on"
    await Tuner().act(shell, ServerAction(name="mark", host="web1", command=recorder.record("action")))
    expected = await recorder.expected()
    assert recorder.recorded("when") == recorder.recorded("action") == [expected]


async def test_rollback_by_cockpit_has_login_environment(server: Server, shell: Shell, recorder: Recorder) -> None:
    """Its commands have the environment of the change, although files were replaced in between."""
    failing = (
        f"[ -e {shlex.quote(str(server.state))}/tried ] || {{ : >{shlex.quote(str(server.state))}/tried; exit 1; }}"
    )
    file = server.keep_alive(test=recorder.record("test"), reload=recorder.record("reload", failing))
    with pytest.raises(ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(file, "Off"), (live_knob(recorder, server), "2")])
    expected = await recorder.expected()
    assert (server.state / "value").read_text() == "1\n"
    for name, times in (("reload", 2), ("set", 2)):
        assert recorder.recorded(name) == [expected] * times, name
    assert all(each == expected for each in recorder.recorded("get"))


async def test_rollback_by_host_has_login_environment(
    server: Server, shell: Shell, recorder: Recorder, sshd: Sshd
) -> None:
    knob = live_knob(recorder, server, reload=recorder.record("reload", first_time_only(server, "exec sleep 1000")))
    expected = await recorder.expected()
    applying = asyncio.ensure_future(Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(knob, "2")]))
    await until((server.state / "tried").exists)
    sshd.cut()
    with suppress(Exception):
        await applying
    server.expire()
    await until(lambda: not server.locked())
    assert (server.state / "value").read_text() == "1\n"
    for name, times in (("reload", 2), ("set", 2)):
        assert recorder.recorded(name) == [expected] * times, name


def daemon(directory: Path) -> tuple[str, Callable[[], dict[str, object]]]:
    """A command that starts a daemon, and a function that returns umask, directory and environment of the daemon."""
    pid = directory / "pid"
    file = shlex.quote(str(pid))
    command = f"setsid sh -c 'echo $$ >{file}.new; mv {file}.new {file}; exec sleep 1000' >/dev/null 2>&1 </dev/null &"

    def facts() -> dict[str, object]:
        process = Path("/proc") / pid.read_text().strip()
        environment = (process / "environ").read_bytes().decode().split("\0")
        status = (process / "status").read_text().splitlines()
        found: dict[str, object] = {
            "umask": next(line for line in status if line.startswith("Umask:")),
            "directory": str((process / "cwd").readlink()),
            "environment": sorted(each for each in environment if not each.startswith(SHELL_VARIABLES)),
        }
        os.kill(int(process.name), 15)
        return found

    return command, facts


async def test_daemon_started_by_reload_has_login_environment(
    server: Server, shell: Shell, sshd: Sshd, recorder: Recorder, tmp_path: Path
) -> None:
    found = []
    for variant in ("without", "with"):
        directory = tmp_path / variant
        directory.mkdir()
        command, facts = daemon(directory)
        if variant == "without":
            async with asyncssh.connect("web", config=[str(sshd.ssh_config)]) as connection:
                await connection.run(command, check=True)
        else:
            await Tuner().apply(shell, "web1", [(server.keep_alive(test="true", reload=command), "Off")])
        await until((directory / "pid").exists)
        await until(lambda directory=directory: b"sleep" in _title(directory / "pid"))  # type: ignore[misc]
        found.append(facts())
    assert found[0] == found[1]


def _title(pid: Path) -> bytes:
    return (Path("/proc") / pid.read_text().strip() / "cmdline").read_bytes()
