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
from tests.data import data_of
from tests.waiting import free_port, wait_until

DATA = data_of(__file__)

pytestmark = pytest.mark.lab
# Seconds of load per side: the guard of 3 s, and at least ten slices of a second.
SECONDS, SLICES = 15.0, 10
PREFORK = DATA["prefork"]
NGINX = DATA["nginx"]


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
        begun = (await live.run_once()).segments[-1].start
        # On a busy machine perf is many seconds behind.
        state = await live.session.until(
            lambda state: sum(part.start > begun for part in state.hosts["web1"].slices) >= SLICES
        )
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
