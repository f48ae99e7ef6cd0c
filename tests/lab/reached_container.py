"""Checks of a container that a command reaches, whichever command it is."""

from __future__ import annotations

import signal

import httpx
import pytest

from cockpit.hosts.probe import Probe
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.feed import read_page
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.tuning.effect import Probe as Responds
from cockpit.tuning.tuner import Tuner
from tests.lab.containers import Container, response_from
from tests.processes import newer_children
from tests.tuning.conftest import until

# Files of a container that a change and its undo touch.
STATE = "cat /srv/level; cd /etc/nginx-mounted && find . -printf '%p %y %m %u %g %l\\n' | sort; sha256sum *; ls /tmp"
# Maximum seconds until programs in a container have ended, on a busy machine; less than their idle timeout.
END = 45


def probe_of(nginx: Container) -> Responds:
    """Return a probe that requests a page from nginx."""

    async def probe() -> str:
        try:
            response = await response_from(nginx.url)
        except httpx.HTTPError as error:
            return type(error).__name__
        return "" if response.status_code == 200 else str(response.status_code)

    return probe


def connections(nginx: Container) -> Knob:
    """Return a knob that a reload in the container activates."""
    return Knob(
        name="worker_connections",
        host="web1",
        kind="nginx",
        file=nginx.inside,
        section="events {",
        directive="worker_connections",
        test=f"nginx -t -c {nginx.inside}",
        reload=f"nginx -s reload -c {nginx.inside}",
        workers="nginx",
    )


def programs(nginx: Container) -> list[str]:
    """List the processes in the container that are not its server's."""
    listed = nginx.run("for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || cat $p/comm; done 2>/dev/null", check=False)
    return [name for name in listed.split() if name not in ("nginx", "cat")]


async def check_readings(nginx: Container, shell: Shell, config: HostConfig) -> None:
    """The probe reads the processes and the status page."""
    probe = await Probe.start(shell, config)
    reading = await probe.read()
    assert {process.pid for process in reading.processes} == nginx.processes
    page = await read_page(shell, StatusPage(kind="nginx", url=f"http://127.0.0.1:{nginx.port}/status"))
    assert page.values["Active connections"] >= 1
    probe.close()


async def check_programs_end(nginx: Container) -> None:
    """The programs of a probe and of a read page have ended."""
    await until(lambda: not programs(nginx), END)


async def check_change(nginx: Container, shell: Shell) -> None:
    """A setting is read, changed, active, and undone without a trace."""
    before, knob, tuner = nginx.run(STATE, check=False), connections(nginx), Tuner(probe_of(nginx))
    assert await tuner.read(shell, knob) == "256"
    workers = nginx.processes
    applied = await tuner.apply(shell, "web1", [(knob, "128")])
    assert await tuner.read(shell, knob) == "128" and nginx.processes - workers
    await tuner.undo(shell, applied)
    assert await tuner.read(shell, knob) == "256" and nginx.run(STATE, check=False) == before


async def check_signalled_client(nginx: Container, shell: Shell, config: HostConfig, sent: signal.Signals) -> None:
    """The program ends in the container after its client got a signal, and the probe is lost."""
    clients = newer_children()
    probe = await Probe.start(shell, HostConfig(name="web1", via=config.via, processes=("nginx",), interval=0.2))
    await probe.read()
    assert programs(nginx)
    client = next(one for one in clients() if one.name() == config.via.partition(":")[0])
    client.send_signal(sent)
    await until(lambda: not programs(nginx), END)
    if sent == signal.SIGSTOP:
        client.send_signal(signal.SIGCONT)
    with pytest.raises(HostError, match="web1: the probe ended"):
        while True:
            await probe.read()
    probe.close()
