"""A server to watch over SSH, processes to watch, and waiting for what must come."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe import Probe
from cockpit.model.hosts import HostConfig
from tests.hosts.sshd import Sshd

DEADLINE = 60.0
# Begins the names of the processes to watch: those of another test run on this machine are not ours. At most 8 bytes.
TAG = f"c{os.getpid()}"


async def until(condition: Callable[[], object]) -> None:
    """Returns once the condition holds; fails when it does not within a generous time."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the tests away from the ssh files and the agent of whoever runs them, and from those of the machine."""
    monkeypatch.setattr("cockpit.hosts.ssh_settings.SYSTEM_CONFIG", str(tmp_path / "system_ssh_config"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[Sshd]:
    """A running server whose ssh_config leads to it."""
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory).start()
    yield server
    await server.stop()


# Python of a process that prints a line and then waits.
IDLE = "import sys; print(flush=True); sys.stdin.read()"


class Crowd:
    """Processes of a name of one's own, that do nothing until they are ended."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str | bytes, program: str = IDLE) -> subprocess.Popen[bytes]:
        """Starts one called `name` (its comm) and waits until it runs under that name."""
        path = self._directory / name
        if not path.exists():
            path.symlink_to(os.path.realpath(sys.executable))
        process = subprocess.Popen(
            [path, "-ISc", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._running.append(process)
        assert process.stdout
        process.stdout.readline()
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends one and reaps it."""
        process.kill()
        process.communicate()
        self._running.remove(process)

    def end_all(self) -> None:
        for process in list(self._running):
            self.end(process)


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    directory = tmp_path / "crowd"
    directory.mkdir()
    crowd = Crowd(directory)
    yield crowd
    crowd.end_all()


# What a host may have: a shell with the machine's own tools, all of busybox, one awk or another, or none.
KINDS = [name for name in ("dash", "bash", "busybox", "mawk", "gawk", "original-awk") if shutil.which(name)] + [
    "no awk"
]
BUSYBOX = ("sh", "awk", "cut", "date", "grep", "head", "ls", "tr", "uname")
NO_AWK = "#!/bin/sh\nexit 127\n"


def put_first(directory: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Has `sh -s` and what it calls find these programs first: name -> the script or the program it is."""
    directory.mkdir(exist_ok=True)
    for name, program in programs.items():
        path = directory / name
        if program.startswith("#!"):
            path.write_text(program)
            path.chmod(0o755)
        else:
            path.symlink_to(program)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@pytest.fixture(params=KINDS)
def host_shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes this machine look like each kind of host."""
    kind = str(request.param)
    program = shutil.which(kind) or NO_AWK
    names = BUSYBOX if kind == "busybox" else ("awk",) if "awk" in kind else ("sh",)
    put_first(tmp_path / "bin", monkeypatch, **dict.fromkeys(names, program))
    return kind


@asynccontextmanager
async def running(*processes: str, port: int | None = None) -> AsyncIterator[Probe]:
    shell = LocalShell()
    try:
        yield await Probe.start(shell, HostConfig(name="here", processes=processes), port)
    finally:
        await shell.close()
