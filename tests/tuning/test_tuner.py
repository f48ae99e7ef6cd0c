"""Reading, changing and undoing real files with real commands."""

import asyncio
import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.knobs import Setting
from cockpit.tuning.applied import AppliedChange, ChangeFailed
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.scripts import HISTORY
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.tuning.conftest import (
    ENTRIES,
    ORIGINAL,
    OTHER,
    PREFORK,
    SHELL_TEXTS,
    FaultyShell,
    Server,
    backup_of,
    expect_rolled_back,
)

DATA = data_of(__file__)

CHANGED = PREFORK.replace(b'"10"', b'"30"')


async def test_change_modifies_only_value_bytes_and_has_private_backup(server: Server, shell: FaultyShell) -> None:
    before = server.target.stat()
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    after = server.target.stat()
    assert server.bytes() == (CHANGED, OTHER)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert server.prefork.is_symlink() and server.prefork.readlink() == Path("../available/mpm prefork.conf")
    assert server.entries() == ENTRIES
    assert server.active.read_bytes() == CHANGED + OTHER and server.reloads == 1
    assert applied.settings == (Setting(knob="MaxSpareServers", old="10", new="30"),)
    assert applied.notes == ()
    assert msgspec.json.decode(msgspec.json.encode(applied), type=AppliedChange) == applied
    (file,), (change,) = applied.files, server.changes()
    backup = backup_of(applied)
    assert (file.file, file.real) == (str(server.prefork), str(server.target))
    assert backup.read_bytes() == PREFORK and backup.stat().st_mode & 0o077 == 0 and backup.parent == change
    for directory in (change, *list(change.parents)[:3]):
        assert directory.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"\d{8}T\d{6}Z-\w{6}", change.name)
    assert (change / "files").read_text() == f"{backup.name}\t{server.target}\n"


async def test_unwritable_home_falls_back_to_var_tmp(server: Server, shell: FaultyShell) -> None:
    (server.state / "webcockpit").symlink_to(server.root)
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    backup = backup_of(applied)
    try:
        assert backup.is_relative_to(f"/var/tmp/webcockpit-{os.geteuid()}/changes")
        assert backup.read_bytes() == PREFORK
    finally:
        shutil.rmtree(backup.parent)
        with suppress(OSError):  # not empty: it existed before
            for directory in list(backup.parents)[1:4]:
                directory.rmdir()


async def test_several_knobs_are_one_change_that_can_be_undone_and_redone(server: Server, shell: FaultyShell) -> None:
    tuner, log = Tuner(), server.state / "log"
    tested = {"test": f"echo tested >>'{log}'"}
    by_other_name = server.knob("MinSpareServers", file=str(server.target), **tested)  # the same file by its real path
    assignments = [(server.knob(**tested), "30"), (by_other_name, "15"), (server.keep_alive(**tested), "Off")]
    applied = await tuner.apply(shell, "web1", assignments)
    changed = CHANGED.replace(b"Servers   5", b"Servers   15"), b"KeepAlive Off"
    assert server.bytes() == changed
    assert [setting.new for setting in applied.settings] == ["30", "15", "Off"]
    assert len(applied.files) == 2 and server.reloads == 1 and log.read_text() == "tested\n"
    undone = await tuner.undo(shell, applied)
    assert undone.notes == ()
    assert [edit.knob for edit in undone.edits] == [edit.knob for edit in applied.edits]
    assert undone.settings == (
        Setting(knob="MaxSpareServers", old="30", new="10"),
        Setting(knob="MinSpareServers", old="15", new="5"),
        Setting(knob="KeepAlive", old="Off", new="On"),
    )
    expect_rolled_back(server, reloads=2)
    redone = await tuner.undo(shell, undone)
    assert server.bytes() == changed
    await tuner.undo(shell, redone)
    expect_rolled_back(server, reloads=4)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
async def test_old_value_with_a_line_separator_can_be_undone_from_the_history(
    separator: str, server: Server, shell: FaultyShell
) -> None:
    """Also if the login prints lines of its own."""
    shell.received = lambda program, done: (
        done._replace(stdout=b"Welcome!\n" + done.stdout) if program == HISTORY else done
    )
    tuner, old = Tuner(), PREFORK.replace(b"10", f"1{separator}0".encode())
    server.target.write_bytes(old)
    await tuner.apply(shell, "web1", [(server.knob(), "30")])
    (past,) = await tuner.history(shell, "web1")
    assert past.facts.settings[0].old == f"1{separator}0"
    await tuner.undo(shell, await tuner.read_record(shell, "web1", past))
    assert server.target.read_bytes() == old


async def test_directive_is_added_and_removed(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    assert [await tuner.read(shell, knob) for knob in (server.knob(), server.knob("StartServers"))] == ["10", None]
    added = await tuner.apply(shell, "web1", [(server.knob("StartServers"), "7")])
    assert server.target.read_bytes() == PREFORK.replace(b"</If", b"\tStartServers 7\n</If")
    assert added.settings == (Setting(knob="StartServers", old=None, new="7"),)
    await tuner.undo(shell, added)
    assert server.bytes() == ORIGINAL
    removed = await tuner.apply(shell, "web1", [(server.knob(), None)])
    assert server.target.read_bytes() == PREFORK.replace(b'\tMaxSpareServers\t  "10"  \t\n', b"")
    await tuner.undo(shell, removed)
    assert server.bytes() == ORIGINAL


async def test_unchanged_value_changes_nothing(server: Server, shell: FaultyShell) -> None:
    before = server.target.stat()
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "10")])
    assert applied.files == () and "nothing to change" in applied.notes[0]
    after = server.target.stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert server.reloads == 0 and server.changes() == []
    assert (await Tuner().undo(shell, applied)).files == ()


async def test_duplicate_directive_is_noted(server: Server, shell: FaultyShell) -> None:
    server.other.write_bytes(b"KeepAlive On\nKeepAlive On\n")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive On\nKeepAlive Off\n"
    assert applied.notes == (f"KeepAlive is set 2 times in {server.other}; line 2 is effective",)


async def test_failed_test_rolls_back_all_files(server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRolledBack) as undone:
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(test="false"), "Off")])
    message = "false failed: exit status 1, no message; rolled back (false fails without the change too)"
    assert message in str(undone.value)
    with pytest.raises(ChangeRolledBack) as undone:
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "${banana}")])
    assert str(undone.value).startswith("MaxSpareServers, KeepAlive: cd ")
    message = " failed: AH00526: Syntax error on line 1 of it: KeepAlive must be On or ·[31mOff; rolled back"
    assert str(undone.value).endswith(message)
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.reloads == 0
    assert server.prefork.is_symlink()


async def test_failed_reload_rolls_back_and_reloads_again(server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeFailed, match="rolled back, but exit 7 fails with the original files too"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(reload="exit 7"), "Off")])
    assert server.bytes() == ORIGINAL
    reload = f"{server.reload}; ! grep -q Off '{server.other}' || {{ echo cannot: it says no >&2; exit 3; }}"
    with pytest.raises(ChangeRolledBack, match="failed: cannot: it says no; rolled back and reloaded"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(reload=reload), "Off")])
    expect_rolled_back(server, reloads=2)


async def test_hung_command_times_out(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner(timeouts=Timeouts(command=0.2))
    with pytest.raises(ChangeRolledBack, match=r"sleep 1000 failed: it did not end within 0\.2 s; rolled back"):
        await tuner.apply(shell, "web1", [(server.keep_alive(test="sleep 1000"), "Off")])
    assert server.bytes() == ORIGINAL


async def test_daemon_holding_stdout_is_not_waited_for(server: Server, shell: FaultyShell) -> None:
    pid = server.state / "pid"
    reload = f"sleep 1000 & echo $! >'{pid}'"
    try:
        await Tuner().apply(shell, "web1", [(server.keep_alive(reload=reload), "Off")])
        os.kill(int(pid.read_text()), 0)
    finally:
        os.kill(int(pid.read_text()), 9)


async def test_unhealthy_server_is_not_changed(server: Server, shell: FaultyShell) -> None:
    async def probe() -> str:
        return "http://web1/ answers 404"

    with pytest.raises(ChangeRefused, match=r"target fails without the change: .* answers 404; nothing was changed"):
        await Tuner(probe).apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.changes() == []


@pytest.mark.parametrize("broken_at", [0, 1], ids=["before", "during"])
async def test_undo_does_not_depend_on_the_target(server: Server, shell: FaultyShell, broken_at: int) -> None:
    requests: list[int] = []

    async def probe() -> str:
        requests.append(server.reloads)
        return "" if len(requests) <= broken_at else "http://web1/ answers 503"

    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    tuner = Tuner(probe, Timeouts(effect=0.5))
    undone = await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL and undone.notes == ("the target fails: http://web1/ answers 503",)
    await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    await tuner.apply(shell, "web1", [(server.keep_alive(), "On")], restores=True)
    assert server.bytes() == ORIGINAL


async def test_delayed_effect_is_waited_for(server: Server, shell: FaultyShell) -> None:
    reloads: list[int] = []

    async def probe() -> str:
        reloads.append(server.reloads)
        fails = b'"40"' in server.target.read_bytes() or reloads.count(1) in (1, 2)
        return "http://web1/ answers 503" if fails else ""

    await Tuner(probe).apply(shell, "web1", [(server.knob(), "30")])
    assert reloads[0] == 0 and reloads.count(1) == 5  # two failures, then three successes
    with pytest.raises(ChangeRolledBack, match=r"did not become active: .* answers 503; rolled back and reloaded"):
        await Tuner(probe, Timeouts(effect=0.5)).apply(shell, "web1", [(server.knob(), "40")])
    assert server.target.read_bytes() == CHANGED and server.active.read_bytes() == CHANGED + OTHER


@pytest.mark.parametrize(
    "value",
    ["3\n0", "30\n</IfModule>", "", " 30", "30\\", '"30', "10 20", "banana", "\x00", "3\x1b[0m0", "30;", "-", "\ud800"],
)
async def test_invalid_value_is_refused(server: Server, shell: FaultyShell, value: str) -> None:
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(shell, "web1", [(server.knob(), value)])
    assert str(refused.value).startswith("MaxSpareServers takes a whole number of at least 1, not '")
    assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value)
    assert server.bytes() == ORIGINAL and server.changes() == [] and server.reloads == 0


async def test_values_are_never_executed(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    names = [f"Timeout{number}" for number in range(len(SHELL_TEXTS))]
    before = "".join(f"{name} 1\n" for name in names)
    server.other.write_text(before)
    knobs = [server.knob(name, section=None, file=str(server.other)) for name in names]
    applied = await tuner.apply(shell, "web1", list(zip(knobs, SHELL_TEXTS, strict=True)))
    assert server.other.read_text().splitlines() == [f"{n} {t}" for n, t in zip(names, SHELL_TEXTS, strict=True)]
    assert [await tuner.read(shell, knob) for knob in knobs] == [*SHELL_TEXTS]
    assert not any("pwned" in command for command, _ in shell.commands)
    await tuner.undo(shell, applied)
    assert server.other.read_text() == before
    assert not server.pwned()


async def test_file_names_are_never_executed(server: Server, shell: FaultyShell) -> None:
    file = server.directory / "-a'$(touch pwned)\"`touch pwned` *.conf"
    file.write_bytes(b"Timeout 1\n")
    applied = await Tuner().apply(shell, "web1", [(server.knob("Timeout", section=None, file=str(file)), "2")])
    assert file.read_bytes() == b"Timeout 2\n"
    await Tuner().undo(shell, applied)
    assert file.read_bytes() == b"Timeout 1\n"
    assert not server.pwned()


@pytest.mark.parametrize(("changed", "prepare", "reason"), DATA["unchangeable_knob_is_refused"])
async def test_unchangeable_knob_is_refused(
    server: Server, shell: FaultyShell, changed: dict[str, str], prepare: str, reason: str
) -> None:
    await asyncio.to_thread(subprocess.run, prepare, shell=True, cwd=server.root, check=True)
    knob = server.knob(**{name: value.format(etc=server.directory) for name, value in changed.items()})
    mtimes = {path: path.lstat().st_mtime_ns for path in server.directory.iterdir()}
    with pytest.raises(ChangeRefused, match=reason):
        await Tuner().apply(shell, "web1", [(knob, "30")])
    assert {path: path.lstat().st_mtime_ns for path in server.directory.iterdir()} == mtimes
    assert server.changes() == [] and server.reloads == 0


async def test_same_directive_twice_in_change_is_refused(server: Server, shell: FaultyShell) -> None:
    other = server.knob(name="other", directive="maxspareservers")
    with pytest.raises(ChangeRefused, match="MaxSpareServers and other are the same directive"):
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (other, "40")])


@pytest.mark.parametrize(
    ("file", "directory", "message"),
    [
        (0, 0o755, r"web1:.*/other\.conf: Permission denied"),
        (0o444, 0o755, r"Alive: web1:.*/other\.conf: it is read-only for this user; nothing was changed"),
        (0o666, 0o555, r"Alive: web1:.*: Permission denied; nothing was changed"),
        # Root's file.
        pytest.param(0o666, 0o755, "its owner and mode cannot be kept by this user; nothing", marks=pytest.mark.lab),
    ],
)
async def test_change_without_rights_to_one_file_is_refused(
    server: Server, unprivileged: FaultyShell, file: int, directory: int, message: str
) -> None:
    server.other.chmod(file)
    server.directory.chmod(directory)
    with pytest.raises(ChangeRefused, match=message):
        await Tuner().apply(unprivileged, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    if not file:
        with pytest.raises(ChangeRefused, match=message):
            await Tuner().read(unprivileged, server.keep_alive())
    server.directory.chmod(0o755)
    server.other.chmod(0o644)
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.changes() == []


async def test_unprivileged_user_changes_own_file(server: Server, unprivileged: FaultyShell) -> None:
    applied = await Tuner().apply(unprivileged, "web1", [(server.knob(), "30")])
    assert server.target.read_bytes() == CHANGED
    await Tuner().undo(unprivileged, applied)
    assert server.bytes() == ORIGINAL


async def test_changes_of_one_host_are_serialized(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    knobs = [(server.knob(), "30"), (server.knob("MinSpareServers"), "15"), (server.keep_alive(), "Off")]
    done = await asyncio.gather(*(tuner.apply(shell, "web1", [assignment]) for assignment in knobs))
    assert [len(applied.files) for applied in done] == [1, 1, 1]
    assert server.bytes() == (CHANGED.replace(b"Servers   5", b"Servers   15"), b"KeepAlive Off")
