"""A reload that nginx accepts and then drops: the change is rolled back with the reason. On a real nginx."""

from __future__ import annotations

import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.knobs import Knob
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner

CONFIG = """\
daemon off;
worker_processes 1;
pid {root}/nginx.pid;
error_log {root}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    server {{
        listen 127.0.0.1:{port};
        return 204;
    }}
}}
"""


# Other tests run servers named nginx at the same time, whose new workers are not to be taken for this one's.
NAME = "nginx-reloaded"


class Nginx(NamedTuple):
    root: Path
    port: int

    @property
    def command(self) -> str:
        return shlex.join([f"{self.root}/{NAME}", "-p", str(self.root), "-c", f"{self.root}/nginx.conf"])

    @property
    def config(self) -> str:
        return (self.root / "nginx.conf").read_text()

    def knob(self, workers: str = NAME) -> Knob:
        return Knob(
            name="listen",
            host="web1",
            kind="nginx",
            file=f"{self.root}/nginx.conf",
            section="http { server {",
            directive="listen",
            test=f"{self.command} -t",
            reload=f"{self.command} -s reload",
            workers=workers,
            log=f"{self.root}/error.log",
        )

    async def probe(self) -> str:
        """Request a page; return "" if nginx answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return "" if b" 204 " in connection.recv(4096) else "no 204"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@pytest.fixture
def nginx(lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nginx]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = Nginx(tmp_path, free_port())
    (tmp_path / "nginx.conf").write_text(CONFIG.format(root=tmp_path, port=server.port))
    shutil.copy(shutil.which("nginx", path="/usr/sbin:/usr/bin") or "", tmp_path / NAME)
    with subprocess.Popen(["sh", "-c", f"exec {server.command}"], stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while not (tmp_path / "nginx.pid").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
            yield server
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture
async def shell() -> AsyncIterator[LocalShell]:
    shell = LocalShell("web1")
    yield shell
    await shell.close()


@pytest.mark.parametrize("workers", [NAME, ""])
async def test_dropped_reload_is_rolled_back_with_reason(nginx: Nginx, shell: LocalShell, workers: str) -> None:
    before = nginx.config
    with socket.create_server(("127.0.0.1", 0)) as listener:
        occupied = f"127.0.0.1:{listener.getsockname()[1]}"
        # nginx tries to bind for 2.5 s before it gives up.
        tuner = Tuner(nginx.probe, Timeouts(effect=20.0))
        with pytest.raises(ChangeRolledBack) as undone:
            await tuner.apply(shell, "web1", [(nginx.knob(workers), occupied)])
    reason = f"{nginx.root}/error.log reports: bind() to {occupied} failed (98: Address already in use)"
    assert reason in str(undone.value) and "rolled back" in str(undone.value)
    assert nginx.config == before and await nginx.probe() == ""
