"""Changes in progress: lock, guard, undo by the host, confirmation, shared homes, pruning, sudo, busybox."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import Completed
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.events import StageName
from cockpit.model.host.samples import HostConfig
from cockpit.setup.doctor_host import diagnose_changes
from cockpit.tuning import guarding, scripts
from cockpit.tuning.applied import ChangeFailed, HistoryEntry
from cockpit.tuning.change_options import Approval, ChangeObserver, Guard
from cockpit.tuning.history import find_change, next_to_undo, state_words, unfinished
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.plan import Plan
from cockpit.tuning.remote import privileged
from cockpit.tuning.tuner import Tuner
from tests.processes import is_gone
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server, expect_rolled_back
from tests.waiting import until

OFF = b"KeepAlive Off"


class RecordingWatch(ChangeObserver):
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.stages: list[tuple[StageName, float | None]] = []

    def begun(self, plan: Plan) -> None:
        self.plans.append(plan)

    def stage(self, stage: StageName, seconds: float | None = None) -> None:
        self.stages.append((stage, seconds))


@pytest.mark.parametrize(
    ("approval", "seconds"), [(None, None), (Approval(60, lambda: asyncio.sleep(0, True)), 60)], ids=["none", "user"]
)
async def test_stages_are_reported_in_order(
    server: Server, shell: FaultyShell, approval: Approval | None, seconds: float | None
) -> None:
    watch = RecordingWatch()
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], watch, approval)
    before = [(stage, None) for stage in ("armed", "written", "tested", "reloaded")]
    assert watch.stages == [*before, ("active", seconds), ("confirmed", None)]
    assert watch.plans[0].cost == "graceful" and "+KeepAlive Off" in watch.plans[0].diff
    assert server.other.read_bytes() == OFF and not server.locked() and applied.files


@pytest.mark.parametrize(
    ("approval", "message"),
    [
        (Approval(60, lambda: asyncio.sleep(0, False)), "it was not confirmed"),
        (Approval(0.2, lambda: asyncio.sleep(1000, True)), "not confirmed within 0.2 s"),
    ],
)
async def test_unconfirmed_change_is_undone(
    server: Server, shell: FaultyShell, approval: Approval, message: str
) -> None:
    with pytest.raises(ChangeRolledBack, match=f"KeepAlive: {message}; rolled back and reloaded"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=approval)
    expect_rolled_back(server, reloads=2)


async def test_host_undoes_change_confirmed_too_late(server: Server, shell: FaultyShell) -> None:
    """The user confirms after the lease on the host has expired."""

    async def too_late() -> bool:
        server.expire()
        await until(lambda: not server.locked())
        return True

    with pytest.raises(ChangeRolledBack, match="the confirmation came too late; rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, too_late))
    assert server.bytes() == ORIGINAL and server.reloads == 2


async def test_lease_that_cannot_be_renewed_has_its_reason(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "_SETTLED", 0)

    def full(program: str, done: Completed) -> Completed:
        no_space = Completed(4, b"", b"sh: write error: No space left on device\n")
        return no_space if program.endswith(scripts.PROCESSES) else done

    async def wait() -> bool:
        shell.received = full
        return await asyncio.Future()

    guard = Guard(lambda: asyncio.Future())
    with pytest.raises(ChangeRolledBack, match="KeepAlive: No space left on device; rolled back"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, wait), guard=guard)
    expect_rolled_back(server)


async def test_concurrent_change_is_refused(server: Server, shell: FaultyShell) -> None:
    refused: list[str] = []

    async def second_change() -> bool:
        with pytest.raises(ChangeRefused) as second:
            await Tuner(who="bea@there").apply(shell, "web1", [(server.knob(), "30")])
        refused.append(str(second.value))
        return True

    first = Tuner(who="adam@here")
    await first.apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, second_change))
    message = "MaxSpareServers: web1: a change of adam@here (KeepAlive) is under way and undoes itself"
    assert refused[0].startswith(message) and refused[0].endswith("unless it is confirmed; nothing was changed")
    assert server.bytes() == (ORIGINAL[0], OFF)
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])


async def interrupted_change(server: Server, shell: FaultyShell, step: int = 7, **knob: str) -> Path:
    """A change whose cockpit and guard are gone, like after a restart of the host."""
    shell.lose_connection_at(step)
    with pytest.raises(ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(server.keep_alive(**knob), "Off")])
    shell.cut_before.clear()
    (change,) = server.changes()
    guard = int((change / "pid").read_text().partition(":")[0])
    os.kill(guard, signal.SIGKILL)
    await until(lambda: is_gone(guard))
    return change


async def test_unfinished_change_is_reported_and_can_be_undone(server: Server, shell: FaultyShell) -> None:
    findings = await diagnose_changes(shell, "web1")
    assert [finding.level for finding in findings] == ["ok", "ok", "ok"]
    assert "survives a logout" in findings[0].text and "flushed to the disk" in findings[1].text
    change = await interrupted_change(server, shell)
    *_, unfinished = await diagnose_changes(shell, "web1")
    name = change.name.rpartition("-")[2]
    assert unfinished.level == "error" and f"change {name} of " in unfinished.text
    assert unfinished.fix == f"cockpit tune PROFILE undo {name} rolls it back"
    message = r"incomplete \(its new values may be active\), and its guard has ended; roll it back with sh '.*/undo'"
    with pytest.raises(ChangeRefused, match=message):
        await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (past,) = await Tuner().history(shell, "web1")
    assert (past.state, past.change) == ("incomplete", str(change))
    await Tuner().force_undo(shell, "web1", past)
    assert server.bytes() == ORIGINAL and not server.locked()
    assert [past.state for past in await Tuner().history(shell, "web1")] == ["rolled back"]
    with pytest.raises(ChangeRefused, match=r"applied: No such file"):
        await Tuner().read_record(shell, "web1", past)


@pytest.mark.parametrize("left", ["file", "reload", "value"])
async def test_undo_that_leaves_something_is_reported_and_can_be_repeated(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    cause, place = server.root / "cause", server.state / "value"
    place.write_text("On\n")
    fails = f"if [ -e '{cause}' ]; then echo boom >&2; exit 1; fi"
    value = {"file": "", "directive": "", "kind": "command", "get": f"cat '{place}'"}
    value["set"] = f"{fails}; echo \"$1\" >'{place}'"
    knob = value if left == "value" else {"reload": f"{fails}; {server.reload}"}
    change = await interrupted_change(server, shell, 7 if left == "file" else 9, **knob)
    # A second hard link keeps a file from being replaced.
    cause.hardlink_to(server.other)
    if left == "reload":
        cause.unlink()
        cause.touch()
    (past,) = await Tuner().history(shell, "web1")
    reason = {
        "file": f"other.conf could not be rolled back: it has a second hard link.*original: {change}/0-other.conf",
        "reload": "the reload fails with the original files too: boom",
        "value": "KeepAlive: could not be restored: boom",
    }[left]
    with pytest.raises(
        ChangeFailed,
        match=rf"not rolled back completely: .*{reason}.*; remove the cause, then repeat it: cockpit tune PROFILE undo",
    ):
        await Tuner().force_undo(shell, "web1", past)
    monkeypatch.setattr(scripts, "OPEN", scripts.OPEN.replace("=100", "=0").replace("=200", "=0"))
    await Tuner().apply(shell, "web1", [(server.knob(reload=""), "30")])
    _, past = await Tuner().history(shell, "web1")
    assert (past.state, past.change) == ("not rolled back completely", str(change))
    assert find_change([("web1", past)], past.name) and next_to_undo([past]) == past
    assert "not rolled back completely" in (await diagnose_changes(shell, "web1"))[-1].text
    cause.unlink()
    await Tuner().force_undo(shell, "web1", past)
    assert server.other.read_bytes() == ORIGINAL[1] and place.read_text() == "On\n"
    assert (await Tuner().history(shell, "web1"))[-1].state == "rolled back"


async def partial_rollback(server: Server, shell: FaultyShell) -> HistoryEntry:
    """A change whose rollback restored the file and could not reload the server while the file `cause` exists."""
    cause = server.root / "cause"
    reload = f"if [ -e '{cause}' ]; then echo boom >&2; exit 1; fi; {server.reload}"
    await interrupted_change(server, shell, 9, reload=reload)
    cause.touch()
    (past,) = await Tuner().history(shell, "web1")
    with pytest.raises(ChangeFailed):
        await Tuner().force_undo(shell, "web1", past)
    (past,) = await Tuner().history(shell, "web1")
    assert state_words(past) == "not rolled back completely: the reload with the original files failed"
    return past


async def test_partial_rollback_is_not_repeated_after_a_newer_change(server: Server, shell: FaultyShell) -> None:
    past = await partial_rollback(server, shell)
    same = [(server.keep_alive(), "Off")]
    newer = await Tuner().apply(shell, "web1", same)
    history = await Tuner().history(shell, "web1")
    assert unfinished(history) == [] and next_to_undo(history) == history[0]
    with pytest.raises(ChangeRefused, match=rf"{past.name}: {history[0].name} changed KeepAlive since; undo"):
        await Tuner().force_undo(shell, "web1", past)
    assert server.other.read_bytes() == OFF
    await Tuner().undo(shell, newer)
    assert unfinished(await Tuner().history(shell, "web1")) == [past]


async def test_partial_rollback_is_not_repeated_during_another_change(server: Server, shell: FaultyShell) -> None:
    past = await partial_rollback(server, shell)

    async def repeat() -> bool:
        with pytest.raises(ChangeRefused, match="another change there has not ended"):
            await Tuner().force_undo(shell, "web1", past)
        return True

    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")], approval=Approval(60, repeat))
    assert server.other.read_bytes() == OFF


async def test_applied_change_is_undone_before_a_partial_rollback(server: Server, shell: FaultyShell) -> None:
    past = await partial_rollback(server, shell)
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    history = await Tuner().history(shell, "web1")
    assert unfinished(history) == [past] and next_to_undo(history) == history[0]
    await Tuner().accept(shell, "web1", past)
    assert (await Tuner().history(shell, "web1"))[-1].state == "left as it is"


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
    knob = server.knob(reload=reload)
    note = "Apache silently raises MaxSpareServers 4 to 6: it must be at least MinSpareServers + 1"
    assert (await Tuner().prepare(shell, "web1", [(knob, "60")])).notes == ()
    assert (await Tuner().prepare(shell, "web1", [(knob, "4")])).notes == (note,)
    applied = await Tuner().apply(shell, "web1", [(knob, "4")])
    assert applied.notes == (note, line.removeprefix("[mpm] "))


# Like sudo -n: runs the command after its options with root's environment, or reports that it needs a password.
SUDO = """
[ "$1 $2" = "-n --" ] || exit 9
shift 2
echo "$1 $2" >>"$SUDO_LOG"
exec env -u XDG_STATE_HOME HOME="$SUDO_HOME" "$@"
"""
SUDO_REFUSES = "echo 'sudo: a password is required' >&2; exit 1"


async def test_all_commands_run_with_sudo(server: Server, shell: FaultyShell) -> None:
    log = server.root / "sudo.log"
    server.tools(sudo=SUDO, environment={"SUDO_LOG": log, "SUDO_HOME": server.root})
    sudo_shell = privileged(HostConfig(name="web1", sudo=True), shell)
    await Tuner().apply(sudo_shell, "web1", [(server.keep_alive(), "Off")])
    assert shell.commands[0] == ("sudo -n -- sh -s", b"") and set(shell.interpreters[1:]) == {"sudo -n -- sh -s"}
    assert log.read_text().splitlines() == ["sh -s"] * shell.count
    assert server.other.read_bytes() == OFF and (server.root / ".local/state/webcockpit/changes").is_dir()
    assert privileged(HostConfig(name="web1"), shell) is shell


async def test_sudo_password_prompt_is_one_line_error(server: Server, shell: FaultyShell) -> None:
    server.tools(sudo=SUDO_REFUSES)
    sudo_shell = privileged(HostConfig(name="web1", sudo=True), shell)
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(sudo_shell, "web1", [(server.keep_alive(), "Off")])
    assert str(refused.value) == (
        "web1: sudo is not possible without a password (sudo: a password is required); "
        "allow it there (NOPASSWD), or log in as root"
    )
    assert server.bytes() == ORIGINAL and shell.count == 1


@pytest.mark.lab
async def test_change_works_with_busybox_only(server: Server) -> None:
    applets = server.root / "applets"
    applets.mkdir()
    await asyncio.to_thread(subprocess.run, ["busybox", "--install", "-s", applets], check=True)
    # HEAD adds the system's sbin to PATH, which contains nothing of coreutils.
    shell, tuner = FaultyShell(prefix=f"env PATH={shlex.quote(str(applets))} "), Tuner()
    applied = await tuner.apply(shell, "web1", [(server.keep_alive(), "Off"), (server.knob(), "30")])
    assert server.other.read_bytes() == OFF and not server.locked()
    await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL
    refusing = server.keep_alive(test=f"! grep -q Off {shlex.quote(str(server.other))}")
    with pytest.raises(ChangeRolledBack, match=r"failed: exit status .*, no message; rolled back"):
        await tuner.apply(shell, "web1", [(refusing, "Off")])
    expect_rolled_back(server)
    assert [past.state for past in await tuner.history(shell, "web1")] == ["rolled back", "applied", "undone"]
    await shell.close()


def move_to_another_machine(change: Path) -> Path:
    """Move the change to where it would be in a shared home if another machine had made it."""
    moved = change.parent.with_name("0123456789abcdef") / change.name
    moved.parent.mkdir(mode=0o700)
    (change / "machine").write_text("0123456789abcdef 00000000-0000-0000-0000-000000000000 web7\n")
    (change / "undo").write_text((change / "undo").read_text().replace(str(change), str(moved)))
    change.rename(moved)
    return moved


async def test_change_of_other_machine_is_not_listed_or_undone(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    moved = move_to_another_machine(server.changes()[0])
    assert await Tuner().history(shell, "web1") == []
    done = await shell.run(f"sh '{moved}/undo'")
    assert done.exit_status == 4 and b"was made on web7, which shares this home; undo it there" in done.stderr

    with pytest.raises(ChangeRefused, match="made on another machine with the same home; undo it there"):
        await Tuner().undo(shell, replace(applied, change=str(moved)))
    assert server.other.read_bytes() == b"KeepAlive Off"
    # It does not lock this machine.
    (moved / "settled").unlink()
    moved.with_name("lock").symlink_to(moved / "owner")
    assert await Tuner().history(shell, "web1") == []
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    shutil.rmtree(moved.parent)


async def test_old_changes_are_pruned(server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolled-back changes are pruned first, unfinished and fresh ones never; the newest applied ones stay."""
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    (sample,) = server.changes()
    old_changes = [sample.with_name(f"2020010{number + 1}T000000Z-abcdef") for number in range(7)]
    for copy in old_changes:
        shutil.copytree(sample, copy, symlinks=True)
    for number in (1, 3):
        (old_changes[number] / "settled").unlink()
        (old_changes[number] / "settled").symlink_to("undo-1:1:1")
        (old_changes[number] / "outcome").write_text("end\n")
    (old_changes[0] / "settled").unlink()
    fresh, stale = (sample.with_name(f"2019010{number}T000000Z-abcdef") for number in (1, 2))
    for unarmed in (fresh, stale):
        unarmed.mkdir()
    os.utime(stale, (0, 0))
    few = scripts.OPEN.replace("most_kept=100 most_applied=200", "most_kept=8 most_applied=5")
    monkeypatch.setattr(scripts, "OPEN", few)
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    # Both changes may have the same second, so the order of their names is random.
    remaining = {path for path in server.changes() if path.is_dir()}
    assert remaining > {fresh, old_changes[0], old_changes[5], old_changes[6], sample} and len(remaining) == 6
    shutil.rmtree(old_changes[0])


# Like systemd-run: starts a program with nothing of the caller's login.
SYSTEMD_RUN = """
printf '%s\\n' "$*" >>"$STAND_IN"
while [ "${1#-}" != "$1" ]; do shift; done
exec env -i PATH=/usr/bin:/bin setsid -f "$@"
"""


# Another user needs to linger.
@pytest.mark.lab
async def test_guard_runs_in_own_unit_with_login_environment(server: Server, shell: FaultyShell) -> None:
    """Without systemd here, a substitute for systemd-run starts the guard outside of the login, without environment."""
    units, shown = server.root / "units", server.state / "environment"
    server.tools(**{"systemd-run": SYSTEMD_RUN}, environment={"STAND_IN": units, "OF_THE_LOGIN": 'it\'s "here"'})
    shell.lose_connection_at(8)
    knob = server.keep_alive(test=f'printf "%s" "$OF_THE_LOGIN" >"{shown}"')
    with pytest.raises(ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(knob, "Off")])
    (change,) = server.changes()
    guard = psutil.Process(int((change / "pid").read_text().partition(":")[0]))
    assert "KillMode=process" in units.read_text() and str(change) in units.read_text()
    assert "OF_THE_LOGIN" not in guard.environ()
    assert (change / "environment").stat().st_mode & 0o077 == 0
    shown.unlink(missing_ok=True)
    server.expire()
    await until(lambda: not server.locked())
    assert server.bytes() == ORIGINAL and shown.read_text() == 'it\'s "here"'


@pytest.mark.parametrize("text", ["exit 1", "exit 0"])
async def test_failing_systemd_run_has_fallback(server: Server, shell: FaultyShell, text: str) -> None:
    server.tools(**{"systemd-run": text})
    assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files


async def test_undo_data_is_synced_before_files_are_replaced(server: Server, shell: FaultyShell) -> None:
    log = server.root / "log"
    logged = 'printf "%s %s\\n" "${0##*/}" "$*" >>"$LOG"; PATH=${PATH#*:}; exec "${0##*/}" "$@"'
    server.tools(sync=logged, mv=logged, environment={"LOG": log})
    await Tuner().apply(shell, "web1", [(server.keep_alive(test="", reload=""), "Off")])
    (change,) = server.changes()
    lines = [line for line in log.read_text().splitlines() if not line.startswith("mv") or " new " in line]
    first = next(number for number, line in enumerate(lines) if line.startswith("mv"))
    before = " ".join(lines[:first]) + " "
    for path in (change / "0-other.conf", change / "undo", change / "facts", change, change.parent):
        assert f"{path} " in before, path
    assert lines[first - 1] == "sync -- new ." and lines[first + 1] == f"sync -- {server.directory}"
    assert lines[-1] == f"sync -- {change}", "the confirmation"


async def test_doctor_warns_if_guard_ends_with_login(server: Server, unprivileged: FaultyShell) -> None:
    server.tools(busctl="echo b true")
    first, *_ = await diagnose_changes(unprivileged, "web1")
    assert first.level == "error" and "KillUserProcesses=yes" in first.text and "enable-linger" in first.fix
