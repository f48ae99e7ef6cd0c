"""A server made of files and sh commands: a configuration, a test that can reject it, a reload."""

import asyncio
import os
import shlex
import shutil
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.shell import SH, Completed
from cockpit.model.errors import HostError
from cockpit.model.knobs import Knob
from cockpit.tuning.applied import AppliedChange
from tests.data import data_of
from tests.waiting import until as until
from tests.waiting import wait_until

DATA = data_of(__file__)

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
CHECK = DATA["check"]


NOBODY = 65534


def acl(*entries: tuple[int, ...]) -> bytes:
    """Return the attribute of an access list of (tag, rights[, user]) (include/uapi/linux/posix_acl_xattr.h)."""
    rows = ((tag, rights, *(user or [0xFFFFFFFF])) for tag, rights, *user in entries)
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)


class Server:
    """`directory` contains the configuration; `active` is the file with the last reloaded one; `reloads` counts."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._patch = patch
        self.directory = root / "etc"
        self.available = root / "available"
        self.state = root / "state"
        for path in (self.directory, self.available, self.state):
            path.mkdir()
            path.chmod(0o755)
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
        directory, active = shlex.quote(str(self.directory)), shlex.quote(str(self.active))
        self.check = f"cd {directory} || exit; {CHECK}"
        self.reload = f"cd {directory} && cat ./*.conf >{active} && echo reload >>{active}s"

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

    def pwned(self) -> bool:
        """Whether a value or name was executed that would create a file `pwned`."""
        return bool(list(self.root.rglob("pwned"))) or Path("pwned").exists()

    def changes(self) -> list[Path]:
        """The directories of all changes."""
        return sorted(path for path in self.state.glob("webcockpit/changes/*/*") if not path.is_symlink())

    def expire(self) -> None:
        """Expire the lease of every change."""
        for change in self.changes():
            (change / "deadline").write_text("0\n")

    def tools(self, *, environment: Mapping[str, object] | None = None, **programs: str) -> None:
        """Put these sh programs first in PATH, with an environment that they use."""
        tools = self.root / "tools"
        tools.mkdir()
        for name, text in programs.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        for variable, value in {"PATH": f"{tools}:{os.environ['PATH']}", **(environment or {})}.items():
            self._patch.setenv(variable, str(value))

    def locked(self) -> bool:
        """Whether a change holds the lock or is being undone."""
        settled = [change / "settled" for change in self.changes() if (change / "settled").is_symlink()]
        undone = [path.with_name("outcome") for path in settled if "undo" in str(path.readlink())]
        locks = [path for path in self.state.glob("webcockpit/changes/*/lock") if path.is_symlink()]
        return bool(locks) or not all(path.exists() for path in undone)


# Values that a shell would execute, expand or parse as an option.
SHELL_TEXTS = (
    *("$(touch${IFS}pwned)", '"$(touch pwned)"', "`touch${IFS}pwned`", '"`touch pwned`"', "';touch pwned;'", '"a b"'),
    *("-rf", "--", "%s%n", "it's", "*", "${HOME}", "é", '"a \'b"', "&&", "|x", "~", "!x"),
)
ENTRIES = {"mpm.conf", "other.conf", "mpm prefork.conf"}
ORIGINAL = (PREFORK, OTHER)


class FaultyShell(LocalShell):
    """This machine's shell, with faults injected before or after its n-th command (from 1).

    `prefix`: words before each interpreter; `sent` and `received` replace input and result of each program.
    """

    def __init__(self, prefix: str = "") -> None:
        super().__init__("web1")
        self.prefix = prefix
        self.count = 0
        self.before: dict[int, Callable[[], object]] = {}
        self.after: dict[int, Callable[[], object]] = {}
        self.cut_before: set[int] = set()
        self.cut_after: set[int] = set()
        self.sent: Callable[[str, bytes], bytes] = lambda program, input: input
        self.received: Callable[[str, Completed], Completed] = lambda program, completed: completed
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
        data = self.sent(program, input)
        completed = await super().run(program, input=data, timeout=timeout, interpreter=f"{self.prefix}{interpreter}")
        self.after.get(number, lambda: None)()
        await asyncio.sleep(0)
        if number in self.cut_after:
            raise HostError("web1: the connection is gone")
        return self.received(program, completed)

    def lose_connection_at(self, step: int, *, after: bool = False) -> None:
        """Cut the connection before or after a command, for good."""
        self.cut_before.update(range(step + after, 1000))
        self.cut_after.update({step} if after else ())


def backup_of(applied: AppliedChange) -> Path:
    """The backup of the first file of the change."""
    return Path(applied.files[0].backup)


def expect_rolled_back(server: Server, reloads: int | None = None) -> None:
    """Check that the configuration is the original, also that of the running server, and that no change is pending."""
    assert server.bytes() == ORIGINAL and server.entries() == ENTRIES and not server.locked()
    assert reloads is None or server.reloads == reloads
    if server.reloads:
        assert server.active.read_bytes() == PREFORK + OTHER


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    root = Path(tempfile.mkdtemp(prefix="cockpit tuning "))  # not tmp_path, which the user nobody cannot enter
    try:
        server = Server(root, monkeypatch)
        monkeypatch.setenv("XDG_STATE_HOME", str(server.state))
        yield server
        server.expire()
        wait_until(lambda: not server.locked())
    finally:
        while root.exists():  # a guard may still log the expiry of its lease
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
async def shell() -> AsyncIterator[FaultyShell]:
    shell = FaultyShell()
    yield shell
    await shell.close()


AS_NOBODY = (
    f"import os, sys; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); os.execv('/bin/sh', sys.argv[1:])"
)


@pytest.fixture
async def unprivileged(server: Server) -> AsyncIterator[FaultyShell]:
    """Shell of an unprivileged user who owns the server's directories; those of other users are refused."""
    shell = FaultyShell()
    if os.geteuid() == 0:
        shell.prefix = f"{sys.executable} -ISc {shlex.quote(AS_NOBODY)} "
        for path in (server.directory, server.available, server.state, server.target):
            os.chown(path, NOBODY, NOBODY)
    yield shell
    await shell.close()
