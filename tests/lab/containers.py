"""A real container: podman and runc with this machine's root as an overlay, and nginx as process 1.

It shares this machine's network, so no network has to be removed. It has a CPU quota and a memory limit.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.lab import quotas

# cgroupfs: a test machine may lack systemd. The limits need no right to raise them.
_PODMAN = ("podman", "--cgroup-manager=cgroupfs", "--runtime=runc")
_LIMITS = ("--ulimit=nofile=1000:1000", "--ulimit=nproc=1000:1000", f"--cpus={quotas.SHARE}", "--memory=200m")
CONFIGURATION = """\
worker_processes 1;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log notice;
events {{
    worker_connections 256;
}}
http {{
    access_log off;
    keepalive_timeout 65;
    server {{
        listen 127.0.0.1:{port};
        location = /hello {{ return 200 "hello\\n"; }}
        location = /status {{ stub_status; }}
    }}
}}
"""
# Directory of the configuration in the container.
INSIDE = "/etc/nginx-mounted"


class Container(NamedTuple):
    """A container; `file` is the path of its configuration on this machine, `inside` its path in the container."""

    name: str
    port: int
    file: Path
    inside: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hello"

    @property
    def restart(self) -> str:
        return f"podman restart -t 3 {self.name}"

    def run(self, command: str, check: bool = True) -> str:
        """Run a command in the container and return its output."""
        return podman("exec", self.name, "sh", "-c", command, check=check)

    def start(self) -> None:
        """Start the container if it has ended."""
        podman("start", self.name)

    @property
    def first(self) -> int:
        """PID of the container's first process on this machine."""
        return int(podman("inspect", "--format", "{{.State.Pid}}", self.name))

    @property
    def processes(self) -> set[int]:
        """PIDs of nginx in the container."""
        return set(map(int, self.run("pgrep -x nginx", check=False).split()))


@contextmanager
def container(directory: Path, *, whole: bool = True) -> Iterator[Container]:
    """Run a container; mount the directory of its configuration, or without `whole` the single file."""
    port = free_port()
    file = directory / "nginx.conf"
    file.write_text(CONFIGURATION.format(port=port))
    name, inside = f"cockpit-test-{os.getpid()}-{secrets.token_hex(3)}", f"{INSIDE}/nginx.conf"
    volume = f"{directory}:{INSIDE}" if whole else f"{file}:{inside}"
    try:
        options = (
            f"--name={name}",
            "--network=host",
            "--workdir=/",
            f"--volume={volume}",
            "--tmpfs=/tmp:notmpcopyup",
            *_LIMITS,
        )
        serve = ("nginx", "-c", inside, "-g", "daemon off;")
        podman("run", "--detach", *options, "--rootfs", "/:O", *serve)
        # The overlay also shows cockpit's state of this machine.
        podman("exec", name, "rm", "-rf", "/root/.local/state/cockpit")
        yield Container(name, port, file, inside)
    finally:
        podman("rm", "--force", "--time=1", name, check=False)


@contextmanager
def docker_api(directory: Path) -> Iterator[str]:
    """Serve Docker's API by podman, without a daemon, and yield its address (DOCKER_HOST)."""
    address = directory / "docker.sock"
    with (directory / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [*_PODMAN, "system", "service", "--time=0", f"unix://{address}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        while not _accepts(address):
            if service.poll() is not None:
                raise RuntimeError(f"podman system service: {(directory / 'service.log').read_text().strip()}")
            time.sleep(0.02)
        yield f"unix://{address}"
    finally:
        service.terminate()
        service.wait(timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(address)) == 0


async def response_from(url: str) -> httpx.Response:
    """Request a page. Raises httpx.HTTPError."""
    # Certificates, which a container's pages do not need, take 25 ms of CPU time to load.
    async with httpx.AsyncClient(timeout=2, verify=False) as client:
        return await client.get(url)


def podman(*arguments: str, check: bool = True) -> str:
    done = subprocess.run([*_PODMAN, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    if check and done.returncode != 0:
        raise RuntimeError(f"podman {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
