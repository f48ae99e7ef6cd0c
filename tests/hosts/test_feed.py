"""A host's feed: its events and the folded state."""

from __future__ import annotations

import itertools
import os
import signal

import asyncssh
import psutil
import pytest

from cockpit.hosts import feed, ssh_login
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig
from tests.hosts.conftest import TAG, Spawner, until
from tests.hosts.sshd import Sshd
from tests.hosts.watching import watching


def web(**more: object) -> HostConfig:
    return HostConfig(name="web1", ssh="web", interval=0.05, **more)  # type: ignore[arg-type]


def here(**more: object) -> HostConfig:
    return HostConfig(name="here", interval=0.05, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry quickly, which no test is about; keep condition and poll interval constant on a busy machine."""
    for name in ("FIRST_RETRY", "LAST_RETRY", "KEY_RETRY"):
        monkeypatch.setattr(f"cockpit.hosts.feed.{name}", 0.1)
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    monkeypatch.setattr("cockpit.hosts.poll_interval.LATE", 600.0)


async def test_ssh_host_connects_and_sends_samples(sshd: Sshd) -> None:
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
        assert watch.changes[1].t <= sample.t
    host = watch.host()
    assert host.condition == "up"
    assert host.point is not None
    assert host.point.cpu is not None
    assert host.point.io is not None


async def test_local_host_needs_no_ssh() -> None:
    async with watching(here(processes=("nothing-is-called-this",))) as watch:
        await watch.sampled(2)
        assert (await (await watch.feed.shell()).run("echo here")).stdout == b"here\n"
    assert watch.conditions == ["connecting", "up"]
    assert watch.host().processes == ()


def test_reconnection_takes_at_most_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel resends a SYN 1 and 3 s after the first, until the dial timeout."""
    monkeypatch.undo()
    waits = list(itertools.islice(feed.retries(), 9))
    assert waits == [1.0, 2.0, *[2.5] * 7]
    first, second, third, timeout = 0.0, 1.0, 3.0, ssh_login.DIAL_TIMEOUT
    assert max(second - first, third - second, timeout - third + max(waits)) <= 4.0


async def test_host_stays_up_with_1_mb_command_line(sshd: Sshd, spawner: Spawner) -> None:
    titled = spawner.start(f"{TAG}-title", *["\x1b[31m" + "x" * 100_000] * 10)
    async with watching(web(processes=(f"{TAG}-title",)), sshd.ssh_config) as watch:
        await watch.sampled(4)
        (row,) = watch.host().processes
        assert row.process.pid == titled.pid
        assert len(row.process.command) <= 8192
    assert watch.conditions == ["connecting", "up"]


async def test_spawned_and_exited_processes_are_counted(spawner: Spawner) -> None:
    async with watching(here(processes=(f"{TAG}-short",))) as watch:
        first = spawner.start(f"{TAG}-short")
        await watch.sampled(2)
        spawned, exited = watch.host().spawned, watch.host().exited
        for _ in range(7):
            child = spawner.start(f"{TAG}-short")
            await watch.sampled(2)
            spawner.end(child)
            await watch.sampled(2)
        await until(lambda: watch.host().exited == exited + 7)
        host = watch.host()
        assert (host.spawned - spawned, host.exited - exited) == (7, 7)
        assert [row.process.pid for row in host.processes] == [first.pid]


async def test_login_banner_is_ignored(sshd: Sshd) -> None:
    sshd.noise = "echo 'Welcome to web1'; echo '#cockpit begin 1'; printf 'no end of line \\033[31m'; echo warning >&2"
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(3)
    assert watch.conditions == ["connecting", "up"]


async def test_lost_host_reconnects_automatically(sshd: Sshd) -> None:
    async with watching(web(processes=("sh",)), sshd.ssh_config) as watch:
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


async def test_hung_host_is_slow_then_lost_then_reconnected(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        for name, seconds in (("OVERDUE", 0.5), ("SILENCE", 0.2), ("CHECK_INTERVAL", 0.5), ("TIMEOUT", 2.0)):
            monkeypatch.setattr(f"cockpit.hosts.feed.{name}", seconds)
        await watch.sampled(2)  # the pending request has the old limits
        hung = sshd.commands[-1].pid
        os.killpg(hung, signal.SIGSTOP)
        await until(lambda: "slow" in watch.conditions)
        assert watch.host().condition == "slow"
        await until(lambda: "lost" in watch.conditions)
        monkeypatch.setattr("cockpit.hosts.feed.TIMEOUT", 30.0)
        await until(lambda: watch.conditions[-1] == "up")
        await watch.sampled(2)
        os.killpg(hung, signal.SIGCONT)
        await until(lambda: ended(sshd, hung))
    assert "connected, but the probe does not answer" in [change.detail for change in watch.changes]
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail == "connected, but no answer for 2 s"
    assert [marker.kind for marker in watch.state().markers] == ["gap"]


async def test_slow_host_is_up_after_its_response(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.feed.TIMEOUT", 600.0)
    async with watching(web(), sshd.ssh_config) as watch:
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 0.3)
        await watch.sampled(2)
        hung = sshd.commands[-1].pid
        os.killpg(hung, signal.SIGSTOP)
        await until(lambda: watch.conditions[-1] == "slow")
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 600.0)
        os.killpg(hung, signal.SIGCONT)
        await until(lambda: watch.conditions[-1] == "up")
        await watch.sampled(2)
    assert "lost" not in watch.conditions
    assert watch.state().markers == ()


async def test_exited_probe_is_restarted(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        os.killpg(sshd.commands[-1].pid, signal.SIGKILL)
        await until(lambda: watch.conditions[-2:] == ["lost", "up"])
        await watch.sampled(2)
    assert watch.changes[2].detail == "the probe ended"


async def test_unknown_host_key_is_refused_until_trusted(sshd: Sshd) -> None:
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


async def test_host_key_changed_during_session_is_refused(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(1)
        await sshd.stop()
        sshd.host_key = asyncssh.generate_private_key("ssh-ed25519")
        await sshd.start()
        await until(lambda: watch.conditions[-1] == "refused")
        assert "CHANGED" in watch.changes[-1].detail


async def test_rejected_login_is_refused(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    async with watching(web(), sshd.ssh_config) as watch:
        await until(lambda: watch.conditions == ["connecting", "refused"])
        assert "login as root on" in watch.changes[1].detail


async def test_cancelled_feed_leaves_no_process_on_host(sshd: Sshd) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        pids = [command.pid for command in sshd.commands]
    await until(lambda: all(ended(sshd, pid) for pid in pids))


def ended(sshd: Sshd, pid: int) -> bool:
    """Whether this command of the server (the probe's shell) has ended."""
    return not psutil.pid_exists(pid) or all(c.returncode is not None for c in sshd.commands if c.pid == pid)
