"""A small server of plain files and sh commands: a configuration to change, a test that can refuse it, a reload."""

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
from cockpit.tuning.applied import Applied

PREFORK = b"""\
# prefork\r
<IfModule mpm_prefork_module>
\tMinSpareServers   5
\tMaxSpareServers\t  "10"  \t
\tTimeout 60 # \xff
</IfModule>
"""
OTHER = b"KeepAlive On"
# The commands of a knob's test and reload, run in the configuration's directory.
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
    """`directory` holds the configuration; `force` the last one that a reload took, `reloads` how many there were."""

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
        self.force = self.state / "in force"
        self.log = self.state / "error.log"
        self.log.touch()

    @property
    def check(self) -> str:
        return f"cd {shlex.quote(str(self.directory))} || exit; {CHECK}"

    @property
    def reload(self) -> str:
        where, force = shlex.quote(str(self.directory)), shlex.quote(str(self.force))
        return f"cd {where} && cat ./*.conf >{force} && echo reload >>{force}s"

    @property
    def reloads(self) -> int:
        log = self.force.with_name("in forces")
        return len(log.read_text().splitlines()) if log.exists() else 0

    def knob(self, name: str = "MaxSpareServers", **changed: object) -> Knob:
        given: dict[str, object] = {
            "name": name,
            "host": "web1",
            "file": str(self.prefork),
            "section": "IfModule mpm_prefork_module",
            "directive": name,
            "test": self.check,
            "reload": self.reload,
            "log": str(self.log),
        }
        return Knob(**(given | changed))  # type: ignore[arg-type]

    def keep_alive(self, **changed: object) -> Knob:
        return self.knob("KeepAlive", **({"file": str(self.other), "section": None} | changed))

    def bytes(self) -> tuple[bytes, bytes]:
        """The two files of the configuration."""
        return self.target.read_bytes(), self.other.read_bytes()

    def entries(self) -> set[str]:
        """Every name beside the configuration's files."""
        return {path.name for place in (self.directory, self.available) for path in place.iterdir()}

    def backup(self, applied: Applied) -> Backup:
        """The backup of the change's first file."""
        path = Path(applied.files[0].backup)
        return Backup(path, path.read_bytes(), path.stat().st_mode)

    def pwned(self) -> bool:
        """Whether a value or name that would touch a file of that name was run."""
        return bool(list(self.root.rglob("pwned"))) or Path("pwned").exists()

    def changes(self) -> list[Path]:
        """The directories of changes that left one."""
        return sorted(path for path in self.state.glob("cockpit/changes/*/*") if not path.is_symlink())

    def expire(self) -> None:
        """Has the lease of every change be over, as if the time had passed."""
        for change in self.changes():
            (change / "deadline").write_text("0\n")

    def rest(self) -> None:
        """Returns once no undo is at work here any more."""
        self.expire()
        deadline = time.monotonic() + 60
        while self.locked() and time.monotonic() < deadline:
            time.sleep(0.02)

    def locked(self) -> bool:
        """Whether a change has the host, or is still being undone."""
        undone = [
            c for c in self.changes() if (c / "settled").is_symlink() and "undo" in str((c / "settled").readlink())
        ]
        locks = [path for path in self.state.glob("cockpit/changes/*/lock") if path.is_symlink()]
        return bool(locks) or any(not (c / "outcome").exists() for c in undone)


ENTRIES = {"mpm.conf", "other.conf", "mpm prefork.conf"}
ORIGINAL = (PREFORK, OTHER)


class Interfering(LocalShell):
    """This machine's shell, with something that happens at its n-th command (counted from 1)."""

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
        at = self.count
        self.commands.append((program, input))
        self.interpreters.append(interpreter)
        self.before.get(at, lambda: None)()
        await asyncio.sleep(0)
        if at in self.cut_before:
            raise HostError("web1: the connection is gone")
        done = await super().run(program, input=input, timeout=timeout, interpreter=interpreter)
        self.after.get(at, lambda: None)()
        await asyncio.sleep(0)
        if at in self.cut_after:
            raise HostError("web1: the connection is gone")
        return done


class AsNobody(LocalShell):
    """This machine's shell without root's rights."""

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        drop = "setpriv --reuid 65534 --regid 65534 --clear-groups " if os.geteuid() == 0 else ""
        return await super().run(program, input=input, timeout=timeout, interpreter=f"{drop}{interpreter}")


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Waits for a condition; TimeoutError when it does not come about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  (files and processes raise no events)
            await asyncio.sleep(0.01)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    root = Path(tempfile.mkdtemp(prefix="cockpit tuning "))  # not tmp_path: nobody must be able to enter it
    try:
        server = Server(root)
        monkeypatch.setenv("XDG_STATE_HOME", str(server.state))
        yield server
        server.rest()
    finally:
        while root.exists():  # a guard that sees the lease over may still write why
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def shell() -> AsyncIterator[Interfering]:
    shell = Interfering()
    yield shell
    await shell.close()


@pytest.fixture
async def nobody(server: Server) -> AsyncIterator[AsNobody]:
    """The server's directories belong to this user: those of another user are refused."""
    if os.geteuid() == 0:
        for directory in (server.directory, server.available, server.state):
            os.chown(directory, 65534, 65534)
    shell = AsNobody("web1")
    yield shell
    await shell.close()
