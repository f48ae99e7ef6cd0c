"""Symlink attack of another user on a change by root: no file outside of the configuration may be modified.

The attacker reads the name of the change from command lines, and creates links to a file of root's under every name
that root might write to.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Approval
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.tuning.conftest import NOBODY, FaultyShell, Server, acl, server, shell
from tests.waiting import until

DATA = data_of(__file__)

__all__ = ["server", "shell"]

# Only root has something to lose to another user.
pytestmark = pytest.mark.lab

SECRET = b"root's own\n"
ATTACKER = DATA["attacker"]


class Attack:
    """A running attacker. `victim` is a file that only root may read; `links()` are the planted links."""

    def __init__(self, server: Server) -> None:
        self.directory = server.directory
        self.victim = server.root / "shadow"
        self.victim.write_bytes(SECRET)
        self.victim.chmod(0o600)
        self._before = self._facts()
        self._running = subprocess.Popen([sys.executable, "-c", ATTACKER, str(self.directory), str(self.victim)])

    def links(self) -> list[Path]:
        return [path for path in self.directory.iterdir() if path.is_symlink() and path.readlink() == self.victim]

    def succeeded(self) -> bool:
        return self._facts() != self._before

    def end(self) -> None:
        self._running.kill()
        self._running.wait()

    def _facts(self) -> tuple[bytes, int, int, int]:
        facts = self.victim.stat()
        return self.victim.read_bytes(), facts.st_mode, facts.st_uid, facts.st_gid


@pytest.fixture
def attack(server: Server) -> Iterator[Attack]:
    server.prefork.unlink()
    os.chown(server.other, NOBODY, NOBODY)
    attack = Attack(server)
    yield attack
    attack.end()


async def test_attack_on_predictable_name_succeeds(server: Server, attack: Attack) -> None:
    """Control: root copies to a predictable name in a directory that others can write."""
    server.directory.chmod(0o1777)
    temporary = server.directory / ".webcockpit-20200101T000000Z-abcdef-0"
    program = 'until [ -L "$2" ]; do sleep 0.01; done; cp --preserve=all -- "$1" "$2"'
    change = "/changes/20200101T000000Z-abcdef"
    copying = await asyncio.create_subprocess_exec("sh", "-c", program, change, str(server.other), str(temporary))
    await asyncio.wait_for(copying.wait(), 60)
    assert attack.succeeded()


@pytest.mark.parametrize("mode", [0o777, 0o1777])
async def test_world_writable_directory_is_refused(
    server: Server, shell: FaultyShell, attack: Attack, mode: int
) -> None:
    server.directory.chmod(mode)
    before = server.other.read_bytes()
    for _ in range(5):
        with pytest.raises(ChangeRefused, match=r"every user can write its directory .*; chmod o-w .*; nothing was"):
            await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert not attack.succeeded() and server.other.read_bytes() == before


async def test_undo_follows_no_link_in_world_writable_directory(
    server: Server, shell: FaultyShell, attack: Attack
) -> None:
    """The directory becomes world-writable while the change waits; the guard's command line reveals its name."""

    async def open_directory() -> bool:
        server.directory.chmod(0o777)
        await until(attack.links)
        return False

    knob = server.keep_alive(test="true", reload="true")
    with pytest.raises(ChangeFailed, match="every user can write its directory") as failed:
        await Tuner().apply(shell, "web1", [(knob, "Off")], approval=Approval(60, open_directory))
    assert "could not be rolled back" in str(failed.value) and not attack.succeeded()
    (change,) = server.changes()
    assert (change / f"0-{server.other.name}").read_bytes() == b"KeepAlive On"


async def test_path_through_link_of_other_user_is_refused(server: Server, shell: FaultyShell) -> None:
    shared = server.root / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "conf"
    link.symlink_to(server.directory)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    knob = server.keep_alive(file=str(link / server.other.name))
    with pytest.raises(ChangeRefused, match=r"its link .*/shared/conf belongs to another user"):
        await Tuner().apply(shell, "web1", [(knob, "Off")])
    os.chown(link, 0, 0, follow_symlinks=False)
    assert (await Tuner().apply(shell, "web1", [(knob, "Off")])).files


ACCESS = acl((1, 7), (2, 7, NOBODY), (4, 5), (0x10, 7), (0x20, 5))


@pytest.mark.parametrize(
    ("owner", "group", "mode", "message"),
    [
        (NOBODY, 0, 0o755, r"its directory .*/etc belongs to nobody, who could swap the file; chown root"),
        (0, NOBODY, 0o775, "group nogroup can write its directory .*; chmod g-w"),
        (0, 0, 0o775, ""),
        (0, NOBODY, 0o755, ""),
        (0, 0, None, "its access list lets others write its directory"),
    ],
)
async def test_directory_writable_by_others_is_refused(
    server: Server, shell: FaultyShell, owner: int, group: int, mode: int | None, message: str
) -> None:
    os.chown(server.directory, owner, group)
    if mode is None:
        os.setxattr(server.directory, "system.posix_acl_access", ACCESS)
    else:
        server.directory.chmod(mode)
    if not message:
        assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files
        os.chown(server.root, NOBODY, NOBODY)
        message = "belongs to nobody"
    before = server.other.read_bytes()
    with pytest.raises(ChangeRefused, match=message):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "On" if before.endswith(b"Off") else "Off")])
    assert server.other.read_bytes() == before


# Wraps a tool: logs its arguments and, for mktemp, its output.
LOGGING = DATA["logging"]
TOOLS = "id cat chmod chown cp cut find head ln ls mktemp mv readlink rm rmdir sha256sum stat sync tail tr"


async def test_random_name_is_in_no_command_line(server: Server, shell: FaultyShell) -> None:
    arguments, created = server.root / "arguments", server.root / "made"
    server.tools(**dict.fromkeys(TOOLS.split(), LOGGING), environment={"ARGUMENTS": arguments, "MADE": created})
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    await Tuner().undo(shell, applied)
    with pytest.raises(ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(server.keep_alive(test="exit 1"), "Off")])
    names = [Path(line).name for line in created.read_text().splitlines() if "/.webcockpit-" in line]
    assert len(set(names)) == 6 and not any(name in arguments.read_text() for name in names)
