"""Faults at every step of a change: lost connection, cancellation, foreign edits."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, HostError
from cockpit.tuning import undo_program
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.remote import ReconnectingRemote
from cockpit.tuning.scripts import LOG_SINCE as SINCE
from cockpit.tuning.scripts import READ as READ_FILE
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, OTHER, PREFORK, FaultyShell, Server, until

# The commands of a change of one file, in order. GAVE_UP reads in the log whether the server dropped the reload. Before
# CONFIRM everything is rolled back; once the host has received it, the change stays, even if the response is lost.
STEPS = range(1, 13)
READ, OPEN, STAGE, ARM, COMMIT, LOG_END, TEST, RELOAD, GAVE_UP, READ_BACK, LOG_SINCE, CONFIRM = STEPS
SHORT_PATIENCE = Timeouts(command=20, reach=0.05)


async def test_change_runs_these_steps(server: Server, shell: FaultyShell) -> None:
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert shell.count == CONFIRM
    assert "mktemp -d" in shell.commands[OPEN - 1][0]
    assert shell.commands[STAGE - 1][1] == b"KeepAlive Off"
    assert "/guard" in shell.commands[ARM - 1][0]
    assert "swap" in shell.commands[COMMIT - 1][0]
    assert "banana" in shell.commands[TEST - 1][0]
    assert "reload" in shell.commands[RELOAD - 1][0]
    assert shell.commands[CONFIRM - 1][0].endswith(undo_program.CONFIRM)
    for step, script in ((READ, READ_FILE), (GAVE_UP, SINCE), (READ_BACK, READ_FILE), (LOG_SINCE, SINCE)):
        assert shell.commands[step - 1][0].endswith(script)
    assert server.other.read_bytes() == b"KeepAlive Off" and server.reloads == 1 and not server.locked()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_change_is_rolled_back_after_brief_disconnection(
    server: Server, shell: FaultyShell, step: int, when: str
) -> None:
    (shell.cut_before if when == "before" else shell.cut_after).add(step)
    if (step, when) == (CONFIRM, "after"):
        applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
        assert server.other.read_bytes() == b"KeepAlive Off" and not server.locked()
        await Tuner().undo(shell, applied)
        return
    with pytest.raises(HostError if step < COMMIT else ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()
    if step > RELOAD:
        assert server.reloads == 2
    if server.reloads:
        assert server.active.read_bytes() == PREFORK + OTHER


def run_by_hand(command: str) -> None:
    """Run a command that an error message suggests."""
    subprocess.run(["sh", "-c", command], check=True)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_host_undoes_change_after_lost_connection(
    server: Server, shell: FaultyShell, step: int, when: str
) -> None:
    shell.cut_before.update(range(step + (when == "after"), 1000))
    shell.cut_after.update({step} if when == "after" else ())
    with pytest.raises(HostError if step < COMMIT else ChangeFailed) as failed:
        await Tuner(timeouts=SHORT_PATIENCE).apply(shell, "web1", [(server.keep_alive(), "Off")])
    if step >= COMMIT:
        assert "web1 is unreachable" in str(failed.value) and "It rolls the change back by itself" in str(failed.value)
    server.expire()
    await until(lambda: not server.locked())
    if (step, when) == (CONFIRM, "after"):
        assert server.other.read_bytes() == b"KeepAlive Off"
        return
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    if server.reloads:
        assert server.active.read_bytes() == PREFORK + OTHER
    if step > ARM:
        assert "nobody confirmed it in time" in (server.changes()[0] / "log").read_text()


async def test_lease_has_configured_length(server: Server, shell: FaultyShell) -> None:
    """While a command runs, its timeout is added to the lease."""
    deadlines: list[float] = []

    def seconds_left(deadline: Path) -> float:
        return float(deadline.read_text()) - float(Path("/proc/uptime").read_text().split()[0])

    def record_deadline() -> None:
        deadlines.append(seconds_left(server.changes()[0] / "deadline"))

    shell.before[TEST] = shell.before[RELOAD] = record_deadline
    timeouts = Timeouts(command=500, lease=300)
    knob = server.keep_alive(test=f"cp '{server.state}'/cockpit/changes/*/*/deadline '{server.state}/during'")
    await Tuner(timeouts=timeouts).apply(shell, "web1", [(knob, "Off")])
    assert all(100 < seconds <= 300 for seconds in deadlines) and 300 < seconds_left(server.state / "during") <= 800


async def test_undo_by_hand_is_idempotent(server: Server, shell: FaultyShell) -> None:
    shell.cut_before.update(range(TEST, 1000))
    with pytest.raises(ChangeFailed) as failed:
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off" and server.locked()
    for _ in range(2):
        run_by_hand(str(failed.value).partition("to roll back by hand: ")[2])
        assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_cancelled_change_is_rolled_back(server: Server, shell: FaultyShell, step: int, when: str) -> None:
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")]))
    (shell.before if when == "before" else shell.after)[step] = change.cancel
    if (step, when) == (CONFIRM, "after"):
        assert (await change).files and not server.locked()
        return
    with pytest.raises(asyncio.CancelledError):
        await change
    assert not server.locked()
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    if server.reloads:
        assert server.active.read_bytes() == PREFORK + OTHER


async def test_cancellation_ends_running_command(server: Server, shell: FaultyShell) -> None:
    started = server.state / "started"
    knob = server.keep_alive(test=f"[ -e '{started}' ] || {{ : >'{started}'; sleep 1000; }}")
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(knob, "Off")]))
    await until(started.exists)
    change.cancel()
    with pytest.raises(asyncio.CancelledError):
        await change
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


async def test_cancellation_during_rollback_completes_rollback(server: Server, shell: FaultyShell) -> None:
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")]))
    for step in range(TEST, 20):
        shell.before[step] = change.cancel
    with pytest.raises(asyncio.CancelledError):
        await change
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


async def test_late_commit_of_abandoned_change_is_refused(server: Server, shell: FaultyShell) -> None:
    shell.cut_before.add(COMMIT)
    with pytest.raises(ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    delayed = await shell.run(shell.commands[COMMIT - 1][0])
    assert delayed.exit_status == 4 and b"given up" in delayed.stderr
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


FOREIGN = b"KeepAlive On\n# mine\n"


@pytest.mark.parametrize("step", range(3, 7))  # with two files: read both, open, stage both, commit
async def test_foreign_edit_before_commit_refuses_change(server: Server, shell: FaultyShell, step: int) -> None:
    shell.before[step] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(ChangeRefused, match=r"web1:.*/other\.conf: somebody else changed it after cockpit read it"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.bytes() == (PREFORK, FOREIGN)
    assert server.entries() == ENTRIES and server.changes() == [] and server.reloads == 0


async def test_retargeted_symlink_refuses_change(server: Server, shell: FaultyShell) -> None:
    elsewhere = server.available / "other.conf"
    elsewhere.write_bytes(PREFORK)

    def relink() -> None:
        server.prefork.unlink()
        server.prefork.symlink_to(elsewhere)

    shell.before[COMMIT] = relink
    with pytest.raises(ChangeRefused, match="somebody else changed it after cockpit read it"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    assert server.bytes() == ORIGINAL and elsewhere.read_bytes() == PREFORK


async def test_foreign_edit_during_failed_test_is_kept(server: Server, shell: FaultyShell) -> None:
    shell.before[TEST + 2] = lambda: server.other.write_bytes(
        FOREIGN
    )  # two more steps: read and stage of the second file
    with pytest.raises(ChangeFailed) as failed:
        await Tuner().apply(shell, "web1", [(server.knob(test="exit 1"), "30"), (server.keep_alive(), "Off")])
    assert f"{server.other} was not rolled back: somebody else wrote it after cockpit did" in str(failed.value)
    assert server.bytes() == (PREFORK, FOREIGN) and server.entries() == ENTRIES
    run_by_hand(str(failed.value).partition("To restore the original, run on web1: ")[2])
    assert server.bytes() == ORIGINAL


async def test_foreign_edit_after_reload_is_noted(server: Server, shell: FaultyShell) -> None:
    shell.before[READ_BACK] = lambda: server.other.write_bytes(b"# mine\nKeepAlive Off")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert applied.notes == (f"somebody else wrote {server.other} during the change; its values are unchanged",)
    assert server.other.read_bytes() == b"# mine\nKeepAlive Off"


async def test_foreign_value_after_reload_fails_change(server: Server, shell: FaultyShell) -> None:
    shell.before[READ_BACK] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(
        ChangeFailed, match=r"KeepAlive: somebody else set it to On in .*other\.conf after cockpit wrote it"
    ):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == FOREIGN


async def test_rollback_does_not_recreate_deleted_file(server: Server, shell: FaultyShell) -> None:
    shell.before[TEST] = lambda: server.other.unlink()
    with pytest.raises(CockpitError, match="was not rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(test="exit 1"), "Off")])
    assert not server.other.exists()


async def test_undo_keeps_foreign_edits(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    server.other.write_bytes(b"# mine\nKeepAlive Off\nTimeout 7\n")
    undone = await Tuner().undo(shell, applied)
    assert server.bytes() == (PREFORK, b"# mine\nKeepAlive On\nTimeout 7\n")
    assert undone.notes == (f"{server.other} was written by others since; only the values of this change were undone",)


async def test_undo_of_foreign_value_is_refused(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    server.other.write_bytes(b"KeepAlive banana")
    changed = server.bytes()
    with pytest.raises(ChangeRefused, match="it is banana there, not Off: somebody else changed it since; nothing was"):
        await Tuner().undo(shell, applied)
    assert server.bytes() == changed


async def test_second_undo_changes_nothing(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    await Tuner().undo(shell, applied)
    again = await Tuner().undo(shell, applied)
    assert again.files == () and again.settings == () and server.reloads == 2
    assert server.bytes() == ORIGINAL


async def test_undo_without_backup_edits_value(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    server.backup(applied).path.unlink()
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL


async def test_undo_failing_its_test_is_rolled_back(server: Server, shell: FaultyShell) -> None:
    server.other.write_bytes(b"KeepAlive maybe")
    strict = server.keep_alive(test=f"! grep maybe '{server.other}'")
    applied = await Tuner().apply(shell, "web1", [(strict, "Off")])
    with pytest.raises(ChangeRolledBack, match=r"KeepAlive: .* failed: KeepAlive maybe; rolled back"):
        await Tuner().undo(shell, applied)
    assert server.other.read_bytes() == b"KeepAlive Off"


async def test_fault_between_two_files_rolls_back_first(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = server.root / "tools"
    tools.mkdir()
    edit_other = f"case $* in *prefork.conf) echo '# mine' >>'{server.other}' ;; esac"
    (tools / "mv").write_text(f'#!/bin/sh\n/bin/mv "$@" && {edit_other}\n')
    (tools / "mv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(
        ChangeRolledBack, match=r"other\.conf: somebody else changed it after cockpit read it .*; rolled back"
    ):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.target.read_bytes() == PREFORK
    assert server.other.read_bytes().startswith(OTHER + b"# mine\n")
    assert server.entries() == ENTRIES and server.reloads == 0


async def test_change_continues_on_replaced_connection(server: Server, shell: FaultyShell) -> None:
    shells = [shell, FaultyShell()]
    shell.cut_before.update(range(TEST, 100))
    remote = ReconnectingRemote(lambda: _first(shells))
    shell.before[TEST] = lambda: shells.pop(0)
    with pytest.raises(ChangeRolledBack, match=r"connection lost during the change .*; rolled back"):
        await Tuner().apply(remote, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and shells[0].count > 0
    await shells[0].close()


async def _first(shells: list[FaultyShell]) -> FaultyShell:
    return shells[0]
