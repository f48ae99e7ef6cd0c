"""The keeper of a lab: builds it, keeps it running, and removes it when its owner has ended.

    python -m tests.lab.keeper HOST...               until stdin is closed
    python -m tests.lab.keeper --stay HOST...        until SIGTERM
    python -m tests.lab.keeper --share 0.3 HOST...   with a quota of 30% of one CPU for each host, if possible

Prints one JSON line: {"number": N} when all hosts are ready, otherwise {"failed": reason}. If the keeper dies for any
reason, the kernel kills all its children; namespaces, mounts and network disappear with their processes. Only the lab's
small directory and its empty cgroups remain, and the next lab or `down` removes them.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from tests.lab import network, quotas, ssh, state
from tests.lab.cpus import on_server_cpu
from tests.lab.errors import LabError
from tests.lab.hosts import HOSTS, HostSpec, chosen
from tests.lab.services import sshd

REPOSITORY = Path(__file__).parents[2]
DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
NEW_HOST = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child=KILL"]


class Stop(BaseException):
    """The request to take the lab down."""


def stop(_signal: int, _frame: FrameType | None) -> None:
    raise Stop


@dataclass
class Running:
    """A host being built or running. `outer` waits for its process 1; `cgroup` is None without a quota."""

    spec: HostSpec
    address: str
    outer: subprocess.Popen[str]
    cgroup: Path | None
    pid: int = 0

    def read_state(self, log: Path) -> str:
        """Read and return the state of the host. Raises LabError if it has failed or died."""
        line = _pipe(self.outer.stdout).readline()
        message = json.loads(line) if line else {"state": "failed", "reason": log.read_text().strip()[-400:] or "died"}
        if message["state"] == "failed":
            raise LabError(f"{self.spec.name}: {message['reason']}")
        return str(message["state"])

    def send_orders(self, orders: dict[str, object]) -> None:
        _pipe(self.outer.stdin).write(json.dumps(orders) + "\n")
        _pipe(self.outer.stdin).flush()

    def end(self) -> None:
        """Kill process 1 and with it all processes of the host, and wait for their end."""
        with suppress(ProcessLookupError):
            os.kill(self.pid or self.outer.pid, signal.SIGKILL)
        self.outer.wait()
        _pipe(self.outer.stdin).close()
        _pipe(self.outer.stdout).close()


@dataclass
class Keeper:
    """The keeper of one lab. `share`: the quota of each host, of one CPU; None without quotas."""

    stay: bool
    specs: tuple[HostSpec, ...]
    share: float | None = None
    number: int = -1
    claim: socket.socket | None = None  # of the number; the kernel drops it with this process
    hosts: list[Running] = field(default_factory=list)
    holder: subprocess.Popen[str] | None = None

    def build(self) -> None:
        """Build the lab; return when all servers of all hosts answer.

        Quotas are set last: they would slow down the start.
        """
        self.number, self.claim = network.claim_free()
        self.directory = state.directory(self.number)
        quotas.remove(self.number)
        state.remove_files(self.number)
        # Another lab may remove the folder above in between.
        while not self.directory.exists():
            with suppress(FileNotFoundError):
                self.directory.mkdir(parents=True)
        self.directory.chmod(0o700)
        self.log = self.directory / "keeper.log"
        self.log.touch()
        obstacle = None if self.share is None else quotas.obstacle()
        self.share = None if obstacle else self.share
        for spec in self.specs:
            self.hosts.append(self.new_host(spec))
        self.build_network()
        self.start_hosts()
        for host in self.hosts:
            host.read_state(self.log)
        for host in self.hosts:
            if host.cgroup is not None and self.share is not None:
                quotas.granting().limit(host.cgroup, self.share)
        states = {
            host.spec.name: state.HostState(
                address=host.address,
                pid=host.pid,
                url=f"http://{host.address}{host.spec.page}",
                cgroup=None if host.cgroup is None else str(host.cgroup),
            )
            for host in self.hosts
        }
        running = state.LabState(
            number=self.number,
            keeper=os.getpid(),
            stay=self.stay,
            share=self.share,
            obstacle=obstacle,
            generator=None if self.share is None else str(quotas.create_generator(self.number)),
            hosts=states,
        )
        state.write(running)

    def new_host(self, spec: HostSpec) -> Running:
        """Start a process that waits for its orders, in new namespaces, and with a quota in its own cgroup."""
        cgroup = None if self.share is None else quotas.create_host(self.number, spec.name)
        new = quotas.entering(cgroup and cgroup / quotas.LOGINS, on_server_cpu(NEW_HOST))
        command = [*DIES_WITH_US, *new, sys.executable, "-m", "tests.lab.inside"]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with self.log.open("a") as log:
            outer = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd="/",
                env=environment,
            )
        return Running(spec, network.address(self.number, spec.number), outer, cgroup)

    def build_network(self) -> None:
        """Build the bridge, then connect each host as soon as its namespaces exist."""
        self.holder = subprocess.Popen(
            [*DIES_WITH_US, "unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        _pipe(self.holder.stdin).write("there?\n")
        _pipe(self.holder.stdin).flush()
        _pipe(self.holder.stdout).readline()
        network.build_switch(self.number, self.holder.pid, os.getpid())
        for host in self.hosts:
            host.read_state(self.log)
            host.pid = child_of(host.outer.pid)
            network.plug(host.spec.name, self.holder.pid, host.pid)

    def start_hosts(self) -> None:
        """Send each host its orders; the hosts build themselves in parallel.

        Every host resolves the names of all possible hosts: each configuration is valid in each lab.
        """
        client_key = ssh.make_key(self.directory / "key")
        keys = {host.spec.name: ssh.make_host_key(self.directory) for host in self.hosts}
        names = {"machine": network.address(self.number, network.MACHINE_NUMBER)}
        names |= {spec.name: network.address(self.number, spec.number) for spec in HOSTS}
        ssh.write_client_config(self.directory, {host.spec.name: host.address for host in self.hosts}, keys)
        for host in self.hosts:
            stage = self.directory / host.spec.name
            stage.mkdir()
            services = (sshd(keys[host.spec.name].private, client_key.public), *host.spec.services)
            host.send_orders(
                {
                    "name": host.spec.name,
                    "names": names,
                    "address": host.address,
                    "prefix": 24,
                    "stage": str(stage),
                    "servers": None if host.cgroup is None else str(host.cgroup / quotas.SERVERS / "cgroup.procs"),
                    "label": state.label(self.number),
                    "after": [names[name] for name in host.spec.after if name in keys],
                    "disks": [asdict(disk) for disk in host.spec.disks],
                    "services": [asdict(service) for service in services],
                }
            )

    def take_down(self) -> None:
        """End all processes of the lab and remove its remains from this machine."""
        for host in self.hosts:
            host.end()
        if self.holder is not None:
            with suppress(LabError):  # it may not exist yet
                network.ip("link", "delete", network.interface(self.number))
            _pipe(self.holder.stdin).close()
            self.holder.wait()
            _pipe(self.holder.stdout).close()
        if self.number >= 0:
            quotas.remove(self.number)
            state.remove_files(self.number)


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def child_of(parent: int) -> int:
    """Return the PID of the only child of a process."""
    # Not a glob of files in them, which fails if a process ends.
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # After the command's name, which may contain spaces and brackets: state, parent.
            if int((process / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                return int(process.name)
    raise LabError(f"process {parent} has no child")


def wait_for_owner(stay: bool) -> None:
    """Wait until the owner closes stdin. Raises Stop at SIGTERM, or if a host dies."""
    while stay:
        signal.pause()
    while os.read(0, 4096):
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--share", type=float)
    parser.add_argument("host", nargs="*")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        # An empty handler: unlike SIG_IGN, processes of the hosts do not inherit it.
        signal.signal(ignored, lambda _signal, _frame: None)
    keeper = Keeper(options.stay, chosen(tuple(options.host)), options.share)
    try:
        keeper.build()
        signal.signal(signal.SIGCHLD, stop)
        if any(host.outer.poll() is not None for host in keeper.hosts):
            raise LabError("a host died right after its start")
        print(json.dumps({"number": keeper.number}), flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        wait_for_owner(options.stay)
    except Stop:
        pass
    except Exception as error:
        reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
        with suppress(OSError):
            print(json.dumps({"failed": reason}), flush=True)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        keeper.take_down()


if __name__ == "__main__":
    main()
