"""The demo's world: its contents, and complete removal for every way its owner ends."""

import json
import os
import signal
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncssh
import psutil
import pytest

from cockpit.demo.servers import DemoError, DemoServers
from cockpit.profiles.reader import parse_profile
from tests.data import data_of
from tests.processes import family, is_gone, newer_children
from tests.waiting import DEADLINE, wait_until

DATA = data_of(__file__)

KNOBS = ["MinSpareServers", "MaxSpareServers", "MaxRequestsPerChild", "MaxClients"]
# Enters a world, starts a background process on its SSH host, prints its directory and PIDs, and waits for a signal.
# A shell's background job ignores SIGINT, and its children inherit that.
OWNER = DATA["owner"]


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=DEADLINE) as response:
        body: bytes = response.read()
    return body


@asynccontextmanager
async def servers_with_supervisor() -> AsyncIterator[tuple[DemoServers, psutil.Process]]:
    """Enter a world; yield it with its supervisor process."""
    started = newer_children()
    async with DemoServers() as world:
        [supervisor] = started()
        yield world, supervisor


async def test_world_contains_server_and_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = tmp_path / "it's a\\b"
    awkward.mkdir()
    monkeypatch.setenv("TMPDIR", str(awkward))
    async with servers_with_supervisor() as (world, supervisor):
        assert len(fetch(world.url)) == 92
        assert world.directory.parent == awkward and world.directory.stat().st_mode & 0o777 == 0o700
        for file in (world.config_file, world.ssh_config, world.error_log):
            assert file.parent == world.directory and file.is_file()
        assert len(family(supervisor)) >= 3 + 5
        await check_profile(world)
        pids = [process.pid for process in family(supervisor)]
    assert not world.directory.exists()
    assert all(is_gone(pid) for pid in pids)


async def check_profile(world: DemoServers) -> None:
    """Check the world's profile, and use its first knob as the profile says."""
    parsed = parse_profile(world.profile_toml(), "demo", "demo")
    assert parsed.plan.url == world.url
    assert [knob.name for knob in parsed.knobs] == KNOBS
    assert [knob.allowed for knob in parsed.knobs] == ["1 to 256", "1 or more", "0 or more", "1 to 256"]
    processes = f"demo-http-{urlsplit(world.url).port}"
    assert {knob.workers for knob in parsed.knobs} == {processes}, "workers of this demo only"
    profile = tomllib.loads(world.profile_toml())
    assert profile["target"] == {"url": world.url}
    assert profile["load"] == {"concurrency": 20, "duration": "15m", "keepalive": False}
    assert profile["host"] == [{"name": "demo", "ssh": "demo", "processes": [processes]}]
    knob = profile["knob"][0]
    assert (knob["kind"], knob["section"], knob["host"]) == ("apache", "IfModule prefork", "demo")
    assert knob["file"] == str(world.config_file)
    text = world.config_file.read_text()
    async with asyncssh.connect("demo", config=[str(world.ssh_config)]) as connection:
        for value, exit_status in (("none", 1), ("20", 0)):
            world.config_file.write_text(text.replace("MinSpareServers       5", f"MinSpareServers {value}"))
            tested = await connection.run(knob["test"])
            assert tested.exit_status == exit_status, tested.stderr
        assert (await connection.run(knob["reload"], check=True)).stderr == ""
    status = world.url.replace("hello.html", "server-status")
    wait_until(lambda: b"MinSpareServers: 20\n" in fetch(status))


@pytest.mark.parametrize("name", ["INT", "TERM", "KILL"])
def test_nothing_remains_after_signal_to_owner(name: str) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert owner.stdout
    printed = json.loads(owner.stdout.readline())
    directory = Path(printed["directory"])
    pids = {child.pid for child in psutil.Process(owner.pid).children(recursive=True)} | set(printed["pids"])
    assert len(pids) >= 3 + 5 + 2
    assert directory.is_dir()
    assert not any(is_gone(pid) for pid in printed["pids"])
    os.killpg(owner.pid, getattr(signal, f"SIG{name}"))
    owner.wait(DEADLINE)
    owner.stdout.close()
    wait_until(lambda: all(is_gone(pid) for pid in pids))
    assert not directory.exists()


@pytest.mark.parametrize("killed", ["servers", "supervisor"])
async def test_world_is_removed_after_its_processes_are_killed(killed: str) -> None:
    async with servers_with_supervisor() as (world, supervisor):
        pids = [child.pid for child in supervisor.children(recursive=True)]
        for process in supervisor.children() if killed == "servers" else (supervisor,):
            process.kill()
        wait_until(lambda: all(is_gone(pid) for pid in pids))
    assert not world.directory.exists()
    assert is_gone(supervisor.pid)


async def test_failed_start_reports_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "asyncssh.py").write_text("raise ImportError('no asyncssh here')\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(broken))
    monkeypatch.setenv("TMPDIR", str(temporary))
    with pytest.raises(DemoError, match="could not be started: ImportError: no asyncssh here"):
        async with DemoServers():
            pass
    assert list(temporary.iterdir()) == []
