"""Load from generators on lab hosts, each with its own sshd and network: exact counts, and the loss of a generator."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from cockpit.cluster.dask_launcher import WORKER_ENDED, DaskLauncher
from cockpit.cluster.over_ssh import cluster_over_ssh
from cockpit.cluster.remote_generator import RemoteGenerator
from cockpit.load.pool import launch
from cockpit.load.preflight import preflight
from cockpit.model.clock import Clock
from cockpit.model.generators import GeneratorLost
from cockpit.model.host.samples import GeneratorConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick
from tests.commands import cockpit
from tests.data import data_of
from tests.lab.generator_hosts import PYTHON, install_python
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Lab
from tests.load.servers import Outcome
from tests.waiting import DEADLINE

DATA = data_of(__file__)

# The hosts that generate load; the target is web1's Apache.
GENERATORS = ("app1", "origin1", "proxy1", "web1")
PROFILE = DATA["profile"]


@pytest.fixture(scope="module")
def generators(whole_lab: Lab) -> Lab:
    install_python(whole_lab, GENERATORS)
    return whole_lab


def tolerate_late_pings() -> None:
    """On a busy machine pings are late."""
    RemoteGenerator.timeout = 10.0


def test_four_generators_send_an_exact_open_load(generators: Lab, tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    machines = (f'[[generator]]\nname = "{name}"\nssh = "{name}"\npython = "{PYTHON}"\n' for name in GENERATORS)
    file.write_text(PROFILE.format(address=generators.web1.address) + "\n".join(machines))
    command = ["run", "--trust", str(file), "--no-tui", "--json", "--no-record"]
    command += ["--ssh-config", str(generators.ssh_config)]
    done = cockpit(*command, cwd=REPOSITORY, before=tolerate_late_pings)
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert (result["completed"], result["failed"], result["unsent"]) == (800, 0, 0), result["errors"]
    # 800 arrivals at 400/s: the last is due after 1.9975 s; response times count from the due time.
    assert 1.9 < result["duration"] < 2.1 + result["response"]["max"]
    assert result["generator"]["workers"] == len(GENERATORS), result["warnings"]


async def test_load_of_lost_generator_moves_to_others(generators: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteGenerator, "timeout", 5.0)
    outcome, clock = Outcome(), Clock()
    plan = LoadPlan(url=f"http://{generators.web1.address}/hello.html", rate=90.0, duration=600.0)
    machines = [GeneratorConfig(name=name, ssh=name, python=PYTHON) for name in GENERATORS[:3]]
    async with (
        cluster_over_ssh(machines, generators.ssh_config) as (address, security),
        DaskLauncher(address, security, len(machines)) as launcher,
    ):
        launcher.attach(clock, outcome.emit)
        run = await launch(plan, 1, clock, outcome.emit, await preflight(plan), launcher)
        await outcome.until(lambda outcome: {tick.worker for tick in outcome.ticks} == {0, 1, 2})
        with generators.hosts["origin1"].unplugged():
            cut = clock.now()
            await outcome.until(lambda outcome: any(isinstance(event, GeneratorLost) for event in outcome.events))
            [lost] = [event for event in outcome.events if isinstance(event, GeneratorLost)]
            # Whichever is noticed first: no answer of its processes, or the end of its connection.
            assert lost.machine == "origin1" and re.search(f"no answer|{WORKER_ENDED}", lost.detail)

            def rates() -> list[float]:
                """Return the rates of each remaining worker's last 3 s, from a second after the loss on."""
                after: dict[int, list[Tick]] = {}
                for tick in outcome.ticks:
                    if tick.start > lost.t + 1:
                        after.setdefault(tick.worker, []).append(tick)
                last = [ticks[-30:] for ticks in after.values() if len(ticks) >= 30]
                return [sum(tick.sent for tick in ticks) / (ticks[-1].t - ticks[0].start) for ticks in last]

            await outcome.until(lambda _: len(rates()) == 2 and sum(rates()) == pytest.approx(90.0, rel=0.05))
            assert lost.t > cut
        run.stop()
        async with asyncio.timeout(DEADLINE):
            await run.wait()
    assert generators.hosts[GENERATORS[0]].run("ps -e -o args= | grep '[c]ockpit.cluster' || true").stdout == ""
