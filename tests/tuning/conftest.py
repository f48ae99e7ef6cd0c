"""A server made of files and sh commands: a configuration, a test that can reject it, a reload."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.shell import SH, Completed
from cockpit.model.errors import HostError
from cockpit.model.knobs import Knob
from cockpit.tuning.applied import AppliedChange

PREFORK = b"""\
# prefork\r
<IfModule mpm_prefork_module>
\tMinSpareServers   5
\tMaxSpareServers\t  "10"  \t
\tTimeout 60 # \xff
</IfModule>
"""
OTHER = b"KeepAlive On"
# The test command of the knobs, run in the configuration's directory.
CHECK = r"""
for file in *; do
    case $file in *.conf) ;; *) echo "a stray file: $file" >&2; exit 1 ;; esac
done
number=$(grep -n -m 1 -h banana ./*.conf | cut -d: -f1)
[ -z "$number" ] && { echo 'Syntax OK' >&2; exit 0; }
echo "AH00558: apache2: Could not determine the server's fully qualified domain name" >&2
printf 'AH00526: Syntax error on line %s of it:\n\tKeepAlive must be On or \033[31mOff\n' "$number" >&2
echo "Action '-t' failed." >&2
exit 1
"""


class Backup(NamedTuple):
    path: Path
    content: bytes
    mode: int


class Server:
    """`directory` contains the configuration; `active` is the file with the last reloaded one; `reloads` counts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "etc"
        self.available = root / "available"
        self.state = root / "state"
        for directory in (self.directory, self.available, self.state):
            directory.mkdir()
            directory.chmod(0o755)
        root.chmod(0o755)
        self.target = self.available / "mpm prefork.conf"
        self.target.write_bytes(PREFORK)
        self.target.chmod(0o640)
        if os.geteuid() == 0:
            os.chown(self.target, 1234, 4321)
        self.prefork = self.directory / "mpm.conf"
        self.prefork.symlink_to("../available/mpm prefork.conf")
        self.other = self.directory / "other.conf"
        self.other.write_bytes(OTHER)
        self.active = self.state / "active config"
        self.log = self.state / "error.log"
        self.log.touch()

    @property
    def check(self) -> str:
        return f"cd {shlex.quote(str(self.directory))} || exit; {CHECK}"

    @property
    def reload(self) -> str:
        directory, active = shlex.quote(str(self.directory)), shlex.quote(str(self.active))
        return f"cd {directory} && cat ./*.conf >{active} && echo reload >>{active}s"

    @property
    def reloads(self) -> int:
        log = self.active.with_name("active configs")
        return len(log.read_text().splitlines()) if log.exists() else 0

    def knob(self, name: str = "MaxSpareServers", **changed: object) -> Knob:
        values: dict[str, object] = {
            "name": name,
            "host": "web1",
            "file": str(self.prefork),
            "section": "IfModule mpm_prefork_module",
            "directive": name,
            "test": self.check,
            "reload": self.reload,
            "log": str(self.log),
        }
        return Knob(**(values | changed))  # type: ignore[arg-type]

    def keep_alive(self, **changed: object) -> Knob:
        return self.knob("KeepAlive", **({"file": str(self.other), "section": None} | changed))

    def bytes(self) -> tuple[bytes, bytes]:
        """The two files of the configuration."""
        return self.target.read_bytes(), self.other.read_bytes()

    def entries(self) -> set[str]:
        """All names in the configuration's directories."""
        return {path.name for directory in (self.directory, self.available) for path in directory.iterdir()}

    def backup(self, applied: AppliedChange) -> Backup:
        """The backup of the first file of the change."""
        path = Path(applied.files[0].backup)
        return Backup(path, path.read_bytes(), path.stat().st_mode)

    def pwned(self) -> bool:
        """Whether a value or name was executed that would create a file `pwned`."""
        return bool(list(self.root.rglob("pwned"))) or Path("pwned").exists()

    def changes(self) -> list[Path]:
        """The directories of all changes."""
        return sorted(path for path in self.state.glob("cockpit/changes/*/*") if not path.is_symlink())

    def expire(self) -> None:
        """Expire the lease of every change."""
        for change in self.changes():
            (change / "deadline").write_text("0\n")

    def wait_until_idle(self) -> None:
        """Expire all changes and wait until no undo is running."""
        self.expire()
        deadline = time.monotonic() + 60
        while self.locked() and time.monotonic() < deadline:
            time.sleep(0.02)

    def locked(self) -> bool:
        """Whether a change holds the lock or is being undone."""
        undone = [
            c for c in self.changes() if (c / "settled").is_symlink() and "undo" in str((c / "settled").readlink())
        ]
        locks = [path for path in self.state.glob("cockpit/changes/*/lock") if path.is_symlink()]
        return bool(locks) or any(not (c / "outcome").exists() for c in undone)


ENTRIES = {"mpm.conf", "other.conf", "mpm prefork.conf"}
ORIGINAL = (PREFORK, OTHER)


class FaultyShell(LocalShell):
    """This machine's shell, with faults injected before or after its n-th command (from 1)."""

    def __init__(self) -> None:
        super().__init__("web1")
        self.count = 0
        self.before: dict[int, Callable[[], object]] = {}
        self.after: dict[int, Callable[[], object]] = {}
        self.cut_before: set[int] = set()
        self.cut_after: set[int] = set()
        self.commands: list[tuple[str, bytes]] = []
        self.interpreters: list[str] = []

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        self.count += 1
        number = self.count
        self.commands.append((program, input))
        self.interpreters.append(interpreter)
        self.before.get(number, lambda: None)()
        await asyncio.sleep(0)
        if number in self.cut_before:
            raise HostError("web1: the connection is gone")
        completed = await super().run(program, input=input, timeout=timeout, interpreter=interpreter)
        self.after.get(number, lambda: None)()
        await asyncio.sleep(0)
        if number in self.cut_after:
            raise HostError("web1: the connection is gone")
        return completed


class UnprivilegedShell(LocalShell):
    """This machine's shell as the user nobody."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        drop = "setpriv --reuid 65534 --regid 65534 --clear-groups " if os.geteuid() == 0 else ""
        return await super().run(program, input=input, timeout=timeout, interpreter=f"{drop}{interpreter}")


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for the condition. Raises TimeoutError."""
    pause = 0.01
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(pause)
            # Files and processes raise no events, and a condition may start processes on a host.
            pause = min(1.25 * pause, 0.25)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    root = Path(tempfile.mkdtemp(prefix="cockpit tuning "))  # not tmp_path, which the user nobody cannot enter
    try:
        server = Server(root)
        monkeypatch.setenv("XDG_STATE_HOME", str(server.state))
        yield server
        server.wait_until_idle()
    finally:
        while root.exists():  # a guard may still log the expiry of its lease
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def shell() -> AsyncIterator[FaultyShell]:
    shell = FaultyShell()
    yield shell
    await shell.close()


@pytest.fixture
async def unprivileged(server: Server) -> AsyncIterator[UnprivilegedShell]:
    """Shell of an unprivileged user who owns the server's directories; those of other users are refused."""
    if os.geteuid() == 0:
        for directory in (server.directory, server.available, server.state):
            os.chown(directory, 65534, 65534)
    shell = UnprivilegedShell("web1")
    yield shell
    await shell.close()
