"""The profiler with the real perf: maps of just-in-time compilers, control groups, full disks, 100 MB of stacks."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from cockpit.hosts.stacks import script
from cockpit.hosts.stacks.parse import HostSlice
from cockpit.model.host.samples import HostConfig
from cockpit.model.stacks import MAX_STACKS, MAX_TEXT
from tests.hosts.test_profiler import Profiled, folded, sample
from tests.waiting import until

pytestmark = pytest.mark.lab
NOBODY = ("setpriv", "--reuid=65534", "--clear-groups")
WORK = """
function hotFunction(n) { let sum = 0; for (let at = 0; at < n; at++) sum += Math.sqrt(at) * (at % 7); return sum; }
for (;;) hotFunction(20000);
"""
# Runs a command on a host without a free byte in its temporary and home directories.
FULL = """#!/bin/sh
exec unshare -m sh -c '
  mount -t tmpfs -o size=64k none /tmp && mount --bind /tmp /root && mount --bind /tmp /var/tmp || exit 9
  cat /dev/zero >/tmp/full 2>/dev/null
  if echo more 2>/dev/null >/tmp/more; then exit 9; fi
  cd /tmp; exec "$@"' sh "$@"
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the users of servers can read."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def program(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def server(directory: Path) -> Iterator[tuple[int, str]]:
    """The PID and the name, which no other process has, of a program that computes."""
    name = f"work-{os.getpid()}"
    (directory / name).symlink_to(shutil.which("sh") or "/bin/sh")
    with program(str(directory / name), "-c", "while :; do :; done") as process:
        yield process.pid, name


@asynccontextmanager
async def profiling(monkeypatch: pytest.MonkeyPatch, name: str, via: str = "") -> AsyncIterator[Profiled]:
    """A host on this machine whose processes of this name are profiled."""
    monkeypatch.setattr(script, "SLICE_SECONDS", 1.0)
    watch = Profiled(HostConfig(name="web1", via=via, interval=0.2, processes=(name,), profile=199), None)
    tasks = [asyncio.ensure_future(watch.feed.run()), asyncio.ensure_future(watch.profiler.run())]
    try:
        yield watch
        assert not any(task.done() for task in tasks)
    finally:
        await watch.profiler.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def frames(watch: Profiled) -> set[str]:
    return {frame for part in watch.slices for stack in part.stacks for frame in stack.split(";")}


async def test_functions_of_javascript_are_named_by_the_map_of_its_user(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "work.js").write_text(WORK)
    with program(*NOBODY, "node", "--perf-basic-prof", "--no-logfile-per-isolate", str(directory / "work.js")) as node:
        written = Path(f"/tmp/perf-{node.pid}.map")
        with removed(written):
            await until(lambda: written.exists() and "work.js" in written.read_text(errors="replace"))
            # Its function may be inlined into the code of the file.
            async with profiling(monkeypatch, "node") as watch:
                await until(lambda: any("work.js" in frame for frame in frames(watch)), 60)


@contextmanager
def removed(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def control_group() -> Iterator[Path]:
    """A control group that perf can select, in the hierarchy of version 1 or 2."""
    root = Path("/sys/fs/cgroup")
    mounted: Sequence[Path] = ()
    if not (root / "cgroup.controllers").exists():
        root /= "perf_event"
        if not (root / "cgroup.procs").exists():
            root.mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "cgroup", "-o", "perf_event", "none", root], check=True)
            mounted = (root,)
    group = root / f"profiled-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()
        for place in mounted:
            subprocess.run(["umount", place], check=True)
            place.rmdir()


async def test_only_the_control_group_of_the_server_is_sampled(
    monkeypatch: pytest.MonkeyPatch, server: tuple[int, str]
) -> None:
    pid, name = server
    with control_group() as group:
        home = group.parent / "cgroup.procs"
        (group / "cgroup.procs").write_text(str(pid))
        try:
            async with profiling(monkeypatch, name) as watch:
                await until(lambda: sum(part.samples for part in watch.slices) > 20, 60)
                commands = [process.cmdline() for process in psutil.Process().children(recursive=True)]
        finally:
            home.write_text(str(pid))
    (perf,) = (command for command in commands if command[:2] == ["perf", "record"])
    assert perf[perf.index("-G") + 1] == group.name


async def test_a_full_disk_does_not_matter(
    directory: Path, monkeypatch: pytest.MonkeyPatch, server: tuple[int, str]
) -> None:
    """Samples stay in pipes."""
    (directory / "full").write_text(FULL)
    (directory / "full").chmod(0o755)
    async with profiling(monkeypatch, server[1], via=str(directory / "full")) as watch:
        await until(lambda: sum(part.samples for part in watch.slices) > 20, 60)
    assert [condition for condition, _ in watch.reports] == ["running", "stopped"]


def test_stacks_of_100_megabytes_take_little_memory() -> None:
    names = (f"{depth:x} function{at}_{depth}_{'x' * 2000} (/x)" for at in range(25_000) for depth in range(2))
    samples = "".join(sample(100 + at / 6000, next(names), next(names)) for at in range(25_000))
    assert len(samples) > 100_000_000
    parts: list[HostSlice] = folded(samples, f"prlimit --as={128 << 20} awk")
    assert sum(part.samples for part in parts) == 25_000
    for part in parts:
        assert part.samples == sum(part.stacks.values()) + part.other
        assert len(part.stacks) <= MAX_STACKS and sum(map(len, part.stacks)) <= MAX_TEXT
