"""Watching a real web server through its real sshd: host keys, network outage, cleanup."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed, check_host
from cockpit.hosts.probe import Probe
from cockpit.hosts.ssh import connect
from cockpit.model.clock import Clock
from cockpit.model.errors import HostKeyUnknown
from cockpit.model.events import AnyEvent, HostChanged, HostSample
from cockpit.model.hosts import HostConfig
from tests.lab.lab import Lab

DEADLINE = 60.0
WEB1 = HostConfig(name="web1", ssh="web1", processes=("apache2",), interval=0.2)


async def test_suggested_command_accepts_unknown_host_key(lab: Lab, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(lab.ssh_config.read_text().replace(str(lab.directory / "known_hosts"), str(tmp_path / "known")))
    with pytest.raises(HostKeyUnknown) as caught:
        await check_host(WEB1, config)
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\necho yes\n")
    yes.chmod(0o700)
    process = await asyncio.create_subprocess_shell(
        str(caught.value).rpartition("accept it with: ")[2],
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "SSH_ASKPASS": str(yes), "SSH_ASKPASS_REQUIRE": "force"},
    )
    assert await process.wait() == 0
    await check_host(WEB1, config)


async def test_check_of_known_host_passes(lab: Lab) -> None:
    facts = await check_host(WEB1, lab.ssh_config)
    assert facts.hostname == "web1"


async def test_unplugged_host_is_lost_and_reconnects(lab: Lab) -> None:
    events: list[AnyEvent] = []
    feed = HostFeed(WEB1, Clock(), events.append, ssh_config=lab.ssh_config)
    watching = asyncio.ensure_future(feed.run())

    def condition() -> str:
        return [event.condition for event in events if isinstance(event, HostChanged)][-1]

    def samples() -> int:
        return sum(isinstance(event, HostSample) for event in events)

    try:
        await until(lambda: samples() > 2)
        with lab.web1.unplugged():
            await until(lambda: condition() == "lost")
            count = samples()
        await until(lambda: condition() == "up" and samples() > count)
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def test_probe_ends_with_its_connection(lab: Lab) -> None:
    shell = await connect(WEB1, lab.ssh_config)
    await Probe.start(shell, WEB1)
    assert "sh -s" in lab.web1.run("ps -e -o args=").stdout.splitlines()
    await shell.close()
    await until(lambda: "sh -s" not in lab.web1.run("ps -e -o args=").stdout.splitlines())


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "timeout"
        await asyncio.sleep(0.02)
