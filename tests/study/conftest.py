"""A study of the demo's web server, run as a command of its own that can be killed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from cockpit.demo.world import DemoWorld
from cockpit.study.journal import Journal, read_journal

# Seconds; far more than anything here takes. On a busy machine each change may take as long as tuning gives it.
DEADLINE = 400.0

STUDY = """
[study]
rounds = 2
{rule}
run_time = "1s"
watch = ["demo.processes.births_per_s"]
[[study.variant]]
name = "few"
set = {{ MinSpareServers = "4" }}
[[study.variant]]
name = "more"
set = {{ MinSpareServers = "{more}" }}
[[study.observe]]
name = "pages"
host = "demo"
command = "echo 7"
counter = true
[study.short]
{short}
"""


class Studied:
    """A demo's world with a profile of it that has a study, and the command that runs it."""

    def __init__(self, world: DemoWorld, folder: Path) -> None:
        self.world = world
        self.folder = folder / "out"
        self.profile = folder / "demo.toml"
        self.original = world.config_file.read_bytes()

    def write(self, *, rule: str = "runs = 1", short: str = "requests = 40\nconcurrency = 2", more: str = "7") -> None:
        # Without ranges: the server itself is to refuse a value.
        known = re.sub(r"(?m)^(min|max) = \d+\n", "", self.world.profile_toml())
        text = known + STUDY.format(rule=rule, short=short, more=more)
        self.profile.write_text(text)

    async def start(self, *flags: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cockpit", "study", "--trust", str(self.profile), "--short", "--no-tui"),
            *("--ssh-config", str(self.world.ssh_config), "-o", str(self.folder), *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    async def run(self, *flags: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        process = await self.start(*flags)
        return await ended(process)

    def set_to(self, value: str) -> bool:
        """Whether the server's file has this number of spare servers."""
        rows = (line.split() for line in self.world.config_file.read_text().splitlines())
        return ["MinSpareServers", value] in [row[:2] for row in rows]

    def as_it_was(self) -> bool:
        return self.world.config_file.read_bytes() == self.original

    def journal(self) -> Journal:
        found = read_journal(self.folder)
        assert found is not None
        return found

    def keeper(self, study: int) -> psutil.Process:
        """The process that puts settings back when the study is killed."""
        children = psutil.Process(study).children()
        return next(child for child in children if "cockpit.study.keeper" in child.cmdline())


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    """Exit code, stdout, stderr; one that does not end is killed, and what it said is shown."""
    reading = asyncio.ensure_future(process.communicate())
    await asyncio.wait([reading], timeout=DEADLINE)
    in_time = reading.done()
    if not in_time:
        process.kill()
    out, err = await reading
    assert in_time, f"it did not end within {DEADLINE:.0f} s: {err.decode()}"
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def until(holds: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + DEADLINE
    while not holds():
        assert asyncio.get_running_loop().time() < deadline, f"not within {DEADLINE} s: {what}"
        await asyncio.sleep(0.02)


@pytest.fixture
async def studied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Studied]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with DemoWorld() as world:
        yield Studied(world, tmp_path)


def kill(process: asyncio.subprocess.Process) -> None:
    """kill -9, of the process alone."""
    os.kill(process.pid, signal.SIGKILL)
