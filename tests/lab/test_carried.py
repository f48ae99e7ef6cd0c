"""A host reached by a command (`nsenter`, in place of a container's `exec`), without its sshd."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.feed import read_page
from cockpit.hosts.transport import open_shell
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.lab.command_host import by_command
from tests.lab.killed_client import check_every_kill
from tests.lab.lab import Host
from tests.lab.test_transaction_faults import KINDS, LEVEL_FILE, LOCK, STATE, TIME_PASSED
from tests.tuning.conftest import until


@pytest.fixture
async def shell(fresh_web1: Host) -> AsyncIterator[Shell]:
    fresh_web1.run(f"echo 5 >{LEVEL_FILE}; rm -rf /root/.local/state/cockpit")
    shell = await open_shell(by_command(fresh_web1))
    yield shell
    await shell.close()


async def test_processes_and_status_pages_of_host_are_read(fresh_web1: Host, shell: Shell) -> None:
    probe = await Probe.start(shell, HostConfig(name="web1", processes=("apache2",)))
    reading = await probe.read()
    probe.close()
    running = set(map(int, fresh_web1.run("pgrep -x apache2").stdout.split()))
    assert {process.pid for process in reading.processes} == running
    page = await read_page(shell, StatusPage(kind="apache", url="http://localhost/server-status?auto"))
    assert page.values["BusyWorkers"] >= 1


@pytest.mark.parametrize("kind", KINDS)
async def test_knob_of_each_kind_is_set_and_undone(fresh_web1: Host, shell: Shell, kind: str) -> None:
    before, (knob, value) = fresh_web1.run(STATE).stdout, KINDS[kind]
    applied = await Tuner().apply(shell, "web1", [(knob, value)])
    assert await Tuner().read(shell, knob) == value and fresh_web1.run(STATE).stdout != before
    await Tuner().undo(shell, applied)
    assert fresh_web1.run(STATE).stdout == before


async def test_change_is_rolled_back_if_client_is_killed_at_any_step(
    fresh_web1: Host, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host rolls the change back by itself, for a kill during each command."""
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)

    def rolled_back() -> bool:
        fresh_web1.run(TIME_PASSED, check=False)
        return fresh_web1.run(f"test -L {LOCK}", check=False).returncode == 1

    await check_every_kill(
        shell,
        Tuner(timeouts=Timeouts(reach=0.05, lease=30)),
        KINDS["directive"],
        state=lambda: fresh_web1.run(STATE).stdout,
        rolled_back=rolled_back,
    )
    await until(lambda: fresh_web1.run("apachectl -t && pgrep -x apache2", check=False).returncode == 0)
