"""CPU profiles of real servers by the real perf: the line of a verdict names what a setting changed."""

import os
import random
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.segments import segment_verdict
from cockpit.analysis.words.stacks import profile_lines
from cockpit.hosts.stacks import script
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.waiting import free_port, wait_until

pytestmark = pytest.mark.lab
# Seconds of load per side: the guard of 3 s, and at least ten slices of a second.
SECONDS = 15.0
PREFORK = """
ServerRoot /etc/apache2
PidFile {directory}/pid
ErrorLog {directory}/error.log
ServerName localhost
Listen 127.0.0.1:{port}
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
DocumentRoot {directory}
KeepAlive Off
StartServers {spare}
MinSpareServers {spare}
MaxSpareServers {spare}
MaxRequestWorkers 100
MaxConnectionsPerChild {per_child}
"""
NGINX = """
worker_processes 1; daemon off; pid {directory}/pid; error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; gzip on; gzip_min_length 10; gzip_types text/plain; gzip_comp_level {level};
  server {{
    listen 127.0.0.1:{port}; root {directory};
    location ~ php$ {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME {directory}/page.php;
      fastcgi_pass unix:{directory}/php.sock; }}
  }}
}}
"""
FPM = """
[global]
pid = {directory}/fpm.pid
error_log = {directory}/fpm.log
[www]
user = root
listen = {directory}/php.sock
listen.mode = 0666
pm = static
pm.max_children = 2
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that the users of servers can read."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def running(*command: str) -> Iterator[None]:
    """A server in the foreground."""
    # In a session of its own, because Apache signals its process group.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True) as server:
        try:
            yield
        finally:
            os.kill(server.pid, signal.SIGTERM)


async def compared(
    monkeypatch: pytest.MonkeyPatch, plan: LoadPlan, names: tuple[str, ...], change: Callable[[], None]
) -> Verdict:
    """The verdict on a run after a change vs a run before it."""
    monkeypatch.setattr(script, "SLICE_SECONDS", 1.0)
    host = HostConfig(name="web1", processes=names, profile=999)
    async with LiveSession(Profile(name="profiled", plan=plan, hosts=(host,))) as live:
        await live.session.until(lambda state: bool(state.hosts) and bool(state.hosts["web1"].slices))
        await live.run_once()
        change()
        state = await live.run_once()
    before, after = state.segments
    assert not before.counts.failed and not after.counts.failed
    for part in state.hosts["web1"].slices:
        assert part.samples == sum(part.stacks.values()) + part.other
    return segment_verdict(live.state, after, before)


def plan_of(port: int, path: str, seconds: float = SECONDS, **more: object) -> LoadPlan:
    return LoadPlan(url=f"http://127.0.0.1:{port}/{path}", concurrency=4, duration=seconds, **more)  # type: ignore[arg-type]


def restart_apache(config: Path) -> None:
    """Restart an Apache that was started once with the file, and wait for its new processes."""
    subprocess.run(["apache2", "-f", config, "-k", "restart"], check=True)
    # The signal is answered later, and until then the old processes accept connections and abort them.
    wait_until(lambda: (config.parent / "error.log").read_text().count("resuming normal operations") == 2)


def wait_for(port: int) -> None:
    """Wait until something listens."""
    with socket.socket() as client:
        wait_until(lambda: client.connect_ex(("127.0.0.1", port)) == 0)


async def test_forks_of_prefork_are_gone_with_spare_servers(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "hello.txt").write_text("hello\n")
    port = free_port()
    config = directory / "apache.conf"
    config.write_text(PREFORK.format(directory=directory, port=port, spare=5, per_child=1))

    def change() -> None:
        config.write_text(PREFORK.format(directory=directory, port=port, spare=20, per_child=0))
        restart_apache(config)

    with running("apache2", "-f", str(config), "-D", "FOREGROUND"):
        wait_for(port)
        verdict = await compared(monkeypatch, plan_of(port, "hello.txt", 30.0, keepalive=False), ("apache2",), change)
    (known,) = verdict.profiles
    (line,) = profile_lines(verdict.profiles)
    assert "CPU/request: " in line
    assert known.change is not None
    assert known.change < -0.3
    assert "clone −" in line or "exit_group −" in line
    assert known.causes["clone"] + known.causes["exit_group"] + known.causes.get("page fault", 0.0) < -30


async def test_deflate_grows_with_the_level_of_gzip(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = random.Random(1)
    (directory / "a.txt").write_text(
        " ".join(words.choice(("alpha", "beta", "x", "yy")) + str(words.randint(0, 99)) for _ in range(8000))
    )
    port = free_port()
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(directory=directory, port=port, level=1))

    def workers() -> set[int]:
        return {process.pid for process in psutil.Process(int((directory / "pid").read_text())).children()}

    def change() -> None:
        config.write_text(NGINX.format(directory=directory, port=port, level=9))
        old = workers()
        subprocess.run(["nginx", "-c", config, "-s", "reload"], check=True, capture_output=True)
        wait_until(lambda: workers() and not workers() & old)

    with running("nginx", "-c", str(config)):
        wait_for(port)
        plan = plan_of(port, "a.txt", headers=(("Accept-Encoding", "gzip"),))
        verdict = await compared(monkeypatch, plan, ("nginx",), change)
    (known,) = verdict.profiles
    (line,) = profile_lines(verdict.profiles)
    # Without debug symbols, the functions of zlib have the name of their module.
    assert "[libz.so" in line or "deflate" in line
    assert known.change is not None
    assert known.change > 0.3


async def test_compilation_is_gone_with_opcache(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = "\n".join(f"function f{at}($x) {{ return $x * {at} + strlen('text {at}'); }}" for at in range(1500))
    (directory / "page.php").write_text(f"<?php\n{functions}\necho f7(3);\n")
    port = free_port()
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory, port=port, level=1))
    (directory / "fpm.conf").write_text(FPM.format(directory=directory))
    program = str(next(Path("/usr/sbin").glob("php-fpm*")))  # noqa: ASYNC240
    common = (program, "-R", "-F", "-y", str(directory / "fpm.conf"))
    servers = [subprocess.Popen([*common, "-d", "opcache.enable=0"], stderr=subprocess.DEVNULL)]  # noqa: ASYNC220

    def change() -> None:
        servers[0].terminate()
        servers[0].wait()
        servers[0] = subprocess.Popen([*common, "-d", "opcache.enable=1"], stderr=subprocess.DEVNULL)
        wait_until((directory / "php.sock").is_socket)

    try:
        with running("nginx", "-c", str(directory / "nginx.conf")):
            wait_for(port)
            verdict = await compared(monkeypatch, plan_of(port, "page.php"), ("php-fpm*",), change)
    finally:
        servers[0].terminate()
        servers[0].wait()
    (known,) = verdict.profiles
    totals = {row.function: row.total for row in known.functions}
    assert known.change is not None
    assert known.change < -0.5
    assert min(totals.get("zendparse") or 0.0, totals.get("compile_file") or 0.0) < -5
