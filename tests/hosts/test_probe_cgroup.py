"""The server's control group: versions 1 and 2, container and unit, from files as in the kernel."""

from __future__ import annotations

import os
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from cockpit.hosts.counters import CounterTable
from cockpit.hosts.frames import Frame
from tests.waiting import programs

FIRST, SECOND = "40", "7"
V2 = {
    "cgroup.type": "domain\n",
    "cpu.stat": "usage_usec 7000001\nuser_usec 5\nsystem_usec 2\nnr_periods 50\nnr_throttled 20\nthrottled_usec 900\n",
    "cpu.max": "150000 100000\n",
    "memory.current": "52428800\n",
    "memory.max": "104857600\n",
    "memory.stat": "anon 1\nfile 2\ninactive_anon 3\ninactive_file 10485760\nactive_file 4\n",
    "cpu.pressure": "some avg10=1.00 avg60=0.00 avg300=0.00 total=4321\nfull avg10=0.00 avg60=0 avg300=0 total=1\n",
    "io.pressure": "some avg10=1.00 avg60=0.00 avg300=0.00 total=11\n",
}
V2_COUNTERS = {
    "version": 2, "cpu": 7000001, "periods": 50, "throttled": 20, "quota": 1500, "memory": 40960, "limit": 102400,
    "waits_cpu": 4321, "waits_io": 11,
}  # fmt: skip
V1_CPU = {
    "cpu.stat": "nr_periods 50\nnr_throttled 20\nthrottled_time 900\n",
    "cpu.cfs_quota_us": "150000\n",
    "cpu.cfs_period_us": "100000\n",
    "cpuacct.usage": "7000001999\n",
}
V1_MEMORY = {
    "memory.usage_in_bytes": "52428800\n",
    "memory.limit_in_bytes": "104857600\n",
    "memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 10485760\n",
}
V1_COUNTERS = {name: value for name, value in V2_COUNTERS.items() if "waits" not in name} | {"version": 1}
UNIT = "/system.slice/nginx.service"


class Host:
    """A folder with /proc of two processes and control groups, which an awk reads."""

    def __init__(self, awk: str, folder: Path) -> None:
        self._awk = awk
        self._folder = folder

    def write(self, group: str, files: dict[str, str]) -> None:
        """Write the files of a folder in the mounted control groups."""
        _write(self._folder / f"cgroup{group}", files)

    def counters(self, groups: str, port: str = "") -> dict[str, int]:
        """Return the counters that the awk program prints for a process with these lines in /proc/PID/cgroup. With a
        port, the other process listens there."""
        return self.counters_by_tick(groups, [(FIRST, SECOND)] * 6, port)[-1]

    def counters_by_tick(self, groups: str, there: list[tuple[str, ...]], port: str = "") -> list[dict[str, int]]:
        """As `counters`, for each tick, in which these processes are there."""
        proc = self._folder / "proc"
        for pid, lines in ((FIRST, "0::/another\n"), (SECOND, groups)):
            known = {"comm": "nginx\n", "stat": f"{pid} (nginx) S 1\n", "statm": "1 1 1\n", "status": "Uid:\t0\t0\n"}
            _write(proc / pid, known | {"cgroup": lines})
        (proc / FIRST / "fd").mkdir(exist_ok=True)
        (proc / FIRST / "fd" / "3").unlink(missing_ok=True)
        (proc / FIRST / "fd" / "3").symlink_to("socket:[77]")
        socket = f"0: 00000000:{port or '0050'} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1\n"
        _write(proc / "net", {"tcp": f"sl local_address\n{socket}"})
        _write(proc, {"stat": "cpu 1\n"})
        _write(proc / "pressure", {"cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"})
        source = (files("cockpit.hosts") / "probe.awk").read_text()
        environment = {
            **os.environ, "patterns": "nginx", "regex": "", "port": port, "nuls": "y", "line_bytes": "100",
            "round": "10", "slow_round": "30", "most_shares": "1", "queue_round": "5",
            "readable": " pressure/cpu net/tcp", "groups": str(self._folder / "cgroup"),
        }  # fmt: skip
        ticks = "".join(
            "\n".join(("list", f"{at}", "changes", "1", "0", *pids, "end\n")) for at, pids in enumerate(there, 1)
        )
        command = [*self._awk.split(), source]
        done = subprocess.run(command, cwd=proc, env=environment, input=ticks, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        table, found = CounterTable(), []
        for frame in done.stdout.split("#cockpit begin ")[1:]:
            lines = "\n".join(line.partition(":")[2] for line in frame.splitlines() if line.startswith("/proc/cgroup:"))
            table.take(Frame(1, files={"/proc/cgroup": lines.encode()}, pids=()))
            found.append({name.removeprefix("cgroup."): value for name, value in table.counters.items()})
        return found


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


@pytest.fixture(params=programs("awk", "mawk", "gawk", "busybox awk"))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Host:
    return Host(request.param, tmp_path)


@pytest.mark.parametrize("where", [UNIT, ""], ids=["unit", "container"])
def test_version_2(host: Host, where: str) -> None:
    host.write(where, V2)
    assert host.counters(f"0::{where or '/'}\n") == V2_COUNTERS
    host.write(where, {"cpu.max": "max 100000\n", "memory.max": "max\n"})
    assert host.counters(f"0::{where or '/'}\n") == V2_COUNTERS | {"quota": 0, "limit": 0}


@pytest.mark.parametrize(
    ("lines", "cpu", "usage", "memory"),
    [
        (f"4:memory:{UNIT}\n2:cpu,cpuacct:{UNIT}\n0::/\n", f"cpu,cpuacct{UNIT}", f"cpu,cpuacct{UNIT}", f"memory{UNIT}"),
        # Like Docker: the path is the machine's, the mounted root is the container's group.
        ("4:memory:/docker/ab\n2:cpuacct:/docker/ab\n1:cpu:/docker/ab\n", "cpu", "cpuacct", "memory"),
        ("4:memory:/\n2:cpuacct:/\n1:cpu:/\n", "cpu", "cpuacct", "memory"),
    ],
    ids=["unit", "container", "namespace"],
)
def test_version_1(host: Host, lines: str, cpu: str, usage: str, memory: str) -> None:
    for group, values in ((cpu, V1_CPU), (usage, V1_CPU), (memory, V1_MEMORY)):
        host.write(f"/{group}", values)
    assert host.counters(lines) == V1_COUNTERS
    host.write(f"/{cpu}", {"cpu.cfs_quota_us": "-1\n"})
    host.write(f"/{memory}", {"memory.limit_in_bytes": "9223372036854771712\n"})
    assert host.counters(lines) == V1_COUNTERS | {"quota": 0, "limit": 0}


def test_group_of_target_port_is_read_and_replaces_the_other(host: Host) -> None:
    host.write(UNIT, V2)
    host.write("/another", V2 | {"cpu.max": "30000 100000\n", "cpu.stat": "usage_usec 9000000000\n"})
    assert host.counters(f"0::{UNIT}\n")["quota"] == 1500
    assert host.counters(f"0::{UNIT}\n", port="0050")["quota"] == 300
    found = host.counters_by_tick(f"0::{UNIT}\n", [(SECOND,)] * 5 + [(FIRST,)] * 6)
    assert [one.get("cpu") for one in found] == [7000001] * 5 + [None] + [9000000000] * 5
    assert found[-1]["quota"] == 300


def test_limits_are_sent_again_after_a_restart(host: Host) -> None:
    host.write(UNIT, V2)
    found = host.counters_by_tick(f"0::{UNIT}\n", [(SECOND,)] * 5 + [()] * 5 + [(SECOND,)] * 6)
    assert (found[4], found[9], found[-1]) == (V2_COUNTERS, {}, V2_COUNTERS)


def test_root_group_has_no_counters(host: Host) -> None:
    """The root group has no limits, and its memory is the machine's."""
    host.write("", {"cpu.stat": V2["cpu.stat"]})
    assert host.counters("0::/\n") == {}
    host.write("/memory", V1_MEMORY)
    assert host.counters("4:memory:/\n1:cpu:/\n") == {}
    assert host.counters(f"0::/../..{UNIT}\n") == {}, "group of another namespace"
    host.write("/cpu/x", V1_CPU)
    assert "memory" not in host.counters("4:memory:/\n1:cpu:/x\n"), "memory of the machine"
