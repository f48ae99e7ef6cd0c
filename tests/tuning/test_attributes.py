"""What belongs to a file beside its bytes is kept, or the change is refused: with coreutils, and with busybox's cp."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, Interfering, Server

# What getfattr(1) prints, of the real attributes.
GETFATTR = f"""#!{sys.executable}
import os, sys
names = os.listxattr(sys.argv[-1])
if names:
    print("# file:", sys.argv[-1])
for name in names:
    print(name + "=0x" + os.getxattr(sys.argv[-1], name).hex())
"""


def entry(tag: int, allowed: int, who: int = 0xFFFFFFFF) -> bytes:
    return tag.to_bytes(2, "little") + allowed.to_bytes(2, "little") + who.to_bytes(4, "little")


# Owner, the user nobody, group, mask, others (include/uapi/linux/posix_acl_xattr.h).
ACL = (2).to_bytes(4, "little") + b"".join(
    (entry(1, 6), entry(2, 4, 65534), entry(4, 4), entry(0x10, 4), entry(0x20, 0))
)
ATTRIBUTES = {"user.cockpit": b"kept", "system.posix_acl_access": ACL}


def give(file: Path, name: str) -> None:
    try:
        os.setxattr(file, name, ATTRIBUTES[name])
    except OSError as error:
        pytest.skip(f"{name} is not supported here: {error}")


def use(server: Server, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    place = server.root / "tools"
    place.mkdir()
    for name, text in programs.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")


@pytest.mark.parametrize("name", ATTRIBUTES)
async def test_attributes_are_kept_by_change_and_undo(server: Server, shell: Interfering, name: str) -> None:
    give(server.other, name)
    applied = await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.other.read_bytes() == b"KeepAlive Off"
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]
    await Tuner().undo(shell, applied)
    assert os.getxattr(server.other, name) == ATTRIBUTES[name]


@pytest.mark.parametrize("name", ATTRIBUTES)
async def test_a_cp_that_would_drop_them_is_refused(
    server: Server, shell: Interfering, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox is not there")
    give(server.other, name)
    use(server, monkeypatch, cp=f'#!/bin/sh\nexec {busybox} cp "$@"\n', getfattr=GETFATTR)
    with pytest.raises(ChangeRefused, match=r"access list, extended attributes .* install coreutils; nothing was"):
        await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES
    os.removexattr(server.other, name)
    assert (await Tuner().apply(shell, "web1", [(server.keep_alive(), "Off")])).files
