"""Two servers of one kind: only the target's server is found, offered, changed and reloaded. On real servers."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import psutil
import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe import Probe
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.host_inventory import untrusted
from cockpit.tuning.server_check import read_by
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner

NOBODY = 65534
NGINX = """\
worker_processes 1;
pid {root}/server.pid;
error_log {root}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    fastcgi_temp_path {root}/fastcgi;
    uwsgi_temp_path {root}/uwsgi;
    scgi_temp_path {root}/scgi;
    keepalive_timeout 65;
    include conf.d/*.conf;
    server {{
        listen 127.0.0.1:{port};
        return 204;
    }}
}}
"""
APACHE = """\
ServerRoot {root}
PidFile server.pid
ErrorLog error.log
Listen 127.0.0.1:{port}
ServerName localhost
User nobody
Group nogroup
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
StartServers 1
ServerLimit 1
ThreadsPerChild 2
MaxRequestWorkers 2
KeepAliveTimeout 5
IncludeOptional conf.d/*.conf
"""
HAPROXY = """\
global
    maxconn 50
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend web
    bind 127.0.0.1:{port}
    http-request return status 204
"""
COMMANDS = {
    "nginx": ("nginx", "-p", ".", "-c", "server.conf"),
    "apache": ("apache2", "-f", "{root}/server.conf", "-k", "start"),
    "haproxy": ("haproxy", "-W", "-D", "-f", "server.conf", "-p", "{root}/server.pid"),
}
CONFIGS = {"nginx": NGINX, "apache": APACHE, "haproxy": HAPROXY}
# Knob, old value, new value.
CHANGES = {
    "nginx": ("keepalive_timeout", "65", "33"),
    "apache": ("KeepAliveTimeout", "5", "7"),
    "haproxy": ("maxconn", "50", "60"),
}


class Master(NamedTuple):
    """A separate server with its files in `root`."""

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

    async def probe(self) -> str:
        """Request a page; return "" if the server answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return "" if connection.recv(4096).startswith(b"HTTP/1.1 ") else "no response"

    def tuner(self, effect: float = 30.0) -> Tuner:
        return Tuner(self.probe, Timeouts(effect=effect), port_on=lambda host: self.port)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@contextmanager
def running_server(
    kind: str, root: Path, user: int | None = None, more: str = "", program: str = ""
) -> Iterator[Master]:
    """Run a server; `more` is the content of its included file, for HAProxy the end of its only file; `program` is the
    path of another program than the kind's."""
    (root / "conf.d").mkdir(parents=True)
    master = Master(root, free_port())
    master.file.write_text(CONFIGS[kind].format(root=root, port=master.port) + (more if kind == "haproxy" else ""))
    (root / "conf.d" / "more.conf").write_text(more)
    if user is not None:
        os.chown(root, user, user)
    command = [word.format(root=root) for word in COMMANDS[kind]]
    command[0] = program or command[0]
    subprocess.run(command, cwd=root, check=True, capture_output=True, user=user)
    deadline = time.monotonic() + 60
    while not (root / "server.pid").exists() or not master.workers:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process = psutil.Process(master.pid)
    tree = [process, *process.children()]
    try:
        yield master
    finally:
        # A test may have ended or restarted it.
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            process = psutil.Process(master.pid) if has_ended(process) else process
            tree += [process, *process.children()]
            process.send_signal(signal.SIGTERM)
        wait_for_end(tree)


def wait_for_end(processes: Sequence[psutil.Process]) -> None:
    """Wait until the processes have ended; they need not be reaped."""
    deadline = time.monotonic() + 60
    while not all(map(has_ended, processes)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def start_two(
    lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], list[Master]]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ExitStack() as stack:

        def start(kind: str) -> list[Master]:
            if not shutil.which(COMMANDS[kind][0]):
                pytest.skip(f"{COMMANDS[kind][0]} is not installed")
            return [stack.enter_context(running_server(kind, tmp_path / name)) for name in ("one", "other")]

        yield start


@pytest.fixture
async def shell() -> AsyncIterator[LocalShell]:
    shell = LocalShell("here")
    yield shell
    await shell.close()


async def offered(shell: LocalShell, master: Master) -> dict[str, Knob]:
    """Return the knobs that the wizard offers for the server's port."""
    found = await discover(shell, "here", master.port, answers=True)
    assert found.serving is not None and found.serving.master is not None
    assert found.serving.master.pid == master.pid
    draft = draft_of(f"http://127.0.0.1:{master.port}/", [HostSurvey(HostConfig(name="here"), found)])
    assert {knob.file for knob in draft.knobs} == {str(master.file)}
    names = {each.knob.name: each.knob for each in found.offered if each.server is found.serving}
    assert {knob.file for knob in names.values()} == {str(master.file)}
    return names


@pytest.mark.parametrize("kind", COMMANDS)
async def test_only_target_server_is_changed(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    masters = start_two(kind)
    name, old, new = CHANGES[kind]
    for master, other in (masters, masters[::-1]):
        other_file, other_workers, before = other.file.read_bytes(), other.workers, master.workers
        # As in a profile: the default is the host's processes.
        knob = replace((await offered(shell, master))[name], workers={"apache": "apache2"}.get(kind, kind))
        done = await master.tuner().apply(shell, "here", [(knob, new)])
        assert [(setting.old, setting.new) for setting in done.settings] == [(old, new)]
        assert not [note for note in done.notes if "old worker" in note], "the other server's workers are not awaited"
        assert master.workers.isdisjoint(before), "the workers were replaced"
        assert (other.file.read_bytes(), other.workers) == (other_file, other_workers)
        (finding,) = await diagnose_servers(shell, "here", master.port, [knob])
        assert finding.level == "ok" and f"answers on port {master.port}" in finding.text
        assert f"PID {master.pid}" in finding.text


@pytest.mark.parametrize("kind", COMMANDS)
async def test_file_of_other_server_is_refused(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    master, other = start_two(kind)
    name, _, new = CHANGES[kind]
    knob = (await offered(shell, other))[name]
    files, workers = (master.file.read_bytes(), other.file.read_bytes()), (master.workers, other.workers)
    with pytest.raises(ChangeRefused, match=rf"is not read by the {kind} on port {master.port}: .*{master.file}"):
        await master.tuner().apply(shell, "here", [(knob, new)])
    (finding,) = await diagnose_servers(shell, "here", master.port, [knob])
    assert finding.level == "error" and str(master.file) in finding.text
    assert ((master.file.read_bytes(), other.file.read_bytes()), (master.workers, other.workers)) == (files, workers)


@pytest.mark.parametrize("kind", COMMANDS)
async def test_only_processes_of_target_server_are_watched(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    config = HostConfig(name="here", processes=("apache2" if kind == "apache" else kind,))
    for master, other in permutations(start_two(kind)):
        probe = await Probe.start(shell, config, master.port)
        reading = await probe.read()
        probe.close()
        assert {process.pid for process in reading.processes} == {master.pid} | master.workers
        assert reading.excluded is not None and reading.excluded >= len({other.pid} | other.workers)
    probe = await Probe.start(shell, config)
    reading = await probe.read()
    probe.close()
    assert {master.pid, other.pid} <= {process.pid for process in reading.processes}, "the target is on another host"


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("first", [0, 1])
async def test_equal_knob_names_are_made_unique(
    kind: str, first: int, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    name, old, new = CHANGES[kind]
    masters = start_two(kind)
    master, other = masters[first], masters[1 - first]
    found = await discover(shell, "here", master.port, answers=True)
    named = {each.knob.name: each.knob for each in found.offered}
    assert len(named) == len(found.offered)
    assert named[name].file == str(master.file)
    foreign = named[f"{name}-{other.port}"]
    assert foreign.file == str(other.file)
    before = master.file.read_bytes(), master.workers
    applied = await Tuner().apply(shell, "here", [(foreign, new)])
    assert [(setting.knob, setting.old, setting.new) for setting in applied.settings] == [
        (f"{name}-{other.port}", old, new)
    ]
    await Tuner().undo(shell, applied)
    assert (master.file.read_bytes(), master.workers) == before


async def test_configuration_writable_by_other_user_is_not_offered(lab_allowed: None, shell: LocalShell) -> None:
    assert await untrusted(shell, ["/usr/sbin/haproxy", "/etc/passwd"]) == []
    with TemporaryDirectory() as directory:
        os.chown(directory, NOBODY, NOBODY)
        with running_server("haproxy", Path(directory) / "server", user=NOBODY) as master:
            found = await discover(shell, "here", master.port, answers=True)
    assert found.serving is not None and found.serving.startup is not None
    assert found.serving.candidates == ()
    assert "another user started it and can replace" in found.serving.startup.uncertainty


async def test_reload_of_other_server_is_refused(start_two: Callable[[str], list[Master]], shell: LocalShell) -> None:
    master, other = start_two("nginx")
    own, foreign = [(await offered(shell, each))["keepalive_timeout"] for each in (master, other)]
    workers = other.workers
    mixed = replace(own, reload=foreign.reload)
    with pytest.raises(ChangeRefused, match="reloads nginx"):
        await master.tuner().apply(shell, "here", [(mixed, "33")])
    assert other.workers == workers


async def test_signal_to_other_server_is_refused(start_two: Callable[[str], list[Master]], shell: LocalShell) -> None:
    master, other = start_two("nginx")
    before = master.file.read_bytes(), master.workers, other.workers
    knob = (await offered(shell, master))["keepalive_timeout"]
    file = f'kill -HUP "$(cat {other.root}/server.pid)"'
    for reload in (f"kill -HUP {other.pid}", file, "pkill -HUP nginx", "killall -HUP nginx"):
        knob = replace(knob, reload=reload)
        with pytest.raises(ChangeRefused, match=rf"signals nginx .*PID {other.pid}\b.*set reload = 'nginx -s reload"):
            await master.tuner().apply(shell, "here", [(knob, "33")])
    (finding,) = await diagnose_servers(shell, "here", master.port, [knob])
    assert finding.level == "error" and f"PID {other.pid}" in finding.text
    assert (master.file.read_bytes(), master.workers, other.workers) == before
    own = replace(knob, reload=f"kill -HUP $(cat {master.root}/server.pid)")
    await master.tuner().apply(shell, "here", [(own, "33")])


@pytest.mark.parametrize("kind", COMMANDS)
async def test_doctor_reports_file_edited_after_reload(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    master, _ = start_two(kind)
    knob = (await offered(shell, master))[CHANGES[kind][0]]
    os.utime(master.file, (time.time() - 60,) * 2)
    assert [finding.level for finding in await diagnose_servers(shell, "here", master.port, [knob])] == ["ok"]
    os.utime(master.file, (time.time() + 60,) * 2)
    _, stale = await diagnose_servers(shell, "here", master.port, [knob])
    assert stale.level == "note" and f"{master.file} was edited after the last reload" in stale.text


@pytest.mark.parametrize("kind", ["nginx", "apache"])
async def test_value_of_included_file_is_offered_and_changed(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    master, other = start_two(kind)
    name, old, new = CHANGES[kind]
    ending = ";" if kind == "nginx" else ""
    # nginx allows a directive only once per block.
    if kind == "nginx":
        master.file.write_text(master.file.read_text().replace(f"    {name} {old};\n", ""))
    included = master.root / "conf.d" / "more.conf"
    included.write_text(f"{name} 9{ending}\n")
    before = other.file.read_bytes(), other.workers
    found = await discover(shell, "here", master.port, answers=True)
    (offer,) = [each for each in found.offered if each.knob.name == name]
    assert (offer.knob.file, offer.value) == (str(included), "9")
    await master.tuner().apply(shell, "here", [(offer.knob, new)])
    assert included.read_text() == f"{name} {new}{ending}\n"
    assert (other.file.read_bytes(), other.workers) == before


@pytest.mark.parametrize("kind", ["nginx", "apache"])
async def test_error_log_of_own_configuration_is_followed(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    for master in start_two(kind):
        log = f"{master.root}/error.log"
        assert {knob.log for knob in (await offered(shell, master)).values()} == {log}
        found = await discover(shell, "here", master.port, answers=True)
        assert found.serving is not None and found.serving.tail == (f"tail -n 3 -F {log}",)
        (master.root / "error.log").unlink()
        found = await discover(shell, "here", master.port, answers=True)
        assert found.serving is not None and found.serving.tail == (), "the log does not exist"


@pytest.mark.parametrize("kind", ["nginx", "apache"])
async def test_included_file_belongs_to_its_own_server(
    kind: str, start_two: Callable[[str], list[Master]], shell: LocalShell
) -> None:
    master, other = start_two(kind)
    included = master.root / "conf.d" / "more.conf"
    included.write_text(f"{CHANGES[kind][0]} 9{';' if kind == 'nginx' else ''}\n")
    knob = Knob(name="more", host="here", kind=kind, file=str(included), directive=CHANGES[kind][0])
    (own,) = await read_by(shell, "here", master.port, [knob])
    assert own.instance is not None and own.instance.process.pid == master.pid and not own.wrong
    (foreign,) = await read_by(shell, "here", other.port, [knob])
    assert foreign.wrong
