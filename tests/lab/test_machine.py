"""`machine:NAME`: a container with a real systemd, reached by `systemd-run -M` over its bus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.lab.killed_client import check_every_kill
from tests.lab.systemd import Booted, booted
from tests.lab.test_transaction_faults import KINDS, LEVEL_FILE, LOCK, TIME_PASSED
from tests.tuning.conftest import until

# Where systemd-machined registers machines; systemd-run reads the PID of a machine's first process there.
REGISTERED = Path("/run/systemd/machines")
UNITS = "systemctl list-units --state=active,deactivating,failed --plain --no-legend 'run-*.service'"
STATE = f"cat {LEVEL_FILE}; ls /tmp"


@pytest.fixture(scope="module")
def machine(lab_allowed: None) -> Iterator[Booted]:
    with booted() as running:
        running.run("systemctl start dbus.service")
        REGISTERED.mkdir(parents=True, exist_ok=True)
        entry = REGISTERED / running.name
        entry.write_text(f"NAME={running.name}\nCLASS=container\nLEADER={running.pid}\n")
        try:
            yield running
        finally:
            entry.unlink()


@pytest.fixture
async def shell(machine: Booted) -> AsyncIterator[Shell]:
    shell = await open_shell(HostConfig(name="web1", via=f"machine:{machine.name}"))
    yield shell
    await shell.close()


async def test_program_has_its_streams_its_exit_status_and_a_home(machine: Booted, shell: Shell) -> None:
    binary = bytes(range(256)) * 1000
    assert await shell.run("cat; echo no >&2; exit 3", input=binary) == (3, binary, b"no\n")
    assert (await shell.run('echo "$HOME"')).stdout == b"/root\n"
    await until(lambda: not machine.run(UNITS))


async def test_background_program_outlives_the_one_that_started_it(machine: Booted, shell: Shell) -> None:
    started = "setsid sh -c 'while sleep 0.1; do :; done' </dev/null >/dev/null 2>&1 & echo $!"
    pid = int((await shell.run(started)).stdout)
    await until(lambda: not machine.run(UNITS))
    machine.run(f"kill {pid}")


async def test_probe_reads_processes_and_leaves_no_program(machine: Booted, shell: Shell) -> None:
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("nginx",)))
    reading = await probe.read()
    assert {process.pid for process in reading.processes} == set(map(int, machine.run("pgrep -x nginx").split()))
    assert machine.run(UNITS)
    probe.close()
    await until(lambda: not machine.run(UNITS))


async def test_change_is_rolled_back_if_client_is_killed(
    machine: Booted, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is a background program: it must outlive the unit that started it."""
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)
    machine.run(f"echo 5 >{LEVEL_FILE}; rm -rf /root/.local/state/cockpit")
    await check_every_kill(
        shell,
        Tuner(timeouts=Timeouts(reach=0.05, lease=30)),
        KINDS["command"],
        state=lambda: machine.run(STATE),
        rolled_back=lambda: not machine.run(f"{TIME_PASSED}; ls {LOCK} 2>/dev/null || :"),
    )


async def test_unknown_machine_is_an_error() -> None:
    shell = await open_shell(HostConfig(name="web1", via="machine:nowhere"))
    with pytest.raises(HostError, match=r"`machine:nowhere` did not start `sh -s`: Failed to .*"):
        await shell.run("true")
    await shell.close()
