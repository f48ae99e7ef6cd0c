"""Servers of `cockpit demo`: a prefork web server and an SSH host on loopback, without installation."""

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from cockpit.demo.layout import DemoFiles
from cockpit.demo.prefork import process_name
from cockpit.demo.webconfig import SERVER_LIMIT
from cockpit.model.errors import UnreachableError
from cockpit.profiles.writing import toml_string

_START_WITHIN = 30.0  # seconds
_END_WITHIN = 15.0  # seconds; the supervisor itself gives the servers less

# Minimum and maximum of each knob.
_KNOBS: dict[str, tuple[int, int | None]] = {
    "MinSpareServers": (1, SERVER_LIMIT),
    "MaxSpareServers": (1, None),
    "MaxRequestsPerChild": (0, None),
    "MaxClients": (1, SERVER_LIMIT),
}


class DemoError(UnreachableError):
    """The demo's servers could not be started."""


class DemoServers:
    """Both servers, running inside of `async with DemoServers() as world:`; nothing remains afterwards.

    A separate process (supervisor.py) runs them and cleans up however this process ends. Entering raises DemoError. The
    attributes are set on entry.
    """

    url: str  # of the page to load
    directory: Path  # private, deleted afterwards
    ssh_config: Path  # with a Host demo
    config_file: Path
    error_log: Path

    def __init__(self) -> None:
        self._supervisor: Process | None = None

    async def __aenter__(self) -> Self:
        self._supervisor = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cockpit.demo.supervisor",
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd="/",
            env=_environment(),
            start_new_session=True,  # Ctrl-C is handled by cockpit, which then ends the demo
        )
        try:
            started = await self._first_line(self._supervisor)
        except BaseException:
            await self._end()
            raise
        self._layout = DemoFiles(Path(started["directory"]))
        self.url = started["url"]
        self.directory = self._layout.directory
        self.ssh_config = self._layout.ssh_config
        self.config_file = self._layout.config_file
        self.error_log = self._layout.error_log
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def profile_toml(self) -> str:
        """Return a profile of the demo: load, host, knobs, thresholds."""
        file = str(self.config_file)
        test = f"{shlex.quote(sys.executable)} -m cockpit.demo.webserver -t {shlex.quote(file)}"
        reload = f'kill -USR1 "$(cat {shlex.quote(str(self._layout.pid_file))})"'
        processes = toml_string(process_name(urlsplit(self.url).port or 0))
        shared = {
            "file": toml_string(file),
            "test": toml_string(test),
            "reload": toml_string(reload),
            "processes": processes,
        }
        parts = [_PROFILE.format(url=toml_string(self.url), processes=processes)]
        for name, (least, most) in _KNOBS.items():
            block = _KNOB.format(name=toml_string(name), least=least, **shared)
            parts.append(block if most is None else f"{block}max = {most}\n")
        return "\n".join([*parts, _CHECK])

    async def _first_line(self, supervisor: Process) -> dict[str, str]:
        assert supervisor.stdout and supervisor.stderr
        try:
            async with asyncio.timeout(_START_WITHIN):
                line = await supervisor.stdout.readline()
        except TimeoutError:
            raise DemoError(f"the demo's servers were not ready within {_START_WITHIN:.0f} s; try again") from None
        if not line:
            lines = (await supervisor.stderr.read()).decode(errors="replace").strip().splitlines()
            raise DemoError(f"the demo could not be started: {lines[-1] if lines else 'its supervisor exited at once'}")
        started: dict[str, str] = json.loads(line)
        if "error" in started:
            raise DemoError(f"the demo could not be started: {started['error']}")
        return started

    async def _end(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        assert supervisor.stdin and supervisor.stdout
        supervisor.stdin.close()
        try:
            async with asyncio.timeout(_END_WITHIN):
                await supervisor.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                supervisor.kill()  # both servers exit with their parent
            await supervisor.wait()
        if hasattr(self, "directory"):  # in case the supervisor was killed
            shutil.rmtree(self.directory, ignore_errors=True)


def _environment() -> dict[str, str]:
    """Return this environment with this package on PYTHONPATH, unless it is installed."""
    root = Path(__file__).resolve().parents[2]
    if root.name in ("site-packages", "dist-packages"):
        return dict(os.environ)
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else str(root)}


_PROFILE = """\
question = "Do longer-lived children and more spare children make this server more stable?"

[target]
url = {url}

[load]
concurrency = 20
duration = "15m"
keepalive = false

[[host]]
name = "demo"
ssh = "demo"
processes = [{processes}]
"""

_KNOB = """\
[[knob]]
name = {name}
host = "demo"
kind = "apache"
file = {file}
section = "IfModule prefork"
directive = {name}
test = {test}
reload = {reload}
workers = {processes}
min = {least}
"""

_CHECK = """\
[check]
thresholds = ["p99 < 200ms", "failed == 0"]
"""
