"""Output of sysstat 10.1 to 12.7.9: JSON and text of the same file have the same metrics, and all that are in them.

`results/sysstat/` has `sadf -j FILE -- -A` and `sar -A -f FILE` of versions that differ, on one machine, with one
interface and one disk. 11.0.8 writes as 10.1.7, 12.0.6 as 11.7.4, 12.6.2 as 12.4.5.
"""

from pathlib import Path

import pytest

from cockpit.imports.sar_text import parse_sar
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.sysstat import SysstatHost, parse_sysstat
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.state import HostState

RESULTS = Path(__file__).parent / "results" / "sysstat"
VERSIONS = sorted(file.stem for file in RESULTS.glob("*.json"))
TOTAL = 24684092 * 1024
METRICS = (
    "tasks.proc", "tasks.cswch", "paging.fault", "paging.pgsteal", "swapping.pswpin", "ram.kbmemused", "ram.memused",
    "queue.plist_sz", "sockets.totsck", "tcp.active", "etcp.retrans", "etcp.orsts",
)  # fmt: skip


def host_of(host: SysstatHost) -> HostState:
    return fold_all(session_of("x", 0.0, None, [ForeignHost("web1", host, "x")])).hosts["web1"]


@pytest.mark.parametrize("version", VERSIONS)
def test_text_and_json_of_a_version_have_the_same_metrics(version: str) -> None:
    written = RESULTS / f"{version}.json"
    json = host_of(parse_sysstat([written.read_text()]))
    with written.with_suffix(".txt").open(newline="") as lines:
        text = host_of(parse_sar(lines))
    for host in (json, text):
        point = host.points[-1]
        assert point.memory.total == TOTAL and point.io and point.net and point.cpu and point.cpu.idle < 100
        assert set(METRICS) <= host.sar.keys()
        assert [disk.name for disk in host.disks] and ("pressure.sio" in host.sar) == (version >= "12.4")
    assert text.points[-1] == json.points[-1] and text.disks == json.disks
    assert text.sar == pytest.approx({name: json.sar[name] for name in text.sar})


def test_all_versions_are_there() -> None:
    assert VERSIONS == ["10.1.1", "10.1.7", "11.5.7", "11.7.4", "12.2.3", "12.4.5", "12.7.2", "12.7.5", "12.7.9"]
