"""Commands on a pseudo-terminal: Ctrl-C is exit code 130."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.cli.test_headless import COCKPIT, cockpit
from tests.servers import http_server


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x11", 0)])
def test_how_a_replay_ended(tmp_path: Path, key: bytes, code: int) -> None:
    with http_server() as url:
        assert cockpit("run", url, "-n", "50", "--no-tui", "--record", tmp_path / "s.cockpit").returncode == 0
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        [*COCKPIT, "replay", str(tmp_path / "s.cockpit")], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown, pressed, deadline = b"", False, time.monotonic() + 60
    while process.poll() is None:
        assert time.monotonic() < deadline, shown
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:
                break
        if b"REPLAY" in shown and not pressed:
            os.write(ours, key)
            pressed = True
    os.close(ours)
    assert process.wait(timeout=20) == code, shown
