"""A real container: tuned inside by `podman exec`, or from outside with a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.probe import Probe as HostProbe
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.feed import read_page
from cockpit.hosts.transport import open_shell
from cockpit.model import sar
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob, Option
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.effect import wait_for_good_response
from cockpit.tuning.tuner import Tuner
from tests.lab import quotas
from tests.lab.containers import Container, container
from tests.lab.killed_client import check_every_kill
from tests.lab.reached_container import STATE, connections, probe_of
from tests.lab.test_transaction_faults import LOCK, TIME_PASSED
from tests.tuning.conftest import until

LEVEL = "/srv/level"


@pytest.fixture
def nginx(lab_allowed: None, tmp_path: Path) -> Iterator[Container]:
    (tmp_path / "conf").mkdir(mode=0o755)
    with container(tmp_path / "conf") as running:
        running.run(f"echo 5 >{LEVEL}; printf 'LEVEL=5\\n' >/etc/nginx-mounted/level.env")
        yield running


@pytest.fixture
async def shell(nginx: Container) -> AsyncIterator[Shell]:
    shell = await open_shell(inside(nginx))
    yield shell
    await shell.close()


def inside(nginx: Container) -> HostConfig:
    return HostConfig(name="web1", via=f"podman:{nginx.name}", processes=("nginx",))


KINDS = {
    "keyvalue": Knob(name="Level", host="web1", kind="keyvalue", file="/etc/nginx-mounted/level.env", key="LEVEL"),
    "command": Knob(name="Level", host="web1", kind="command", get=f"cat {LEVEL}", set=f'printf "%s\\n" "$1" >{LEVEL}'),
    "choice": Knob(
        name="Level",
        host="web1",
        kind="choice",
        get=f"cat {LEVEL}",
        option=tuple(Option(name=value, set=f"echo {value} >{LEVEL}") for value in "579"),
    ),
}


async def test_processes_limits_and_status_pages_of_container_are_read(nginx: Container, shell: Shell) -> None:
    probe = await HostProbe.start(shell, inside(nginx))
    first = await probe.read()
    while (reading := await probe.read()).uptime < first.uptime + 1:
        pass
    probe.close()
    assert {process.pid for process in reading.processes} == nginx.processes
    levels = sar.levels(reading)
    assert levels["cgroup.quota"] == pytest.approx(100 * quotas.SHARE)
    assert levels["cgroup.kblimit"] == 200 << 10
    assert 0 < levels["cgroup.kbmemory"] < levels["cgroup.kblimit"]
    # The machine's memory is reported separately.
    assert reading.memory.total > levels["cgroup.kblimit"]
    page = await read_page(shell, StatusPage(kind="nginx", url=f"http://127.0.0.1:{nginx.port}/status"))
    assert page.values["Active connections"] >= 1


@pytest.mark.parametrize("kind", ["nginx", *KINDS])
async def test_knob_of_each_kind_is_set_and_undone_inside(nginx: Container, shell: Shell, kind: str) -> None:
    before, knob = nginx.run(STATE), KINDS.get(kind) or connections(nginx)
    tuner = Tuner(probe_of(nginx))
    applied = await tuner.apply(shell, "web1", [(knob, "7")])
    assert await tuner.read(shell, knob) == "7" and nginx.run(STATE) != before
    await tuner.undo(shell, applied)
    assert nginx.run(STATE) == before


async def test_change_inside_is_rolled_back_if_client_is_killed(
    nginx: Container, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container rolls the change back by itself, for a kill during each command."""
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)
    # A command that outlives its client renews the lease at its end.
    await check_every_kill(
        shell,
        Tuner(timeouts=Timeouts(reach=0.05, lease=30)),
        (connections(nginx), "128"),
        state=lambda: nginx.run(STATE),
        rolled_back=lambda: not nginx.run(f"{TIME_PASSED}; ls {LOCK} 2>/dev/null", check=False),
    )
    assert await probe_of(nginx)() == ""


@pytest.fixture
async def outer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Shell]:
    """A shell on this machine, from which the container is changed."""
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shell = await open_shell(HostConfig(name="web1"))
    yield shell
    await shell.close()


def expire(changes: Path) -> bool:
    """Let the confirmation time of all changes expire; return whether no change has a guard.

    A client killed before the start of the guard leaves a lock, which the next change takes over.
    """
    for deadline in changes.glob("*/*/deadline"):
        deadline.write_text("0")
    return not any(lock.readlink().with_name("pid").exists() for lock in changes.glob("*/lock"))


def restarting(nginx: Container, directive: str = "worker_processes", test: str = "") -> Knob:
    """Return a knob in the mounted file that a restart of the container activates."""
    return Knob(
        name=directive,
        host="web1",
        kind="nginx",
        file=str(nginx.file),
        directive=directive,
        test=test,
        reload=nginx.restart,
        workers="nginx",
    )


def unknown_port(host: str) -> None:
    """Return None: the target's port on the container is unknown."""


async def test_container_is_changed_from_outside_and_restarted(nginx: Container, outer: Shell) -> None:
    before, knob = (
        nginx.file.read_bytes(),
        restarting(nginx, test=f"podman exec {nginx.name} nginx -t -c {nginx.inside}"),
    )
    tuner = Tuner(probe_of(nginx), port_on=unknown_port)
    assert len(nginx.processes) == 2
    applied = await tuner.apply(outer, "web1", [(knob, "3")])
    assert not [note for note in applied.notes if "old worker" in note] and len(nginx.processes) == 4
    await tuner.undo(outer, applied)
    assert nginx.file.read_bytes() == before and len(nginx.processes) == 2


async def test_change_is_rolled_back_if_container_does_not_restart(nginx: Container, outer: Shell) -> None:
    before = nginx.file.read_bytes()
    tuner = Tuner(probe_of(nginx), Timeouts(effect=5), port_on=unknown_port)
    with pytest.raises(ChangeRolledBack, match="rolled back and reloaded"):
        await tuner.apply(outer, "web1", [(restarting(nginx, "user"), "nobody-here")])
    assert nginx.file.read_bytes() == before
    assert await probe_of(nginx)() == ""


async def test_change_outside_is_rolled_back_if_client_is_killed(
    nginx: Container, outer: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard runs outside: a restart of the container does not end it."""
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)

    async def serves() -> bool:
        # The guard's restart of the container does not wait for its server.
        answers = await wait_for_good_response(probe_of(nginx), 60) == ""
        await until(lambda: len(nginx.processes) == 2)
        return answers

    await check_every_kill(
        outer,
        Tuner(probe_of(nginx), Timeouts(reach=0.05, lease=30), port_on=unknown_port),
        (restarting(nginx), "2"),
        state=nginx.file.read_bytes,
        rolled_back=lambda: expire(tmp_path / "state" / "cockpit" / "changes"),
        serves=serves,
    )


async def test_single_mounted_file_needs_restart_from_outside(lab_allowed: None, outer: Shell, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir(mode=0o755)
    with container(tmp_path / "conf", whole=False) as nginx:
        before, tuner = nginx.file.read_bytes(), Tuner(probe_of(nginx), port_on=unknown_port)
        inner = await open_shell(inside(nginx))
        with pytest.raises(ChangeRefused, match=r"mounted as a single file into this container.*changes_outside"):
            await tuner.apply(inner, "web1", [(connections(nginx), "128")])
        await inner.close()
        reload = f"podman exec {nginx.name} nginx -s reload -c {nginx.inside}"
        with pytest.raises(ChangeRefused, match="keeps the old file until it is restarted"):
            await tuner.apply(outer, "web1", [(replace(restarting(nginx), reload=reload), "2")])
        assert nginx.file.read_bytes() == before
        applied = await tuner.apply(outer, "web1", [(restarting(nginx), "2")])
        assert len(nginx.processes) == 3
        await tuner.undo(outer, applied)
        assert nginx.file.read_bytes() == before and len(nginx.processes) == 2
