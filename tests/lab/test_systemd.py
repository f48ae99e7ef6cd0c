"""Drop-ins of a unit of a real systemd: active, undone, overridden by another file, and values that stop the server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.metrics.results import RunResult
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.host.samples import HostConfig
from cockpit.servers import systemd
from cockpit.servers.inventory import Process
from cockpit.tuning.discovery.servers import discover, knob_of
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.lab.containers import response_from
from tests.lab.profile_runs import runs_of, shipped
from tests.lab.systemd import UNIT, Booted, booted

CONTROLLERS = Path("/sys/fs/cgroup/cgroup.controllers")
MASTER = Process(1, 0, "python3", (), unit=UNIT)
KNOBS = {one.name: knob_of(one, "web1") for one in systemd.candidates(MASTER)}
DIRECTORY = f"/etc/systemd/system/{UNIT}.d"
VALUES = {"LimitNOFILE": "400:500", "Nice": "5", "CPUQuota": "150%", "CPUWeight": "33"}
VALUES |= {"MemoryMax": "200M", "TasksMax": "50"}
V2 = CONTROLLERS.exists() and "memory" in CONTROLLERS.read_text().split()


@pytest.fixture(scope="module")
def machine() -> Iterator[Booted]:
    with booted() as running:
        yield running


@pytest.fixture
async def shell(machine: Booted) -> AsyncIterator[Shell]:
    shell = await open_shell(HostConfig(name="web1", via=machine.via))
    yield shell
    await shell.close()


def tuner_of(machine: Booted, effect: float) -> Tuner:
    async def probe() -> str:
        try:
            response = await response_from(machine.url)
        except httpx.HTTPError as error:
            return f"no response: {error}"
        return "" if response.text == "hello\n" else f"{response.status_code}"

    return Tuner(probe, Timeouts(effect=effect))


@pytest.fixture
def tuner(machine: Booted) -> Tuner:
    return tuner_of(machine, 60.0)


@pytest.fixture
def impatient(machine: Booted) -> Tuner:
    """For changes that never become active."""
    return tuner_of(machine, 5.0)


def units(machine: Booted) -> str:
    return machine.run("cd /etc/systemd/system && find . | sort")


def enforced(machine: Booted) -> list[str]:
    """The limits of the unit's control group, as the kernel of this machine has them."""
    group = machine.run(f"systemctl show -P ControlGroup {UNIT}").strip()
    if V2:
        files = [f"{group}/{name}" for name in ("cpu.max", "cpu.weight", "memory.max", "pids.max")]
    else:
        names = ("cpu{}/cpu.cfs_quota_us", "cpu{}/cpu.shares", "memory{}/memory.limit_in_bytes", "pids{}/pids.max")
        files = [f"/{name.format(group)}" for name in names]
    return machine.run(f"cd /sys/fs/cgroup && cat {' '.join(f'.{file}' for file in files)}").splitlines()


async def values(tuner: Tuner, shell: Shell) -> dict[str, str | None]:
    read = await asyncio.gather(*(tuner.read(shell, knob) for knob in KNOBS.values()))
    return dict(zip(KNOBS, read, strict=True))


@contextmanager
def directory(machine: Booted, theirs: str = "") -> Iterator[None]:
    """The unit has a directory of drop-ins, with one by others if given."""
    machine.run(f"mkdir {DIRECTORY}")
    if theirs:
        machine.run(f"printf '[Service]\\n{theirs}\\n' >{DIRECTORY}/99-theirs.conf; systemctl daemon-reload")
    yield
    machine.run(f"rm -r {DIRECTORY} && systemctl daemon-reload")


async def test_a_change_is_active_and_its_undo_leaves_nothing(machine: Booted, shell: Shell, tuner: Tuner) -> None:
    files, before, limit = units(machine), await values(tuner, shell), machine.limit()
    applied = await tuner.apply(shell, "web1", [(KNOBS[name], value) for name, value in VALUES.items()])
    now = {"MemoryMax": str(200 << 20), "MemoryHigh": "infinity"}
    assert await values(tuner, shell) == VALUES | now
    text = machine.run(f"cat {DIRECTORY}/90-webcockpit.conf")
    assert text.splitlines() == ["[Service]", *(f"{name}={value}" for name, value in VALUES.items())]
    assert machine.limit() == "400 500\n"
    quota, weight = ("150000 100000", "33") if V2 else ("150000", str(33 * 1024 // 100))
    assert enforced(machine) == [quota, weight, str(200 << 20), "50"]
    assert machine.run(f"cut -d ' ' -f 19 /proc/$(systemctl show -P MainPID {UNIT})/stat") == "5\n"
    await tuner.undo(shell, applied)
    assert (units(machine), await values(tuner, shell), machine.limit()) == (files, before, limit)
    # A property of the control group needs no restart.
    assert KNOBS["CPUQuota"].effective_cost == "live" and KNOBS["LimitNOFILE"].effective_cost == "restart"
    pid = machine.run(f"systemctl show -P MainPID {UNIT}")
    applied = await tuner.apply(shell, "web1", [(KNOBS["CPUQuota"], "6600%")])
    assert await tuner.read(shell, KNOBS["CPUQuota"]) == "6600%"
    await tuner.undo(shell, applied)
    assert machine.run(f"systemctl show -P MainPID {UNIT}") == pid


async def test_an_undo_keeps_a_directory_that_others_made(
    machine: Booted, shell: Shell, tuner: Tuner, impatient: Tuner
) -> None:
    with directory(machine):
        files = units(machine)
        applied = await tuner.apply(shell, "web1", [(KNOBS["TasksMax"], "50")])
        await tuner.undo(shell, applied)
        assert units(machine) == files
        # A refused change leaves it, too.
        with pytest.raises(ChangeRolledBack):
            await impatient.apply(shell, "web1", [(replace(KNOBS["TasksMax"], get="echo 7"), "50")])
        assert units(machine) == files
    # Others remove cockpit's directory and make it again.
    await tuner.apply(shell, "web1", [(KNOBS["TasksMax"], "50")])
    machine.run(f"rm -r {DIRECTORY}")
    with directory(machine):
        machine.run("systemctl daemon-reload")
        files = units(machine)
        applied = await tuner.apply(shell, "web1", [(KNOBS["CPUWeight"], "50")])
        assert await tuner.read(shell, KNOBS["CPUWeight"]) == "50"
        await tuner.undo(shell, applied)
        assert units(machine) == files


async def test_a_value_that_nothing_enforces_is_rolled_back(machine: Booted, shell: Shell, impatient: Tuner) -> None:
    files, change = units(machine), (KNOBS["MemoryHigh"], "150M")
    if V2:
        await impatient.undo(shell, await impatient.apply(shell, "web1", [change]))
    else:
        # Version 1 of control groups has no limit for it.
        with pytest.raises(ChangeRolledBack, match="MemoryHigh: it is still infinity: the host ignored 157286400"):
            await impatient.apply(shell, "web1", [change])
    assert units(machine) == files


async def test_a_drop_in_of_others_overrides_the_change(machine: Booted, shell: Shell, impatient: Tuner) -> None:
    with directory(machine, "Nice=7\\nTasksMax=77"):
        files = units(machine)
        # The value is that of the running server, not of files.
        assert machine.run(f"systemctl show -P Nice {UNIT}") == "7\n"
        assert await impatient.read(shell, KNOBS["Nice"]) != "7"
        with pytest.raises(ChangeRolledBack, match="TasksMax: it is still 77: the host ignored 50"):
            await impatient.apply(shell, "web1", [(KNOBS["TasksMax"], "50")])
        assert units(machine) == files


async def test_a_value_with_which_the_server_cannot_start(machine: Booted, shell: Shell, impatient: Tuner) -> None:
    files, limit = units(machine), machine.limit()
    with pytest.raises(ChangeRolledBack, match="rolled back"):
        # The old server has the same time to start again.
        await tuner_of(machine, 20.0).apply(shell, "web1", [(KNOBS["LimitNOFILE"], "3")])
    assert (units(machine), machine.limit()) == (files, limit)
    assert (await response_from(machine.url)).text == "hello\n"
    for one in systemd.candidates(MASTER._replace(unit="gone.service")):
        with pytest.raises(ChangeRefused, match=r"gone\.service is not running"):
            await impatient.read(shell, knob_of(one, "web1"))


async def test_a_quota_takes_the_rate_and_undone_leaves_nothing(machine: Booted) -> None:
    files = units(machine)
    place = {
        "http://web1:8000/": f"http://127.0.0.1:{machine.port}/",
        'ssh = "root@web1"': f'via = "{machine.via}"',
    }

    def shows(few: RunResult, many: RunResult | None = None) -> bool:
        return many is None or many.rate > 2.5 * few.rate

    values = {"CPUQuota": "1%"}, {"CPUQuota": "200%"}
    assert shows(*await runs_of(shipped("systemd", {}, 1.0, place), values, shows=shows))
    assert units(machine) == files


async def test_the_wizard_offers_the_settings_of_a_servers_unit(machine: Booted, shell: Shell) -> None:
    found = await discover(shell, "web1", 80)
    offered = {one.knob.name: one for one in found.suggested if one.knob.kind == "systemd"}
    assert set(offered) == set(KNOBS)
    assert {one.knob.file for one in offered.values()} == {"/etc/systemd/system/site.service.d/90-webcockpit.conf"}
    assert offered["Nice"].value == machine.run("cut -d ' ' -f 19 /proc/$(systemctl show -P MainPID site)/stat").strip()
