"""A lab: real servers on separate hosts, reached by SSH and HTTP.

with Lab.start("web1", "app1") as lab:
    lab.web1.url, lab.ssh_config, lab.web1.run("ps ax").stdout

with Lab.start("web1", "app1", share=quotas.SHARE) as lab:   # hosts with CPU quotas, for measurements
    lab.cpus
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.lab import quotas, state
from tests.lab.cpus import on_generator_cpu, on_server_cpu, server_cpu
from tests.lab.errors import LabError
from tests.lab.hosts import HOSTS, chosen
from tests.lab.inside import wait_until_reachable
from tests.lab.keeper import REPOSITORY
from tests.lab.requirements import SYSTEM_PATH
from tests.lab.services import Service
from tests.waiting import wait_until

RUN_TIMEOUT = 300.0  # s; longer than any command takes on a busy machine


class Host:
    """A running host of a lab.

    `name`: its ssh alias and host name; `address`: its IPv4 address; `url`: a page (92 bytes; on proxy1 an image);
    `pid`: PID of its process 1 on the machine; `cgroup`: directory of its cgroup (None without a quota); `ssh_config`:
    the file for `ssh -F`.
    """

    def __init__(self, name: str, running: state.HostState, ssh_config: Path) -> None:
        self.name = name
        self.address = running.address
        self.url = running.url
        self.pid = running.pid
        self.cgroup = None if running.cgroup is None else Path(running.cgroup)
        self.ssh_config = ssh_config

    def run(
        self, command: str, *, check: bool = True, timeout: float = RUN_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root in the host without sshd: for checks, and for the preparation of tests.

        Raises LabError with its stderr if it fails (unless `check` is false), TimeoutExpired after `timeout` (s).
        """
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--uts", "--ipc", "--net", "--pid"]
        group = self.cgroup and self.cgroup / quotas.SERVERS
        clean = ["env", "-i", f"PATH={SYSTEM_PATH}", "HOME=/root", "LANG=C.UTF-8", "sh", "-c", command]
        return self._finish(quotas.entering(group, on_server_cpu([*enter, *clean])), command, check, timeout)

    def ssh(
        self, command: str, *, check: bool = True, timeout: float = RUN_TIMEOUT
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command through the real ssh client and the host's sshd."""
        client = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", self.name, command]
        return self._finish(client, command, check, timeout)

    def _finish(self, argv: list[str], command: str, check: bool, timeout: float) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)
        if check and done.returncode != 0:
            output = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {command!r} ended with {done.returncode}: {output}")
        return done

    def service(self, name: str) -> Service:
        """Return the definition of one of the host's servers."""
        spec = next(spec for spec in HOSTS if spec.name == self.name)
        return next(service for service in spec.services if service.name == name)

    def restart(self, name: str) -> None:
        """Restore a server's initial files and restart it."""
        service = self.service(name)
        steps = [
            f"printf %s {shlex.quote(file.content)} >{file.path} && chmod {file.mode:o} {file.path}"
            for file in service.files
        ]
        steps += [service.stop, *service.prepare, service.start]
        self.run(f"{{ {' && '.join(f'( {step} )' for step in steps)}; }} >/dev/null 2>&1")
        try:
            wait_until_reachable(self.address, service.port)
        except OSError as error:
            raise LabError(f"{self.name}: {name} does not answer after its restart: {error}") from error

    def processes(self, name: str) -> dict[int, int]:
        """Return the host's processes called `name`, including defunct ones: PID -> parent PID, in the host."""
        rows = self.run("ps -e -o pid=,ppid=,comm=").stdout.splitlines()
        fields = (row.split(maxsplit=2) for row in rows)
        return {int(pid): int(parent) for pid, parent, command in fields if command.split()[0] == name}

    def files(self, place: str) -> str:
        """Return names, owners, modes, links and digests of all files in a place."""
        listing = f"find {place} -printf '%p %y %m %u %g %l\\n' | sort; find {place} -type f | sort | xargs sha256sum"
        return self.run(listing).stdout

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        """Cut the host's network until the end of the block."""
        self.run("ip link set eth0 down")
        try:
            yield
        finally:
            self.run("ip link set eth0 up")


class Lab:
    """A running lab. Each host is an attribute (`lab.web1`), and in `hosts` by name.

    `number`: unique on this machine; `directory`: contains `ssh_config`, the client's key and known_hosts;
    `keeper_pid`: the PID of its keeper; `share`: the quota of each host, of one CPU (None without quotas); `obstacle`:
    why requested quotas are impossible.
    """

    def __init__(self, running: state.LabState, keeper: subprocess.Popen[str] | None = None) -> None:
        self.number = running.number
        self.stay = running.stay
        self.share = running.share
        self.obstacle = running.obstacle
        self._generator = None if running.generator is None else Path(running.generator)
        self.directory = state.directory(running.number)
        self.ssh_config = self.directory / "ssh_config"
        self.hosts = {name: Host(name, host, self.ssh_config) for name, host in running.hosts.items()}
        self.keeper_pid = running.keeper
        self._keeper = keeper

    def __getattr__(self, name: str) -> Host:
        hosts: dict[str, Host] = self.__dict__.get("hosts", {})
        if name not in hosts:
            raise AttributeError(f"the lab has no host {name!r}")
        return hosts[name]

    @property
    def cpus(self) -> str:
        """A description of the CPU of the hosts."""
        if self.share is not None:
            return f"each host has {self.share:.0%} of CPU {server_cpu()}"
        return f"all hosts share CPU {server_cpu()}" + (f" (no CPU quotas: {self.obstacle})" if self.obstacle else "")

    def as_generator(self, command: list[str]) -> list[str]:
        """Return the command, pinned with its children to the generator's CPU; with priority if hosts have quotas."""
        return quotas.entering(self._generator, on_generator_cpu(command))

    @classmethod
    def start(cls, *names: str, stay: bool = False, share: float | None = None) -> Self:
        """Bring up the named hosts (default web1); return when all servers answer. Raises LabError with the reason.

        `share`: the quota of each host, of one CPU; if quotas are impossible, `obstacle` has the reason.
        The lab ends with `stop`, and without `stay` also with this process.
        """
        names = names or ("web1",)
        chosen(names)
        for number in state.known():
            state.clear(number)  # only labs with a dead keeper
        options = [*(["--stay"] if stay else []), *([] if share is None else ["--share", str(share)])]
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.lab.keeper", *options, *names],
            stdin=subprocess.DEVNULL if stay else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=REPOSITORY,
            start_new_session=True,  # no Ctrl-C for the keeper: it ends after its owner
        )
        try:
            message = json.loads(_read_line(keeper))
            if "failed" in message:
                raise LabError(message["failed"])
        except BaseException:
            keeper.terminate()
            _reap(keeper)
            raise
        running = state.read(message["number"])
        if running is None:
            raise LabError("the lab ended right after its start")
        return cls(running, keeper)

    @classmethod
    def by_hand(cls) -> Self | None:
        """Return the lab brought up by hand; None if there is none."""
        for number in state.known():
            running = state.read(number)
            if running is not None and running.stay and state.is_kept(number):
                return cls(running)
        return None

    def stop(self) -> None:
        """Take the lab down. Raises TimeoutError if anything remains."""
        if self._keeper is None:
            with suppress(ProcessLookupError):
                os.kill(self.keeper_pid, signal.SIGTERM)
            wait_until(lambda: not state.is_kept(self.number), state.DEADLINE)
        else:
            self._keeper.terminate()
            _reap(self._keeper)
        state.clear(self.number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()


def _read_line(keeper: subprocess.Popen[str]) -> str:
    assert keeper.stdout is not None
    line = keeper.stdout.readline()
    return line or json.dumps({"failed": f"the lab's keeper ended with status {keeper.wait()}"})


def _reap(keeper: subprocess.Popen[str]) -> None:
    """Wait for the keeper to end and close its pipes."""
    for pipe in (keeper.stdin, keeper.stdout):
        if pipe is not None:
            pipe.close()
    keeper.wait(timeout=state.DEADLINE)
