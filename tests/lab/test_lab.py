"""The lab: isolated hosts with quotas, real servers, and no remains after it is down, however it ends."""

import http.client
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.lab import network, quotas, state
from tests.lab.cpus import generator_cpu, server_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.lab.services import PREFORK_CONF
from tests.waiting import wait_until


def get(host: Host) -> tuple[int, int]:
    """Return the status of the host's page and its length."""
    connection = http.client.HTTPConnection(host.address, timeout=60)
    try:
        connection.request("GET", "/hello.html")
        response = connection.getresponse()
        return response.status, len(response.read())
    finally:
        connection.close()


def test_host_is_isolated_and_leaves_nothing() -> None:
    obstacle = quotas.obstacle()
    with Lab.start(share=quotas.SHARE) as lab:
        host = lab.web1
        assert lab.share == (None if obstacle else quotas.SHARE) and (obstacle or "") in lab.cpus
        assert get(host) == (200, 92)
        assert "prefork" in host.ssh("apachectl -V").stdout
        assert host.ssh("hostname; id -un; nproc").stdout.split() == ["web1", "root", "1"]
        host.run("for place in /etc /run /var/log /var/www; do echo mine >$place/of-the-lab; done")
        assert not any(Path(place, "of-the-lab").exists() for place in ("/etc", "/run", "/var/log", "/var/www"))
        allowed = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"
        assert host.run(allowed).stdout == f"{server_cpu()}\n"
        untuned = host.run(f"cat {PREFORK_CONF}").stdout
        host.run(f"echo Nonsense >>{PREFORK_CONF} && chmod 600 {PREFORK_CONF}")
        host.restart("apache2")
        assert host.run(f"cat {PREFORK_CONF}; stat -c %a {PREFORK_CONF}").stdout == f"{untuned}644\n"
        if host.cgroup:
            host.ssh("setsid sleep 60 >/dev/null 2>&1 &")
            assert wait_until(lambda: names(host, quotas.SERVERS).count("apache2") == 6)
            assert wait_until(lambda: {"sleep", "sshd"} <= {*names(host, quotas.LOGINS)})
            burn = "timeout 0.5 sh -c 'while :; do :; done'; cat /sys/fs/cgroup/*/cpu.stat 2>/dev/null; true"
            before = throttled(host)
            host.run(burn)
            assert throttled(host) > before
            assert [path.name.rpartition("-")[2] for path in quotas.cgroups(lab.number)] == ["generator", "web1"]
        assert len(state.leftovers(lab.number)) == (4 if host.cgroup else 2)
        os.kill(host.pid, signal.SIGKILL)
        assert wait_until(lambda: not state.is_kept(lab.number)), "a lab ends with its host"
        assert state.leftovers(lab.number) == []


def names(host: Host, group: str) -> list[str]:
    """Return the names of the processes in a child cgroup of the host."""
    assert host.cgroup is not None
    found = []
    for pid in (host.cgroup / group / "cgroup.procs").read_text().split():
        with suppress(OSError):  # it may have ended
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


def throttled(host: Host) -> int:
    """Return the number of periods in which the host used up its quota."""
    assert host.cgroup is not None
    rows = (row.split() for row in (host.cgroup / "cpu.stat").read_text().splitlines())
    return int(dict(rows)["nr_throttled"])


def test_lab_is_removed_if_its_keeper_is_killed() -> None:
    lab = Lab.start(stay=True, share=quotas.SHARE)
    os.kill(lab.keeper_pid, signal.SIGKILL)
    lab.stop()
    # Another process of the suite may have begun to remove it.
    assert wait_until(lambda: not state.leftovers(lab.number))


def test_up_status_and_down_by_hand() -> None:
    """In new network, PID and mount namespaces, so that a lab brought up by hand here is not touched."""
    python = f"{sys.executable} -m tests.lab"
    script = f"""
        mount -n -t tmpfs none /run && ip link set lo up || exit 9
        {python} status; echo "status $?"
        {python} up web1 || exit 9
        {python} status || exit 9
        ssh -F /run/cockpit-lab/0/ssh_config -o BatchMode=yes web1 echo reached '$(hostname)' || exit 9
        {python} down || exit 9
        ls /run; ip -brief link; grep -c cockpit /proc/self/mountinfo
    """
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
    done = subprocess.run(unshare, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=REPOSITORY)
    assert done.returncode == 1, done.stderr  # grep found nothing
    output = done.stdout
    assert output.startswith("the lab is not up\nstatus 1\nthe lab is up\n")
    options = f"--ssh-config /run/cockpit-lab/0/ssh_config --target http://{network.address(0, 11)}/hello.html\n"
    assert f"  taskset -c {generator_cpu()} .venv/bin/cockpit run profiles/spare-servers.toml {options}" in output
    assert "\nreached web1\n" in output
    rest = output.partition("the lab is down; nothing of it is left\n")[2].splitlines()
    assert [line.split()[0] for line in rest] == ["lo", "0"]
