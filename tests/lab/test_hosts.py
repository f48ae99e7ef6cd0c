"""What the probe reads through a real sshd on a real web server, held against sar, free and ps of that host."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed, check_host
from cockpit.hosts.probe import Probe
from cockpit.hosts.ssh import SshShell, connect
from cockpit.model.clock import Clock
from cockpit.model.errors import HostKeyUnknown
from cockpit.model.events import AnyEvent, HostChanged, HostSample
from cockpit.model.fold_hosts import cpu_share, io_rates, memory_use
from cockpit.model.hosts import HostConfig
from cockpit.model.state import CpuShare
from tests.lab.cpus import on_generator_cpu
from tests.lab.lab import Lab

pytestmark = pytest.mark.lab

DEADLINE = 60.0
MIB = 1024 * 1024
WEB1 = HostConfig(name="web1", ssh="web1", processes="apache2", interval=0.2)


@pytest.fixture
async def shell(lab: Lab) -> AsyncIterator[SshShell]:
    shell = await connect(WEB1, lab.ssh_config)
    yield shell
    await shell.close()


@pytest.fixture
async def probe(shell: SshShell) -> AsyncIterator[Probe]:
    probe = await Probe.start(shell, WEB1)
    yield probe
    probe.close()


async def said(shell: SshShell, command: str) -> str:
    done = await shell.run(f"LC_ALL=C S_TIME_FORMAT=ISO S_COLORS=never {command}")
    assert done.exit_status == 0, done.stderr
    return done.stdout.decode()


async def sar(shell: SshShell, options: str) -> dict[str, float]:
    """The averages that sar prints, by its own column names."""
    rows = [line.split() for line in (await said(shell, f"sar {options}")).splitlines() if line.strip()]
    head = next(row for row in rows if any(word in row for word in ("%user", "tps")))
    average = next(row for row in rows if row[0] == "Average:")
    names = head[-len(average) + 1 :]
    return {name: float(word) for name, word in zip(names, average[1:], strict=True) if word != "all"}


@asynccontextmanager
async def load(url: str) -> AsyncIterator[None]:
    """ab against the server, on the CPU for load, for as long as it takes, at most 30 s."""
    command = on_generator_cpu(["ab", "-q", "-k", "-t", "30", "-n", "2000000", "-c", "8", url])
    ab = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    try:
        yield
        assert ab.returncode is None
    finally:
        with suppress(ProcessLookupError):
            ab.kill()
        await ab.wait()


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "under load"])
async def test_cpu_is_what_sar_says(lab: Lab, shell: SshShell, probe: Probe, busy: bool) -> None:
    async def compare() -> CpuShare:
        before = await probe.read()
        theirs = await sar(shell, "-u 2 1")
        ours = cpu_share(before, await probe.read())
        assert ours is not None
        for name in ("user", "nice", "system", "iowait", "steal", "idle"):
            assert getattr(ours, name) == pytest.approx(theirs[f"%{name}"], abs=6), name
        return ours

    if busy:
        async with load(lab.web1.url):
            assert (await compare()).idle < 90
    else:
        await compare()


async def test_io_is_what_sar_says(shell: SshShell, probe: Probe, tmp_path: Path) -> None:
    before = await probe.read()
    reporting = asyncio.ensure_future(sar(shell, "-b 3 1"))
    await asyncio.to_thread(write_to_disk, tmp_path / "file")
    theirs = await reporting
    after = await probe.read()
    ours = io_rates(before, after)
    assert ours is not None
    # Both saw the same writes; their seconds differ a little.
    seconds = after.uptime - before.uptime
    for name, wiggle in (("tps", 100), ("rtps", 100), ("wtps", 100), ("bread", 4096), ("bwrtn", 4096)):
        column = name if name.endswith("tps") else f"{name}/s"
        assert getattr(ours, name) * seconds == pytest.approx(theirs[column] * 3, rel=0.1, abs=wiggle), name


def write_to_disk(path: Path) -> None:
    """Writes 32 MiB (65536 blocks) through to the disk, of the machine that the lab's hosts share."""
    with path.open("wb") as file:
        for _ in range(32):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


async def test_memory_is_what_free_says(shell: SshShell, probe: Probe) -> None:
    theirs = [int(word) for word in (await said(shell, "free -m")).splitlines()[1].split()[1:]]
    ours = memory_use(await probe.read())
    names = ("total", "used", "free", "shared", "buff_cache", "available")
    assert ours.total // MIB == theirs[0]
    for name, mebibytes in zip(names, theirs, strict=True):
        assert getattr(ours, name) / MIB == pytest.approx(mebibytes, abs=48), name


async def test_processes_are_what_ps_says(shell: SshShell, probe: Probe) -> None:
    async def rows_of_ps() -> list[list[str]]:
        said_by_ps = await said(shell, "ps -ww -C apache2 -o pid=,ppid=,stat=,vsz=,rss=,nlwp=,comm=,args=")
        return [line.split(maxsplit=7) for line in said_by_ps.splitlines()]

    async def agree() -> bool:
        """Whether the probe says what ps says just before and just after, in case a worker comes or goes meanwhile."""
        before = await rows_of_ps()
        reading = await probe.read()
        rows = [
            [
                *(str(number) for number in (row.pid, row.ppid)),
                row.stat,
                *(str(number) for number in (row.vsz // 1024, row.rss // 1024, row.threads)),
                row.comm,
                row.command,
            ]
            for row in reading.processes
        ]
        assert len(rows) > 1
        return before == rows or rows == await rows_of_ps()

    deadline = time.monotonic() + DEADLINE
    while not await agree():
        assert time.monotonic() < deadline


async def test_the_command_offered_for_an_unknown_key_accepts_it(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(lab.ssh_config.read_text().replace(str(lab.directory / "known_hosts"), str(tmp_path / "known")))
    with pytest.raises(HostKeyUnknown) as caught:
        await check_host(WEB1, config)
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\necho yes\n")
    yes.chmod(0o700)
    accepting = await asyncio.create_subprocess_shell(
        str(caught.value).rpartition("accept it with: ")[2],
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "SSH_ASKPASS": str(yes), "SSH_ASKPASS_REQUIRE": "force"},
    )
    assert await accepting.wait() == 0
    await check_host(WEB1, config)


async def test_check_passes(lab: Lab) -> None:
    facts = await check_host(WEB1, lab.ssh_config)
    assert facts.hostname == "web1"


async def test_a_pulled_cable_is_lost_and_the_host_comes_back(lab: Lab) -> None:
    events: list[AnyEvent] = []
    feed = HostFeed(WEB1, Clock(), events.append, ssh_config=lab.ssh_config)
    watching = asyncio.ensure_future(feed.run())

    def condition() -> str:
        return [event.condition for event in events if isinstance(event, HostChanged)][-1]

    def samples() -> int:
        return sum(isinstance(event, HostSample) for event in events)

    try:
        await until(lambda: samples() > 2)
        with lab.web1.unplugged():
            await until(lambda: condition() == "lost")
            seen = samples()
        await until(lambda: condition() == "up" and samples() > seen)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def test_the_probe_is_gone_with_its_connection(lab: Lab) -> None:
    shell = await connect(WEB1, lab.ssh_config)
    await Probe.start(shell, WEB1)
    assert "sh -s" in lab.web1.run("ps -e -o args=").stdout.splitlines()
    await shell.close()
    await until(lambda: "sh -s" not in lab.web1.run("ps -e -o args=").stdout.splitlines())


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.02)
