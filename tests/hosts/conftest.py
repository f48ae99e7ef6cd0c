"""Fixtures for hosts: an SSH server, named processes, the shells and awks that hosts have."""

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.ssh import config as ssh_config
from cockpit.model.host.samples import HostConfig
from tests.hosts.connecting import SSH_G
from tests.hosts.sshd import Sshd


def tag(letter: str) -> str:
    """Prefix of a module's process names, at most 8 bytes. Those of other modules and test runs do not match."""
    return f"{letter}{os.getpid()}"


@pytest.fixture(autouse=True)
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolate the test from the ssh files and the agent of the user and the machine."""
    monkeypatch.setattr("cockpit.hosts.ssh.settings.SYSTEM_CONFIG", str(tmp_path / "system_ssh_config"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def ssh_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stand-in for OpenSSH's client, which machines may lack."""
    program = tmp_path / "ssh-client"
    program.write_text(SSH_G)
    program.chmod(0o755)
    monkeypatch.setattr(ssh_config, "PROGRAM", str(program))
    ssh_config._defaults.cache_clear()
    yield
    ssh_config._defaults.cache_clear()


@pytest.fixture
async def sshd(tmp_path: Path, ssh_client: None) -> AsyncIterator[Sshd]:
    """A running SSH server; its `ssh_config` has it as Host web."""
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory).start()
    yield server
    await server.stop()


# Python program that prints a line, then waits for the end of its input.
IDLE = "import sys; print(flush=True); sys.stdin.read()"


class Spawner:
    """Starts idle processes with chosen names and ends them all after the test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str | bytes, program: str = IDLE) -> subprocess.Popen[bytes]:
        """Start a process whose comm is `name`, and wait until it runs under that name."""
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
        """Kill the process and reap it."""
        process.kill()
        process.communicate()
        self._running.remove(process)

    def end_all(self) -> None:
        for process in list(self._running):
            self.end(process)


@pytest.fixture
def spawner(tmp_path: Path) -> Iterator[Spawner]:
    directory = tmp_path / "crowd"
    directory.mkdir()
    spawner = Spawner(directory)
    yield spawner
    spawner.end_all()


# Kinds of hosts: a shell with the machine's own tools, no awk, busybox for everything, each awk.
KINDS = ["sh", "no awk", *(pytest.param(name, marks=pytest.mark.lab) for name in ("bash", "busybox", "mawk", "gawk"))]
BUSYBOX = ("sh", "awk", "cut", "date", "grep", "head", "ls", "tr", "uname")
NO_AWK = "#!/bin/sh\nexit 127\n"


def prepend_to_path(directory: Path, monkeypatch: pytest.MonkeyPatch, **programs: str) -> None:
    """Put programs first in PATH for `sh -s` and the commands it runs: name -> script text or path."""
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
    """The kind of host that this machine imitates."""
    kind = str(request.param)
    program = NO_AWK if kind == "no awk" else shutil.which(kind)
    assert program
    names = BUSYBOX if kind == "busybox" else ("awk",) if "awk" in kind else ("sh",)
    prepend_to_path(tmp_path / "bin", monkeypatch, **dict.fromkeys(names, program))
    return kind


@asynccontextmanager
async def running(*processes: str, port: int | None = None, upstreams: tuple[str, ...] = ()) -> AsyncIterator[Probe]:
    """Run a probe for these processes on this machine."""
    shell = LocalShell()
    try:
        yield await Probe.start(shell, HostConfig(name="here", processes=processes, upstreams=upstreams), port)
    finally:
        await shell.close()
