"""Servers for the generators: nginx and Apache on loopback, pinned to the servers' CPU."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.lab.cpus import on_server_cpu

SMALL = 92
MEDIUM = 100_000
LARGE = 6_224_340
_TIMEOUT = 10.0

_NGINX = """
worker_processes 1; worker_rlimit_nofile 16384; pid {directory}/pid; error_log {directory}/errors;
events {{ worker_connections 16000; }}
http {{
    access_log off; sendfile on; keepalive_requests 1000000000; keepalive_timeout 600; open_file_cache max=10;
    client_body_temp_path {directory}/1; proxy_temp_path {directory}/2; fastcgi_temp_path {directory}/3;
    uwsgi_temp_path {directory}/4; scgi_temp_path {directory}/5;
    server {{ listen 127.0.0.1:{port} backlog=4096; root {directory}/www; }}
}}
"""
_APACHE = """
ServerRoot {directory}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {directory}/pid
ErrorLog {directory}/errors
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {directory}/www
User www-data
Group www-data
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
StartServers 60
MinSpareServers 1
MaxSpareServers 200
MaxRequestWorkers 200
"""
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


def missing_nginx() -> str:
    """Return why nginx cannot run here; empty if it can."""
    return "" if shutil.which("nginx") else "nginx is missing"


def missing_apache() -> str:
    return "" if shutil.which("apache2") and _MODULES.is_dir() else "apache2 is missing"


@contextmanager
def nginx() -> Iterator[Site]:
    """Run nginx with one worker process, without logs."""
    with _site() as (directory, port):
        config = directory / "nginx.conf"
        config.write_text(_NGINX.format(directory=directory, port=port))
        command = ["nginx", "-c", str(config), "-g", "daemon off;", "-e", f"{directory}/errors"]
        with _running(command, port) as site:
            yield site


@contextmanager
def apache() -> Iterator[Site]:
    """Run Apache with prefork: one process per connection."""
    with _site() as (directory, port):
        config = directory / "apache.conf"
        config.write_text(_APACHE.format(directory=directory, port=port, modules=_MODULES))
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
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield directory, port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[Site]:
    quiet = subprocess.DEVNULL
    # A new process group: Apache signals its whole group when it ends.
    server = subprocess.Popen(on_server_cpu(command), stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        _wait_for(command[0], port, server)
        yield Site(f"http://127.0.0.1:{port}", server.pid)
    finally:
        server.terminate()
        server.wait()


def _wait_for(name: str, port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start") from None
            time.sleep(0.01)
