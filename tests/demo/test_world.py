"""The demo's world: all of it is there inside, nothing of it outside, however the process that holds it ends."""

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

from cockpit.demo.world import DemoError, DemoWorld
from cockpit.profiles.reader import parse_profile
from tests.demo.support import DEADLINE, is_gone, wait_until
from tests.processes import family, newer_children

# Enters a world, leaves a stray process behind through its SSH host, says where it is, and waits to be ended.
# Whoever started the tests in the background has SIGINT ignored, by all of their children too.
HOLDER = """
import asyncio, json, signal, asyncssh
signal.signal(signal.SIGINT, signal.default_int_handler)
from cockpit.demo.world import DemoWorld

async def main():
    async with DemoWorld() as world:
        async with asyncssh.connect("demo", config=[str(world.ssh_config)]) as connection:
            stray = await connection.run("setsid nohup sleep 600 >/dev/null 2>&1 </dev/null & echo $!")
            lasting = await connection.create_process("echo $$; exec sleep 600")
            pids = [int(stray.stdout), int(await lasting.stdout.readline())]
            print(json.dumps({"directory": str(world.directory), "pids": pids}), flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=DEADLINE) as reply:
        body: bytes = reply.read()
    return body


@asynccontextmanager
async def kept_world() -> AsyncIterator[tuple[DemoWorld, psutil.Process]]:
    """Enter a world; yield it with the process that keeps it."""
    started = newer_children()
    async with DemoWorld() as world:
        [keeper] = started()
        yield world, keeper


async def test_what_is_in_it_and_that_it_goes() -> None:
    async with kept_world() as (world, keeper):
        assert len(fetch(world.url)) == 92
        assert world.directory.stat().st_mode & 0o777 == 0o700
        for file in (world.config_file, world.ssh_config, world.error_log):
            assert file.parent == world.directory and file.is_file()
        everything = [process.pid for process in family(keeper)]
        assert len(everything) >= 3 + 5
    assert not world.directory.exists()
    assert all(is_gone(pid) for pid in everything)


async def test_the_profile_describes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awkward = tmp_path / "it's a\\b"
    awkward.mkdir()
    monkeypatch.setenv("TMPDIR", str(awkward))
    async with DemoWorld() as world:
        assert world.directory.parent == awkward
        assert parse_profile(world.profile_toml(), "demo", "demo").plan.url == world.url
        profile = tomllib.loads(world.profile_toml())
        assert profile["target"] == {"url": world.url}
        assert profile["load"] == {"concurrency": 20, "duration": "15m", "keepalive": False}
        processes = f"demo-http-{urlsplit(world.url).port}"
        assert profile["host"] == [{"name": "demo", "ssh": "demo", "processes": [processes]}]
        knobs = parse_profile(world.profile_toml(), "demo", "demo").knobs
        assert [knob.allowed for knob in knobs] == ["1 to 256", "1 or more", "0 or more", "1 to 256"]
        assert {knob.workers for knob in knobs} == {processes}, "not those of another demo"
        assert [knob["name"] for knob in profile["knob"]] == [
            "MinSpareServers",
            "MaxSpareServers",
            "MaxRequestsPerChild",
            "MaxClients",
        ]
        knob = profile["knob"][0]
        assert (knob["kind"], knob["section"], knob["host"]) == ("apache", "IfModule prefork", "demo")
        assert knob["file"] == str(world.config_file)
        text = world.config_file.read_text()
        status = world.url.replace("hello.html", "server-status")
        async with asyncssh.connect("demo", config=[str(world.ssh_config)]) as connection:
            for value, verdict in (("none", 1), ("20", 0)):
                world.config_file.write_text(text.replace("MinSpareServers       5", f"MinSpareServers {value}"))
                tested = await connection.run(knob["test"])
                assert tested.exit_status == verdict, tested.stderr
            assert (await connection.run(knob["reload"], check=True)).stderr == ""
        wait_until(lambda: b"MinSpareServers: 20\n" in fetch(status), "the change to be in force")


@pytest.mark.parametrize("name", ["INT", "TERM", "KILL"])
def test_nothing_is_left_however_its_holder_ends(name: str) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert holder.stdout
    said = json.loads(holder.stdout.readline())
    directory = Path(said["directory"])
    pids = {child.pid for child in psutil.Process(holder.pid).children(recursive=True)} | set(said["pids"])
    assert len(pids) >= 3 + 5 + 2
    assert directory.is_dir()
    assert not any(is_gone(pid) for pid in said["pids"])
    os.killpg(holder.pid, getattr(signal, f"SIG{name}"))
    holder.wait(DEADLINE)
    holder.stdout.close()
    wait_until(lambda: all(is_gone(pid) for pid in pids), "every process to end")
    assert not directory.exists()


async def test_a_server_that_is_killed_does_not_keep_the_rest_from_ending() -> None:
    async with kept_world() as (world, keeper):
        everything = [child.pid for child in keeper.children(recursive=True)]
        for server in keeper.children():
            server.kill()
        wait_until(lambda: all(is_gone(pid) for pid in everything), "both servers and their children to end")
    assert not world.directory.exists()
    assert is_gone(keeper.pid)


async def test_a_keeper_that_is_killed_takes_the_servers_along() -> None:
    async with kept_world() as (world, keeper):
        everything = [child.pid for child in keeper.children(recursive=True)]
        keeper.kill()
        wait_until(lambda: all(is_gone(pid) for pid in everything), "both servers and their children to end")
    assert not world.directory.exists()


async def test_a_world_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "asyncssh.py").write_text("raise ImportError('no asyncssh here')\n")
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(broken))
    monkeypatch.setenv("TMPDIR", str(room))
    with pytest.raises(DemoError, match="could not be started: ImportError: no asyncssh here"):
        async with DemoWorld():
            pass
    assert list(room.iterdir()) == []
