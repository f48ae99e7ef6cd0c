"""What can go wrong during a search, on a real Apache over a real sshd: the original values are active afterwards."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab import Host, Lab
from tests.lab.test_transaction_faults import LOCK, TIME_PASSED
from tests.tuning.conftest import until

CONF = "/etc/apache2/apache2.conf"
STATE = f"cat {CONF}; find /etc/apache2 -printf '%p %y %m %u %g %l\\n' | sort"
KEPT = "/root/.local/state/cockpit"
PROFILE = """\
[target]
url = "{url}"
[load]
concurrency = 8
workers = 1
[[host]]
name = "web1"
ssh = "web1"
processes = ["apache2"]
[[knob]]
name = "KeepAlive"
host = "web1"
file = "{conf}"
directive = "KeepAlive"
values = ["On", "Off"]
test = "apachectl -t"
reload = '''{reload}'''
workers = "apache2"
"""
RELOAD = "apachectl graceful"
# A server that takes the new value, and is gone with it.
DIES = f"if grep -qx 'KeepAlive Off' {CONF}; then service apache2 stop; else service apache2 start; fi"


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"rm -rf {KEPT}; grep -qx 'KeepAlive On' {CONF}")
    yield fresh_web1
    fresh_web1.run(f"grep -qx 'KeepAlive On' {CONF}")


class Search:
    """A `cockpit autopilot` under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, words: str) -> None:
        """Wait for a line of progress with these words."""
        assert self.process.stderr is not None
        async with asyncio.timeout(120):
            while words not in (line := (await self.process.stderr.readline()).decode()):
                assert line

    async def ended(self) -> tuple[int | None, dict[str, Any], str]:
        """The exit status, the JSON and the rest of what was said."""
        stdout, stderr = await asyncio.wait_for(self.process.communicate(), 300)
        return self.process.returncode, json.loads(stdout or "{}"), stderr.decode()


@asynccontextmanager
async def search(web1: Host, folder: Path, *, reload: str = RELOAD, full: Path | None = None) -> AsyncIterator[Search]:
    """A search for the better of two values; `full`: recorded in a directory where only 64 KiB fit."""
    profile = folder / "p.toml"
    profile.write_text(PROFILE.format(url=web1.url, conf=CONF, reload=reload))
    words = ["autopilot", str(profile), "--trust", "--json", "--ssh-config", str(web1.ssh_config), "--budget", "10m"]
    words += ["--seconds", "5s", "--knob", "KeepAlive=On,Off", "--record", str((full or folder) / "s.cockpit")]
    small = (
        ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k small "$0" && exec "$@"', str(full)) if full else ()
    )
    process = await asyncio.create_subprocess_exec(
        *(*small, sys.executable, "-m", "cockpit", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Search(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def active(web1: Host, value: str) -> None:
    await until(lambda: web1.run(f"grep -qx 'KeepAlive {value}' {CONF}", check=False).returncode == 0, 60)


async def unlocked(web1: Host) -> None:
    """Wait until no change waits on the host."""
    await until(lambda: web1.run(f"test -L {LOCK}", check=False).returncode == 1, 120)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
async def test_a_search_that_is_killed(web1: Host, tmp_path: Path, end: signal.Signals) -> None:
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as found:
        await active(web1, "Off")
        found.process.send_signal(end)
        code, said, _ = await found.ended()
    assert code == (-9 if end == signal.SIGKILL else 130) and not said
    web1.run(TIME_PASSED, check=False)
    await unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_a_host_that_is_lost_and_comes_back(lab: Lab, web1: Host, tmp_path: Path) -> None:
    """That evaluation fails; the search goes on with the host, and without those values."""
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as found:
        await active(web1, "Off")
        with lab.web1.unplugged():
            await asyncio.sleep(15)  # longer than any command may stay without an answer
        code, said, told = await found.ended()
    assert code == 0, told
    outcomes = [(one["values"]["KeepAlive"], one["outcome"]) for one in said["evaluations"]]
    assert outcomes[:2] == [("On", "measured"), ("Off", "failed")] and said["outcome"] == "nothing"
    await unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_a_server_that_does_not_come_back(web1: Host, tmp_path: Path) -> None:
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path, reload=DIES) as found:
        code, said, told = await found.ended()
    assert code == 0, told
    [original, dead] = said["evaluations"]
    assert original["outcome"] == "measured" and original["values"] == {"KeepAlive": "On"}
    assert dead["outcome"] == "failed" and "did not become active" in dead["detail"] and dead["run"] == 0
    assert said["outcome"] == "nothing"
    await unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_a_full_disk_of_the_host(web1: Host, tmp_path: Path) -> None:
    """Nothing can be kept there, so nothing is changed."""
    before = web1.run(STATE).stdout
    web1.run(f"mkdir -p {KEPT} && mount -t tmpfs -o size=16k,mode=700 small {KEPT}")
    try:
        web1.run(f"cat /dev/zero >{KEPT}/filler", check=False)
        async with search(web1, tmp_path) as found:
            code, said, told = await found.ended()
    finally:
        web1.run(f"umount {KEPT}")
    assert code == 0, told
    refused = said["evaluations"][1]
    assert refused["outcome"] == "failed"
    assert any(words in refused["detail"] for words in ("No space left on device", "is the disk full?"))
    assert web1.run(STATE).stdout == before


async def test_a_full_disk_where_the_search_is_recorded(web1: Host, tmp_path: Path) -> None:
    """The recording has a gap, the search goes on."""
    before = web1.run(STATE).stdout
    (tmp_path / "full").mkdir()
    async with search(web1, tmp_path, full=tmp_path / "full") as found:
        code, said, told = await found.ended()
    assert code == 0, told
    assert [one["outcome"] for one in said["evaluations"]].count("measured") >= 2
    assert "recording: s.cockpit: database or disk is full; the file holds" in told
    await unlocked(web1)
    assert web1.run(STATE).stdout == before
