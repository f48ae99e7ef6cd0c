"""Load from generators over a real SSH server and a real Dask scheduler: exact counts, a common clock, losses."""

from __future__ import annotations

import asyncio
import json
import platform
import shlex
import sys
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import msgspec
import psutil
import pytest

from cockpit import __version__
from cockpit.cluster.certificates import session_certificate
from cockpit.cluster.dask_launcher import DaskLauncher
from cockpit.cluster.install import install
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.cluster.programs import GeneratorVersions
from cockpit.cluster.remote_generator import RemoteGenerator, RemoteWorker, WorkerLine
from cockpit.load.limits import Capacity, capacity_here
from cockpit.load.pool import LoadRun, launch
from cockpit.load.preflight import preflight
from cockpit.load.protocol import assignments
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError, NotInstalled, UsageError
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.model.hosts import GeneratorConfig
from cockpit.model.load import LoadPlan, LogReplay
from tests.cluster.forge import forge
from tests.conftest import TESTS
from tests.hosts.sshd import Sshd
from tests.load.servers import DEADLINE, SMALL, Outcome, always, plan, serving

NAMES = ("gen1", "gen2")
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[Sshd]:
    server = await Sshd(tmp_path).start()
    yield server
    await server.stop()


def generators(**values: str) -> list[GeneratorConfig]:
    return [GeneratorConfig(**{"name": name, "ssh": "web", "python": sys.executable, **values}) for name in NAMES]


@asynccontextmanager
async def crew_over(sshd: Sshd) -> AsyncIterator[DaskLauncher]:
    """Run a launcher of all generators; assert that none of its processes remain."""
    sshd.environment["COCKPIT_TEST_CLUSTER"] = str(sshd.directory)
    async with (
        cluster_over_ssh(generators(), sshd.ssh_config) as (address, security),
        DaskLauncher(address, security, len(NAMES)) as launcher,
    ):
        yield launcher
    _, alive = await asyncio.to_thread(psutil.wait_procs, programs(sshd), DEADLINE)
    assert not alive


def programs(sshd: Sshd) -> list[psutil.Process]:
    """Return the processes that were started over this server, and their descendants."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("COCKPIT_TEST_CLUSTER") == str(sshd.directory):
                found.append(process)
    return found


def generator_process(sshd: Sshd) -> psutil.Process:
    return next(
        process for process in programs(sshd) if process.cmdline()[-2:] == ["cockpit.cluster.program", "generator"]
    )


async def start_load(launcher: DaskLauncher, load: LoadPlan, outcome: Outcome) -> LoadRun:
    clock = Clock()
    launcher.attach(clock, outcome.emit)
    return await launch(load, 1, clock, outcome.emit, await preflight(load, launcher.capacity), launcher)


def lost(outcome: Outcome) -> list[GeneratorLost]:
    return [event for event in outcome.events if isinstance(event, GeneratorLost)]


async def test_open_schedule_is_split_exactly_and_starts_in_sync(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        assert launcher.names == NAMES
        run = await start_load(launcher, plan(server.url, rate=400.0, requests=800), outcome)
        await outcome.until(lambda seen: any(isinstance(event, GeneratorClock) for event in seen.events))
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert outcome.started.machines == NAMES
    assert outcome.total("completed") == 800
    assert outcome.ended.reason == "completed" and not outcome.lost
    for worker in (0, 1):
        ticks = [tick for tick in outcome.ticks if tick.worker == worker]
        assert sum(tick.completed for tick in ticks) == 400
        # Both generators use this machine's monotonic clock, so the true offset is 0.
        assert abs(ticks[0].start - outcome.started.t) < 0.05
    assert all(abs(event.offset) <= event.uncertainty for event in outcome.events if isinstance(event, GeneratorClock))


async def test_replayed_log_is_split_across_generators(sshd: Sshd, tmp_path: Path) -> None:
    log, outcome = tmp_path / "access.log", Outcome()
    lines = (f'10.0.0.9 - - [23/Nov/2026:01:00:01.{n:02d} +0000] "GET /{n} HTTP/1.1" 200 5' for n in range(41))
    await asyncio.to_thread(log.write_text, "\n".join(lines))
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, replay=LogReplay(file=str(log))), outcome)
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    completed = {worker: sum(tick.completed for tick in outcome.ticks if tick.worker == worker) for worker in (0, 1)}
    assert completed == {0: 21, 1: 20}


async def test_load_of_dead_generator_moves_to_other(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, rate=100.0, duration=600.0), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        generator_process(sshd).kill()
        await outcome.until(lambda seen: bool(lost(seen)) and bool(seen.lost))
        lost_worker = {"gen1": 0, "gen2": 1}[lost(outcome)[0].machine]
        assert outcome.lost[0].worker == lost_worker
        since = outcome.lost[0].t
        # The other generator sends all arrivals, not only its half.
        await outcome.until(lambda seen: seen.ticks[-1].t > since + 3)
        after = [tick for tick in outcome.ticks if tick.start > since + 1]
        assert {tick.worker for tick in after} == {1 - lost_worker}
        rate = sum(tick.sent for tick in after) / (after[-1].t - after[0].start)
        assert rate == pytest.approx(100.0, rel=0.05)
        run.stop()
        await run.wait()
    assert outcome.ended.reason == "stopped" and "partial" in outcome.ended.detail


async def test_request_count_of_dead_generator_moves_to_other(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, rate=100.0, requests=1000), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        generator_process(sshd).kill()
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert len(outcome.lost) == 1 and outcome.ended.reason == "completed"
    assert outcome.total("completed") == 1000


async def test_hung_generator_is_lost_after_1_second(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, duration=600.0, concurrency=4), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        hanging = generator_process(sshd)
        hanging.suspend()
        try:
            await outcome.until(lambda seen: bool(lost(seen)))
            assert "no answer for" in lost(outcome)[0].detail
        finally:
            hanging.resume()
        run.stop()
        await run.wait()


async def test_generator_cannot_forge_messages_of_another(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    # The scheduler and the Dask workers import `forge` from this path.
    monkeypatch.setenv("PYTHONPATH", str(TESTS.parent))
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, rate=100.0, duration=600.0), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        assert launcher.client is not None
        second = launcher.generators[1]
        # Only the last message is about its own load worker, and ends that worker.
        for place, number in ((0, 0), (-2, 0), (9, 0), (1, 7), (1, 1)):
            arguments = (launcher.topic, place, number, b'{"event":"session_ended","t":0}', "")
            await launcher.client.submit(forge, *arguments, workers=[second.address], pure=False)
        await outcome.until(lambda seen: bool(seen.lost))
        assert [(loss.worker, loss.detail) for loss in outcome.lost] == [(1, f"{second.name}: sent an invalid message")]
        since = outcome.lost[0].t
        await outcome.until(lambda seen: seen.ticks[-1].t > since + 2)
        assert {tick.worker for tick in outcome.ticks if tick.start > since + 1} == {0}
        run.stop()
        await run.wait()


async def test_run_stops_on_generator_loss_if_configured(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, rate=100.0, duration=600.0, on_loss="stop"), outcome)
        await outcome.until(lambda seen: {tick.worker for tick in seen.ticks} == {0, 1})
        generator_process(sshd).kill()
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert outcome.ended.reason == "stopped" and len(outcome.lost) == 1


async def test_unread_lines_are_bounded() -> None:
    machine = RemoteGenerator("gen1", "tls://127.0.0.1:1")
    machine.expect([RemoteWorker(assignments(plan("http://127.0.0.1/"), 1, ())[0], machine)])
    line = WorkerLine("tls://127.0.0.1:1", 0, 0, bytes(2**20), "")
    with pytest.raises(HostError, match="gen1: sends messages faster than they can be read"):
        for _ in range(100):
            machine.take(line)


async def test_capacity_comes_from_generators(sshd: Sshd) -> None:
    async with crew_over(sshd) as launcher:
        here = capacity_here()
        assert launcher.capacity == Capacity(here.files, len(NAMES) * here.ports, len(NAMES))
        launcher.generators[0].files = 40
        with pytest.raises(
            UsageError, match="100 connections: each load worker needs 82 open files, its machine allows 72"
        ):
            await start_load(launcher, plan("http://127.0.0.1:9/", concurrency=100, workers=1), Outcome())


async def test_times_of_other_clock_are_converted(sshd: Sshd, tmp_path: Path) -> None:
    """The generator's monotonic clock is an hour ahead, as after a different boot."""
    ahead = tmp_path / "python"
    ahead.write_text(f'#!/bin/sh\nexec unshare --time --monotonic 3600 "{sys.executable}" "$@"\n')
    ahead.chmod(0o755)
    outcome = Outcome()
    generator = generators(python=str(ahead))[0]
    async with (
        serving(always(SMALL)) as server,
        cluster_over_ssh([generator], sshd.ssh_config) as (address, security),
        DaskLauncher(address, security) as launcher,
    ):
        run = await start_load(launcher, plan(server.url, rate=100.0, requests=50), outcome)
        await outcome.until(lambda seen: any(isinstance(event, GeneratorClock) for event in seen.events))
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    clocks = [event for event in outcome.events if isinstance(event, GeneratorClock)]
    clock, slack = clocks[0], max(clock.uncertainty for clock in clocks)
    assert clock.offset == pytest.approx(-3600, abs=clock.uncertainty + 0.001)
    assert outcome.total("completed") == 50
    began, ended = outcome.started.t - slack, outcome.ended.t + slack
    assert all(began <= tick.start < tick.t <= ended for tick in outcome.ticks)


async def test_missing_cockpit_is_installed(sshd: Sshd, tmp_path: Path) -> None:
    """Dependencies come from the environment of the tests: nothing is downloaded."""
    paths = {"purelib": sysconfig.get_path("purelib"), "home": str(tmp_path / "state")}
    sshd.environment |= {"PIP_NO_DEPS": "1", "PYTHONPATH": paths["purelib"], "XDG_STATE_HOME": paths["home"]}
    generator = GeneratorConfig(name="gen1", ssh="web")
    with pytest.raises(NotInstalled, match="gen1: the load program does not start"):
        async with cluster_over_ssh([generator], sshd.ssh_config):
            pass
    await install(generator, sshd.ssh_config)
    assert (tmp_path / "state" / "cockpit" / "venv" / "bin" / "cockpit").exists()
    async with (
        cluster_over_ssh([generator], sshd.ssh_config) as (address, security),
        DaskLauncher(address, security) as launcher,
    ):
        assert launcher.names == ("gen1",)


async def test_closed_load_is_adjusted_on_all_generators(sshd: Sshd) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server, crew_over(sshd) as launcher:
        run = await start_load(launcher, plan(server.url, duration=600.0, concurrency=4), outcome)
        await outcome.until(lambda seen: connections(seen) == 4)
        run.adjust(concurrency=10)
        await outcome.until(lambda seen: connections(seen) == 10)
        run.stop()
        await run.wait()


def connections(outcome: Outcome) -> int:
    newest = {tick.worker: tick.connections for tick in outcome.ticks}
    return sum(newest.values())


async def test_python_without_cockpit_is_reported(sshd: Sshd) -> None:
    with pytest.raises(HostError, match=r"gen[12].*does not start.*install cockpit\[cluster\]"):
        async with cluster_over_ssh(generators(python="/usr/bin/false"), sshd.ssh_config):
            pass


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"version": "9.9\x1b[2J"}, r"gen[12]: cockpit 9\.9·\[2J there, .* here; install the same version"),
        ({"python": "2.7.1"}, r"gen[12]: Python 2\.7 there, 3\.\d+ here; install the same version"),
        ({"dask": "1.0"}, r"gen[12]: Dask 1\.0 there, .* here; install the same version"),
        ({"dask": 5}, r"gen[12].*does not start"),
    ],
)
async def test_generator_version_mismatch_is_reported(
    sshd: Sshd, tmp_path: Path, other: dict[str, object], message: str
) -> None:
    own = GeneratorVersions(version=__version__, python=platform.python_version(), dask=version("distributed"))
    offer = json.dumps({**msgspec.to_builtins(own), **other})
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(offer)}\ncat\n")
    program.chmod(0o755)
    with pytest.raises(NotInstalled, match=message):
        async with cluster_over_ssh(generators(python=str(program)), sshd.ssh_config):
            pass


async def test_sshd_without_forwarding_is_reported(sshd: Sshd) -> None:
    sshd.allows_remote_forwarding = False
    with pytest.raises(HostError, match="AllowTcpForwarding"):
        async with cluster_over_ssh(generators(), sshd.ssh_config):
            pass


async def test_unreachable_scheduler_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.cluster.dask_launcher._CONNECT", 1.0)
    with pytest.raises(HostError, match=r"cluster tls://127\.0\.0\.1:1"):
        async with DaskLauncher("tls://127.0.0.1:1", session_certificate().security()):
            pass


async def test_tls_cluster_requires_certificates() -> None:
    with pytest.raises(HostError, match=r"tls://127\.0\.0\.1:1: tls:// needs certificates"):
        async with DaskLauncher("tls://127.0.0.1:1"):
            pass


async def test_unencrypted_cluster_is_refused() -> None:
    with pytest.raises(HostError, match="not encrypted"):
        async with DaskLauncher("tcp://192.0.2.1:8786"):
            pass


async def test_scheduler_with_wrong_certificate_is_refused(sshd: Sshd) -> None:
    async with cluster_over_ssh(generators()[:1], sshd.ssh_config) as (address, _):
        with pytest.raises(HostError, match="cluster tls://"):
            async with DaskLauncher(address, session_certificate().security()):
                pass
