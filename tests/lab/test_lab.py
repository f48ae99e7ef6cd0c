"""The lab: isolated hosts, real servers, and no remains after it is down."""

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncssh
import pytest

from tests.lab import network, state
from tests.lab.cpus import generator_affinity, generator_cpu, server_cpu, usable_cpus
from tests.lab.errors import LabError
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.lab.services import PREFORK_CONF


def get(host: Host, path: str = "/hello.html") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host.address, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def workers(host: Host) -> set[int]:
    """Return the PIDs of Apache's workers in the host, including defunct ones."""
    processes = host.processes("apache2")
    return {pid for pid, parent in processes.items() if parent in processes}


def namespaces(pid: int | str) -> dict[str, str]:
    kinds = ("pid", "net", "mnt", "uts", "ipc")
    return {kind: str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in kinds}


def machine() -> tuple[str, str]:
    """Return the named network namespaces and mounts of this machine."""
    named = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return named, Path("/proc/self/mountinfo").read_text()


def loop_devices(host: Host) -> list[str]:
    """Return the loop devices mounted on a host."""
    return [
        row.split()[0].removeprefix("/dev/") for row in host.run("grep ^/dev/loop /proc/mounts").stdout.splitlines()
    ]


def is_of_lab(device: str, number: int) -> bool:
    """Return whether a loop device uses an image of the lab."""
    try:
        return state.label(number) in Path(f"/sys/block/{device}/loop/backing_file").read_text()
    except FileNotFoundError:
        return False


def used_networks() -> set[str]:
    """Return the network namespaces with processes."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add(str((process / "ns/net").readlink()))
        except OSError:
            continue
    return found


def test_host_has_its_own_namespaces_and_processes(lab: Lab) -> None:
    of_machine, of_host = namespaces("self"), namespaces(lab.web1.pid)
    assert all(of_machine[kind] != of_host[kind] for kind in of_machine)

    def commands() -> dict[int, str]:
        listed = lab.web1.run("ps -e -o pid=,comm=").stdout.split("\n")
        return {int(row.split()[0]): row.split()[1] for row in listed if row}

    found = commands()
    assert found.pop(1) == "init"
    assert {"apache2", "sshd"} <= set(found.values())
    # Processes of an earlier test may still be ending.
    known = {"init", "apache2", "sshd", "sh", "ps"}
    assert state.wait_for(lambda: set(commands().values()) <= known), lab.web1.run(
        "ps -e -o pid,ppid,etime,args"
    ).stdout


def test_orphans_are_reaped(lab: Lab) -> None:
    lab.web1.run("for i in 1 2 3; do setsid true & done; setsid sh -c 'echo orphan >/run/orphan' &")
    assert state.wait_for(lambda: lab.web1.run("cat /run/orphan", check=False).stdout == "orphan\n")
    defunct = "ps -e -o ppid=,stat= | awk '$1 == 1 && $2 ~ /^Z/'"
    assert state.wait_for(lambda: lab.web1.run(defunct).stdout == "")


def test_defunct_workers_are_visible_until_apache_reaps_them(fresh_web1: Host) -> None:
    parent = int(fresh_web1.run("cat /run/apache2/apache2.pid").stdout)
    worker = min(workers(fresh_web1))
    fresh_web1.run(f"kill -STOP {parent} && kill -KILL {worker}")
    try:
        assert state.wait_for(lambda: fresh_web1.run(f"ps -o stat= -p {worker}").stdout.startswith("Z"))
    finally:
        fresh_web1.run(f"kill -CONT {parent}")
    assert state.wait_for(lambda: worker not in workers(fresh_web1))


def test_ssh_with_openssh_client(lab: Lab) -> None:
    assert lab.web1.ssh("hostname; id -un").stdout.split() == ["web1", "root"]


def test_ssh_refuses_other_key(lab: Lab, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    config = lab.ssh_config.read_text().replace(str(lab.directory / "key"), str(other))
    (tmp_path / "ssh_config").write_text(config)
    client = ["ssh", "-F", str(tmp_path / "ssh_config"), "-o", "BatchMode=yes", "web1", "true"]
    done = subprocess.run(client, capture_output=True, text=True)
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


async def test_asyncssh_reads_ssh_config(lab: Lab) -> None:
    async with asyncssh.connect("web1", config=[str(lab.ssh_config)]) as connection:
        done = await connection.run("hostname; id -un", check=True)
    assert str(done.stdout).split() == ["web1", "root"]


def test_apache_serves_92_bytes_with_prefork(lab: Lab) -> None:
    status, body = get(lab.web1)
    assert (status, len(body)) == (200, 92)
    assert lab.web1.url == f"http://{lab.web1.address}/hello.html"
    assert "prefork" in lab.web1.ssh("apachectl -V").stdout


def test_apache_starts_untuned(lab: Lab) -> None:
    rows = (line.split() for line in lab.web1.run(f"cat {PREFORK_CONF}").stdout.splitlines())
    assert dict(row for row in rows if len(row) == 2 and row[0][0] not in "#<") == {
        "StartServers": "5",
        "MinSpareServers": "5",
        "MaxSpareServers": "10",
        "MaxRequestWorkers": "150",
        "MaxConnectionsPerChild": "100",
    }


def test_apachectl_tests_and_reloads_over_ssh(fresh_web1: Host) -> None:
    tested = fresh_web1.ssh("apachectl -t")
    assert "Syntax OK" in tested.stderr + tested.stdout
    assert state.wait_for(lambda: len(workers(fresh_web1)) >= 5)
    before = workers(fresh_web1)
    fresh_web1.ssh("apachectl graceful")
    assert state.wait_for(lambda: len(workers(fresh_web1)) >= 5 and not before & workers(fresh_web1))
    fresh_web1.ssh(f"echo Nonsense >> {PREFORK_CONF}")
    refused = fresh_web1.ssh("apachectl -t", check=False)
    assert refused.returncode != 0
    assert "Nonsense" in refused.stderr + refused.stdout


def test_restart_restores_untuned_configuration(lab: Lab) -> None:
    untuned = lab.web1.run(f"cat {PREFORK_CONF}").stdout
    lab.web1.run(f"echo 'StartServers 9' >> {PREFORK_CONF} && chmod 600 {PREFORK_CONF} && apachectl graceful")
    assert state.wait_for(lambda: len(workers(lab.web1)) >= 9)
    lab.web1.restart("apache2")
    assert lab.web1.run(f"cat {PREFORK_CONF}; stat -c %a {PREFORK_CONF}").stdout == f"{untuned}644\n"
    assert state.wait_for(lambda: 5 <= len(workers(lab.web1)) < 9)
    assert get(lab.web1)[0] == 200


def test_servers_and_generator_have_separate_cpus(fresh_web1: Host) -> None:
    allowed = "cat /proc/[0-9]*/status | sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' | sort -u"
    assert fresh_web1.run(allowed).stdout == f"{server_cpu()}\n"
    assert fresh_web1.ssh(allowed).stdout == f"{server_cpu()}\n"
    affinity = os.sched_getaffinity(0)
    with generator_affinity():
        assert os.sched_getaffinity(0) == {generator_cpu()}
    assert os.sched_getaffinity(0) == affinity
    assert (server_cpu() == generator_cpu()) == (len(usable_cpus()) == 1)


def test_sar_free_and_ps_run_on_host(lab: Lab) -> None:
    assert "%idle" in lab.web1.ssh("LC_ALL=C sar -u 1 1").stdout
    assert lab.web1.ssh("LC_ALL=C free -m").stdout.split()[:3] == ["total", "used", "free"]
    assert "apache2" in lab.web1.ssh("ps ax -o comm").stdout


def test_host_writes_do_not_reach_machine(lab: Lab) -> None:
    for directory in ("etc/apache2", "var/log", "run", "tmp", "root", "usr/local", "var/www"):
        lab.web1.run(f"mkdir -p /{directory} && echo mine > /{directory}/of-the-lab")
        assert not Path(f"/{directory}/of-the-lab").exists()
    assert lab.web1.run("cat /run/of-the-lab").stdout == "mine\n"


def test_failed_command_raises_lab_error(lab: Lab) -> None:
    with pytest.raises(LabError, match="web1: 'echo no >&2; exit 3' ended with 3: no"):
        lab.web1.run("echo no >&2; exit 3")


def test_unplugged_host_is_unreachable(lab: Lab) -> None:
    with lab.web1.unplugged(), pytest.raises(OSError):
        http.client.HTTPConnection(lab.web1.address, timeout=0.3).connect()
    assert state.wait_for(lambda: get(lab.web1)[0] == 200)


@pytest.mark.alone
def test_down_leaves_no_remains(lab: Lab) -> None:
    before = machine()
    with Lab.start() as second:
        assert second.number != lab.number
        assert get(second.web1)[0] == 200
        network_of_second = namespaces(second.web1.pid)["net"]
        assert network_of_second in used_networks()
        assert second.number in network.labs_with_interface()
        assert second.directory.exists()
        assert f"process {second.web1.pid}" in state.leftovers(second.number)
        disks = loop_devices(second.web1)
        assert len(disks) == 2
        assert state.images(second.number) == []
    assert machine() == before
    assert not any(is_of_lab(device, second.number) for device in disks)
    assert state.leftovers(second.number) == []
    assert network_of_second not in used_networks()
    assert second.number not in network.labs_with_interface()
    assert not second.directory.exists()
    assert not state.is_kept(second.number)
    assert lab.number in network.labs_with_interface()


@pytest.mark.alone
def test_lab_is_removed_if_owner_is_killed(lab_allowed: None) -> None:
    program = "from tests.lab.lab import Lab; lab = Lab.start(); print(lab.number, lab.web1.pid, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    number, pid = (int(word) for word in owner.stdout.readline().split())
    assert Path(f"/proc/{pid}").exists()
    owner.kill()
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    assert state.wait_for(lambda: not state.is_kept(number))
    assert state.leftovers(number) == []


@pytest.mark.alone
def test_lab_is_removed_if_keeper_is_killed(lab_allowed: None) -> None:
    lab = Lab.start(stay=True)
    try:
        os.kill(lab.keeper_pid, signal.SIGKILL)
        assert state.wait_for(lambda: set(state.leftovers(lab.number)) <= {f"directory {lab.directory}"})
    finally:
        lab.stop()
    assert state.leftovers(lab.number) == []


@pytest.mark.alone
def test_lab_ends_if_host_dies(lab_allowed: None) -> None:
    with Lab.start() as lab:
        os.kill(lab.web1.pid, signal.SIGKILL)
        assert state.wait_for(lambda: not state.is_kept(lab.number))
        assert state.leftovers(lab.number) == []


@pytest.mark.alone
def test_up_status_and_down_by_hand(lab_allowed: None) -> None:
    """In new network, PID and mount namespaces, so that a lab brought up by hand here is not touched."""
    python = f"{sys.executable} -m tests.lab"
    script = f"""
        mount -n -t tmpfs none /run && ip link set lo up || exit 9
        {python} status; echo "status $?"
        {python} up web9; echo "status $?"
        {python} up web1 || exit 9
        {python} up || exit 9
        {python} status || exit 9
        ssh -F /run/cockpit-lab/0/ssh_config -o BatchMode=yes web1 echo reached '$(hostname)' || exit 9
        {python} down || exit 9
        {python} down || exit 9
        ls /run; ip -brief link; grep -c cockpit /proc/self/mountinfo
    """
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
    done = subprocess.run(unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY)
    assert done.returncode == 1, done.stderr  # grep found nothing
    output = done.stdout
    assert output.startswith("the lab is not up\nstatus 1\nstatus 1\nthe lab is up\n")
    assert done.stderr == "lab: no such host: web9; there are web1, app1, proxy1, origin1\n"
    assert "the lab is already up\n" in output
    address = network.address(0, 11)
    options = f"--ssh-config /run/cockpit-lab/0/ssh_config --target http://{address}/hello.html\n"
    pin = f"taskset -c {generator_cpu()} "
    assert f"  {pin}.venv/bin/cockpit run profiles/spare-servers.toml {options}" in output
    assert "\nreached web1\n" in output
    rest = output.partition("the lab is down; nothing of it is left\nno lab is up\n")[2].splitlines()
    assert [line.split()[0] for line in rest] == ["lo", "0"]
