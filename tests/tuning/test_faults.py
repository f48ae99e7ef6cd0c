"""What goes wrong in the middle: a lost connection, an interruption, another editor. At every step of a change."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError, HostError
from cockpit.tuning import undo_program
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Patience
from cockpit.tuning.remote import Following
from cockpit.tuning.scripts import LOG_SINCE as SINCE
from cockpit.tuning.scripts import READ as READ_FILE
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, OTHER, PREFORK, Interfering, Server, until

# The commands of a change of one file, in order. GAVE_UP reads in the log whether the server dropped the reload. Up to
# CONFIRM everything is rolled back; once the host has it, the change stays, whatever happens to its answer.
STEPS = range(1, 13)
READ, OPEN, STAGE, ARM, COMMIT, LOG_END, TEST, RELOAD, GAVE_UP, READ_BACK, LOG_SINCE, CONFIRM = STEPS
IMPATIENT = Patience(command=20, reach=0.05)


async def test_a_change_has_these_steps(server: Server, shell: Interfering) -> None:
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
async def test_a_connection_that_comes_back_finds_everything_put_back(
    server: Server, shell: Interfering, step: int, when: str
) -> None:
    (shell.cut_before if when == "before" else shell.cut_after).add(step)
    if (step, when) == (CONFIRM, "after"):
        applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
        assert server.other.read_bytes() == b"KeepAlive Off" and not server.locked()
        await Tuner().undo(shell, applied)
        return
    with pytest.raises(HostError if step < COMMIT else ChangeUndone):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()
    if step > RELOAD:
        assert server.reloads == 2
    if server.reloads:
        assert server.force.read_bytes() == PREFORK + OTHER


def by_hand(command: str) -> None:
    """What a person does who follows the message."""
    subprocess.run(["sh", "-c", command], check=True)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_a_connection_that_stays_away_has_the_host_undo_it(
    server: Server, shell: Interfering, step: int, when: str
) -> None:
    shell.cut_before.update(range(step + (when == "after"), 1000))
    shell.cut_after.update({step} if when == "after" else ())
    with pytest.raises(HostError if step < COMMIT else ChangeFailed) as lost:
        await Tuner(patience=IMPATIENT).apply(shell, "web1", [(server.keep_alive(), "Off")])
    if step >= COMMIT:
        assert "web1 is out of reach" in str(lost.value) and "it undoes the change by itself" in str(lost.value)
    server.expire()
    await until(lambda: not server.locked())
    if (step, when) == (CONFIRM, "after"):
        assert server.other.read_bytes() == b"KeepAlive Off"
        return
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    if server.reloads:
        assert server.force.read_bytes() == PREFORK + OTHER
    if step > ARM:
        assert "nobody confirmed it in time" in (server.changes()[0] / "log").read_text()


async def test_the_lease_is_as_long_as_it_was_told(server: Server, shell: Interfering) -> None:
    """A command's own time comes on top while it runs, and is taken off again when it has ended."""
    deadlines: list[float] = []

    def left(deadline: Path) -> float:
        return float(deadline.read_text()) - float(Path("/proc/uptime").read_text().split()[0])

    def note() -> None:
        deadlines.append(left(server.changes()[0] / "deadline"))

    shell.before[TEST] = shell.before[RELOAD] = note
    patience = Patience(command=500, lease=300)
    knob = server.keep_alive(test=f"cp '{server.state}'/cockpit/changes/*/*/deadline '{server.state}/during'")
    await Tuner(patience=patience).apply(shell, "web1", [(knob, "Off")])
    assert all(100 < seconds <= 300 for seconds in deadlines) and 300 < left(server.state / "during") <= 800


async def test_an_undo_can_be_run_by_hand_and_again(server: Server, shell: Interfering) -> None:
    shell.cut_before.update(range(TEST, 1000))
    with pytest.raises(ChangeFailed) as lost:
        await Tuner(patience=Patience(reach=0.05)).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off" and server.locked()
    for _ in range(2):
        by_hand(str(lost.value).partition("by hand it is done with: ")[2])
        assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_an_interruption_puts_everything_back(server: Server, shell: Interfering, step: int, when: str) -> None:
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
        assert server.force.read_bytes() == PREFORK + OTHER


async def test_an_interruption_ends_a_command_that_takes_long(server: Server, shell: Interfering) -> None:
    started = server.state / "started"
    knob = server.keep_alive(test=f"[ -e '{started}' ] || {{ : >'{started}'; sleep 1000; }}")
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(knob, "Off")]))
    await until(started.exists)
    change.cancel()
    with pytest.raises(asyncio.CancelledError):
        await change
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


async def test_interrupted_again_on_the_way_back(server: Server, shell: Interfering) -> None:
    change = asyncio.ensure_future(Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")]))
    for step in range(TEST, 20):
        shell.before[step] = change.cancel
    with pytest.raises(asyncio.CancelledError):
        await change
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


async def test_a_commit_that_arrives_after_it_was_given_up_does_nothing(server: Server, shell: Interfering) -> None:
    shell.cut_before.add(COMMIT)
    with pytest.raises(ChangeUndone):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    late = await shell.run(shell.commands[COMMIT - 1][0])
    assert late.exit_status == 4 and b"given up" in late.stderr
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


FOREIGN = b"KeepAlive On\n# mine\n"


@pytest.mark.parametrize("step", range(3, 7))  # of two files: each read, a change opened, each staged, commit
async def test_another_editor_before_the_files_are_replaced(server: Server, shell: Interfering, step: int) -> None:
    shell.before[step] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(ChangeRefused, match=r"web1:.*/other\.conf: somebody else changed it meanwhile"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.bytes() == (PREFORK, FOREIGN)
    assert server.entries() == ENTRIES and server.changes() == [] and server.reloads == 0


async def test_a_link_that_leads_elsewhere_meanwhile(server: Server, shell: Interfering) -> None:
    elsewhere = server.available / "other.conf"
    elsewhere.write_bytes(PREFORK)

    def relink() -> None:
        server.prefork.unlink()
        server.prefork.symlink_to(elsewhere)

    shell.before[COMMIT] = relink
    with pytest.raises(ChangeRefused, match="somebody else changed it meanwhile"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    assert server.bytes() == ORIGINAL and elsewhere.read_bytes() == PREFORK


async def test_another_editor_during_a_test_that_fails(server: Server, shell: Interfering) -> None:
    shell.before[TEST + 2] = lambda: server.other.write_bytes(FOREIGN)  # two more: the second file's read and stage
    with pytest.raises(ChangeFailed) as failed:
        await Tuner().apply(shell, "web1", [(server.knob(test="exit 1"), "30"), (server.keep_alive(), "Off")])
    assert f"{server.other} was written by somebody else meanwhile and left as it is" in str(failed.value)
    assert server.bytes() == (PREFORK, FOREIGN) and server.entries() == ENTRIES
    by_hand(str(failed.value).partition("The original comes back with, on web1: ")[2])
    assert server.bytes() == ORIGINAL


async def test_another_editor_after_the_reload_beside_the_value(server: Server, shell: Interfering) -> None:
    shell.before[READ_BACK] = lambda: server.other.write_bytes(b"# mine\nKeepAlive Off")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert applied.notes == (f"somebody else wrote {server.other} during the change; its values are unchanged",)
    assert server.other.read_bytes() == b"# mine\nKeepAlive Off"


async def test_another_editor_after_the_reload_with_another_value(server: Server, shell: Interfering) -> None:
    shell.before[READ_BACK] = lambda: server.other.write_bytes(FOREIGN)
    with pytest.raises(ChangeFailed, match=r"KeepAlive: somebody else set it to On in .*other\.conf meanwhile"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == FOREIGN


async def test_a_file_that_is_gone_is_not_made_anew(server: Server, shell: Interfering) -> None:
    shell.before[TEST] = lambda: server.other.unlink()
    with pytest.raises(CockpitError, match="left as it is"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(test="exit 1"), "Off")])
    assert not server.other.exists()


async def test_undo_beside_another_editor_takes_back_the_value_alone(server: Server, shell: Interfering) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    server.other.write_bytes(b"# mine\nKeepAlive Off\nTimeout 7\n")
    undone = await Tuner().undo(shell, applied)
    assert server.bytes() == (PREFORK, b"# mine\nKeepAlive On\nTimeout 7\n")
    assert undone.notes == (f"{server.other} was written by others since; only the values of this change were undone",)


async def test_undo_of_a_value_that_somebody_else_changed_is_refused(server: Server, shell: Interfering) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    server.other.write_bytes(b"KeepAlive banana")
    now = server.bytes()
    with pytest.raises(ChangeRefused, match="it is banana there, not Off: somebody else changed it since; nothing was"):
        await Tuner().undo(shell, applied)
    assert server.bytes() == now


async def test_undo_of_what_is_back_already_does_nothing(server: Server, shell: Interfering) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    await Tuner().undo(shell, applied)
    again = await Tuner().undo(shell, applied)
    assert again.files == () and again.settings == () and server.reloads == 2
    assert server.bytes() == ORIGINAL


async def test_undo_without_the_backup_edits_the_value_back(server: Server, shell: Interfering) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    server.backup(applied).path.unlink()
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL


async def test_an_undo_that_fails_its_test_is_put_back(server: Server, shell: Interfering) -> None:
    server.other.write_bytes(b"KeepAlive maybe")
    strict = server.keep_alive(test=f"! grep maybe '{server.other}'")
    applied = await Tuner().apply(shell, "web1", [(strict, "Off")])
    with pytest.raises(ChangeUndone, match=r"KeepAlive: .* says: KeepAlive maybe; rolled back"):
        await Tuner().undo(shell, applied)
    assert server.other.read_bytes() == b"KeepAlive Off"


async def test_a_fault_between_two_files_puts_the_first_one_back(
    server: Server, shell: Interfering, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = server.root / "tools"
    tools.mkdir()
    meddle = f"case $* in *prefork.conf) echo '# mine' >>'{server.other}' ;; esac"
    (tools / "mv").write_text(f'#!/bin/sh\n/bin/mv "$@" && {meddle}\n')
    (tools / "mv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(ChangeUndone, match=r"other\.conf: somebody else changed it meanwhile; rolled back"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.target.read_bytes() == PREFORK
    assert server.other.read_bytes().startswith(OTHER + b"# mine\n")
    assert server.entries() == ENTRIES and server.reloads == 0


async def test_a_connection_that_is_replaced_is_followed(server: Server, shell: Interfering) -> None:
    shells = [shell, Interfering()]
    shell.cut_before.update(range(TEST, 100))
    remote = Following(lambda: _first(shells))
    shell.before[TEST] = lambda: shells.pop(0)
    with pytest.raises(ChangeUndone, match=r"connection lost in the middle of the change .*; rolled back"):
        await Tuner().apply(remote, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and shells[0].count > 0
    await shells[0].close()


async def _first(shells: list[Interfering]) -> Interfering:
    return shells[0]
