"""A real container: podman and runc with this machine's root as an overlay, and nginx as process 1.

It shares this machine's network, so no network has to be removed. It has a CPU quota and a memory limit.
"""

import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx

from cockpit.model.knobs import Knob
from tests.data import data_of
from tests.lab import quotas
from tests.lab.requirements import SYSTEM_PATH
from tests.waiting import free_port, wait_until

DATA = data_of(__file__)

# cgroupfs: a test machine may lack systemd. The limits need no right to raise them.
_PODMAN = ("podman", "--cgroup-manager=cgroupfs", "--runtime=runc")
LIMITS = ("--ulimit=nofile=1000:1000", "--ulimit=nproc=1000:1000")
CONFIGURATION = DATA["configuration"]
# Directory of the configuration in the container.
INSIDE = "/etc/nginx-mounted"
# Files of a container that a change and its undo touch.
STATE = f"cd {INSIDE} && find . -printf '%p %y %m %u %g %l\\n' | sort; sha256sum *; ls /tmp"


class Container(NamedTuple):
    """A container with nginx; `file` is the path of its configuration on this machine, and `inside` that in the
    container; `pid_file` has the PID of its first process on this machine."""

    name: str
    port: int
    file: Path
    inside: str
    pid_file: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hello"

    def run(self, command: str, check: bool = True) -> str:
        """Run a command in the container and return its output."""
        return run_inside(int(self.pid_file.read_text()), command, check)

    @property
    def via(self) -> str:
        return entering(int(self.pid_file.read_text()))

    @property
    def processes(self) -> set[int]:
        """PIDs of nginx in the container."""
        return set(map(int, self.run("pgrep -x nginx", check=False).split()))

    def programs(self) -> list[str]:
        """List the processes in the container that are not its server's."""
        listed = self.run("for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || cat $p/comm; done 2>/dev/null", check=False)
        return sorted(name for name in listed.split() if name not in ("nginx", "cat"))

    def answers(self) -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(self.url, verify=False, timeout=30).is_success
        return False

    async def probe(self) -> str:
        """Request a page; return the problem, "" if there is none."""
        try:
            response = await response_from(self.url)
        except httpx.HTTPError as error:
            return type(error).__name__
        return "" if response.status_code == 200 else str(response.status_code)

    def connections(self) -> Knob:
        """Return a knob that a reload in the container activates."""
        return Knob(
            name="worker_connections",
            host="web1",
            kind="nginx",
            file=self.inside,
            section="events {",
            directive="worker_connections",
            test=f"nginx -t -c {self.inside}",
            reload=f"nginx -s reload -c {self.inside}",
            workers="nginx",
        )


@contextmanager
def container(directory: Path, *, whole: bool = True) -> Iterator[Container]:
    """Run a container; mount the directory of its configuration, or without `whole` the single file."""
    directory.chmod(0o755)
    port = free_port()
    file, pid_file = directory / "nginx.conf", directory.with_name(f"{directory.name}.pid")
    file.write_text(CONFIGURATION.format(port=port))
    name, inside = f"cockpit-test-{os.getpid()}-{secrets.token_hex(3)}", f"{INSIDE}/nginx.conf"
    volume = f"{directory}:{INSIDE}" if whole else f"{file}:{inside}"
    options = (f"--name={name}", "--network=host", "--workdir=/", f"--volume={volume}", f"--pidfile={pid_file}")
    options += ("--tmpfs=/tmp:notmpcopyup", f"--cpus={quotas.SHARE}", "--memory=200m", *LIMITS)
    try:
        podman("run", "--detach", *options, "--rootfs", "/:O", *("nginx", "-c", inside, "-g", "daemon off;"))
        running = Container(name, port, file, inside, pid_file)
        # The overlay also shows cockpit's state of this machine.
        running.run("rm -rf /root/.local/state/webcockpit")
        wait_until(running.answers)
        yield running
    finally:
        podman("rm", "--force", "--time=1", name, check=False)


@contextmanager
def docker_api(directory: Path) -> Iterator[str]:
    """Serve Docker's API by podman, without a daemon, and yield its address (DOCKER_HOST)."""
    address, log = directory / "docker.sock", directory / "service.log"
    command = (*_PODMAN, "system", "service", "--time=0", f"unix://{address}")
    with log.open("wb") as output:
        service = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        wait_until(lambda: _accepts(address) or service.poll() is not None)
        assert service.poll() is None, log.read_text()
        yield f"unix://{address}"
    finally:
        service.terminate()
        service.wait(timeout=60)


def _accepts(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(address)) == 0


async def response_from(url: str) -> httpx.Response:
    """Request a page. Raises httpx.HTTPError."""
    # Certificates, which a container's pages do not need, take 25 ms of CPU time to load.
    async with httpx.AsyncClient(timeout=30, verify=False) as client:
        return await client.get(url)


def podman(*arguments: str, check: bool = True) -> str:
    return _output([*_PODMAN, *arguments], f"podman {arguments[0]}", check)


def run_inside(pid: int, command: str, check: bool = True) -> str:
    """Run a command in the namespaces of a process and return its output; podman would take several times the CPU."""
    enter = ("nsenter", f"--target={pid}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
    return _output([*enter, "env", "-i", f"PATH={SYSTEM_PATH}", "HOME=/root", "sh", "-c", command], command, check)


def entering(pid: int) -> str:
    """A command that enters the namespaces as `docker exec -i` does: its programs outlive their client."""
    return f"nsenter -t {pid} -m -u -i -n -p -r -w setsid --wait env -i HOME=/root PATH={SYSTEM_PATH}"


def _output(command: list[str], words: str, check: bool) -> str:
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if check and done.returncode != 0:
        raise RuntimeError(f"{words!r} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
