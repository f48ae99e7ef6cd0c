"""Reading, changing and undoing real files with real commands."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.knobs import Knob, Setting
from cockpit.tuning.applied import AppliedChange, ChangeFailed
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, OTHER, PREFORK, FaultyShell, Server, UnprivilegedShell

CHANGED = PREFORK.replace(b'"10"', b'"30"')


async def test_value_is_read(server: Server, shell: FaultyShell) -> None:
    assert await Tuner().read(shell, server.knob()) == "10"
    assert await Tuner().read(shell, server.knob("StartServers")) is None
    assert await Tuner().read(shell, server.keep_alive()) == "On"


async def test_change_modifies_only_value_bytes(server: Server, shell: FaultyShell) -> None:
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


async def test_backup_is_complete_and_private(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    (file,) = applied.files
    backup = server.backup(applied)
    assert (file.file, file.real) == (str(server.prefork), str(server.target))
    assert backup.content == PREFORK and backup.mode & 0o077 == 0
    (change,) = server.changes()
    assert backup.path.parent == change
    for directory in (change, change.parent, change.parent.parent, change.parent.parent.parent):
        assert directory.stat().st_mode & 0o777 == 0o700
    assert (change / "files").read_text() == f"{backup.path.name}\t{server.target}\n"


async def test_unwritable_home_falls_back_to_var_tmp(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = server.root / "state" / "cockpit"
    blocked.symlink_to(server.root)
    applied = await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    backup = server.backup(applied)
    try:
        assert backup.path.is_relative_to(f"/var/tmp/cockpit-{os.geteuid()}/changes")
        assert backup.content == PREFORK
    finally:
        shutil.rmtree(backup.path.parent)
        with suppress(OSError):  # not empty: it existed before
            for directory in list(backup.path.parents)[1:4]:
                directory.rmdir()


async def test_undo_restores_original_bytes_and_can_be_undone(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    applied = await tuner.apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.bytes() == (CHANGED, b"KeepAlive Off")
    undone = await tuner.undo(shell, applied)
    assert server.bytes() == ORIGINAL
    assert undone.notes == ()
    assert undone.settings == (
        Setting(knob="MaxSpareServers", old="30", new="10"),
        Setting(knob="KeepAlive", old="Off", new="On"),
    )
    assert server.active.read_bytes() == PREFORK + OTHER and server.reloads == 2
    redone = await tuner.undo(shell, undone)
    assert server.bytes() == (CHANGED, b"KeepAlive Off")
    await tuner.undo(shell, redone)
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES


async def test_several_knobs_are_one_change(server: Server, shell: FaultyShell) -> None:
    by_other_name = server.knob("MinSpareServers", file=str(server.target))  # the same file by its real path
    applied = await Tuner().apply(
        shell, "web1", [(server.knob(), "30"), (by_other_name, "15"), (server.keep_alive(), "Off")]
    )
    assert server.bytes() == (CHANGED.replace(b"Servers   5", b"Servers   15"), b"KeepAlive Off")
    assert [setting.new for setting in applied.settings] == ["30", "15", "Off"]
    assert len(applied.files) == 2 and server.reloads == 1
    await Tuner().undo(shell, applied)
    assert server.bytes() == ORIGINAL


async def test_directive_is_added_and_removed(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
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
    assert (
        (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
        and server.reloads == 0
        and server.changes() == []
    )
    assert (await Tuner().undo(shell, applied)).files == ()


async def test_duplicate_directive_is_noted(server: Server, shell: FaultyShell) -> None:
    server.other.write_bytes(b"KeepAlive On\nKeepAlive On\n")
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive On\nKeepAlive Off\n"
    assert applied.notes == (f"KeepAlive is set 2 times in {server.other}; line 2 is effective",)


async def test_failed_test_rolls_back_all_files(server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRolledBack) as undone:
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(test="false"), "Off")])
    assert "false failed: exit status 1, no message; rolled back (false fails without the change too)" in str(
        undone.value
    )
    with pytest.raises(ChangeRolledBack) as undone:
        await Tuner().apply(shell, "web1", [(server.knob(), "30"), (server.keep_alive(), "${banana}")])
    message = str(undone.value)
    assert message.startswith("MaxSpareServers, KeepAlive: cd ")
    assert message.endswith(
        " failed: AH00526: Syntax error on line 1 of it: KeepAlive must be On or ·[31mOff; rolled back"
    )
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.reloads == 0
    assert server.prefork.is_symlink()


async def test_each_command_runs_once(server: Server, shell: FaultyShell) -> None:
    log = server.state / "log"
    test, reload = f"echo test >>'{log}'", f"echo reload >>'{log}'"
    knobs = [server.knob(test=test, reload=reload), server.keep_alive(test=test, reload=reload)]
    await Tuner().apply(shell, "web1", [(knobs[0], "30"), (knobs[1], "Off")])
    assert log.read_text() == "test\nreload\n"


async def test_failed_reload_rolls_back_and_reloads_again(server: Server, shell: FaultyShell) -> None:
    reload = f"{server.reload}; ! grep -q Off '{server.other}' || {{ echo cannot: it says no >&2; exit 3; }}"
    with pytest.raises(ChangeRolledBack, match="failed: cannot: it says no; rolled back and reloaded"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(reload=reload), "Off")])
    assert server.bytes() == ORIGINAL and server.reloads == 2
    assert server.active.read_bytes() == PREFORK + OTHER


async def test_reload_failing_after_rollback_is_reported(server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeFailed, match="rolled back, but exit 7 fails with the original files too"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(reload="exit 7"), "Off")])
    assert server.bytes() == ORIGINAL


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


async def test_delayed_effect_is_waited_for(server: Server, shell: FaultyShell) -> None:
    reload_counts: list[int] = []

    async def probe() -> str:
        reload_counts.append(server.reloads)
        if b'"40"' in server.target.read_bytes():
            return "http://web1/ answers 503"
        return "http://web1/ answers 503" if reload_counts.count(1) in (1, 2) else ""

    tuner = Tuner(probe, Timeouts(effect=1.0))
    await tuner.apply(shell, "web1", [(server.knob(), "30")])
    assert reload_counts[0] == 0 and reload_counts.count(1) == 5  # two failures, then three successes
    with pytest.raises(
        ChangeRolledBack, match=r"it did not become active: http://web1/ answers 503; rolled back and reloaded"
    ):
        await tuner.apply(shell, "web1", [(server.knob(), "40")])
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


# Values that a shell would execute, expand or parse as an option.
SHELL_TEXTS = (
    *("$(touch${IFS}pwned)", '"$(touch pwned)"', "`touch${IFS}pwned`", '"`touch pwned`"', "';touch pwned;'", '"a b"'),
    *("-rf", "--", "%s%n", "it's", "*", "${HOME}", "é", '"a \'b"', "&&", "|x", "~", "!x"),
)


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
    knob = server.knob("Timeout", section=None, file=str(file))
    applied = await Tuner().apply(shell, "web1", [(knob, "2")])
    assert file.read_bytes() == b"Timeout 2\n"
    await Tuner().undo(shell, applied)
    assert file.read_bytes() == b"Timeout 1\n"
    assert not server.pwned()


def _missing(server: Server) -> Knob:
    return server.knob(file=str(server.directory / "none.conf"))


def _dangling(server: Server) -> Knob:
    server.target.unlink()
    return server.knob()


def _directory(server: Server) -> Knob:
    return server.knob(file=str(server.directory))


def _fifo(server: Server) -> Knob:
    os.mkfifo(server.directory / "pipe.conf")
    return server.knob(file=str(server.directory / "pipe.conf"))


def _large(server: Server) -> Knob:
    with server.other.open("wb") as file:
        file.truncate((8 << 20) + 1)
    return server.keep_alive()


def _relative(server: Server) -> Knob:
    return server.knob(file="etc/mpm.conf")


def _hard_link(server: Server) -> Knob:
    os.link(server.other, server.state / "second")
    return server.knob("Timeout", file=str(server.other), section=None)


def _no_section(server: Server) -> Knob:
    return server.knob(section="IfModule worker.c")


def _other_host(server: Server) -> Knob:
    return server.knob(host="web2")


def _no_directive(server: Server) -> Knob:
    return server.knob(directive="<Foo")


@pytest.mark.parametrize(
    ("make_knob", "reason"),
    [
        (_missing, r"web1:.*/none\.conf: No such file or directory"),
        (_dangling, r"web1:.*/mpm\.conf: No such file or directory"),
        (_directory, r"web1:.*/etc: it is not a regular file"),
        (_fifo, r"web1:.*/pipe\.conf: it is not a regular file"),
        (_large, r"web1:.*/other\.conf: it is larger than 8388608 bytes"),
        (_relative, r"web1: etc/mpm\.conf: write a knob's file as an absolute path"),
        (
            _hard_link,
            r"Timeout: web1:.*/other\.conf: it has a second hard link, which would keep the old content; nothing was",
        ),
        (_no_section, r"MaxSpareServers: web1:.*/mpm\.conf: no section <IfModule worker\.c>; MaxSpareServers"),
        (_other_host, r"MaxSpareServers is a knob of web2, not of web1"),
        (_no_directive, r"MaxSpareServers: '<Foo' cannot be the name of a directive"),
    ],
)
async def test_unchangeable_knob_is_refused(server: Server, shell: FaultyShell, make_knob: object, reason: str) -> None:
    knob = make_knob(server)  # type: ignore[operator]
    mtimes = {path: path.lstat().st_mtime_ns for path in server.directory.iterdir()}
    with pytest.raises(ChangeRefused, match=reason):
        await Tuner().apply(shell, "web1", [(knob, "30")])
    assert {path: path.lstat().st_mtime_ns for path in server.directory.iterdir()} == mtimes
    assert server.changes() == [] and server.reloads == 0


async def test_same_directive_twice_in_change_is_refused(server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRefused, match="MaxSpareServers and other are the same directive"):
        await Tuner().apply(
            shell, "web1", [(server.knob(), "30"), (server.knob(name="other", directive="maxspareservers"), "40")]
        )


async def test_unreadable_file_is_refused(server: Server, unprivileged: UnprivilegedShell) -> None:
    server.other.chmod(0)
    with pytest.raises(ChangeRefused, match=r"web1:.*/other\.conf: Permission denied"):
        await Tuner().apply(unprivileged, "web1", [(server.keep_alive(), "Off")])
    with pytest.raises(ChangeRefused, match=r"web1:.*/other\.conf: Permission denied"):
        await Tuner().read(unprivileged, server.keep_alive())


async def test_read_only_file_is_refused(server: Server, unprivileged: UnprivilegedShell) -> None:
    server.other.chmod(0o444)
    with pytest.raises(ChangeRefused, match=r"KeepAlive: web1:.*: it is read-only for this user; nothing was changed"):
        await Tuner().apply(unprivileged, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.changes() == []


async def test_unwritable_directory_is_refused(server: Server, unprivileged: UnprivilegedShell) -> None:
    server.other.chmod(0o666)
    server.directory.chmod(0o555)
    with pytest.raises(ChangeRefused, match=r"KeepAlive: web1:.*: Permission denied; nothing was changed"):
        await Tuner().apply(unprivileged, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.changes() == []


async def test_refused_second_file_leaves_first_unchanged(server: Server, unprivileged: UnprivilegedShell) -> None:
    server.target.chmod(0o666)
    server.other.chmod(0o444)
    if os.geteuid() == 0:
        os.chown(server.target, 65534, 65534)
    with pytest.raises(ChangeRefused, match=r"other\.conf: it is read-only for this user; nothing was changed"):
        await Tuner().apply(unprivileged, "web1", [(server.knob(), "30"), (server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.changes() == []


async def test_unkeepable_owner_is_refused(server: Server, unprivileged: UnprivilegedShell) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file that belongs to somebody else")
    server.other.chmod(0o666)
    with pytest.raises(ChangeRefused, match="its owner and mode cannot be kept by this user; nothing was changed"):
        await Tuner().apply(unprivileged, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and server.changes() == []


async def test_unprivileged_user_changes_own_file(server: Server, unprivileged: UnprivilegedShell) -> None:
    if os.geteuid() == 0:
        os.chown(server.other, 65534, 65534)
    server.target.chmod(0o644)
    applied = await Tuner().apply(unprivileged, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off"
    await Tuner().undo(unprivileged, applied)
    assert server.bytes() == ORIGINAL


async def test_changes_of_one_host_are_serialized(server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    knobs = [(server.knob(), "30"), (server.knob("MinSpareServers"), "15"), (server.keep_alive(), "Off")]
    done = await asyncio.gather(*(tuner.apply(shell, "web1", [assignment]) for assignment in knobs))
    assert [len(applied.files) for applied in done] == [1, 1, 1]
    assert server.bytes() == (CHANGED.replace(b"Servers   5", b"Servers   15"), b"KeepAlive Off")


async def test_change_directory_name_has_timestamp(server: Server, shell: FaultyShell) -> None:
    await Tuner().apply(shell, "web1", [(server.knob(), "30")])
    assert re.fullmatch(r"\d{8}T\d{6}Z-\w{6}", server.changes()[0].name)
