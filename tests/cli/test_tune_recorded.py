"""A change made by `cockpit tune`, over SSH, is recorded in the library as one made on the screen is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from tests.commands import cockpit
from tests.hosts.sshd import Sshd

PROFILE = """\
[target]
url = "{url}"
[[host]]
name = "web1"
ssh = "web"
tail = ["echo tail"]
[[host]]
name = "down"
ssh = "nowhere"
[[knob]]
name = "Level"
host = "web1"
kind = "keyvalue"
file = "{file}"
key = "Level"
reload = "true"
[[action]]
name = "restart"
host = "web1"
command = "true"
"""


class Tuned:
    """`cockpit tune` for a file of a host that is reached by SSH, while another host of the profile is down."""

    def __init__(self, root: Path, sshd: Sshd) -> None:
        self.file = root / "level.conf"
        self.file.write_text("Level=1\n")
        self._state = root / "state"
        self._profile = root / "p.toml"
        self.aim("http://127.0.0.1:9/")
        self._options = ("--ssh-config", sshd.ssh_config)

    def aim(self, url: str) -> None:
        self._profile.write_text(PROFILE.format(file=self.file, url=url))

    async def run(self, *words: str, code: int = 0) -> str:
        """Return stdout and stderr."""
        environment = {**os.environ, "XDG_STATE_HOME": str(self._state), "SSH_AUTH_SOCK": ""}
        command = ("tune", "--trust", *self._options, self._profile, *words)
        done = await asyncio.to_thread(cockpit, *command, env=environment)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def recorded(self) -> list[State]:
        """The last states of the library's recordings, oldest first."""
        states = []
        for path in sorted((self._state / "cockpit" / "recordings").glob("*.cockpit")):
            with Recording(path) as recording:
                states.append(fold_all(recording.events()))
        # Several may begin in one second, and be named by it.
        return sorted(states, key=lambda state: state.started.wall if state.started else 0.0)


@pytest.fixture
async def tuned(tmp_path: Path) -> AsyncIterator[Tuned]:
    directory = tmp_path / "sshd"
    directory.mkdir()
    sshd = await Sshd(directory).start()
    # The changes that the host keeps are of this user's too.
    sshd.environment["XDG_STATE_HOME"] = str(tmp_path / "host")
    yield Tuned(tmp_path, sshd)
    await sshd.stop()


async def test_a_change_its_undo_and_an_action_leave_a_recording_each(tuned: Tuned) -> None:
    await tuned.run("set", "Level=2", "--no-probe")
    (state,) = tuned.recorded()
    (change,) = state.changes
    assert (change.host, change.outcome, change.letter) == ("web1", "applied", "A")
    assert [(one.knob, one.old, one.new) for one in change.settings] == [("Level", "1", "2")]
    assert list(change.stages) == ["armed", "written", "reloaded", "active", "confirmed"]
    assert change.diff.endswith("-Level=1\n+Level=2\n")
    assert list(state.hosts) == ["web1"] and state.knobs["Level"].value == "2" and state.ended

    await tuned.run("undo", "--no-probe")
    (undo,) = tuned.recorded()[1].changes
    assert undo.undoes and undo.outcome == "applied" and tuned.file.read_text() == "Level=1\n"

    await tuned.run("action", "restart")
    assert [(action.action, action.done) for action in tuned.recorded()[2].actions] == [("restart", 1)]


async def test_a_change_that_is_rolled_back_is_recorded(tuned: Tuned) -> None:
    tuned.file.write_text("Level=1\n")
    await tuned.run("set", "Level=2\n3", "--no-probe", code=5)
    (refused,) = tuned.recorded()[-1].changes
    assert refused.outcome == "rolled back" and "one line of text" in refused.detail


async def test_what_only_reads_leaves_none(tuned: Tuned) -> None:
    assert "1" in await tuned.run("show", "Level")
    assert "+Level=2" in await tuned.run("set", "Level=2", "--dry-run", "--no-probe")
    assert "no changes yet" in await tuned.run("history")
    assert "nothing to undo" in await tuned.run("undo", code=5)
    assert tuned.recorded() == []


async def test_a_host_that_is_down_is_one_line(tuned: Tuned, tmp_path: Path) -> None:
    (tmp_path / "sshd" / "authorized_keys").write_text("")
    assert (await tuned.run("show", code=3)).startswith("cockpit: web1: 127.0.0.1:")
    assert tuned.recorded() == []


async def test_the_target_is_found_by_a_name_that_only_ssh_config_has(tuned: Tuned) -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tuned.aim(f"http://web:{port}/")
        await tuned.run("set", "Level=2")
    assert tuned.file.read_text() == "Level=2\n"
    assert f"Host: web:{port}\r\n".encode() in asked[0]
