"""Attributes of files; sysctl.d files, which a change creates, and rollback and undo remove."""

import os
import shlex
import stat
import sys
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.knobs import Knob
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, NOBODY, ORIGINAL, FaultyShell, Server, acl

# Prints the attributes of a file like getfattr(1).
GETFATTR = """
import os, sys
for name in os.listxattr(sys.argv[-1]):
    print(name + "=0x" + os.getxattr(sys.argv[-1], name).hex())
"""
# Like busybox: no --preserve=all, and -p drops attributes.
CP = """
[ "$1" != --preserve=all ] || exit 1
[ "$1" = -- ] || shift
/bin/cp --preserve=ownership "$@" && { [ ! -e new ] || chmod 644 new; }
"""
ACCESS = acl((1, 6), (2, 4, NOBODY), (4, 4), (0x10, 4), (0x20, 0))
ATTRIBUTES = {"user.cockpit": b"kept", "system.posix_acl_access": ACCESS}


@pytest.mark.parametrize("name", ATTRIBUTES)
async def test_attributes_are_kept_or_the_change_is_refused(server: Server, shell: FaultyShell, name: str) -> None:
    os.setxattr(server.other, name, ATTRIBUTES[name])
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off"
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]
    await Tuner().undo(shell, applied)
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]
    server.tools(cp=CP, getfattr=f'exec {sys.executable} -ISc {shlex.quote(GETFATTR)} "$@"')
    with pytest.raises(ChangeRefused, match=r"access list, extended attributes .* install coreutils; nothing was"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    os.removexattr(server.other, name)
    server.other.chmod(0o644)
    assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files


KEY = "net.core.somaxconn"


class SysctlFile:
    """A path in a sysctl.d directory; `content` is None if the file does not exist."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "90-bench.conf"

    @property
    def content(self) -> str | None:
        return self.path.read_text() if self.path.exists() else None

    def entries(self) -> list[str]:
        return [path.name for path in self.path.parent.iterdir()]

    def knob(self, key: str = KEY, **changed: object) -> Knob:
        values = {"name": key, "host": "web1", "kind": "keyvalue", "file": str(self.path), "key": key}
        return Knob(**(values | changed))  # type: ignore[arg-type]


@pytest.fixture
def file(server: Server) -> SysctlFile:
    directory = server.root / "sysctl.d"
    directory.mkdir(mode=0o755)
    return SysctlFile(directory)


async def test_change_creates_sysctl_file_and_undo_removes_it(file: SysctlFile, shell: FaultyShell) -> None:
    tuner = Tuner()
    assert await tuner.read(shell, file.knob()) is None
    plan = await tuner.prepare(shell, "web1", [(file.knob(), "4096")])
    assert plan.diff.splitlines() == ["--- /dev/null", f"+++ {file.path}", "@@ -0,0 +1 @@", f"+{KEY} = 4096"]
    assert file.content is None
    applied = await tuner.apply(shell, "web1", [(file.knob(), "4096")])
    assert file.content == f"{KEY} = 4096\n"
    status = file.path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o644, os.geteuid(), os.getegid())
    undo = await tuner.undo(shell, applied)
    assert file.entries() == [] and undo.notes == ()
    await tuner.undo(shell, undo)
    assert file.content == f"{KEY} = 4096\n" and file.entries() == [file.path.name]
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o644


async def test_a_later_file_with_the_same_key_is_noted(file: SysctlFile, shell: FaultyShell) -> None:
    for name, text in (("10-a", KEY), ("95-b", f"# {KEY}"), ("98-c", f"{KEY}x"), ("99-d", KEY.replace(".", "/"))):
        (file.path.parent / f"{name}.conf").write_text(f"{text} = 1\n")
    plan = await Tuner().prepare(shell, "web1", [(file.knob(), "4096"), (file.knob("vm.swappiness"), "10")])
    (note,) = plan.notes
    assert note.startswith(f"{file.path.parent}/99-d.conf also sets {KEY}: it is read after {file.path}, so")


async def test_changes_of_created_file_are_undone_in_any_order(file: SysctlFile, shell: FaultyShell) -> None:
    tuner = Tuner()
    first = await tuner.apply(shell, "web1", [(file.knob(), "4096")])
    second = await tuner.apply(shell, "web1", [(file.knob("vm.swappiness"), "10")])
    await tuner.undo(shell, first)
    assert file.content == "vm.swappiness = 10\n"
    await tuner.undo(shell, second)
    assert file.content == ""
    third = await tuner.apply(shell, "web1", [(file.knob(), "1")])
    await tuner.undo(shell, third)
    file.path.unlink()
    fourth = await tuner.apply(shell, "web1", [(file.knob(), "4096")])
    file.path.write_text(f"{KEY} = 4096\n# by hand\n")
    undone = await tuner.undo(shell, fourth)
    assert file.content == "# by hand\n" and "written by others" in undone.notes[0]


async def test_file_created_by_others_is_not_overwritten(file: SysctlFile, shell: FaultyShell) -> None:
    shell.after[1] = lambda: file.path.write_text("theirs = 1\n")
    with pytest.raises(ChangeRefused, match="modified elsewhere after cockpit read it"):
        await Tuner().apply(shell, "web1", [(file.knob(), "4096")])
    assert file.entries() == [file.path.name] and file.content == "theirs = 1\n"


async def test_rollback_removes_created_file_unless_edited_by_others(file: SysctlFile, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRolledBack, match="rolled back"):
        await Tuner().apply(shell, "web1", [(file.knob(test="exit 1"), "4096")])
    assert file.entries() == []
    test = f"grep -q theirs '{file.path}' || echo theirs=1 >>'{file.path}'; exit 1"
    with pytest.raises(ChangeFailed, match="was not rolled back: modified elsewhere"):
        await Tuner().apply(shell, "web1", [(file.knob(test=test), "4096")])
    assert file.content == f"{KEY} = 4096\ntheirs=1\n"


async def test_only_files_of_sysctl_directories_are_created(
    server: Server, file: SysctlFile, shell: FaultyShell
) -> None:
    (file.path.parent / "dangling.conf").symlink_to("nowhere")
    names = ("sysctl.d/x.txt", "other.conf", "missing/sysctl.d/x.conf", "sysctl.d/dangling.conf")
    for name in names:
        with pytest.raises(ChangeRefused, match="No such file or directory"):
            await Tuner().apply(shell, "web1", [(file.knob(file=str(server.root / name)), "4096")])
    assert file.entries() == ["dangling.conf"] and not (server.root / "other.conf").exists()


async def test_uncreatable_sysctl_file_refuses_change(file: SysctlFile, unprivileged: FaultyShell) -> None:
    file.path.parent.chmod(0o555)
    with pytest.raises(ChangeRefused, match=r"its directory is read-only|no place for a backup"):
        await Tuner().apply(unprivileged, "web1", [(file.knob(), "4096")])
    file.path.parent.chmod(0o755)
    assert file.entries() == []
