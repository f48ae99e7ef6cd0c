"""Load from generators over a real SSH server and a real Dask scheduler: exact counts, a common clock, losses."""

import asyncio
import json
import os
import platform
import shlex
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import AsyncMock, Mock

import msgspec
import psutil
import pytest
import pytest_asyncio

from cockpit import __version__
from cockpit.cluster import dask_launcher, generator_actor, over_ssh
from cockpit.cluster.certificates import session_certificate
from cockpit.cluster.dask_launcher import WORKER_ENDED, DaskLauncher
from cockpit.cluster.install import install, wheel
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.cluster.programs import GeneratorVersions
from cockpit.cluster.remote_generator import RemoteGenerator
from cockpit.load.limits import Capacity, capacity_here
from cockpit.load.pool import LoadRun, launch
from cockpit.load.preflight import preflight
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError, NotInstalled, UsageError
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.model.host.samples import GeneratorConfig
from cockpit.model.load.plan import LoadPlan, LogReplay
from tests.cluster.forge import forge, modules, tolerate_silence
from tests.hosts.sshd import Sshd
from tests.load.servers import SMALL, Outcome, always, plan, serving
from tests.waiting import DEADLINE

NAMES = ("gen1", "gen2")
REPOSITORY = Path(__file__).parents[2]
pytestmark = [pytest.mark.xdist_group("cluster"), pytest.mark.asyncio(loop_scope="module")]


class Cluster(NamedTuple):
    """Generators over SSH; tests of this file share it, since it takes seconds to start."""

    sshd: Sshd
    address: str
    launcher: DaskLauncher


def generators(**values: str) -> list[GeneratorConfig]:
    return [GeneratorConfig(**{"name": name, "ssh": "web", "python": sys.executable, **values}) for name in NAMES]


@pytest_asyncio.fixture(loop_scope="module")
async def sshd(tmp_path: Path) -> AsyncIterator[Sshd]:
    server = await Sshd(tmp_path).start()
    yield server
    await server.stop()


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """A busy machine delays pings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteGenerator, "timeout", DEADLINE)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """Run a launcher of all generators; assert that none of its processes remain."""
    sshd = await Sshd(tmp_path_factory.mktemp("cluster")).start()
    sshd.environment["COCKPIT_TEST_CLUSTER"] = str(sshd.directory)
    with pytest.MonkeyPatch.context() as patch:
        # The scheduler and the Dask workers import `forge` from this path.
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        async with (
            cluster_over_ssh(generators(), sshd.ssh_config) as (address, security),
            DaskLauncher(address, security, len(NAMES)) as launcher,
        ):
            assert launcher.client is not None
            await launcher.client.run(tolerate_silence, DEADLINE)
            yield Cluster(sshd, address, launcher)
    _, alive = await asyncio.to_thread(psutil.wait_procs, programs(sshd), DEADLINE)
    assert not alive
    await sshd.stop()


def programs(sshd: Sshd) -> list[psutil.Process]:
    """Return the processes that were started over this server, and their descendants."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            if process.environ().get("COCKPIT_TEST_CLUSTER") == str(sshd.directory):
                found.append(process)
    return found


def generator_process(sshd: Sshd) -> psutil.Process:
    program = ["cockpit.cluster.program", "generator"]
    return next(each for each in programs(sshd) if (each.info["cmdline"] or [])[-2:] == program)


async def start_load(launcher: DaskLauncher, load: LoadPlan, outcome: Outcome) -> LoadRun:
    clock = Clock()
    launcher.attach(clock, outcome.emit)
    return await launch(load, 1, clock, outcome.emit, await preflight(load, launcher.capacity), launcher)


async def finish(run: LoadRun) -> None:
    async with asyncio.timeout(DEADLINE):
        await run.wait()


async def all_send(outcome: Outcome) -> None:
    """Wait for ticks of both load workers."""
    await outcome.until(lambda seen: bool(seen.lost) or {tick.worker for tick in seen.ticks} == {0, 1})
    assert not outcome.lost


def clocks(outcome: Outcome) -> list[GeneratorClock]:
    return [event for event in outcome.events if isinstance(event, GeneratorClock)]


def by_worker(outcome: Outcome) -> list[int]:
    """Return the number of responses of each load worker."""
    return [sum(tick.completed for tick in outcome.ticks if tick.worker == worker) for worker in (0, 1)]


async def test_open_schedule_is_split_exactly_and_starts_in_sync(cluster: Cluster) -> None:
    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        assert cluster.launcher.names == NAMES
        run = await start_load(cluster.launcher, plan(server.url, rate=400.0, requests=400), outcome)
        await outcome.until(lambda seen: bool(clocks(seen)))
        await finish(run)
    assert outcome.started.machines == NAMES
    assert outcome.ended.reason == "completed" and not outcome.lost
    assert by_worker(outcome) == [200, 200]
    # Both generators use this machine's monotonic clock, so the true offset is 0.
    slack = 2 * max(event.uncertainty for event in clocks(outcome)) + 0.001
    starts = [min(tick.start for tick in outcome.ticks if tick.worker == worker) for worker in (0, 1)]
    assert starts == pytest.approx([outcome.started.t] * 2, abs=slack)
    assert all(abs(event.offset) <= event.uncertainty for event in clocks(outcome))


async def test_dask_imports_only_from_private_directories_and_serves_nothing_without_certificate(
    cluster: Cluster,
) -> None:
    client = cluster.launcher.client
    assert client is not None
    for directory, ports in [*(await client.run(modules)).values(), await client.run_on_scheduler(modules)]:
        private = next(each for each in Path(directory).parents if each.parent == Path(tempfile.gettempdir()))
        assert (private.stat().st_mode & 0o777, private.stat().st_uid) == (0o700, os.geteuid())
        assert private.name.startswith("cockpit-") and len(ports) == 1


async def test_replayed_log_is_split_across_generators(cluster: Cluster, tmp_path: Path) -> None:
    log, outcome = tmp_path / "access.log", Outcome()
    lines = (f'10.0.0.9 - - [23/Nov/2026:01:00:01.{n:02d} +0000] "GET /{n} HTTP/1.1" 200 5' for n in range(41))
    log.write_text("\n".join(lines))
    async with serving(always(SMALL)) as server:
        await finish(await start_load(cluster.launcher, plan(server.url, replay=LogReplay(file=str(log))), outcome))
    assert by_worker(outcome) == [21, 20]


async def test_closed_load_is_adjusted_on_all_generators(cluster: Cluster) -> None:
    def connections(outcome: Outcome) -> int:
        return sum({tick.worker: tick.connections for tick in outcome.ticks}.values())

    outcome = Outcome()
    async with serving(always(SMALL)) as server:
        run = await start_load(cluster.launcher, plan(server.url, duration=600.0, concurrency=4), outcome)
        await outcome.until(lambda seen: connections(seen) == 4)
        run.adjust(concurrency=10)
        await outcome.until(lambda seen: connections(seen) == 10)
        run.stop()
        await finish(run)


async def test_capacity_comes_from_generators(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    here, launcher = capacity_here(), cluster.launcher
    assert launcher.capacity == Capacity(here.files, len(NAMES) * here.ports, len(NAMES))
    monkeypatch.setattr(launcher.generators[0], "files", 40)
    message = "100 connections: each load worker needs 82 open files, its machine allows 72"
    with pytest.raises(UsageError, match=message):
        await start_load(launcher, plan("http://127.0.0.1:9/", concurrency=100, workers=1), Outcome())


async def test_generator_cannot_forge_messages_of_another(cluster: Cluster) -> None:
    outcome, launcher = Outcome(), cluster.launcher
    async with serving(always(SMALL)) as server:
        run = await start_load(launcher, plan(server.url, rate=100.0, duration=600.0), outcome)
        await all_send(outcome)
        assert launcher.client is not None
        second = launcher.generators[1]
        # Only the last message is about its own load worker, and ends that worker.
        for place, number in ((0, 0), (-2, 0), (9, 0), (1, 7), (1, 1)):
            arguments = (launcher.topic, place, number, b'{"event":"session_ended","t":0}', "")
            await launcher.client.submit(forge, *arguments, workers=[second.address], pure=False)
        await outcome.until(lambda seen: bool(seen.lost))
        assert [(loss.worker, loss.detail) for loss in outcome.lost] == [(1, f"{second.name}: sent an invalid message")]
        since = outcome.lost[0].t
        await outcome.until(lambda seen: len(seen.lost) > 1 or seen.ticks[-1].start > since + 0.5)
        assert len(outcome.lost) == 1, outcome.lost
        assert {tick.worker for tick in outcome.ticks if tick.start > since} == {0}
        run.stop()
        await finish(run)


async def test_scheduler_with_wrong_certificate_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_launcher, "_CONNECT", 1.0)
    with pytest.raises(HostError, match="cluster tls://"):
        async with DaskLauncher(cluster.address, session_certificate().security()):
            pass


async def test_load_of_dead_generator_moves_to_other(cluster: Cluster) -> None:
    """The last test with this cluster, which stays without the dead generator."""
    outcome = Outcome()
    process = generator_process(cluster.sshd)
    async with serving(always(SMALL)) as server:
        run = await start_load(cluster.launcher, plan(server.url, rate=200.0, requests=2000), outcome)
        await all_send(outcome)
        process.kill()
        await finish(run)
    [lost] = [event for event in outcome.events if isinstance(event, GeneratorLost)]
    assert [(loss.worker, loss.detail) for loss in outcome.lost] == [
        (NAMES.index(lost.machine), f"{lost.machine}: {WORKER_ENDED}")
    ]
    assert outcome.ended.reason == "completed" and "partial" in outcome.ended.detail
    assert outcome.total("completed") == 2000


@pytest.mark.lab
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
        await outcome.until(lambda seen: bool(clocks(seen)))
        await finish(run)
    clock, slack = clocks(outcome)[0], max(clock.uncertainty for clock in clocks(outcome))
    assert clock.offset == pytest.approx(-3600, abs=clock.uncertainty + 0.001)
    assert outcome.total("completed") == 50
    began, ended = outcome.started.t - slack, outcome.ended.t + slack
    assert all(began <= tick.start < tick.t <= ended for tick in outcome.ticks)


@pytest.mark.lab
async def test_missing_cockpit_is_installed(sshd: Sshd, tmp_path: Path) -> None:
    """Dependencies come from the environment of the tests: nothing is downloaded."""
    paths = {"purelib": sysconfig.get_path("purelib"), "home": str(tmp_path / "state")}
    sshd.environment |= {"PIP_NO_DEPS": "1", "PYTHONPATH": paths["purelib"], "XDG_STATE_HOME": paths["home"]}
    generator = GeneratorConfig(name="gen1", ssh="web")
    with pytest.raises(NotInstalled, match="gen1: the load program does not start"):
        async with cluster_over_ssh([generator], sshd.ssh_config):
            pass
    await install(generator, sshd.ssh_config)
    assert (tmp_path / "state" / "webcockpit" / "venv" / "bin" / "cockpit").exists()
    async with (
        cluster_over_ssh([generator], sshd.ssh_config) as (address, security),
        DaskLauncher(address, security) as launcher,
    ):
        assert launcher.names == ("gen1",)


async def test_wheel_is_installed_into_own_environment(sshd: Sshd, tmp_path: Path) -> None:
    """A python3 that creates an environment with a python that writes its arguments, or fails."""
    state, path = tmp_path / "state", tmp_path / "bin"
    path.mkdir()
    python = path / "python3"
    python.write_text('#!/bin/sh\nmkdir -p "$3/bin"\ncp "$0.inner" "$3/bin/python"\n')
    inner = path / "python3.inner"
    inner.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\n')
    for program in (python, inner):
        program.chmod(0o755)
    sshd.environment |= {"XDG_STATE_HOME": str(state), "PATH": f"{path}:/usr/bin:/bin"}
    generator = GeneratorConfig(name="gen1", ssh="web")
    await install(generator, sshd.ssh_config)
    name, _ = wheel()
    installed = state / "webcockpit" / "venv" / name
    assert (tmp_path / "arguments").read_text().split()[-1] == f"{installed}[cluster]"
    constraints = installed.with_name("constraints")
    assert f"-c {constraints} " in (tmp_path / "arguments").read_text()
    assert f"distributed=={version('distributed')}" in constraints.read_text().splitlines()
    with zipfile.ZipFile(installed) as archive:
        names = set(archive.namelist())
    assert {"cockpit/cluster/program.py", f"webcockpit-{__version__}.dist-info/METADATA"} <= names
    inner.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    with pytest.raises(HostError, match="gen1: the installation failed: no space left"):
        await install(generator, sshd.ssh_config)
    assert not installed.parent.exists()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"version": "9.9\x1b[2J"}, r"gen[12]: cockpit 9\.9·\[2J there, .* here; install the same version"),
        ({"python": "2.7.1", "version": "9.9"}, r"gen[12]: Python 2\.7 there, 3\.\d+ here; name a Python 3"),
        ({"dask": "1.0"}, r"gen[12]: Dask 1\.0 there, .* here; install the same version"),
        ({"dask": 5}, r"gen[12].*does not start.*install cockpit"),
        ({}, "AllowTcpForwarding"),
    ],
)
async def test_unusable_generator_is_reported(
    sshd: Sshd, tmp_path: Path, other: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generators whose program offers other versions, or that do not forward ports; no scheduler is needed."""

    @asynccontextmanager
    async def no_scheduler(_: object) -> AsyncIterator[int]:
        yield 9

    monkeypatch.setattr(over_ssh, "_local_scheduler", no_scheduler)
    sshd.allows_remote_forwarding = False
    own = GeneratorVersions(version=__version__, python=platform.python_version(), dask=version("distributed"))
    offer = json.dumps({**msgspec.to_builtins(own), **other})
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho {shlex.quote(offer)}\nread -r order\n")
    program.chmod(0o755)
    # An installation there does not change Python.
    with pytest.raises(HostError, match=message) as refused:
        async with cluster_over_ssh(generators(python=str(program)), sshd.ssh_config):
            pass
    assert isinstance(refused.value, NotInstalled) is bool(other and "python" not in other)


UNENCRYPTED = ("tcp://192.0.2.1", "tcp://127.0.0.1.example.com", "ws://127.0.0.1", "TCP://192.0.2.1")


@pytest.mark.parametrize(
    ("address", "secure", "message"),
    [
        ("tls://127.0.0.1:1", True, r"cluster tls://127\.0\.0\.1:1"),
        ("tls://127.0.0.1:1", False, r"tls://127\.0\.0\.1:1: tls:// needs certificates"),
        ("192.0.2.1:8786", False, r"tls://192\.0\.2\.1:8786: tls:// needs certificates"),
        ("tcp://[::1]:1", False, r"cluster tcp://\[::1\]:1"),
        *((f"{place}:8786", False, "not encrypted") for place in UNENCRYPTED),
        ("tcp://:x", False, "no address of a scheduler"),
    ],
)
async def test_unusable_scheduler_is_reported(
    address: str, secure: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_launcher, "_CONNECT", 0.5)
    with pytest.raises(HostError, match=message):
        async with DaskLauncher(address, session_certificate().security() if secure else None):
            pass


async def test_load_workers_of_the_last_run_are_killed_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (
        SimpleNamespace(assignment=SimpleNamespace(worker=0), line=asyncio.Event().wait, kill_and_wait=AsyncMock())
        for _ in range(2)
    )
    monkeypatch.setattr(generator_actor, "get_worker", Mock())
    monkeypatch.setattr(generator_actor, "start_workers", AsyncMock(side_effect=[[first], [second]]))
    actor = generator_actor.GeneratorActor("topic", 0)
    for killed in (0, 1):
        assert await actor.begin(()) == ""
        assert (first.kill_and_wait.await_count, second.kill_and_wait.await_count) == (killed, 0)
    await actor.end()
