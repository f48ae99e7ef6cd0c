"""Faults at every step of a change: lost connection, cancellation, foreign edits."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, HostError
from cockpit.tuning.applied import AppliedChange, ChangeFailed
from cockpit.tuning.change_options import Approval, Guard
from cockpit.tuning.pending import PendingChange, Timeouts
from cockpit.tuning.remote import ReconnectingRemote
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, OTHER, PREFORK, FaultyShell, Server, backup_of, expect_rolled_back
from tests.waiting import until

# The commands of a change of one file, in order. GAVE_UP reads in the log whether the server dropped the reload. Before
# CONFIRM everything is rolled back; once the host has received it, the change stays, even if the response is lost.
STEPS = range(1, 13)
READ, OPEN, STAGE, ARM, COMMIT, LOG_END, TEST, RELOAD, GAVE_UP, READ_BACK, LOG_SINCE, CONFIRM = STEPS
SHORT_PATIENCE = Timeouts(command=20, reach=0.05)


# A lost response is another fault than a lost request only if the command changes the host.
LOST_RESPONSES = (OPEN, STAGE, ARM, COMMIT, TEST, RELOAD, CONFIRM)


@pytest.mark.parametrize(
    ("step", "after"), [*((step, False) for step in STEPS), *((step, True) for step in LOST_RESPONSES)]
)
async def test_change_is_rolled_back_after_brief_disconnection(
    server: Server, shell: FaultyShell, step: int, after: bool
) -> None:
    (shell.cut_after if after else shell.cut_before).add(step)
    if (step, after) == (CONFIRM, True):
        applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
        assert server.other.read_bytes() == b"KeepAlive Off" and not server.locked() and server.reloads == 1
        assert shell.commands[STAGE - 1][1] == b"KeepAlive Off" and shell.count == CONFIRM + 2, "undo, and the record"
        await Tuner().undo(shell, applied)
        return
    with pytest.raises(HostError if step < COMMIT else ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    expect_rolled_back(server, reloads=2 if step > RELOAD else None)


def run_by_hand(command: str) -> None:
    """Run a command that an error message suggests."""
    subprocess.run(["sh", "-c", command], check=True)


@pytest.mark.parametrize(("step", "after"), [*((step, False) for step in STEPS), (CONFIRM, True)])
async def test_host_undoes_change_after_lost_connection(
    server: Server, shell: FaultyShell, step: int, after: bool
) -> None:
    shell.lose_connection_at(step, after=after)
    with pytest.raises(HostError if step < COMMIT else ChangeFailed) as failed:
        await Tuner(timeouts=SHORT_PATIENCE).apply(shell, "web1", [(server.keep_alive(), "Off")])
    if step >= COMMIT:
        assert "web1 is unreachable" in str(failed.value) and "It rolls the change back by itself" in str(failed.value)
    server.expire()
    await until(lambda: not server.locked())
    if (step, after) == (CONFIRM, True):
        assert server.other.read_bytes() == b"KeepAlive Off"
        return
    expect_rolled_back(server)
    if step > ARM:
        assert "not confirmed in time" in (server.changes()[0] / "log").read_text()


@pytest.mark.parametrize(
    ("guard", "seconds"), [(None, 620), (Guard(asyncio.Future, lease=3), 23)], ids=["no guard", "guard"]
)
async def test_loss_at_the_confirmation_names_the_longest_wait(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch, guard: Guard | None, seconds: int
) -> None:
    """With a guard the wait does not extend the lease, and the renewal of the lease fails first."""

    async def confirm(change: PendingChange, applied: AppliedChange) -> None:
        shell.lose_connection_at(0)
        await (change.poll() if guard is None else asyncio.Future())

    monkeypatch.setattr(PendingChange, "confirm", confirm)
    approval = Approval(600, lambda: asyncio.sleep(0, True))
    match = f"within {seconds} s of the last message from here, unless the confirmation reached"
    with pytest.raises(ChangeFailed, match=match):
        await Tuner(timeouts=SHORT_PATIENCE).apply(
            shell, "web1", [(server.keep_alive(), "Off")], approval=approval, guard=guard
        )


async def test_environment_of_the_login_is_removed_with_the_confirmation(server: Server, shell: FaultyShell) -> None:
    def leave() -> None:
        (server.changes()[0] / "environment").write_text("export TOKEN='x'\n")

    shell.before[CONFIRM] = leave
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert not (server.changes()[0] / "environment").exists()


async def test_lease_has_configured_length(server: Server, shell: FaultyShell) -> None:
    """While a command runs, its timeout is added to the lease."""
    deadlines: list[float] = []

    def seconds_left(deadline: Path) -> float:
        return float(deadline.read_text()) / 100 - float(Path("/proc/uptime").read_text().split()[0])

    def record_deadline() -> None:
        deadlines.append(seconds_left(server.changes()[0] / "deadline"))

    shell.before[TEST] = shell.before[RELOAD] = record_deadline
    timeouts = Timeouts(command=500, lease=300)
    knob = server.keep_alive(test=f"cp '{server.state}'/webcockpit/changes/*/*/deadline '{server.state}/during'")
    await Tuner(timeouts=timeouts).apply(shell, "web1", [(knob, "Off")])
    assert all(100 < seconds <= 300 for seconds in deadlines) and 300 < seconds_left(server.state / "during") <= 800


async def test_undo_by_hand_is_idempotent(server: Server, shell: FaultyShell) -> None:
    shell.lose_connection_at(TEST)
    with pytest.raises(ChangeFailed) as failed:
        await Tuner(timeouts=SHORT_PATIENCE).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off" and server.locked()
    for _ in range(2):
        run_by_hand(str(failed.value).partition("to roll back by hand: ")[2])
        expect_rolled_back(server)


@pytest.mark.parametrize("step", STEPS)
async def test_cancelled_change_is_rolled_back(server: Server, shell: FaultyShell, step: int) -> None:
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")]))
    shell.after[step] = change.cancel
    if step == CONFIRM:
        assert (await change).files and not server.locked()
        return
    with pytest.raises(asyncio.CancelledError):
        await change
    expect_rolled_back(server)


async def test_cancellation_during_the_rollback_of_a_loss_is_not_lost(server: Server, shell: FaultyShell) -> None:
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")]))
    shell.cut_before.add(TEST)
    shell.before[TEST + 1] = change.cancel
    with pytest.raises(asyncio.CancelledError):
        await change
    expect_rolled_back(server)


async def test_cancellation_ends_command_and_completes_rollback(server: Server, shell: FaultyShell) -> None:
    started = server.state / "started"
    knob = server.keep_alive(test=f"[ -e '{started}' ] || {{ : >'{started}'; sleep 1000; }}")
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(knob, "Off")]))
    await until(started.exists)
    # Also during the rollback.
    for step in range(TEST + 1, 20):
        shell.before[step] = change.cancel
    change.cancel()
    with pytest.raises(asyncio.CancelledError):
        await change
    expect_rolled_back(server)


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
    with pytest.raises(ChangeRefused, match=r"web1:.*/other\.conf: modified elsewhere after cockpit read it"):
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
    with pytest.raises(ChangeRefused, match="modified elsewhere after cockpit read it"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    assert server.bytes() == ORIGINAL and elsewhere.read_bytes() == PREFORK


async def test_foreign_edit_during_failed_test_is_kept(server: Server, shell: FaultyShell) -> None:
    # Two more steps: read and stage of the second file.
    shell.before[TEST + 2] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(ChangeFailed) as failed:
        await Tuner().apply(shell, "web1", [(server.knob(test="exit 1"), "30"), (server.keep_alive(), "Off")])
    assert f"{server.other} was not rolled back: modified elsewhere after cockpit wrote it" in str(failed.value)
    assert server.bytes() == (PREFORK, FOREIGN) and server.entries() == ENTRIES
    run_by_hand(str(failed.value).partition("To restore the original, run on web1: ")[2])
    assert server.bytes() == ORIGINAL
    # A deleted file is not created again.
    shell.before = {shell.count + TEST: lambda: server.other.unlink()}
    with pytest.raises(CockpitError, match="was not rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(test="exit 1"), "Off")])
    assert not server.other.exists()


async def test_foreign_edit_after_reload_is_noted_or_fails_change(server: Server, shell: FaultyShell) -> None:
    shell.before[READ_BACK] = lambda: server.other.write_bytes(b"# mine\nKeepAlive Off")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert applied.notes == (f"{server.other} was modified elsewhere during the change; its values are unchanged",)
    assert server.other.read_bytes() == b"# mine\nKeepAlive Off"
    await Tuner().undo(shell, applied)
    shell.count = 0
    shell.before[READ_BACK] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(ChangeFailed, match=r"KeepAlive: set to On elsewhere, in .*other\.conf, after cockpit wrote it"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == FOREIGN


async def test_undo_keeps_foreign_edits_and_refuses_foreign_values(server: Server, shell: FaultyShell) -> None:
    assignments = [(server.keep_alive(), "Off"), (server.knob(), "30")]
    applied = await Tuner().apply(shell, "web1", assignments)
    server.other.write_bytes(b"KeepAlive banana")
    changed = server.bytes()
    with pytest.raises(ChangeRefused, match="modified elsewhere; current value banana, expected Off"):
        await Tuner().undo(shell, applied)
    assert server.bytes() == changed
    server.other.write_bytes(b"# mine\nKeepAlive Off\nTimeout 7\n")
    undone = await Tuner().undo(shell, applied)
    assert server.bytes() == (PREFORK, b"# mine\nKeepAlive On\nTimeout 7\n")
    assert undone.notes == (f"{server.other} was written by others since; only the values of this change were undone",)
    again = await Tuner().undo(shell, applied)
    assert again.files == () and again.settings == () and server.reloads == 2


async def test_undo_without_backup_edits_value_and_failing_its_test_is_rolled_back(
    server: Server, shell: FaultyShell
) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    backup_of(applied).unlink()
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL
    server.other.write_bytes(b"KeepAlive maybe")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(test=f"! grep maybe '{server.other}'"), "Off")])
    with pytest.raises(ChangeRolledBack, match=r"KeepAlive: .* failed: KeepAlive maybe; rolled back"):
        await Tuner().undo(shell, applied)
    assert server.other.read_bytes() == b"KeepAlive Off"


async def test_fault_between_two_files_rolls_back_first(server: Server, shell: FaultyShell) -> None:
    edit_other = f"case $* in *prefork.conf) echo '# mine' >>'{server.other}' ;; esac"
    server.tools(mv=f'/bin/mv "$@" && {edit_other}')
    with pytest.raises(
        ChangeRolledBack, match=r"other\.conf: modified elsewhere after cockpit read it .*; rolled back"
    ):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.target.read_bytes() == PREFORK
    assert server.other.read_bytes().startswith(OTHER + b"# mine\n")
    assert server.entries() == ENTRIES and server.reloads == 0


async def test_change_continues_on_replaced_connection(server: Server, shell: FaultyShell) -> None:
    shells = [shell, FaultyShell()]

    async def newest() -> FaultyShell:
        return shells[0]

    shell.lose_connection_at(TEST)
    shell.before[TEST] = lambda: shells.pop(0)
    with pytest.raises(ChangeRolledBack, match=r"connection lost during the change .*; rolled back"):
        await Tuner().apply(ReconnectingRemote(newest), "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and shells[0].count > 0
    await shells[0].close()
