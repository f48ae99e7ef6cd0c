"""A host's feed: its events and the folded state."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal

import asyncssh
import psutil
import pytest

from cockpit.hosts import feed, ssh_login
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.status import feed as status_feed
from cockpit.hosts.status.feed import PageFeed
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead
from cockpit.model.hosts import HostConfig, StatusPage
from tests.hosts import pages
from tests.hosts.sshd import Sshd
from tests.hosts.test_status import response, serving
from tests.hosts.watching import watching
from tests.waiting import until


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
    """A banner of the login shell is ignored, and the probe ends with the feed."""
    sshd.noise = "echo 'Welcome to web1'; echo '#cockpit begin 1'; printf 'no end of line \\033[31m'; echo warning >&2"
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(4)
        shell = await watch.feed.shell()
        assert (await shell.run("echo $((6 * 7))")).stdout.endswith(b"42\n")
        pids = [command.pid for command in sshd.commands]
    await until(lambda: all(ended(sshd, pid) for pid in pids))
    assert watch.conditions == ["connecting", "up"]
    facts = watch.changes[1].facts
    assert facts is not None and facts.hostname == os.uname().nodename
    times = [sample.t for sample in watch.samples]
    assert times == sorted(times) and times[0] >= watch.changes[1].t
    assert all(sample.round_trip > 0 for sample in watch.samples)
    host = watch.host()
    assert host.condition == "up" and host.point is not None
    assert host.point.cpu is not None and host.point.io is not None


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


async def test_lost_host_reconnects_unless_its_key_changed(sshd: Sshd) -> None:
    async with watching(web(processes=("sh",)), sshd.ssh_config) as watch:
        await watch.sampled(2)
        await sshd.stop()
        await until(lambda: watch.condition == "lost")
        with pytest.raises(HostError, match="web1 is lost: "):
            await watch.feed.shell()
        await until(lambda: "connection refused" in watch.changes[-1].detail)
        lost = watch.host()
        assert lost.condition == "lost" and lost.seen is not None
        await sshd.start()
        await watch.until("up")
        await watch.sampled(2)
        assert watch.conditions[:2] == ["connecting", "up"] and set(watch.conditions[2:-1]) == {"lost"}
        assert watch.host().condition == "up"
        await sshd.stop()
        sshd.host_key = asyncssh.generate_private_key("ssh-ed25519")
        await sshd.start()
        await watch.until("refused")
        assert "CHANGED" in watch.changes[-1].detail


async def test_hung_host_is_slow_then_lost_then_reconnected(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(2)
        monkeypatch.setattr("cockpit.hosts.feed.TIMEOUT", 600.0)
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 0.3)
        await watch.sampled(2)  # the pending request has the old limits
        hung = sshd.commands[-1].pid
        os.killpg(hung, signal.SIGSTOP)
        await watch.until("slow")
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 600.0)
        os.killpg(hung, signal.SIGCONT)
        await watch.until("up")
        assert "lost" not in watch.conditions and watch.state().markers == ()
        for name, seconds in (("OVERDUE", 0.5), ("SILENCE", 0.2), ("CHECK_INTERVAL", 0.5), ("TIMEOUT", 2.0)):
            monkeypatch.setattr(f"cockpit.hosts.feed.{name}", seconds)
        await watch.sampled(2)
        os.killpg(hung, signal.SIGSTOP)
        await watch.until("lost")
        assert watch.conditions[-2] == "slow"
        monkeypatch.setattr("cockpit.hosts.feed.TIMEOUT", 30.0)
        await watch.until("up")
        await watch.sampled(2)
        os.killpg(hung, signal.SIGCONT)
        await until(lambda: ended(sshd, hung))
    assert "connected, but the probe does not answer" in [change.detail for change in watch.changes]
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail == "connected, but no answer for 2 s"
    assert [marker.kind for marker in watch.state().markers] == ["gap"]


async def test_internal_error_is_shown_on_its_host_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the error might quote the host. The other page is unaffected."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(status_feed.STATUS_PAGES, "apache", status_feed.STATUS_PAGES["apache"]._replace(parse=fail))
    read: list[AnyEvent] = []
    async with serving(response(pages.NGINX)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        status = (StatusPage(kind="apache", url=url), StatusPage(kind="nginx", url=url))
        async with watching(here(status=status)) as watch:
            tasks = [
                asyncio.ensure_future(PageFeed(watch.feed, place, watch.clock, read.append).run()) for place in (0, 1)
            ]
            await until(lambda: len(read) >= 2)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            monkeypatch.setattr(HostFeed, "_check_reboot", fail)
            lost = await watch.until("lost")
    details = {event.page: event.detail for event in read if isinstance(event, StatusRead)}
    assert details.pop(1) == ""
    for detail in (details[0], lost.detail):
        assert detail.startswith("internal error in cockpit: ZeroDivisionError at test_feed.py:")
        assert "secret" not in detail


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


async def test_rejected_login_is_refused(sshd: Sshd) -> None:
    sshd.client_key.unlink()
    async with watching(web(), sshd.ssh_config) as watch:
        await until(lambda: watch.conditions == ["connecting", "refused"])
        assert "login as root on" in watch.changes[1].detail


def ended(sshd: Sshd, pid: int) -> bool:
    """Whether this command of the server (the probe's shell) has ended."""
    return not psutil.pid_exists(pid) or all(c.returncode is not None for c in sshd.commands if c.pid == pid)
