"""A change is killed, or its host restarts, at every stage; its PIDs are then reused by other processes.

The host is a PID and mount namespace of this machine, with its own boot id. A restart kills all its processes and
starts another namespace with another boot id, whose PIDs start at 1 again.
"""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.tuning.conftest import ENTRIES, ORIGINAL, PREFORK, FaultyShell, Server, server
from tests.waiting import until

DATA = data_of(__file__)

__all__ = ["server"]

pytestmark = pytest.mark.lab

NEW = (PREFORK.replace(b'"10"', b'"30"'), b"KeepAlive Off")
# The first process of the namespace: mounts the boot id and reaps orphaned processes.
INIT = DATA["init"]
# Starts a process with each of these PIDs, in its own session; their command lines contain the change's directory.
BYSTANDERS = DATA["bystanders"]


class Host:
    """A namespace that can be restarted."""

    def __init__(self, directory: Path) -> None:
        self._boot = directory / "boot_id"
        self.start()

    def start(self) -> None:
        self._boot.unlink(missing_ok=True)
        self._boot.write_text(f"{uuid.uuid4()}\n")
        command = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", INIT]
        self._unshare = subprocess.Popen([*command, str(self._boot)], stdout=subprocess.PIPE)
        assert self._unshare.stdout and self._unshare.stdout.readline() == b"up\n"
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children").read_text().split()
        self.init = int(children[0])

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.init, signal.SIGKILL)
        self._unshare.communicate()

    def interrupt(self, restart: bool) -> None:
        """Kill all processes, or all except the first."""
        if restart:
            self.stop()
            self.start()
        else:
            self.run("sh", "-c", "kill -9 -1")

    @property
    def enter(self) -> list[str]:
        return ["nsenter", f"--target={self.init}", "--pid", "--mount", "--"]

    def shell(self) -> FaultyShell:
        return FaultyShell(prefix=f"{shlex.join(self.enter)} ")

    def run(self, *command: str) -> str:
        return subprocess.run([*self.enter, *command], check=True, capture_output=True, text=True, timeout=120).stdout

    def alive(self, pids: list[str]) -> list[str]:
        return self.run("sh", "-c", 'for pid; do kill -0 "$pid" && echo "$pid"; done', "sh", *pids).split()


@pytest.fixture
def host(server: Server) -> Iterator[Host]:
    host = Host(server.state)
    yield host
    host.stop()


class Stage(NamedTuple):
    """Where a change hangs: before the `nth` call of a tool with matching arguments, or in a command of the profile.

    `ending` is the final state of the files.
    """

    tool: str = ""
    arguments: str = ""
    nth: int = 1
    test: str = "true"
    reload: str = "true"
    ending: tuple[bytes, bytes] = ORIGINAL


# Hangs only once, so that the later rollback does not hang.
HANG = '[ -e "$REACHED" ] || { : >"$REACHED"; sleep 1000; }'
# Hangs the second time, when the host undoes the change.
HANG_SECOND_TIME = """
if [ -e "$REACHED.1" ] && [ ! -e "$REACHED" ]; then : >"$REACHED"; sleep 1000; fi
: >"$REACHED.1"
exit 1
"""
STAGES = {
    "arming": Stage("sync", "/undo"),
    "armed": Stage("mktemp", r"\.webcockpit-"),
    "prepared one": Stage("mktemp", r"\.webcockpit-", 2),
    "prepared": Stage("mv", "-- new"),
    "swapped one": Stage("mv", "-- new", 2),
    "testing": Stage(test=HANG),
    "reloading": Stage(reload=HANG),
    "confirming": Stage("ln", "confirmed"),
    "confirmed": Stage("rm", "/lock", ending=NEW),
    "undoing one": Stage("mv", "-- new", 3, test="exit 1"),
    "undoing": Stage("mv", "-- new", 4, test="exit 1"),
    "undone, reloading": Stage(reload=HANG_SECOND_TIME),
    "undone": Stage("mv", "outcome", test="exit 1"),
}
TOOL = DATA["tool"]
# The boot id differs after a restart; the other stages have no other use of it.
RESTARTED = ("armed", "swapped one", "reloading", "confirmed", "undoing one")


def recorded_pids(change: Path) -> list[int]:
    """All PIDs in the directory of the change."""
    texts = [path.name if path.is_symlink() else path.read_text("ascii", "replace") for path in change.iterdir()]
    texts += [str(path.readlink()) for path in change.iterdir() if path.is_symlink()]
    pid = re.compile(r"(?<![\w:-])(?:undo-|after-)?(\d{1,7}):\d+:[0-9a-f]{8}-")
    return sorted({int(found) for text in texts for found in pid.findall(text)} - {1})


async def interrupt_at(stage: Stage, server: Server, host: Host, restart: bool) -> Path:
    """Interrupt a change at this stage; return its directory."""
    reached = server.state / "reached"
    environment = {"ARGUMENTS": stage.arguments, "NTH": stage.nth, "REACHED": reached}
    server.tools(**({stage.tool: TOOL} if stage.tool else {}), environment=environment)
    shell, commands = host.shell(), {"test": stage.test, "reload": stage.reload}
    assignments = [(server.knob(**commands), "30"), (server.keep_alive(**commands), "Off")]
    change = asyncio.ensure_future(Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", assignments))
    await until(lambda: reached.exists() or change.done())
    assert not change.done(), change.exception()
    shell.lose_connection_at(shell.count, after=True)
    host.interrupt(restart)
    with suppress(CockpitError):
        await change
    await shell.close()
    return server.changes()[0]


@pytest.mark.parametrize(("name", "restart"), [*((n, False) for n in STAGES), *((n, True) for n in RESTARTED)])
async def test_change_interrupted_at_any_stage_is_resolved(
    server: Server, host: Host, name: str, restart: bool
) -> None:
    stage = STAGES[name]
    change = await interrupt_at(stage, server, host, restart)
    assert server.target.read_bytes() in (ORIGINAL[0], NEW[0]) and server.other.read_bytes() in (ORIGINAL[1], NEW[1])

    pids = recorded_pids(change)
    bystanders = host.run(sys.executable, "-c", BYSTANDERS, str(change), *map(str, pids)).split()
    assert list(map(int, bystanders)) == pids and (pids or name == "arming")

    shell, tuner, spare = host.shell(), Tuner(), server.knob("MinSpareServers", test="", reload="")
    past = await tuner.history(shell, "web1")
    decided: dict[str, list[str]] = {"arming": [], "confirmed": ["applied"]}
    assert [entry.state for entry in past] == decided.get(name, ["incomplete"])
    if name not in decided:
        if name != "undone":  # the host is unlocked again
            with pytest.raises(ChangeRefused, match="is incomplete"):
                await tuner.apply(shell, "web1", [(spare, "9")])
        fails = stage.reload == HANG_SECOND_TIME
        with pytest.raises(ChangeFailed) if fails else nullcontext():
            await tuner.force_undo(shell, "web1", past[0])
        ending = "not rolled back completely" if fails else "rolled back"
        assert [entry.state for entry in await tuner.history(shell, "web1")] == [ending]
    assert server.bytes() == stage.ending and server.entries() == ENTRIES
    assert host.alive(bystanders) == bystanders

    assert (await tuner.apply(shell, "web1", [(spare, "7")])).files and not server.locked()
    assert host.alive(bystanders) == bystanders
    await shell.close()
