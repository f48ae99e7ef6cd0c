"""Two hosts during one run: Apache on one and Tomcat on the other, connected by mod_jk."""

import json
import subprocess
import sys
from pathlib import Path

from cockpit.model.events import AnyEvent, HostSample
from cockpit.recording.reader import Recording
from tests.lab.cpus import generator_cpu
from tests.lab.lab import Host, Lab

PROFILE = Path(__file__).with_name("two-hosts.toml")
BOTH = {"web1": "apache2", "app1": "java"}


def watched(events: list[AnyEvent], host: str) -> set[str]:
    """Return the names of the watched processes of a host."""
    samples = [event for event in events if isinstance(event, HostSample) and event.host == host]
    return {process.comm for sample in samples for process in sample.reading.processes}


def test_two_hosts_in_one_run(whole_lab: Lab, plain_web1: Host, tmp_path: Path) -> None:
    file = tmp_path / "two-hosts.cockpit"
    plain_web1.ssh("a2enmod -q jk && service apache2 restart")
    command = [sys.executable, "-m", "cockpit", "run", "--trust", str(PROFILE), "--no-tui", "--json", "-q", "60"]
    command += ["-n", "180", "--record", str(file), "--ssh-config", str(whole_lab.ssh_config)]
    command += ["--connect-to", f"{plain_web1.address}:80", "--cpus", str(generator_cpu())]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # The profile checks each response: a SOAP envelope with data of the database.
    assert (result["failed"], result["statuses"]) == (0, {"200": 180})
    assert set(result["hosts"]) == set(BOTH)
    for metrics in result["hosts"].values():
        assert 0 < metrics["cpu.user"] <= 100 and metrics["memory.total"] > 0
    assert result["hosts"]["web1"]["processes.count"] > result["hosts"]["app1"]["processes.count"] == 1
    with Recording(file) as recording:
        events = list(recording.events())
    assert {host: watched(events, host) for host in BOTH} == {host: {name} for host, name in BOTH.items()}
