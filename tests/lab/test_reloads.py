"""Reloads of real servers: dropped by nginx, shared by two servers, and overridden by an environment."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.hosts.ssh import connect
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Host, Lab
from tests.lab.lighttpd import CONFIG
from tests.waiting import free_port, until, wait_until

NGINX = """\
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


@pytest.fixture
def nginx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nginx]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = Nginx(tmp_path, free_port())
    (tmp_path / "nginx.conf").write_text(NGINX.format(root=tmp_path, port=server.port))
    shutil.copy(shutil.which("nginx", path="/usr/sbin:/usr/bin") or "", tmp_path / NAME)
    with subprocess.Popen(["sh", "-c", f"exec {server.command}"], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until((tmp_path / "nginx.pid").exists)
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


FIRST, SECOND = 8101, 8102
_START = (
    f"PORT={{0}} PID={{1}} lighttpd -f {CONFIG}; until curl -sS --fail localhost:{{0}}/hello.html; do sleep 0.02; done"
)


@pytest.fixture(scope="module")
def two(lab: Lab) -> Iterator[Host]:
    host = lab.web1
    host.run(f"cp {CONFIG} /run/lighttpd.conf.kept; install -d -o www-data /run/lighttpd /var/log/lighttpd")
    host.run(
        f"sed -i 's/^server.port .*/server.port = env.PORT/; s/^server.pid-file .*/server.pid-file = env.PID/' {CONFIG}"
    )
    for port, pid in ((FIRST, "/run/lighttpd.pid"), (SECOND, "/run/lighttpd-2.pid")):
        host.run(f"{{ set -e; {_START.format(port, pid)}\n}} >/tmp/two.out 2>&1")
    yield host
    host.run("kill $(cat /run/lighttpd.pid /run/lighttpd-2.pid); while pgrep lighttpd; do sleep 0.02; done")
    host.run(f"cp /run/lighttpd.conf.kept {CONFIG}")


async def test_only_the_server_of_the_pid_file_is_changed(two: Host) -> None:
    shell = await connect(HostConfig(name="web1", ssh="web1"), two.ssh_config)
    before = two.run(f"cat {CONFIG}").stdout
    pids = two.run("cat /run/lighttpd.pid /run/lighttpd-2.pid").stdout
    found = await discover(shell, "web1", FIRST, answers=True)
    name = "server.max-connections"
    knob = next(one.knob for one in found.offered if one.knob.name == name)
    assert knob.reload == "service lighttpd reload"
    for port, level in ((FIRST, "ok"), (SECOND, "error")):
        assert [each.level for each in await diagnose_servers(shell, "web1", port, [knob])] == [level]
    with pytest.raises(ChangeRefused, match=rf"'service lighttpd reload' signals lighttpd \(PID {pids.split()[0]}\b"):
        await Tuner(port_on=lambda host: SECOND).apply(shell, "web1", [(knob, "99")])
    # Without a PID file the two are not told apart.
    two.run("mv /run/lighttpd.pid /run/lighttpd.kept")
    with pytest.raises(ChangeRefused, match=r"may reload lighttpd .* instead of lighttpd"):
        await Tuner(port_on=lambda host: FIRST).apply(shell, "web1", [(knob, "99")])
    two.run("mv /run/lighttpd.kept /run/lighttpd.pid")
    await shell.close()
    assert two.run(f"cat {CONFIG}").stdout == before


APP = "def application(environ, start):\n    start('200 OK', [])\n    return [b'hello']\n"
VARIABLE = "GUNICORN_CMD_ARGS"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """The configuration file and the port of a gunicorn with one worker by its environment."""
    (tmp_path / "app.py").write_text(APP)
    file, port = tmp_path / "gunicorn.conf.py", free_port()
    file.write_text("workers = 2\nthreads = 1\n")
    command = ["/usr/bin/gunicorn", "-b", f"127.0.0.1:{port}", "--keep-alive", "3", "app:application"]
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", VARIABLE: "--workers=1 --timeout '77'"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as master:
        try:
            yield file, port
        finally:
            master.terminate()


async def test_settings_that_the_environment_overrides_are_not_changed_in_the_file(
    started: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file, port = started
    await until(lambda: subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/"], check=False).returncode == 0)
    shell, before = LocalShell("here"), file.read_bytes()
    found = await discover(shell, "here", port, answers=True)
    assert found.serving and found.serving.startup and found.serving.startup.file == str(file)
    knobs = {one.knob.name: one.knob for one in found.offered if one.server is found.serving}
    assert "threads" in knobs and not {"workers", "timeout", "keepalive"} & knobs.keys()
    words = HostSurvey(HostConfig(name="here"), found).words
    assert f"workers set by {VARIABLE} in its environment; timeout set by {VARIABLE} in its environment" in words
    workers = replace(knobs["threads"], name="workers", directive="workers")
    findings = await diagnose_servers(shell, "here", port, [workers, knobs["threads"]])
    assert sorted(finding.level for finding in findings) == ["error", "ok"]
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.text.startswith(f"workers: {VARIABLE} in its environment overrides {file}")
    tuner = Tuner(port_on=lambda host: port)
    with pytest.raises(ChangeRefused, match=f"{VARIABLE} in its environment overrides"):
        await tuner.apply(shell, "here", [(workers, "3")])
    assert file.read_bytes() == before
    applied = await tuner.apply(shell, "here", [(knobs["threads"], "2")])
    assert file.read_bytes() == before.replace(b"threads = 1", b"threads = 2")
    await tuner.undo(shell, applied)
    await shell.close()
    assert file.read_bytes() == before
