"""Servers for the generators: nginx and Apache on loopback, pinned to the servers' CPU."""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.bench.table import Skipped
from tests.data import data_of
from tests.lab.cpus import on_server_cpu
from tests.lab.requirements import SYSTEM_PATH
from tests.load.certificates import certificate
from tests.waiting import free_port, wait_until

DATA = data_of(__file__)

SMALL = 92
MEDIUM = 100_000
LARGE = 6_224_340
_TIMEOUT = 10.0

_NGINX = DATA["nginx"]
_APACHE = DATA["apache"]
_KEPT = DATA["kept"]
_MODULES = Path("/usr/lib/apache2/modules")


class Site(NamedTuple):
    """A running server: pages of SMALL, MEDIUM and LARGE bytes, and the PID of its parent process."""

    base: str
    pid: int

    @property
    def small(self) -> str:
        return f"{self.base}/hello.html"

    @property
    def medium(self) -> str:
        return f"{self.base}/medium.bin"

    @property
    def large(self) -> str:
        return f"{self.base}/large.bin"


@contextmanager
def nginx(*, http2: bool = False, secure: bool = False) -> Iterator[Site]:
    """Run nginx with one worker process, without logs."""
    with _site() as (directory, port):
        config = directory / "nginx.conf"
        # With sendfile, nginx sends HEADERS and DATA as two segments: the second waits 40 ms for a delayed ACK.
        version, sendfile = ("http2", "off") if http2 else ("", "on")
        values = {"version": f"ssl {version}" if secure else version, "sendfile": sendfile, **certificate()._asdict()}
        config.write_text(_NGINX.format(directory=directory, port=port, **values))
        command = ["nginx", "-c", str(config), "-g", "daemon off;", "-e", f"{directory}/errors"]
        with _running(command, port) as site:
            yield site._replace(base=f"https://127.0.0.1:{port}") if secure else site


@contextmanager
def apache(workers: int = 60, more: str = _KEPT) -> Iterator[Site]:
    """Run Apache with prefork: one process per connection. `more` are further directives."""
    with _site() as (directory, port):
        config = directory / "apache.conf"
        if not _MODULES.is_dir():
            raise Skipped("apache2 is missing")
        text = _APACHE.format(directory=directory, port=port, modules=_MODULES, workers=workers)
        config.write_text(text + more)
        with _running(["apache2", "-f", str(config), "-D", "FOREGROUND"], port) as site:
            yield site


@contextmanager
def _site() -> Iterator[tuple[Path, int]]:
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / "www").mkdir()
        (directory / "www" / "hello.html").write_text("x" * SMALL)
        (directory / "www" / "medium.bin").write_bytes(b"x" * MEDIUM)
        (directory / "www" / "large.bin").write_bytes(b"x" * LARGE)
        yield directory, free_port()


@contextmanager
def _running(command: list[str], port: int) -> Iterator[Site]:
    if not shutil.which(command[0], path=SYSTEM_PATH):
        raise Skipped(f"{command[0]} is missing")
    quiet = subprocess.DEVNULL
    # A new process group: Apache signals its whole group when it ends.
    server = subprocess.Popen(on_server_cpu(command), stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        wait_until(lambda: _accepts(port, server), _TIMEOUT)
        yield Site(f"http://127.0.0.1:{port}", server.pid)
    finally:
        server.terminate()
        server.wait()


def _accepts(port: int, server: subprocess.Popen[bytes]) -> bool:
    if server.poll() is not None:
        raise RuntimeError(f"{server.args} does not start")
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
