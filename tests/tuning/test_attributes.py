"""File attributes are kept, or the change is refused: with coreutils, and with busybox's cp."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, FaultyShell, Server

# Prints the attributes of a file like getfattr(1).
GETFATTR = f"""#!{sys.executable}
import os, sys
names = os.listxattr(sys.argv[-1])
if names:
    print("# file:", sys.argv[-1])
for name in names:
    print(name + "=0x" + os.getxattr(sys.argv[-1], name).hex())
"""


def entry(tag: int, allowed: int, user: int = 0xFFFFFFFF) -> bytes:
    return tag.to_bytes(2, "little") + allowed.to_bytes(2, "little") + user.to_bytes(4, "little")


# Owner, the user nobody, group, mask, others (include/uapi/linux/posix_acl_xattr.h).
ACL = (2).to_bytes(4, "little") + b"".join(
    (entry(1, 6), entry(2, 4, 65534), entry(4, 4), entry(0x10, 4), entry(0x20, 0))
)
ATTRIBUTES = {"user.cockpit": b"kept", "system.posix_acl_access": ACL}


def set_attribute(file: Path, name: str) -> None:
    try:
        os.setxattr(file, name, ATTRIBUTES[name])
    except OSError as error:
        pytest.skip(f"{name} is not supported here: {error}")


def prepend_tools(server: Server, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    tools = server.root / "tools"
    tools.mkdir()
    for name, text in programs.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")


@pytest.mark.parametrize("name", ATTRIBUTES)
async def test_attributes_survive_change_and_undo(server: Server, shell: FaultyShell, name: str) -> None:
    set_attribute(server.other, name)
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off"
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]
    await Tuner().undo(shell, applied)
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]


@pytest.mark.parametrize("name", ATTRIBUTES)
async def test_cp_that_drops_attributes_is_refused(
    server: Server, shell: FaultyShell, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not there")
    set_attribute(server.other, name)
    prepend_tools(server, monkeypatch, cp=f'#!/bin/sh\nexec {busybox} cp "$@"\n', getfattr=GETFATTR)
    with pytest.raises(ChangeRefused, match=r"access list, extended attributes .* install coreutils; nothing was"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    os.removexattr(server.other, name)
    assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files
