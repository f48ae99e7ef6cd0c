"""Faults during a search, on a real Apache over a real sshd: the original values are active afterwards."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.lab.lab import Host, Lab
from tests.lab.test_faults import CHANGES, MAIN, TIME_PASSED, is_unlocked
from tests.waiting import until

STATE = f"cat {MAIN}; find /etc/apache2 -printf '%p %y %m %u %g %l\\n' | sort"
PROFILE = f"""\
[target]
url = "{{url}}"
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
file = "{MAIN}"
directive = "KeepAlive"
values = ["On", "Off"]
test = "apachectl -t"
reload = "apachectl graceful"
workers = "apache2"
"""


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"rm -rf {CHANGES}; grep -qx 'KeepAlive On' {MAIN}")
    yield fresh_web1
    fresh_web1.run(f"grep -qx 'KeepAlive On' {MAIN}")


@asynccontextmanager
async def search(web1: Host, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Search for the better of two values, until the second one is active."""
    profile = folder / "p.toml"
    profile.write_text(PROFILE.format(url=web1.url))
    arguments = ("autopilot", profile, "--trust", "--json", "--ssh-config", web1.ssh_config, "--budget", "10m")
    arguments += ("--seconds", "2s", "--knob", "KeepAlive=On,Off", "--record", folder / "s.cockpit")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cockpit", *arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        await until(lambda: web1.run(f"grep -qx 'KeepAlive Off' {MAIN}", check=False).returncode == 0)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def check_restored(web1: Host, before: str) -> None:
    web1.run(TIME_PASSED, check=False)
    await until(lambda: is_unlocked(web1))
    assert web1.run(STATE).stdout == before


async def test_killed_search(web1: Host, tmp_path: Path) -> None:
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as process:
        process.kill()
        assert (await process.communicate())[0] == b"" and process.returncode == -9
    await check_restored(web1, before)


async def test_lost_host_fails_one_evaluation(lab: Lab, web1: Host, tmp_path: Path) -> None:
    """The evaluation fails; the search continues on the host without those values."""
    before = web1.run(STATE).stdout
    async with search(web1, tmp_path) as process:
        with lab.web1.unplugged():
            await asyncio.sleep(15)  # longer than the timeout of any command
        output, errors = await process.communicate()
    assert process.returncode == 0, errors
    result = json.loads(output)
    outcomes = [(each["values"]["KeepAlive"], each["outcome"]) for each in result["evaluations"]]
    assert outcomes[:2] == [("On", "measured"), ("Off", "failed")] and result["outcome"] == "nothing"
    await check_restored(web1, before)
