"""Hosts reached by a command: podman, docker, kubectl, lxc, systemd-run and nsenter, each with a real container."""

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.hosts import watchdog
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.feed import read_page
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, HostError
from cockpit.model.events import StageName
from cockpit.model.host import sar
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.profiles.reader import read_profile
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import ChangeObserver
from cockpit.tuning.effect import wait_for_good_responses
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.commands import cockpit
from tests.hosts.sshd import Sshd
from tests.lab import lxd, quotas
from tests.lab.containers import CONFIGURATION, INSIDE, STATE, Container, container, docker_api
from tests.lab.kubernetes import CONTAINER, NAMESPACE, POD, kubernetes_api
from tests.lab.systemd import Booted, booted
from tests.processes import newer_children
from tests.tuning.conftest import FaultyShell
from tests.waiting import free_port, until


class Carrier(NamedTuple):
    """A command that reaches a container; `unknown` is the error of a container that does not exist."""

    via: str
    nginx: Container
    unknown: str


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    with container(tmp_path_factory.mktemp("conf")) as running:
        yield running


@asynccontextmanager
async def by_podman(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    yield Carrier(f"podman:{nginx.name}", nginx, "(?i:no such container)")


@asynccontextmanager
async def by_docker(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    """The real client, over Docker's API, which podman serves."""
    # The path of a Unix socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as short, docker_api(Path(short)) as address:
        patch.setenv("DOCKER_HOST", address)
        yield Carrier(f"docker:{nginx.name}", nginx, "(?i:no such container)")


@asynccontextmanager
async def by_nsenter(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    yield Carrier(nginx.via, nginx, "")


@asynccontextmanager
async def by_kubectl(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    async with kubernetes_api(nginx.via.split(), folder) as config:
        patch.setenv("KUBECONFIG", str(config))
        patch.setenv("HOME", str(folder))
        yield Carrier(f"kubectl:{NAMESPACE}/{POD}/{CONTAINER}", nginx, "(?i:not ?found)")


@asynccontextmanager
async def by_lxc(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    (folder / "conf").mkdir()
    with lxd.daemon() as directory:
        patch.setenv("LXD_DIR", str(directory))
        with lxd.container(folder / "conf") as running:
            yield Carrier(f"lxc:{running.name}", running, "(?i:not ?found)")


@asynccontextmanager
async def by_machine(nginx: Container, folder: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[Carrier]:
    """A container with a real systemd, over its bus."""
    with booted() as machine:
        pid_file, file = folder / "pid", f"{INSIDE}/nginx.conf"
        pid_file.write_text(str(machine.pid))
        running = Container(machine.name, free_port(), folder, file, pid_file)
        running.run("systemctl stop site.service && systemctl start dbus.service && mkdir -m 755 " + INSIDE)
        running.run(f"cat >{file} <<'END'\n{CONFIGURATION.format(port=running.port)}END\nnginx -c {file}")
        with registered(machine):
            yield Carrier(f"machine:{machine.name}", running, "Failed to ")


@contextmanager
def registered(machine: Booted) -> Iterator[None]:
    """Register a container where systemd-machined does; systemd-run reads the PID of its first process there."""
    entry = Path("/run/systemd/machines", machine.name)
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text(f"NAME={machine.name}\nCLASS=container\nLEADER={machine.pid}\n")
    try:
        yield
    finally:
        entry.unlink()


Start = Callable[[Container, Path, pytest.MonkeyPatch], AbstractAsyncContextManager[Carrier]]


@pytest.mark.parametrize("start", [by_nsenter, by_podman, by_docker, by_kubectl, by_lxc, by_machine])
async def test_container_is_watched_and_tuned(
    start: Start, nginx: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(nginx, tmp_path, monkeypatch) as carrier:
        nginx, host = carrier.nginx, HostConfig(name="web1", via=carrier.via, processes=("nginx",), interval=0.2)
        shell, idle, before = await open_shell(host), nginx.programs(), nginx.run(STATE)
        binary = bytes(range(256)) * 1000
        assert await shell.run("cat; echo no >&2; exit 3", input=binary) == (3, binary, b"no\n")
        assert (await shell.run('echo "$HOME"')).stdout == b"/root\n"
        started = await shell.run("setsid sh -c 'while sleep 0.1; do :; done' </dev/null >/dev/null 2>&1 & echo $!")
        await until(lambda: "sleep" in nginx.programs() and len(nginx.programs()) == len(idle) + 2)
        nginx.run(f"kill {int(started.stdout)}")

        page = await read_page(shell, StatusPage(kind="nginx", url=f"http://127.0.0.1:{nginx.port}/status"))
        assert page.values["Active connections"] >= 1
        await check_probe_ends(carrier, host, shell, idle, signal.SIGKILL)

        knob, tuner, workers = nginx.connections(), Tuner(nginx.probe), nginx.processes
        assert await tuner.read(shell, knob) == "256"
        applied = await tuner.apply(shell, "web1", [(knob, "128")])
        assert await tuner.read(shell, knob) == "128" and nginx.processes - workers
        await tuner.undo(shell, applied)
        assert await tuner.read(shell, knob) == "256" and nginx.run(STATE) == before
        await until(lambda: nginx.programs() == idle)
        await shell.close()
        if carrier.unknown:
            via = carrier.via.replace(nginx.name, "nowhere").replace(POD, "nowhere")
            shell = await open_shell(HostConfig(name="web1", via=via))
            with pytest.raises(HostError, match=rf"`{via}` did not start `sh -s`: .*{carrier.unknown}"):
                await shell.run("true")
            await shell.close()


async def check_probe_ends(
    carrier: Carrier, host: HostConfig, shell: Shell, idle: list[str], sent: signal.Signals
) -> None:
    """The probe reads the server's processes; after its client got a signal, it ends in the container and is lost."""
    clients = newer_children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watchdog, "IDLE", 3)
        probe = await Probe.start(shell, host)
    assert {process.pid for process in (await probe.read()).processes} == carrier.nginx.processes
    assert carrier.nginx.programs() != idle
    kind = carrier.via.replace(":", " ").split()[0]
    client = next(one for one in clients() if one.name() == {"machine": "systemd-run"}.get(kind, kind))
    client.send_signal(sent)
    await until(lambda: carrier.nginx.programs() == idle)
    if sent == signal.SIGSTOP:
        client.send_signal(signal.SIGCONT)
    with pytest.raises(HostError, match="web1: the probe ended"):
        while True:
            await probe.read()
    probe.close()


async def test_program_of_a_stopped_client_ends(
    nginx: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with by_podman(nginx, tmp_path, monkeypatch) as carrier:
        host = HostConfig(name="web1", via=carrier.via, processes=("nginx",), interval=0.2)
        shell = await open_shell(host)
        await check_probe_ends(carrier, host, shell, nginx.programs(), signal.SIGSTOP)
        await shell.close()


async def test_limits_of_container_are_read(nginx: Container) -> None:
    shell = await open_shell(HostConfig(name="web1", via=f"podman:{nginx.name}"))
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("nginx",), interval=0.2))
    first = await probe.read()
    while (reading := await probe.read()).uptime < first.uptime + 0.5:
        pass
    probe.close()
    await shell.close()
    levels = sar.levels(reading)
    assert levels["cgroup.quota"] == pytest.approx(100 * quotas.SHARE)
    assert levels["cgroup.kblimit"] == 200 << 10
    assert 0 < levels["cgroup.kbmemory"] < levels["cgroup.kblimit"]
    # The machine's memory is reported separately.
    assert reading.memory.total > levels["cgroup.kblimit"]


async def test_container_behind_ssh_is_tuned_from_the_wizard_to_the_undo(
    nginx: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    profile, before = tmp_path / "web1.toml", nginx.run(STATE)
    sshd = await Sshd(tmp_path).start()

    async def run(*arguments: str | Path) -> str:
        done = await asyncio.to_thread(cockpit, *arguments, "--ssh-config", sshd.ssh_config)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    await run("new", nginx.url, "--host", f"root@web/podman:{nginx.name}", "-o", profile)
    drafted = read_profile(profile)
    (host,) = drafted.hosts
    assert (host.ssh, host.via, host.processes) == ("root@web", f"podman:{nginx.name}", ("nginx",))
    assert {knob.file for knob in drafted.knobs} == {nginx.inside}
    assert "ERROR" not in await run("doctor", profile)
    assert await run("tune", profile, "show", "worker_connections") == "256\n"
    await run("tune", profile, "set", "worker_connections=128")
    assert "worker_connections 128;" in nginx.file.read_text()
    await run("tune", profile, "undo")
    assert nginx.run(STATE) == before
    await sshd.stop()


@pytest.fixture
async def outer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[FaultyShell]:
    """A shell on this machine, from which a container is changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    shell = FaultyShell()
    yield shell
    await shell.close()


class LosesConnection(ChangeObserver):
    """Loses the connection of a shell after the reload."""

    def __init__(self, shell: FaultyShell) -> None:
        self._shell = shell

    def stage(self, stage: StageName, seconds: float | None = None) -> None:
        if stage == "reloaded":
            self._shell.lose_connection_at(self._shell.count + 1)


def is_expired(folder: Path) -> bool:
    """Let the confirmation time of all changes expire; return whether no change is pending."""
    for deadline in folder.glob("webcockpit/changes/*/*/deadline"):
        deadline.write_text("0")
    return not list(folder.glob("webcockpit/changes/*/lock"))


def restarting(nginx: Container, directive: str = "worker_processes", test: str = "") -> Knob:
    """Return a knob in the mounted file that a restart of the container activates."""
    knob = Knob(name=directive, host="web1", kind="nginx", file=str(nginx.file), directive=directive, test=test)
    return replace(knob, reload=f"podman restart -t 3 {nginx.name}", workers="nginx")


def unknown_port(host: str) -> None:
    """Return None: the target's port on the container is unknown."""


async def test_container_is_changed_from_outside_and_restarted(
    nginx: Container, outer: FaultyShell, tmp_path: Path
) -> None:
    before = nginx.file.read_bytes()
    tuner, impatient = (Tuner(nginx.probe, Timeouts(effect=seconds), port_on=unknown_port) for seconds in (60, 10))
    knob = restarting(nginx, test=f"podman exec {nginx.name} nginx -t -c {nginx.inside}")
    assert len(nginx.processes) == 2
    applied = await tuner.apply(outer, "web1", [(knob, "3")])
    assert not [note for note in applied.notes if "old worker" in note] and len(nginx.processes) == 4
    await tuner.undo(outer, applied)
    with pytest.raises(ChangeRolledBack, match="rolled back and reloaded"):
        await impatient.apply(outer, "web1", [(restarting(nginx, "user"), "nobody-here")])
    assert nginx.file.read_bytes() == before and await nginx.probe() == ""
    # The guard runs outside: a restart of the container does not end it.
    tuner = Tuner(nginx.probe, Timeouts(reach=0.05, lease=30), port_on=unknown_port)
    with pytest.raises(ChangeFailed):
        await tuner.apply(outer, "web1", [(restarting(nginx), "2")], LosesConnection(outer))
    assert nginx.file.read_bytes() != before
    await until(lambda: is_expired(tmp_path))
    await until(lambda: len(nginx.processes) == 2)
    assert nginx.file.read_bytes() == before and await wait_for_good_responses(nginx.probe, 60) == ""


async def test_single_mounted_file_needs_restart_from_outside(outer: FaultyShell, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    with container(tmp_path / "conf", whole=False) as nginx:
        before, tuner = nginx.file.read_bytes(), Tuner(nginx.probe, port_on=unknown_port)
        inner = await open_shell(HostConfig(name="web1", via=nginx.via))
        with pytest.raises(ChangeRefused, match=r"mounted as a single file into this container.*changes_outside"):
            await tuner.apply(inner, "web1", [(nginx.connections(), "128")])
        await inner.close()
        reload = f"podman exec {nginx.name} nginx -s reload -c {nginx.inside}"
        with pytest.raises(ChangeRefused, match="keeps the old file until it is restarted"):
            await tuner.apply(outer, "web1", [(replace(restarting(nginx), reload=reload), "2")])
        assert nginx.file.read_bytes() == before
        applied = await tuner.apply(outer, "web1", [(restarting(nginx), "2")])
        assert len(nginx.processes) == 3
        await tuner.undo(outer, applied)
        assert nginx.file.read_bytes() == before and len(nginx.processes) == 2
