"""A host's feed: its events and the folded state; slow and dead links; pauses of cockpit itself."""

import asyncio
import itertools
import math
import os
import signal
import time
from collections.abc import AsyncIterator

import asyncssh
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.words.timeline import marker_text
from cockpit.hosts import feed
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.pauses import PauseDetector, suspended_seconds
from cockpit.hosts.probe.host_clock import STEP, HostClock
from cockpit.hosts.probe.poll_interval import LONGEST, PollInterval
from cockpit.hosts.shell import Shell
from cockpit.hosts.ssh import login as ssh_login
from cockpit.hosts.status import feed as status_feed
from cockpit.hosts.status.feed import PageFeed
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead
from cockpit.model.host.samples import HostConfig, StatusPage
from tests.hosts.link import Link
from tests.hosts.pages import PAGES
from tests.hosts.sshd import Sshd
from tests.hosts.test_status import answering, response
from tests.hosts.watching import watching
from tests.load.servers import serving
from tests.waiting import until


def web(interval: float = 0.05, **more: object) -> HostConfig:
    return HostConfig(name="web1", ssh="web", interval=interval, **more)  # type: ignore[arg-type]


def here(**more: object) -> HostConfig:
    return HostConfig(name="here", interval=0.05, **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def short_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry quickly, which no test is about; keep condition and poll interval constant on a busy machine."""
    for name in ("FIRST_RETRY", "LAST_RETRY", "KEY_RETRY"):
        monkeypatch.setattr(f"cockpit.hosts.feed.{name}", 0.1)
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    monkeypatch.setattr("cockpit.hosts.probe.poll_interval.LATE", 600.0)


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


async def test_separate_connection_is_closed_with_the_feed(sshd: Sshd) -> None:
    """A connection that is lost is replaced; one that opens after the end is closed."""
    async with watching(web(), sshd.ssh_config) as watch:
        await watch.sampled(1)
        first = await watch.feed.outside()
        assert await watch.feed.outside() is first
        await first.close()
        second = await until(lambda: is_replaced(watch.feed, first))
        assert (await second.run("echo up")).stdout == b"up\n"
    with pytest.raises(HostError, match="web1: the host is no longer watched"):
        await watch.feed.outside()
    await until(lambda: all(connection.is_closed() for connection in sshd._connections))


async def is_replaced(feed: HostFeed, shell: Shell) -> Shell | None:
    newest = await feed.outside()
    return newest if newest is not shell else None


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
        # On a busy machine the host may have been lost before.
        hung = sshd.commands[-1].pid
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
    assert {marker.kind for marker in watch.state().markers} == {"gap"}


async def test_internal_error_is_shown_on_its_host_and_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the error might quote the host. The other page is unaffected."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(status_feed.STATUS_PAGES, "apache", status_feed.STATUS_PAGES["apache"]._replace(rows=fail))
    read: list[AnyEvent] = []
    async with serving(answering(response(PAGES["nginx"]))) as server:
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


@pytest.fixture
async def link(sshd: Sshd) -> AsyncIterator[Link]:
    """A link to the server; ssh_config connects through it."""
    link = await Link().start(sshd.port)
    sshd.write_config(Port=str(link.port), HostKeyAlias="web")
    sshd.trust(sshd.host_key, name="web")
    yield link
    await link.stop()


async def test_slow_link_is_polled_less_often(sshd: Sshd, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.probe.poll_interval.LATE", 0.5)
    monkeypatch.setattr("cockpit.hosts.probe.poll_interval.EARLY", 0.4)
    monkeypatch.setattr("cockpit.hosts.probe.poll_interval.EARLY_IN_A_ROW", 2)
    async with watching(web(0.5), sshd.ssh_config) as watch:
        await watch.sampled(1)
        link.request_delay = link.response_delay = 0.2
        await until(lambda: watch.samples[-1].interval >= 1.0)
        link.request_delay = link.response_delay = 0.0
        await until(lambda: watch.samples[-1].interval == 0.5)
    assert "lost" not in watch.conditions


async def test_sample_time_is_time_of_host_reading(sshd: Sshd, link: Link) -> None:
    """Both clocks are this machine's, so the exact time of each sample is known."""
    async with watching(web(0.05), sshd.ssh_config) as watch:
        # Uptime at the start of the session; the maximum, since the two clocks may be read with a delay between them.
        boot_offset = max(suspended_seconds() for _ in range(99)) + watch.clock.origin
        for link.request_delay, link.response_delay in ((0.0, 0.0), (0.0, 0.3), (0.3, 0.0), (0.0, 0.0)):
            await watch.sampled(2)
        best_round_trip = min(sample.round_trip for sample in watch.samples)
        first = next(place for place, sample in enumerate(watch.samples) if sample.round_trip == best_round_trip)
        for sample in watch.samples[first:]:
            error = sample.t - (sample.reading.uptime - boot_offset)
            assert abs(error) <= best_round_trip / 2 + STEP, sample.round_trip
    for before, after in itertools.pairwise(watch.samples):
        assert before.t < after.t


async def test_dead_link_is_slow_then_lost(sshd: Sshd, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cockpit.hosts.ssh.login.SILENCE", 2.0)
    async with watching(web(0.05), sshd.ssh_config) as watch:
        await watch.sampled(2)
        monkeypatch.setattr("cockpit.hosts.ssh.login.CONNECT_TIMEOUT", 0.5)
        monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 0.3)
        await watch.sampled(2)  # the pending request has the old limits
        link.drops = True
        lost = await watch.until("lost")
        assert "slow" in watch.conditions
        assert lost.detail == "connection lost: Server not responding to keepalive"
        await until(lambda: watch.changes[-1].detail != lost.detail)
        assert watch.changes[-1].detail.startswith(f"no answer from 127.0.0.1:{link.port} within 0.5 s; ")
        link.drops = False
        monkeypatch.setattr("cockpit.hosts.ssh.login.CONNECT_TIMEOUT", 30.0)
        await watch.until("up")
        await watch.sampled(2)
    assert watch.state().markers[0].kind == "gap"


def test_poll_interval_doubles_to_maximum_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    poll = PollInterval(1.0)
    poll.took(0.6)
    poll.took(0.1)
    poll.took(0.6)
    assert poll.interval == 1.0
    for _ in range(20):
        poll.took(6.0)
    assert poll.interval == LONGEST
    for _ in range(9):
        poll.took(0.1)
        poll.took(2.0)
    assert poll.interval == LONGEST
    for _ in range(20):
        poll.took(0.01)
    assert poll.interval == 1.0
    configured = PollInterval(60.0)
    for _ in range(9):
        configured.took(50.0)
    assert configured.interval == 60.0, "longer than the maximum"


@given(
    uptime=st.floats(0, 1e7),
    delays=st.lists(st.tuples(st.floats(0.001, 5), st.floats(0.001, 5)), min_size=1, max_size=40),
)
def test_clock_error_is_at_most_half_best_round_trip(uptime: float, delays: list[tuple[float, float]]) -> None:
    clock, now = HostClock(), 10.0
    for request_delay, response_delay in delays:
        taken = now + request_delay
        estimate = clock.place(now, taken + response_delay, math.floor(100 * (taken + uptime)) / 100)
        assert now <= estimate <= taken + response_delay
        best_round_trip = min(sum(pair) for pair in delays[: delays.index((request_delay, response_delay)) + 1][-30:])
        assert abs(estimate - taken) <= best_round_trip / 2 + 2 * STEP
        now = taken + response_delay + 1


def test_clock_estimate_resets_after_clock_jump() -> None:
    clock = HostClock()
    assert clock.place(10.0, 10.2, 500.1) == pytest.approx(10.1)
    assert clock.place(11.0, 11.2, 3.1) == pytest.approx(11.1)
    assert clock.place(12.0, 14.0, 4.05) == pytest.approx(12.05, abs=0.1)


STOPPED = 1.5


@pytest.mark.parametrize("suspended", [False, True])
async def test_pause_is_reported_as_gap(monkeypatch: pytest.MonkeyPatch, suspended: bool) -> None:
    """While stopped, cockpit has no CPU time. During suspend only the boot clock continues."""
    asleep = 0.0
    monkeypatch.setattr("cockpit.hosts.pauses.suspended_seconds", lambda: asleep)
    monkeypatch.setattr("cockpit.hosts.feed.CHECK_INTERVAL", 0.2)
    async with watching(HostConfig(name="here", interval=0.05)) as watch:
        await watch.sampled(2)
        before = watch.samples[-1]
        if suspended:
            asleep = 3600.0
        else:
            monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", STOPPED / 2)
            time.sleep(STOPPED)  # noqa: ASYNC251 - blocks the event loop, like SIGSTOP
        await until(lambda: watch.conditions[-2:] == ["lost", "up"])
        monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
        await watch.sampled(2)
    lost = watch.changes[watch.conditions.index("lost")]
    assert lost.detail.startswith(f"cockpit itself was paused for {'3' if suspended else ''}")
    assert f"here lost: {lost.detail}" in [marker_text(marker) for marker in watch.state().markers]
    assert watch.samples[-1].reading.uptime - before.reading.uptime >= (0 if suspended else STOPPED - 0.1)


def test_short_pauses_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    now = 100.0
    monkeypatch.setattr("cockpit.hosts.pauses.time.monotonic", lambda: now)
    monkeypatch.setattr("cockpit.hosts.pauses.suspended_seconds", lambda: 0.0)
    detector = PauseDetector(1.0)
    now += 3.9
    assert detector.paused_seconds() == 0.0
    now += 4.5
    assert detector.paused_seconds() == pytest.approx(3.5)
    assert detector.paused_seconds() == 0.0
