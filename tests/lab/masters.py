"""Servers on this machine, each with its files in a folder, beside others of the same kind."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil

from cockpit.hosts.local import LocalShell
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.finding import Finding
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.discovery.servers import DiscoveredHost, discover
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.lab.services import nginx_config
from tests.processes import is_gone
from tests.waiting import free_port, wait_until

DATA = data_of(__file__)

_TEMPORARY = "".join(
    f"{name}_temp_path {{root}}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
)
_NGINX = nginx_config(
    "127.0.0.1:{port}",
    "return 204;",
    f"access_log off; {_TEMPORARY}\n    keepalive_timeout 65;\n    include conf.d/*.conf;",
    pid="{root}/server.pid",
    log="{root}/error.log",
)
_APACHE = DATA["apache"]
_HAPROXY = DATA["haproxy"]
_LIGHTTPD = DATA["lighttpd"]
_PHP = DATA["php"]
_SOCKET = "maxconn 50\n    stats socket {root}/admin.sock mode 600 level admin"


class Kind(NamedTuple):
    """`command` starts a server in the background; `process` is the name of its processes."""

    config: str
    command: str
    process: str


PHP = "php-fpm8.2"
KINDS = {
    "nginx": Kind(_NGINX, "nginx -p . -c server.conf", "nginx"),
    "apache": Kind(_APACHE, "apache2 -f {root}/server.conf -k start", "apache2"),
    "haproxy": Kind(_HAPROXY, "haproxy -W -D -f {root}/server.conf -p {root}/server.pid", "haproxy"),
    # The running server shows its limits on a socket, and its frontend has one of its own.
    "haproxy-socket": Kind(
        _HAPROXY.replace("maxconn 50", _SOCKET).replace("    http-", "    maxconn 40\n    http-"),
        "haproxy -W -D -f {root}/server.conf -p {root}/server.pid",
        "haproxy",
    ),
    "lighttpd": Kind(_LIGHTTPD, "lighttpd -f {root}/server.conf", "lighttpd"),
    "php": Kind(_PHP, f"{PHP} -y {{root}}/server.conf -D", PHP),
}


class Master(NamedTuple):
    """A running server with its files in `root`."""

    root: Path
    port: int

    @property
    def file(self) -> Path:
        return self.root / "server.conf"

    @property
    def pid(self) -> int:
        return int((self.root / "server.pid").read_text())

    @property
    def workers(self) -> set[int]:
        return {child.pid for child in psutil.Process(self.pid).children()}

    @property
    def facts(self) -> tuple[bytes, set[int]]:
        """What a change of another server must leave as it is: the file, and the workers."""
        return self.file.read_bytes(), self.workers

    async def probe(self) -> str:
        """Request a page; return "" if the server answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return "" if connection.recv(4096).startswith(b"HTTP/1.") else "no response"

    def tuner(self, effect: float = 30.0) -> Tuner:
        return Tuner(self.probe, Timeouts(effect=effect), port_on=lambda host: self.port)

    async def discovered(self, shell: LocalShell) -> DiscoveredHost:
        """Return what is on the machine, as the wizard finds it from the server's port."""
        return await discover(shell, "here", self.port, answers=True)

    async def knobs(self, shell: LocalShell) -> dict[str, Knob]:
        """Return the knobs of the server, with which alone the wizard fills a profile."""
        found = await self.discovered(shell)
        assert found.serving is not None and found.serving.master is not None
        assert found.serving.master.pid == self.pid
        draft = draft_of(f"http://127.0.0.1:{self.port}/", [HostSurvey(HostConfig(name="here"), found)])
        assert {knob.file for knob in draft.knobs} == {str(self.file)}
        names = {each.knob.name: each.knob for each in found.suggested if each.server is found.serving}
        assert {knob.file for knob in names.values()} == {str(self.file)}
        return names

    async def findings(self, shell: LocalShell, knob: Knob) -> list[Finding]:
        return await diagnose_servers(shell, "here", self.port, [knob])

    def edit(self, old: str, new: str) -> None:
        """Edit the file by hand, with a modification time an hour after now, so clearly after the start."""
        text = self.file.read_text()
        assert old in text
        self.file.write_text(text.replace(old, new))
        self.set_age(-3600)

    def set_age(self, seconds: float) -> None:
        """Set the file's age, in seconds, negative for the future; a busy machine may need minutes since the reload."""
        os.utime(self.file, (time.time() - seconds,) * 2)


@contextmanager
def running_server(kind: str, user: int | None = None, more: str = "") -> Iterator[Master]:
    """Run a server; `more` is the content of its included file, for HAProxy and PHP-FPM the end of the only file."""
    # No change is offered if other users can write to the folders, as to /tmp.
    with TemporaryDirectory(dir="/run", prefix="cockpit-test-") as folder:
        yield from _running(kind, Path(folder), user, more)


def _running(kind: str, root: Path, user: int | None, more: str) -> Iterator[Master]:
    (root / "conf.d").mkdir()
    master, (config, command, _) = Master(root, free_port()), KINDS[kind]
    master.file.write_text(
        config.replace("{root}", str(root)).replace("{port}", str(master.port))
        + (more if kind in ("haproxy", "php") else "")
    )
    (root / "conf.d" / "more.conf").write_text(more)
    if user is not None:
        os.chown(root, user, user)
    words = shlex.split(command.format(root=root))
    words[0] = shutil.which(words[0], path="/usr/sbin:/usr/bin") or words[0]
    subprocess.run(words, cwd=root, check=True, capture_output=True, user=user)
    pid = root / "server.pid"
    # The file is empty for a moment.
    wait_until(lambda: pid.exists() and pid.read_text().strip() and (master.workers or kind == "lighttpd"))
    process = psutil.Process(master.pid)
    tree = [process, *process.children()]
    try:
        yield master
    finally:
        # A test may have ended or restarted it.
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            process = psutil.Process(master.pid) if is_gone(process.pid) else process
            tree += [process, *process.children()]
            process.send_signal(signal.SIGTERM)
        wait_until(lambda: all(is_gone(each.pid) for each in tree))
