"""Changes in progress: lock, undo on the host, confirmation by the user, sudo, busybox."""

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
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.events import Stage
from cockpit.model.hosts import HostConfig
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Approval, ChangeObserver, Timeouts
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import privileged
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, FaultyShell, Server, until

OFF = b"KeepAlive Off"


class RecordingWatch(ChangeObserver):
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.stages: list[tuple[Stage, float | None]] = []

    def begun(self, plan: Plan) -> None:
        self.plans.append(plan)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self.stages.append((stage, seconds))


async def test_stages_are_reported_in_order(server: Server, shell: FaultyShell) -> None:
    watch = RecordingWatch()
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], watch)
    assert [stage for stage, _ in watch.stages] == ["armed", "written", "tested", "reloaded", "active", "confirmed"]
    assert watch.plans[0].cost == "graceful" and "+KeepAlive Off" in watch.plans[0].diff


def confirmation(reply: bool | None) -> Callable[[], asyncio.Future[bool]]:
    """The user's reply; None: no reply."""

    def ask() -> asyncio.Future[bool]:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if reply is not None:
            future.set_result(reply)
        return future

    return ask


async def test_user_confirmation_keeps_change(server: Server, shell: FaultyShell) -> None:
    watch = RecordingWatch()
    approval = Approval(60, confirmation(True))
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], watch, approval)
    assert watch.stages[-2:] == [("active", 60), ("confirmed", None)]
    assert server.other.read_bytes() == OFF and not server.locked() and applied.files


@pytest.mark.parametrize(
    ("reply", "message"), [(False, "it was not confirmed"), (None, "nobody confirmed it within 0.2 s")]
)
async def test_unconfirmed_change_is_undone(
    server: Server, shell: FaultyShell, reply: bool | None, message: str
) -> None:
    with pytest.raises(ChangeRolledBack, match=f"KeepAlive: {message}; rolled back and reloaded"):
        await Tuner().apply(
            shell,
            "web1",
            [(server.keep_alive(), "Off")],
            approval=Approval(0.2 if reply is None else 60, confirmation(reply)),
        )
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.reloads == 2 and not server.locked()


async def test_host_undoes_change_confirmed_too_late(server: Server, shell: FaultyShell) -> None:
    """The user confirms after the lease on the host has expired."""

    async def too_late() -> bool:
        server.expire()
        await until(lambda: not server.locked())
        return True

    with pytest.raises(ChangeRolledBack, match="the confirmation came too late; rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, too_late))
    assert server.bytes() == ORIGINAL and server.reloads == 2


async def test_concurrent_change_is_refused(server: Server, shell: FaultyShell) -> None:
    refused: list[str] = []

    async def second_change() -> bool:
        with pytest.raises(ChangeRefused) as second:
            await Tuner(who="bea@there").apply(shell, "web1", [(server.knob(), "30")])
        refused.append(str(second.value))
        return True

    first = Tuner(who="adam@here")
    await first.apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, second_change))
    assert refused[0].startswith(
        "MaxSpareServers: web1: a change of adam@here (KeepAlive) is under way and undoes itself"
    )
    assert refused[0].endswith("unless it is confirmed; nothing was changed")
    assert server.bytes() == (ORIGINAL[0], OFF)
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])


async def interrupted_change(server: Server, shell: FaultyShell) -> Path:
    """A change whose cockpit and guard are gone, like after a restart of the host."""
    shell.cut_before.update(range(7, 1000))
    with pytest.raises(ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(server.keep_alive(), "Off")])
    shell.cut_before.clear()
    (change,) = server.changes()
    guard = int((change / "pid").read_text().partition(":")[0])
    os.kill(guard, signal.SIGKILL)
    await until(lambda: not _is_running(guard))
    return change


def _is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return False


async def test_unfinished_change_is_reported_and_can_be_undone(server: Server, shell: FaultyShell) -> None:
    change = await interrupted_change(server, shell)
    with pytest.raises(
        ChangeRefused,
        match=r"incomplete \(its new values may be active\), and its guard has ended; roll it back with sh '.*/undo'",
    ):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (past,) = await Tuner().history(shell, "web1")
    assert (past.state, past.change) == ("incomplete", str(change))
    await Tuner().force_undo(shell, "web1", past)
    assert server.bytes() == ORIGINAL and not server.locked()
    assert [past.state for past in await Tuner().history(shell, "web1")] == ["rolled back"]
    with pytest.raises(ChangeRefused, match=r"applied: No such file"):
        await Tuner().read_record(shell, "web1", past)


@pytest.mark.parametrize("state", ["gone", "never armed"])
async def test_stale_lock_is_replaced(server: Server, shell: FaultyShell, state: str) -> None:
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (earlier,) = server.changes()
    change = earlier.with_name("20200101T000000Z-abcdef")
    if state == "never armed":
        change.mkdir()
        (change / "arming").write_text("999999999\n")
    change.with_name("lock").symlink_to(change / "owner")
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == OFF and not server.locked()


async def test_log_message_about_value_is_noted(server: Server, shell: FaultyShell) -> None:
    line = "[mpm] AH00515: changing ServerLimit to 300 from original value of 256 not allowed during restart"
    server.log.write_text("AH00513: an older WARNING: MaxRequestWorkers of 900 exceeds ServerLimit\n")
    reload = f"{server.reload}; echo {shlex.quote(line)} >>{shlex.quote(str(server.log))}"
    applied = await Tuner().apply(shell, "web1", [(server.knob(reload=reload), "4")])
    assert applied.notes == (
        "Apache silently raises MaxSpareServers 4 to 6: it must be at least MinSpareServers + 1",
        "AH00515: changing ServerLimit to 300 from original value of 256 not allowed during restart",
    )


async def test_value_corrected_by_server_is_noted_in_plan(server: Server, shell: FaultyShell) -> None:
    plan = await Tuner().prepare(shell, "web1", [(server.knob(), "4")])
    note = "Apache silently raises MaxSpareServers 4 to 6: it must be at least MinSpareServers + 1"
    assert plan.notes == (note,)
    assert (await Tuner().prepare(shell, "web1", [(server.knob(), "60")])).notes == ()


async def test_unhealthy_server_is_not_changed(server: Server, shell: FaultyShell) -> None:
    async def probe() -> str:
        return "http://web1/ answers 404"

    with pytest.raises(
        ChangeRefused, match="the target fails without the change: http://web1/ answers 404; nothing was changed"
    ):
        await Tuner(probe).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.changes() == []


async def test_history_has_user_state_and_settings(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner(who="adam@here")
    assert await tuner.history(shell, "web1") == []
    await tuner.apply(shell, "web1", [(server.keep_alive(), "Off")])
    (past,) = await tuner.history(shell, "web1")
    assert (past.facts.who, past.state, past.facts.settings[0].new) == ("adam@here", "applied", "Off")
    applied = await tuner.read_record(shell, "web1", past)
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL
    assert [past.state for past in await tuner.history(shell, "web1")] == ["applied", "undone"]


def tools(server: Server, **programs: str) -> Path:
    """A directory with these programs, to put first in PATH."""
    directory = server.root / "tools"
    directory.mkdir(exist_ok=True)
    for name, text in programs.items():
        (directory / name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / name).chmod(0o755)
    return directory


# Like sudo -n: runs the command after its options with root's environment, or reports that it needs a password.
SUDO = """
[ "$1 $2" = "-n --" ] || exit 9
shift 2
echo "$1 $2" >>"$SUDO_LOG"
exec env -u XDG_STATE_HOME HOME="$SUDO_HOME" "$@"
"""
SUDO_REFUSES = "echo 'sudo: a password is required' >&2; exit 1"


async def test_all_commands_run_with_sudo(server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, sudo=SUDO)}:{os.environ['PATH']}")
    monkeypatch.setenv("SUDO_LOG", str(server.root / "sudo.log"))
    monkeypatch.setenv("SUDO_HOME", str(server.root))
    sudo_shell = privileged(HostConfig(name="web1", sudo=True), shell)
    await Tuner().apply(sudo_shell, "web1", [(server.keep_alive(), "Off")])
    assert shell.commands[0] == ("sudo -n -- sh -s", b"") and set(shell.interpreters[1:]) == {"sudo -n -- sh -s"}
    assert (server.root / "sudo.log").read_text().splitlines() == ["sh -s"] * shell.count
    assert server.other.read_bytes() == OFF and (server.root / ".local/state/cockpit/changes").is_dir()
    assert privileged(HostConfig(name="web1"), shell) is shell


async def test_sudo_password_prompt_is_one_line_error(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, sudo=SUDO_REFUSES)}:{os.environ['PATH']}")
    sudo_shell = privileged(HostConfig(name="web1", sudo=True), shell)
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(sudo_shell, "web1", [(server.keep_alive(), "Off")])
    assert str(refused.value) == (
        "web1: sudo is not possible without a password (sudo: a password is required); "
        "allow it there (NOPASSWD), or log in as root"
    )
    assert server.bytes() == ORIGINAL and shell.count == 1


class BusyboxShell(LocalShell):
    """A host that has only busybox."""

    def __init__(self, directory: Path) -> None:
        super().__init__("web1")
        self.directory = directory

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        directory = shlex.quote(str(self.directory))
        return await super().run(
            program, input=input, timeout=timeout, interpreter=f"env PATH={directory} {interpreter}"
        )


async def test_change_works_with_busybox_only(server: Server) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not there")
    directory = server.root / "small"
    directory.mkdir()
    listed = await asyncio.create_subprocess_exec(busybox, "--list", stdout=asyncio.subprocess.PIPE)
    for applet in (await listed.communicate())[0].decode().split():
        (directory / applet).symlink_to(busybox)
    # HEAD adds the system's sbin to PATH, which contains nothing of coreutils.
    shell = BusyboxShell(directory)
    tuner = Tuner()
    applied = await tuner.apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    assert server.other.read_bytes() == OFF and not server.locked()
    await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL
    with pytest.raises(ChangeRolledBack, match=r"failed: exit status .*, no message; rolled back"):
        await tuner.apply(
            shell, "web1", [(server.keep_alive(test="! grep -q Off " + shlex.quote(str(server.other))), "Off")]
        )
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()
    assert [past.state for past in await tuner.history(shell, "web1")] == ["rolled back", "applied", "undone"]
    await shell.close()
