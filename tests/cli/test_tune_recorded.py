"""Changes made by `cockpit tune` over SSH are recorded in the library like changes made on the screen."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from tests.cli.conftest import keyvalue
from tests.commands import cockpit
from tests.data import data_of
from tests.hosts.sshd import Sshd

DATA = data_of(__file__)

PROFILE = DATA["profile"]


class TunedHost:
    """`cockpit tune` for a file of an SSH host; another host of the profile is down."""

    def __init__(self, root: Path, sshd: Sshd) -> None:
        self.file = root / "level.conf"
        self.file.write_text("Level=1\n")
        self._state = root / "state"
        self._profile = root / "p.toml"
        self.set_target("http://127.0.0.1:9/")
        self._options = ("--ssh-config", sshd.ssh_config)

    def set_target(self, url: str) -> None:
        self._profile.write_text(PROFILE.format(url=url) + keyvalue("Level", self.file, 'reload = "true"\nmax = 10'))

    async def run(self, *arguments: str, code: int = 0) -> str:
        """Return stdout and stderr."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self._state), "SSH_AUTH_SOCK": ""}
        command = ("tune", "--trust", *self._options, self._profile, *arguments)
        done = await asyncio.to_thread(cockpit, *command, env=environment)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def recorded(self) -> list[State]:
        """Return the final states of the library's recordings, oldest first."""
        states = []
        for path in sorted((self._state / "webcockpit" / "recordings").glob("*.cockpit")):
            with Recording(path) as recording:
                states.append(fold_all(recording.events()))
        # Names have a resolution of 1 s: they do not give the order.
        return sorted(states, key=lambda state: state.started.wall if state.started else 0.0)


@pytest.fixture
async def tuned(tmp_path: Path) -> AsyncIterator[TunedHost]:
    directory = tmp_path / "sshd"
    directory.mkdir()
    sshd = await Sshd(directory).start()
    # Keep the host's state of changes out of the user's home.
    sshd.environment["XDG_STATE_HOME"] = str(tmp_path / "host")
    yield TunedHost(tmp_path, sshd)
    await sshd.stop()


async def test_changes_undo_and_action_are_recorded(tuned: TunedHost) -> None:
    await tuned.run("set", "Level=2", "--no-probe")
    (state,) = tuned.recorded()
    (change,) = state.changes
    assert (change.host, change.outcome, change.letter) == ("web1", "applied", "A")
    assert [(setting.knob, setting.old, setting.new) for setting in change.settings] == [("Level", "1", "2")]
    assert list(change.stages) == ["armed", "written", "reloaded", "active", "confirmed"]
    assert change.diff.endswith("-Level=1\n+Level=2\n")
    assert list(state.hosts) == ["web1"] and state.knobs["Level"].value == "2" and state.ended

    await tuned.run("undo", "--no-probe")
    (undo,) = tuned.recorded()[1].changes
    assert undo.undoes and undo.outcome == "applied" and tuned.file.read_text() == "Level=1\n"

    assert "restart done" in await tuned.run("action", "restart")
    assert [(action.action, action.done) for action in tuned.recorded()[2].actions] == [("restart", 1)]


async def test_read_only_commands_are_not_recorded(tuned: TunedHost, tmp_path: Path) -> None:
    assert "1" in await tuned.run("show", "Level")
    assert "+Level=2" in await tuned.run("set", "Level=2", "--dry-run", "--no-probe")
    assert "no changes yet" in await tuned.run("history")
    assert "nothing to undo" in await tuned.run("undo", code=5)
    # Nor is a value that cannot be valid.
    assert "one line of text" in await tuned.run("set", "Level=2\n3", "--no-probe", code=5)
    assert "'11' is out of range" in await tuned.run("set", "Level=11", "--no-probe", code=5)
    assert tuned.recorded() == []
    # Nor is a command that does not reach the host, and it is one error line.
    (tmp_path / "sshd" / "authorized_keys").write_text("")
    assert (await tuned.run("show", code=3)).startswith("cockpit: web1: 127.0.0.1:")
    assert tuned.recorded() == []


async def test_target_name_is_resolved_by_ssh_config(tuned: TunedHost) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tuned.set_target(f"http://web:{port}/")
        await tuned.run("set", "Level=2")
    assert tuned.file.read_text() == "Level=2\n"
    assert f"Host: web:{port}\r\n".encode() in requests[0]
