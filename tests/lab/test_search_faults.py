"""Faults during a search, on a real Apache over a real sshd: the original values are active afterwards."""

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
HOST_STATE = "/root/.local/state/cockpit"
PROFILE = """\
[target]
url = "{url}"
[load]
concurrency = 8
# Leaves CPU to other processes: less than 400 requests/s.
think_time = "20ms"
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
# A server that stops with the new value.
STOPS_WITH_NEW_VALUE = f"if grep -qx 'KeepAlive Off' {CONF}; then service apache2 stop; else service apache2 start; fi"


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"rm -rf {HOST_STATE}; grep -qx 'KeepAlive On' {CONF}")
    yield fresh_web1
    fresh_web1.run(f"grep -qx 'KeepAlive On' {CONF}")


class Search:
    """A running `cockpit autopilot`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def wait_for_line(self, text: str) -> None:
        """Wait for a line of progress with this text."""
        assert self.process.stderr is not None
        async with asyncio.timeout(120):
            while text not in (line := (await self.process.stderr.readline()).decode()):
                assert line

    async def ended(self) -> tuple[int | None, dict[str, Any], str]:
        """Wait for the end; return exit status, JSON and stderr."""
        stdout, stderr = await asyncio.wait_for(self.process.communicate(), 300)
        return self.process.returncode, json.loads(stdout or "{}"), stderr.decode()


@asynccontextmanager
async def search(web1: Host, folder: Path, *, reload: str = RELOAD, full: Path | None = None) -> AsyncIterator[Search]:
    """Search for the better of two values; record to a directory of 64 KiB, `full`, if given."""
    profile = folder / "p.toml"
    profile.write_text(PROFILE.format(url=web1.url, conf=CONF, reload=reload))
    arguments = [
        "autopilot",
        str(profile),
        "--trust",
        "--json",
        "--ssh-config",
        str(web1.ssh_config),
        "--budget",
        "10m",
    ]
    arguments += ["--seconds", "5s", "--knob", "KeepAlive=On,Off", "--record", str((full or folder) / "s.cockpit")]
    small = (
        ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k small "$0" && exec "$@"', str(full)) if full else ()
    )
    process = await asyncio.create_subprocess_exec(
        *(*small, sys.executable, "-m", "cockpit", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Search(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def wait_until_active(web1: Host, value: str) -> None:
    await until(lambda: web1.run(f"grep -qx 'KeepAlive {value}' {CONF}", check=False).returncode == 0, 60)


async def wait_until_unlocked(web1: Host) -> None:
    """Wait until no change is pending on the host."""
    await until(lambda: web1.run(f"test -L {LOCK}", check=False).returncode == 1, 120)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
async def test_killed_search(web1: Host, tmp_path: Path, end: signal.Signals) -> None:
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as found:
        await wait_until_active(web1, "Off")
        found.process.send_signal(end)
        code, result, _ = await found.ended()
    assert code == (-9 if end == signal.SIGKILL else 130) and not result
    web1.run(TIME_PASSED, check=False)
    await wait_until_unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_lost_host_fails_one_evaluation(lab: Lab, web1: Host, tmp_path: Path) -> None:
    """The evaluation fails; the search continues on the host without those values."""
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as found:
        await wait_until_active(web1, "Off")
        with lab.web1.unplugged():
            await asyncio.sleep(15)  # longer than the timeout of any command
        code, result, errors = await found.ended()
    assert code == 0, errors
    outcomes = [(each["values"]["KeepAlive"], each["outcome"]) for each in result["evaluations"]]
    assert outcomes[:2] == [("On", "measured"), ("Off", "failed")] and result["outcome"] == "nothing"
    await wait_until_unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_server_that_stops_fails_one_evaluation(web1: Host, tmp_path: Path) -> None:
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path, reload=STOPS_WITH_NEW_VALUE) as found:
        code, result, errors = await found.ended()
    assert code == 0, errors
    [original, failed] = result["evaluations"]
    assert original["outcome"] == "measured" and original["values"] == {"KeepAlive": "On"}
    assert failed["outcome"] == "failed" and "did not become active" in failed["detail"] and failed["run"] == 0
    assert result["outcome"] == "nothing"
    await wait_until_unlocked(web1)
    assert web1.run(STATE).stdout == before


async def test_full_disk_on_host(web1: Host, tmp_path: Path) -> None:
    """Without space for backups nothing is changed."""
    before = web1.run(STATE).stdout
    web1.run(f"mkdir -p {HOST_STATE} && mount -t tmpfs -o size=16k,mode=700 small {HOST_STATE}")
    try:
        web1.run(f"cat /dev/zero >{HOST_STATE}/filler", check=False)
        async with search(web1, tmp_path) as found:
            code, result, errors = await found.ended()
    finally:
        web1.run(f"umount {HOST_STATE}")
    assert code == 0, errors
    refused = result["evaluations"][1]
    assert refused["outcome"] == "failed"
    assert any(text in refused["detail"] for text in ("No space left on device", "is the disk full?"))
    assert web1.run(STATE).stdout == before


async def test_full_disk_of_recording(web1: Host, tmp_path: Path) -> None:
    """The recording has a gap, the search continues."""
    before = web1.run(STATE).stdout
    (tmp_path / "full").mkdir()
    async with search(web1, tmp_path, full=tmp_path / "full") as found:
        code, result, errors = await found.ended()
    assert code == 0, errors
    assert [each["outcome"] for each in result["evaluations"]].count("measured") >= 2
    assert "recording: s.cockpit: database or disk is full; the session is recorded up to" in errors
    await wait_until_unlocked(web1)
    assert web1.run(STATE).stdout == before
