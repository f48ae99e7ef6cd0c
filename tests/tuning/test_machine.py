"""Changes and their machine: shared homes, pruning, guard, flushed files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRefused
from cockpit.setup.doctor_host import diagnose_changes
from cockpit.tuning import scripts
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ORIGINAL, FaultyShell, Server, until
from tests.tuning.test_pending import interrupted_change, tools


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


async def test_unfinished_change_of_other_machine_does_not_lock(server: Server, shell: FaultyShell) -> None:
    change = await interrupted_change(server, shell)
    change.with_name("lock").unlink()
    moved = move_to_another_machine(change)
    moved.with_name("lock").symlink_to(moved / "owner")
    assert await Tuner().history(shell, "web1") == []
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    shutil.rmtree(moved.parent)


async def test_old_changes_are_pruned(server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rolled-back changes are pruned first, unfinished ones never; the newest applied ones stay without a gap."""
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    (sample,) = server.changes()
    old_changes = {}
    for number in range(7):
        copy = sample.with_name(f"2020010{number + 1}T000000Z-abcdef")
        shutil.copytree(sample, copy, symlinks=True)
        old_changes[number] = copy
    for number in (1, 3):
        (old_changes[number] / "settled").unlink()
        (old_changes[number] / "settled").symlink_to("undo-1:1:1")
        (old_changes[number] / "outcome").write_text("end\n")
    (old_changes[0] / "settled").unlink()
    monkeypatch.setattr(
        scripts, "OPEN", scripts.OPEN.replace("most_kept=100 most_applied=200", "most_kept=7 most_applied=4")
    )
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    # Both changes may have the same second, so the order of their names is random.
    remaining = {path for path in server.changes() if path.is_dir()}
    assert remaining > {old_changes[0], old_changes[5], old_changes[6], sample} and len(remaining) == 5
    shutil.rmtree(old_changes[0])


# Like systemd-run: starts a program with nothing of the caller's login.
SYSTEMD_RUN = """
printf '%s\\n' "$*" >>"$STAND_IN"
while [ "${1#-}" != "$1" ]; do shift; done
exec env -i PATH=/usr/bin:/bin setsid -f "$@"
"""


async def test_guard_runs_in_own_unit_with_login_environment(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without systemd here, a substitute for systemd-run starts the guard outside of the login, without environment."""
    if os.geteuid() != 0:
        pytest.skip("another user needs to linger")
    monkeypatch.setenv("PATH", f"{tools(server, **{'systemd-run': SYSTEMD_RUN})}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN", str(server.root / "units"))
    monkeypatch.setenv("OF_THE_LOGIN", 'it\'s "here"')
    shown = server.state / "environment"
    shell.cut_before.update(range(8, 1000))

    knob = server.keep_alive(test=f'printf "%s" "$OF_THE_LOGIN" >"{shown}"')
    with pytest.raises(ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [(knob, "Off")])
    (change,) = server.changes()
    guard = int((change / "pid").read_text().partition(":")[0])
    units = (server.root / "units").read_text()
    assert "KillMode=process" in units and str(change) in units
    assert b"OF_THE_LOGIN" not in environment_of(guard)
    assert (change / "environment").stat().st_mode & 0o077 == 0
    shown.unlink(missing_ok=True)
    server.expire()
    await until(lambda: not server.locked())
    assert server.bytes() == ORIGINAL and shown.read_text() == 'it\'s "here"'


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("text", ["exit 1", "exit 0"])
async def test_failing_systemd_run_has_fallback(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, **{'systemd-run': text})}:{os.environ['PATH']}")
    assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files


async def test_undo_data_is_synced_before_files_are_replaced(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = server.root / "log"
    logged = 'printf "%s %s\\n" "${0##*/}" "$*" >>"$LOG"; PATH=${PATH#*:}; exec "${0##*/}" "$@"'
    monkeypatch.setenv("PATH", f"{tools(server, sync=logged, mv=logged)}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(log))
    await Tuner().apply(shell, "web1", [(server.keep_alive(test="", reload=""), "Off")])
    (change,) = server.changes()
    lines = [line for line in log.read_text().splitlines() if not line.startswith("mv") or " new " in line]
    first = next(number for number, line in enumerate(lines) if line.startswith("mv"))
    before = " ".join(lines[:first]) + " "
    for path in (change / "0-other.conf", change / "undo", change / "facts", change, change.parent):
        assert f"{path} " in before, path
    assert lines[first - 1] == "sync -- new ." and lines[first + 1] == f"sync -- {server.directory}"
    assert lines[-1] == f"sync -- {change}", "the confirmation"


async def test_doctor_reports_guard_disk_and_unfinished_changes(server: Server, shell: FaultyShell) -> None:
    findings = [finding async for finding in diagnose_changes(shell, "web1")]
    assert [finding.level for finding in findings] == ["ok", "ok", "ok"]
    assert "survives a logout" in findings[0].text and "flushed to the disk" in findings[1].text
    change = await interrupted_change(server, shell)
    *_, unfinished = [finding async for finding in diagnose_changes(shell, "web1")]
    name = change.name.rpartition("-")[2]
    assert unfinished.level == "error" and f"change {name} of " in unfinished.text
    assert unfinished.fix == f"cockpit tune PROFILE undo {name} rolls it back"
    await Tuner().force_undo(shell, "web1", (await Tuner().history(shell, "web1"))[0])


async def test_doctor_warns_if_guard_ends_with_login(
    server: Server, unprivileged: LocalShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools(server, busctl='echo b true')}:{os.environ['PATH']}")
    first, *_ = [finding async for finding in diagnose_changes(unprivileged, "web1")]
    assert first.level == "error" and "KillUserProcesses=yes" in first.text and "enable-linger" in first.fix
