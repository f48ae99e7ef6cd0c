"""CPU quotas: each host of a lab gets its quota, with and without other load, and no cgroups remain afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.lab import quotas, state
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab

BUSY_LOOP = 'bash -c \'TIMEFORMAT="%R %U %S"; time timeout 2 sh -c "while :; do :; done"\' 2>&1; true'
# Limits of a loop's CPU share: the kernel's clock tick (4 ms) is coarse relative to the period.
LEAST, MOST = 0.5 * quotas.SHARE, 1.5 * quotas.SHARE


def cpu_share(host: Host) -> float:
    """Return the CPU time of a busy loop on the host, per second of wall time."""
    wall, user, system = (float(field) for field in host.run(BUSY_LOOP).stdout.split())
    return (user + system) / wall


def throttled(host: Host) -> int:
    """Return the number of periods in which the host used up its quota."""
    assert host.cgroup is not None
    rows = (row.split() for row in (host.cgroup / "cpu.stat").read_text().splitlines())
    return int(dict(rows)["nr_throttled"])


@pytest.fixture
def quotas_allowed(lab_allowed: None) -> None:
    if obstacle := quotas.obstacle():
        pytest.skip(f"no CPU quotas on this machine: {obstacle}")


@pytest.fixture
def slow_lab(quotas_allowed: None) -> Iterator[Lab]:
    with Lab.start("web1", "proxy1", share=quotas.SHARE) as lab:
        yield lab


def test_each_host_gets_its_quota_alone_and_concurrently(slow_lab: Lab) -> None:
    hosts = tuple(slow_lab.hosts.values())
    before = [throttled(host) for host in hosts]
    assert LEAST < cpu_share(hosts[0]) < MOST
    with ThreadPoolExecutor() as pool:
        shares = list(pool.map(cpu_share, hosts))
    assert all(LEAST < share < MOST for share in shares), shares
    assert all(now > then for now, then in zip(map(throttled, hosts), before, strict=True))


@pytest.mark.parametrize(
    "restart", [lambda host: host.restart("apache2"), lambda host: host.ssh("service apache2 restart >/dev/null 2>&1")]
)
def test_servers_and_logins_of_host_have_separate_cgroups(slow_lab: Lab, restart: Callable[[Host], object]) -> None:
    cgroup = slow_lab.web1.cgroup
    assert cgroup is not None and slow_lab.share == quotas.SHARE
    restart(slow_lab.web1)
    slow_lab.web1.ssh("setsid sleep 60 >/dev/null 2>&1 &")

    def names(group: str) -> list[str]:
        return [_name(pid) for pid in (cgroup / group / "cgroup.procs").read_text().split()]

    assert state.wait_for(lambda: names(quotas.SERVERS).count("apache2") == 6)
    assert state.wait_for(lambda: {"sleep", "sshd"} <= {*names(quotas.LOGINS)})
    assert "apache2" not in names(quotas.LOGINS)


def test_logins_have_priority_over_servers(slow_lab: Lab) -> None:
    cgroup = slow_lab.web1.cgroup
    assert cgroup is not None
    weight = {1: "cpu.shares", 2: "cpu.weight"}[controller().version]
    servers, logins = (int((cgroup / group / weight).read_text()) for group in (quotas.SERVERS, quotas.LOGINS))
    assert logins >= 100 * servers


def test_generator_cgroup_has_priority_and_no_quota(slow_lab: Lab) -> None:
    output = subprocess.run(
        slow_lab.as_generator(["sh", "-c", "cat /proc/self/cgroup; nproc"]), capture_output=True, text=True
    ).stdout
    generator = quotas.cgroups(slow_lab.number)[0]
    assert generator.name in output and output.endswith("\n1\n")
    weights = {1: ("cpu.shares", "cpu.cfs_quota_us", "-1"), 2: ("cpu.weight", "cpu.max", f"max {quotas.PERIOD * 10}")}
    weight, quota, unlimited = weights[controller().version]
    assert (generator / weight).read_text() == (slow_lab.hosts["web1"].cgroup / weight).read_text()  # type: ignore[operator]
    assert (generator / quota).read_text().strip() == unlimited


def _name(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # the process has ended
        return ""


def test_down_removes_cgroups(slow_lab: Lab) -> None:
    names = [path.name.rpartition("-")[2] for path in quotas.cgroups(slow_lab.number)]
    assert names == ["generator", "proxy1", "web1"]
    assert any(line.startswith("cgroup ") for line in state.leftovers(slow_lab.number))
    slow_lab.stop()
    assert quotas.cgroups(slow_lab.number) == state.leftovers(slow_lab.number) == []


def test_generator_that_outlives_lab_leaves_its_cgroup(slow_lab: Lab) -> None:
    generator = subprocess.Popen(slow_lab.as_generator(["sleep", "600"]))
    try:
        cgroup = quotas.cgroups(slow_lab.number)[0]
        assert state.wait_for(lambda: str(generator.pid) in (cgroup / "cgroup.procs").read_text().split())
        slow_lab.stop()
        assert state.leftovers(slow_lab.number) == [] and generator.poll() is None
    finally:
        generator.kill()
        generator.wait()


def test_cgroups_of_killed_lab_are_removed(quotas_allowed: None) -> None:
    lab = Lab.start(stay=True, share=quotas.SHARE)
    try:
        assert lab.number in quotas.numbers() and lab.number in state.known()
        os.kill(lab.keeper_pid, signal.SIGKILL)
        assert state.wait_for(lambda: not state.is_kept(lab.number))
    finally:
        lab.stop()
    assert lab.number not in quotas.numbers()
    assert state.leftovers(lab.number) == []


def test_lab_without_quotas_reports_reason_and_pins_hosts(lab_allowed: None) -> None:
    program = (
        "from tests.lab.lab import Lab; from tests.lab.quotas import SHARE\n"
        "with Lab.start(share=SHARE) as lab: print(lab.share, lab.cpus, lab.web1.run('nproc').stdout)"
    )
    script = f'umount -l -a -t cgroup,cgroup2; exec {sys.executable} -c "$0"'
    unshare = ["unshare", "--mount", "sh", "-c", script, program]
    done = subprocess.run(unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY)
    reason = "(no CPU quotas: no cgroup hierarchy with a cpu controller is mounted)"
    assert done.stdout.strip().startswith("None all hosts share CPU ") and done.stdout.strip().endswith(f"{reason} 1")


def test_read_only_cgroup_hierarchy_is_an_obstacle(quotas_allowed: None) -> None:
    root = controller().root
    script = f'mount --bind {root} {root} && mount -o remount,bind,ro {root} && exec {sys.executable} -c "$0"'
    program = "from tests.lab import quotas; print(quotas.obstacle())"
    unshare = ["unshare", "--mount", "sh", "-c", script, program]
    done = subprocess.run(unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY)
    assert done.stdout.startswith("no cgroup can be made: ") and "Read-only file system" in done.stdout, done.stderr


def controller() -> quotas.Controller:
    found = quotas.controller()
    assert found is not None
    return found


ROW_OF_V1 = "36 32 0:33 / {} rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
ROW_OF_V2 = "42 32 0:39 / {} rw,relatime - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("row", "controllers", "version"),
    [(ROW_OF_V1, "", 1), (ROW_OF_V2, "cpuset cpu io", 2), (ROW_OF_V2, "hugetlb", None), ("", "", None)],
)
def test_cpu_controller_is_found_in_both_versions(
    tmp_path: Path, row: str, controllers: str, version: int | None
) -> None:
    (tmp_path / "cgroup.controllers").write_text(controllers)
    mounts = tmp_path / "mountinfo"
    mounts.write_text("31 1 8:1 / / rw - ext4 /dev/vda rw\n" + row.format(tmp_path))
    found = quotas.controller(mounts)
    assert (None if found is None else (found.root, found.version)) == (
        None if version is None else (tmp_path, version)
    )


def test_version_2_quota_has_kernel_format(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("memory")
    unified = quotas.Controller(tmp_path, 2)
    cgroup = unified.create("host")
    unified.limit(cgroup, 0.25)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert (cgroup / "cpu.max").read_text() == "2500 10000"
    assert (cgroup / "cpu.weight").read_text() == "10000"
