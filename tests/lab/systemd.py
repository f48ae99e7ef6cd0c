"""A real systemd: PID 1 of a container over this machine's root, without its units, and a web server as a unit.

Its cgroups of CPU, memory and processes are writable: the kernel enforces systemd's limits.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.data import data_of
from tests.lab.containers import LIMITS, entering, podman, run_inside
from tests.waiting import free_port

DATA = data_of(__file__)

UNIT = "web.service"
# Empty directories in place of the machine's: they hide its units and its journal.
_EMPTY = ("/tmp", "/run", "/run/lock", "/var/log/journal", "/etc/systemd/system", "/etc/rc2.d")
# Podman mounts hierarchies of version 1 read-only. Mount them whole: podman's paths start at their roots.
_CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
_INIT = ("/lib/systemd/systemd", "--system", "--unit=basic.target")
_SETUP = DATA["setup"]


class Booted(NamedTuple):
    """A container whose first process is systemd; `pid` is the PID of that process on this machine."""

    name: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hello"

    @property
    def via(self) -> str:
        """A command that reaches it as podman does, which takes several times the CPU time for each command."""
        return entering(self.pid)

    def run(self, command: str) -> str:
        """Run a command in the container and return its output."""
        return run_inside(self.pid, command)

    def limit(self) -> str:
        """Return the soft and hard limit of open files of the running server."""
        of = f"/proc/$(systemctl show -P MainPID {UNIT})/limits"
        return self.run(f"awk '/^Max open files/ {{ print $4, $5 }}' {of}")


@contextmanager
def booted() -> Iterator[Booted]:
    port, name = free_port(), f"cockpit-test-{os.getpid()}-{secrets.token_hex(3)}"
    empty = (f"--tmpfs={place}:notmpcopyup" for place in _EMPTY)
    hierarchies = {Path("/sys/fs/cgroup", name).resolve() for name in _CONTROLLERS}
    groups = (f"--volume={path}:{path}:rw" for path in hierarchies if path.is_dir())
    options = (f"--name={name}", "--network=host", "--workdir=/", "--systemd=always", *LIMITS, *empty, *groups)
    try:
        podman("run", "--detach", *options, "--rootfs", "/:O", *_INIT)
        container = Booted(name, port, int(podman("inspect", "--format={{.State.Pid}}", name)))
        container.run(_SETUP.format(unit=UNIT, port=port))
        yield container
    finally:
        podman("rm", "--force", "--time=1", name, check=False)
