"""A host's feed as the session sees it: its events, and what fold makes of them."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncssh
import psutil
import pytest

from cockpit.hosts.feed import HostFeed
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, HostChanged, HostSample, SessionStarted
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig
from cockpit.model.state import HostState
from tests.hosts.conftest import TAG, Crowd, until
from tests.hosts.sshd import Sshd


class Watch:
    """A feed that runs, and its events so far."""

    def __init__(self, config: HostConfig, ssh_config: Path | None) -> None:
        self.config = config
        self.clock = Clock()
        self.events: list[AnyEvent] = []
        self.feed = HostFeed(config, self.clock, self.events.append, ssh_config=ssh_config)

    @property
    def changes(self) -> list[HostChanged]:
        return [event for event in self.events if isinstance(event, HostChanged)]

    @property
    def samples(self) -> list[HostSample]:
        return [event for event in self.events if isinstance(event, HostSample)]

    @property
    def conditions(self) -> list[str]:
        return [change.condition for change in self.changes]

    def host(self) -> HostState:
        begun = SessionStarted(t=0.0, wall=0.0, version="", name="", hosts=(self.config,))
        return fold_all([begun, *self.events]).hosts[self.config.name]

    async def sampled(self, more: int = 1) -> None:
        """Returns after so many further samples."""
        enough = len(self.samples) + more
        await until(lambda: len(self.samples) >= enough)


@asynccontextmanager
async def watching(config: HostConfig, ssh_config: Path | None = None) -> AsyncIterator[Watch]:
    watch = Watch(config, ssh_config)
    task = asyncio.ensure_future(watch.feed.run())
    try:
        yield watch
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def web(**more: object) -> HostConfig:
    return HostConfig(name="web1", ssh="web", interval=0.05, **more)  # type: ignore[arg-type]


def here(**more: object) -> HostConfig:
    return HostConfig(name="here", interval=0.05, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the waits before a host is tried again, which no test is about."""
    for name in ("FIRST_RETRY", "LAST_RETRY", "KEY_RETRY"):
        monkeypatch.setattr(f"cockpit.hosts.feed.{name}", 0.1)


async def test_from_connecting_to_samples(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(4)
        shell = await watch.feed.shell()
        assert (await shell.run("echo $((6 * 7))")).stdout == b"42\n"
    assert watch.conditions == ["connecting", "up"]
    facts = watch.changes[1].facts
    assert facts is not None
    assert facts.hostname == os.uname().nodename
    times = [sample.t for sample in watch.samples]
    assert times == sorted(times)
    for sample in watch.samples:
        assert sample.round_trip > 0
        assert watch.changes[1].t <= sample.t - sample.round_trip / 2
    host = watch.host()
    assert host.condition == "up"
    assert host.point is not None
    assert host.point.cpu is not None
    assert host.point.io is not None


async def test_this_machine_needs_no_ssh() -> None:
    async with watching(here(processes="nothing-is-called-this")) as watch:
        await watch.sampled(2)
        assert (await (await watch.feed.shell()).run("echo here")).stdout == b"here\n"
    assert watch.conditions == ["connecting", "up"]
    assert watch.host().processes == ()


async def test_births_and_deaths_are_counted(crowd: Crowd) -> None:
    async with watching(here(processes=f"{TAG}-short")) as watch:
        first = crowd.start(f"{TAG}-short")
        await watch.sampled(2)
        born, died = watch.host().births, watch.host().deaths
        for _ in range(7):
            child = crowd.start(f"{TAG}-short")
            await watch.sampled(2)
            crowd.end(child)
            await watch.sampled(2)
        await until(lambda: watch.host().deaths == died + 7)
        host = watch.host()
        assert (host.births - born, host.deaths - died) == (7, 7)
        assert [row.process.pid for row in host.processes] == [first.pid]


async def test_noise_at_login_does_no_harm(sshd: Sshd) -> None:
    sshd.noise = "echo 'Welcome to web1'; echo '#cockpit begin 1'; printf 'no end of line \\033[31m'; echo warning >&2"
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(3)
    assert watch.conditions == ["connecting", "up"]


async def test_lost_and_back_by_itself(sshd: Sshd) -> None:
    async with watching(web(processes="sh"), sshd.ssh_config) as watch:
        await watch.sampled(2)
        await sshd.stop()
        await until(lambda: watch.conditions[-1] == "lost")
        with pytest.raises(HostError, match="web1 is lost: "):
            await watch.feed.shell()
        await until(lambda: "connection refused" in watch.changes[-1].detail)
        lost = watch.host()
        assert lost.condition == "lost"
        assert lost.seen is not None
        await sshd.start()
        await until(lambda: watch.conditions[-1] == "up")
        await watch.sampled(2)
    assert watch.conditions[:2] == ["connecting", "up"]
    assert set(watch.conditions[2:-1]) == {"lost"}
    assert watch.host().condition == "up"


async def test_a_host_that_hangs_is_lost_and_tried_again(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.feed.PATIENCE", 0.5)
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        hung = sshd.commands[-1].pid
        os.kill(hung, signal.SIGSTOP)
        await until(lambda: "lost" in watch.conditions)
        await until(lambda: watch.conditions[-1] == "up")
        await watch.sampled(2)
        os.kill(hung, signal.SIGCONT)
        await until(lambda: ended(sshd, hung))
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail == "no answer for 0.5 s"


async def test_a_probe_that_ends_is_started_again(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        os.kill(sshd.commands[-1].pid, signal.SIGKILL)
        await until(lambda: watch.conditions[-2:] == ["lost", "up"])
        await watch.sampled(2)
    assert watch.changes[2].detail == "the probe ended"


async def test_unknown_key_is_refused_until_it_is_known(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    async with watching(web(), sshd.ssh_config) as watch:
        await until(lambda: watch.conditions == ["connecting", "refused"])
        assert sshd.host_key.get_fingerprint() in watch.changes[1].detail
        assert not watch.changes[1].detail.startswith("web1")
        with pytest.raises(HostError, match="web1 is refused"):
            await watch.feed.shell()
        sshd.trust(sshd.host_key)
        await watch.sampled(1)
    assert watch.conditions == ["connecting", "refused", "up"]


async def test_a_key_that_changed_meanwhile_is_refused(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(1)
        await sshd.stop()
        sshd.host_key = asyncssh.generate_private_key("ssh-ed25519")
        await sshd.start()
        await until(lambda: watch.conditions[-1] == "refused")
        assert "CHANGED" in watch.changes[-1].detail


async def test_refused_login(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    async with watching(web(), sshd.ssh_config) as watch:
        await until(lambda: watch.conditions == ["connecting", "refused"])
        assert "does not let root in" in watch.changes[1].detail


async def test_cancelled_it_leaves_nothing_on_the_host(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        pids = [command.pid for command in sshd.commands]
    await until(lambda: all(ended(sshd, pid) for pid in pids))


async def test_a_slow_host_is_asked_one_thing_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "grep"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 0.2\nexec {shutil.which("grep")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    async with watching(here()) as watch:
        await watch.sampled(4)
    for earlier, later in itertools.pairwise(watch.samples):
        assert later.t - later.round_trip / 2 > earlier.t + earlier.round_trip / 2


def ended(sshd: Sshd, pid: int) -> bool:
    """Whether a command of the server, the probe's shell, is gone."""
    return not psutil.pid_exists(pid) or all(c.returncode is not None for c in sshd.commands if c.pid == pid)
