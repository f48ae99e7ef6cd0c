"""A change while it is under way: its lock, its undo on the host, a person's confirmation, sudo, small shells."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.shell import SH, Completed
from cockpit.model.errors import ChangeRefused, ChangeUndone
from cockpit.model.events import Stage
from cockpit.model.hosts import HostConfig
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Approval, Patience, Watch
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import privileged
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, Interfering, Server, until

OFF = b"KeepAlive Off"


class Watching(Watch):
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.stages: list[tuple[Stage, float | None]] = []

    def begun(self, plan: Plan) -> None:
        self.plans.append(plan)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self.stages.append((stage, seconds))


async def test_the_stages_are_told_in_order(server: Server, shell: Interfering) -> None:
    watch = Watching()
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], watch)
    assert [stage for stage, _ in watch.stages] == ["armed", "written", "tested", "reloaded", "active", "confirmed"]
    assert watch.plans[0].cost == "graceful" and "+KeepAlive Off" in watch.plans[0].diff


def answer(given: bool | None) -> Callable[[], asyncio.Future[bool]]:
    """What a person says; None: nothing, ever."""

    def ask() -> asyncio.Future[bool]:
        said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if given is not None:
            said.set_result(given)
        return said

    return ask


async def test_a_person_confirms(server: Server, shell: Interfering) -> None:
    watch = Watching()
    approval = Approval(60, answer(True))
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], watch, approval)
    assert watch.stages[-2:] == [("active", 60), ("confirmed", None)]
    assert server.other.read_bytes() == OFF and not server.locked() and applied.files


@pytest.mark.parametrize(
    ("given", "said"), [(False, "it was not confirmed"), (None, "nobody confirmed it within 0.2 s")]
)
async def test_what_nobody_confirms_is_undone(
    server: Server, shell: Interfering, given: bool | None, said: str
) -> None:
    with pytest.raises(ChangeUndone, match=f"KeepAlive: {said}; rolled back and reloaded"):
        await Tuner().apply(
            shell,
            "web1",
            [(server.keep_alive(), "Off")],
            approval=Approval(0.2 if given is None else 60, answer(given)),
        )
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.reloads == 2 and not server.locked()


async def test_the_host_undoes_what_is_not_confirmed_in_its_time_by_itself(server: Server, shell: Interfering) -> None:
    """The person's answer comes after the host has given up waiting."""

    async def too_late() -> bool:
        server.expire()
        await until(lambda: not server.locked())
        return True

    with pytest.raises(ChangeUndone, match="the host has undone it meanwhile; rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, too_late))
    assert server.bytes() == ORIGINAL and server.reloads == 2


async def test_a_second_cockpit_waits_for_the_first(server: Server, shell: Interfering) -> None:
    refused: list[str] = []

    async def meanwhile() -> bool:
        with pytest.raises(ChangeRefused) as second:
            await Tuner(who="bea@there").apply(shell, "web1", [(server.knob(), "30")])
        refused.append(str(second.value))
        return True

    first = Tuner(who="adam@here")
    await first.apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, meanwhile))
    assert refused[0].startswith(
        "MaxSpareServers: web1: a change of adam@here (KeepAlive) is under way and undoes itself"
    )
    assert refused[0].endswith("unless it is confirmed; nothing was changed")
    assert server.bytes() == (ORIGINAL[0], OFF)
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])


async def half_done(server: Server, shell: Interfering) -> Path:
    """A change whose cockpit and whose guard are gone, as after a restart of the host."""
    shell.cut_before.update(range(7, 1000))
    with pytest.raises(ChangeFailed):
        await Tuner(patience=Patience(reach=0.05)).apply(shell, "web1", [(server.keep_alive(), "Off")])
    shell.cut_before.clear()
    (change,) = server.changes()
    guard = int((change / "pid").read_text().partition(":")[0])
    os.kill(guard, signal.SIGKILL)
    await until(lambda: not _runs(guard))
    return change


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False


async def test_a_change_left_half_done_is_said_and_can_be_put_back(server: Server, shell: Interfering) -> None:
    change = await half_done(server, shell)
    with pytest.raises(
        ChangeRefused, match=r"left half done, and its undo there is gone; put it back with sh '.*/undo'"
    ):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (past,) = await Tuner().history(shell, "web1")
    assert (past.state, past.change) == ("left half done", str(change))
    await Tuner().give_up(shell, "web1", past)
    assert server.bytes() == ORIGINAL and not server.locked()
    assert [past.state for past in await Tuner().history(shell, "web1")] == ["rolled back"]
    with pytest.raises(ChangeRefused, match=r"applied: No such file"):
        await Tuner().kept(shell, "web1", past)


@pytest.mark.parametrize("left", ["gone", "never armed"])
async def test_a_stale_lock_gives_way(server: Server, shell: Interfering, left: str) -> None:
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (earlier,) = server.changes()
    change = earlier.with_name("20200101T000000Z-abcdef")
    if left == "never armed":
        change.mkdir()
        (change / "arming").write_text("999999999\n")
    change.with_name("lock").symlink_to(change / "owner")
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == OFF and not server.locked()


async def test_what_the_server_says_of_its_values_is_noted(server: Server, shell: Interfering) -> None:
    line = "[mpm] AH00515: changing ServerLimit to 300 from original value of 256 not allowed during restart"
    server.log.write_text("AH00513: an older WARNING: MaxRequestWorkers of 900 exceeds ServerLimit\n")
    reload = f"{server.reload}; echo {shlex.quote(line)} >>{shlex.quote(str(server.log))}"
    applied = await Tuner().apply(shell, "web1", [(server.knob(reload=reload), "4")])
    assert applied.notes == (
        "Apache silently raises MaxSpareServers 4 to 6: it must be at least MinSpareServers + 1",
        "AH00515: changing ServerLimit to 300 from original value of 256 not allowed during restart",
    )


async def test_what_the_server_will_make_of_its_values_is_known_before(server: Server, shell: Interfering) -> None:
    plan = await Tuner().prepare(shell, "web1", [(server.knob(), "4")])
    note = "Apache silently raises MaxSpareServers 4 to 6: it must be at least MinSpareServers + 1"
    assert plan.notes == (note,)
    assert (await Tuner().prepare(shell, "web1", [(server.knob(), "60")])).notes == ()


async def test_a_server_that_is_not_well_before_is_left_alone(server: Server, shell: Interfering) -> None:
    async def probe() -> str:
        return "http://web1/ answers 404"

    with pytest.raises(ChangeRefused, match="before the change already: http://web1/ answers 404; nothing was changed"):
        await Tuner(probe).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.changes() == []


async def test_the_history_tells_who_and_what(server: Server, shell: Interfering) -> None:
    tuner = Tuner(who="adam@here")
    assert await tuner.history(shell, "web1") == []
    await tuner.apply(shell, "web1", [(server.keep_alive(), "Off")])
    (past,) = await tuner.history(shell, "web1")
    assert (past.about.who, past.state, past.about.settings[0].new) == ("adam@here", "applied", "Off")
    applied = await tuner.kept(shell, "web1", past)
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL
    assert [past.state for past in await tuner.history(shell, "web1")] == ["applied", "undone"]


def tools(server: Server, **programs: str) -> Path:
    """A directory of programs to put first in PATH."""
    place = server.root / "tools"
    place.mkdir(exist_ok=True)
    for name, text in programs.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    return place


# What sudo -n does: it runs what follows its options with root's environment, or says that a password is needed.
SUDO = """
[ "$1 $2" = "-n --" ] || exit 9
shift 2
echo "$1 $2" >>"$SUDO_LOG"
exec env -u XDG_STATE_HOME HOME="$SUDO_HOME" "$@"
"""
REFUSES = "echo 'sudo: a password is required' >&2; exit 1"


async def test_everything_goes_through_sudo(
    server: Server, shell: Interfering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, sudo=SUDO)}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_LOG", str(server.root / "sudo.log"))
    monkeypatch.setenv("SUDO_HOME", str(server.root))
    as_root = privileged(HostConfig(name="web1", sudo=True), shell)
    await Tuner().apply(as_root, "web1", [(server.keep_alive(), "Off")])
    assert shell.commands[0] == ("sudo -n -- sh -s", b"") and set(shell.interpreters[1:]) == {"sudo -n -- sh -s"}
    assert (server.root / "sudo.log").read_text().splitlines() == ["sh -s"] * shell.count
    assert server.other.read_bytes() == OFF and (server.root / ".local/state/cockpit/changes").is_dir()
    assert privileged(HostConfig(name="web1"), shell) is shell


async def test_a_sudo_that_asks_is_one_clear_line(
    server: Server, shell: Interfering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, sudo=REFUSES)}:{os.environ['PATH']}")
    as_root = privileged(HostConfig(name="web1", sudo=True), shell)
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(as_root, "web1", [(server.keep_alive(), "Off")])
    assert str(refused.value) == (
        "web1: sudo does not let this user in without a password (sudo: a password is required); "
        "allow it there (NOPASSWD), or log in as root"
    )
    assert server.bytes() == ORIGINAL and shell.count == 1


class Small(LocalShell):
    """A host with busybox and nothing else."""

    def __init__(self, place: Path) -> None:
        super().__init__("web1")
        self.place = place

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        place = shlex.quote(str(self.place))
        return await super().run(program, input=input, timeout=timeout, interpreter=f"env PATH={place} {interpreter}")


async def test_busybox_is_enough(server: Server) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not there")
    place = server.root / "small"
    place.mkdir()
    listed = await asyncio.create_subprocess_exec(busybox, "--list", stdout=asyncio.subprocess.PIPE)
    for applet in (await listed.communicate())[0].decode().split():
        (place / applet).symlink_to(busybox)
    # HEAD adds the system's sbin to PATH; nothing of coreutils is in there.
    shell = Small(place)
    tuner = Tuner()
    applied = await tuner.apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    assert server.other.read_bytes() == OFF and not server.locked()
    await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL
    with pytest.raises(ChangeUndone, match=r"says: it failed without a message .*; rolled back"):
        await tuner.apply(
            shell, "web1", [(server.keep_alive(test="! grep -q Off " + shlex.quote(str(server.other))), "Off")]
        )
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()
    assert [past.state for past in await tuner.history(shell, "web1")] == ["rolled back", "applied", "undone"]
    await shell.close()
