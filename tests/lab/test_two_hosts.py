"""Two hosts during one run: Apache on one and Tomcat on the other, connected by mod_jk."""

from pathlib import Path

from cockpit.model.events import AnyEvent, HostSample
from cockpit.recording.reader import Recording
from tests.lab.lab import Host, Lab
from tests.lab.two_hosts import record

RECORDING = Path(__file__).parents[1] / "recordings" / "two-hosts.cockpit"
BOTH = {"web1": "apache2", "app1": "java"}


def watched(events: list[AnyEvent], host: str) -> set[str]:
    """Return the names of the watched processes of a host."""
    samples = [event for event in events if isinstance(event, HostSample) and event.host == host]
    return {process.comm for sample in samples for process in sample.reading.processes}


def test_two_hosts_in_one_run(whole_lab: Lab, plain_web1: Host, tmp_path: Path) -> None:
    file = tmp_path / "two-hosts.cockpit"
    result = record(whole_lab, file, "-q", "60", "-n", "180")
    # The profile checks each response: a SOAP envelope with data of the database.
    assert (result["failed"], result["statuses"]) == (0, {"200": 180})
    assert set(result["hosts"]) == set(BOTH)
    for metrics in result["hosts"].values():
        assert 0 < metrics["cpu.user"] <= 100
        assert metrics["memory.total"] > 0
        assert metrics["processes.count"] >= 1
    assert result["hosts"]["web1"]["processes.count"] > result["hosts"]["app1"]["processes.count"] == 1
    with Recording(file) as recording:
        events = list(recording.events())
    assert {host: watched(events, host) for host in BOTH} == {host: {name} for host, name in BOTH.items()}


def test_kept_recording_has_both_hosts() -> None:
    assert RECORDING.stat().st_size < 300_000
    with Recording(RECORDING) as recording:
        events = list(recording.events())
    assert {host: watched(events, host) for host in BOTH} == {host: {name} for host, name in BOTH.items()}
