"""The keeper of a lab: builds it, holds it, and takes it away when its owner is gone.

    python -m tests.lab.keeper HOST...               the owner is whoever holds the other end of stdin
    python -m tests.lab.keeper --stay HOST...        it stays until SIGTERM
    python -m tests.lab.keeper --share 0.3 HOST...   each host has a quota of this much of one CPU, if that is possible

Says one JSON line on stdout: {"number": N} when all hosts are ready, {"failed": reason} otherwise. All that it starts
is killed by the kernel when the keeper dies, whatever it dies of, and namespaces, mounts and network go with their
processes; only the lab's small directory and its empty cgroups would then be left, for the next lab or `down` to sweep.
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
    """The lab's time is over."""


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

    def hear(self, log: Path) -> str:
        """The state the host says it has reached; raises LabError when it has failed or died."""
        line = _pipe(self.outer.stdout).readline()
        said = json.loads(line) if line else {"state": "failed", "reason": log.read_text().strip()[-400:] or "it died"}
        if said["state"] == "failed":
            raise LabError(f"{self.spec.name}: {said['reason']}")
        return str(said["state"])

    def order(self, orders: dict[str, object]) -> None:
        _pipe(self.outer.stdin).write(json.dumps(orders) + "\n")
        _pipe(self.outer.stdin).flush()

    def end(self) -> None:
        """Kills process 1, and with it every process of the host; returns when all are gone."""
        with suppress(ProcessLookupError):
            os.kill(self.pid or self.outer.pid, signal.SIGKILL)
        self.outer.wait()
        _pipe(self.outer.stdin).close()
        _pipe(self.outer.stdout).close()


@dataclass
class Keeper:
    """Holds one lab. `share`: the quota of each host, of one CPU; None for none."""

    stay: bool
    specs: tuple[HostSpec, ...]
    share: float | None = None
    obstacle: str | None = None  # to a quota that was asked for
    number: int = -1
    mark: socket.socket | None = None  # the claim on the number; the kernel drops it with this process
    hosts: list[Running] = field(default_factory=list)
    holder: subprocess.Popen[str] | None = None

    def build(self) -> None:
        """Builds the lab; returns when every server of every host answers.

        Quotas are set last: they would slow that down.
        """
        self.number, self.mark = network.claim_free()
        self.directory = state.directory(self.number)
        quotas.remove(self.number)
        state.remove_files(self.number)
        self.directory.mkdir(parents=True)
        self.directory.chmod(0o700)
        self.log = self.directory / "keeper.log"
        self.log.touch()
        if self.share is not None:
            self.obstacle = quotas.obstacle()
        for spec in self.specs:
            self.hosts.append(self.new_host(spec))
        self.build_network()
        self.order_hosts()
        for host in self.hosts:
            host.hear(self.log)
        for host in self.hosts:
            if host.cgroup is not None and self.share is not None:
                quotas.limit(host.cgroup, self.share)
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
            share=self.granted,
            obstacle=self.obstacle,
            generator=self.prefer_generator(),
            hosts=states,
        )
        state.write(running)

    def prefer_generator(self) -> str | None:
        """The new cgroup of the load generator; None if the hosts have none."""
        if self.granted is None:
            return None
        return str(quotas.create_generator(self.number))

    @property
    def granted(self) -> float | None:
        """The quota that each host has."""
        return None if self.obstacle else self.share

    def new_host(self, spec: HostSpec) -> Running:
        """A process in new namespaces, and in a cgroup of its own if it has a quota, that waits for its orders."""
        cgroup = None if self.granted is None else quotas.create_host(self.number, spec.name)
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
        """The switch first, then a cable to each host once its namespaces stand."""
        self.holder = subprocess.Popen(
            [*DIES_WITH_US, "unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        _pipe(self.holder.stdin).write("there?\n")
        _pipe(self.holder.stdin).flush()
        _pipe(self.holder.stdout).readline()
        network.build_switch(self.number, self.holder.pid, os.getpid())
        for host in self.hosts:
            host.hear(self.log)
            host.pid = child_of(host.outer.pid)
            network.plug(host.spec.name, self.holder.pid, host.pid)

    def order_hosts(self) -> None:
        """Gives each host its orders; they all build themselves at the same time.

        Every host knows the names of all that there can be, so that each configuration is valid on each lab.
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
            host.order(
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
        """Ends every process of the lab and removes what it had on this machine."""
        for host in self.hosts:
            host.end()
        if self.holder is not None:
            with suppress(LabError):  # it may not have come to that
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
    """The only child of a process."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the command's name, which may hold spaces and brackets: state, then the parent.
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                return int(path.parts[2])
    raise LabError(f"process {parent} has no child")


def wait_for_the_end(stay: bool) -> None:
    """Returns when the owner lets go of stdin; SIGTERM, or a host that dies, raise Stop."""
    while stay:
        signal.pause()
    while os.read(0, 4096):
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--share", type=float)
    parser.add_argument("host", nargs="*")
    words = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        # A handler that does nothing: unlike SIG_IGN, what runs in the hosts does not inherit it.
        signal.signal(ignored, lambda _signal, _frame: None)
    keeper = Keeper(words.stay, chosen(tuple(words.host)), words.share)
    try:
        keeper.build()
        signal.signal(signal.SIGCHLD, stop)
        if any(host.outer.poll() is not None for host in keeper.hosts):
            raise LabError("a host died as soon as it stood")
        print(json.dumps({"number": keeper.number}), flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        wait_for_the_end(words.stay)
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
