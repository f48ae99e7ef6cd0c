"""Faults of a watched host: the condition is reported, other hosts continue, and the host reconnects by itself."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import Channel
from cockpit.hosts.ssh.shell import connect
from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig
from cockpit.profiles.reader import parse_profile
from cockpit.setup.doctor_host import diagnose_host
from tests.data import data_of
from tests.hosts.watching import Watch, watching
from tests.lab.lab import Host, Lab
from tests.lab.small_host import small_host
from tests.waiting import until

DATA = data_of(__file__)

WEB1 = HostConfig(name="web1", ssh="web1", processes=("apache2",), interval=0.2)
HERE = HostConfig(name="here", interval=0.2)
DROPBEAR_PROFILE = DATA["dropbear_profile"]
SSHD = "/usr/sbin/sshd -E /var/log/sshd.log"


@asynccontextmanager
async def two_watched(lab: Lab) -> AsyncIterator[tuple[Watch, Watch]]:
    """Watch web1 and this machine until both are up."""
    async with watching(WEB1, lab.ssh_config) as web1, watching(HERE) as here:
        await web1.sampled(2)
        await here.sampled(2)
        yield web1, here
        assert "lost" not in here.conditions


@pytest.fixture(autouse=True)
def tolerant_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the limits, so that a busy machine changes neither condition nor interval."""
    monkeypatch.setattr("cockpit.hosts.feed.OVERDUE", 30.0)
    monkeypatch.setattr("cockpit.hosts.pauses.WORTH_SAYING", 600.0)
    monkeypatch.setattr("cockpit.hosts.probe.poll_interval.LATE", 600.0)


@pytest.fixture
def web1(lab: Lab) -> Iterator[Host]:
    """web1; its sshd runs again after the test."""
    yield lab.web1
    lab.web1.run(f"pgrep -x sshd >/dev/null || {SSHD}")


async def test_rebooted_host_reconnects_without_rates_across_reboot(lab: Lab, web1: Host) -> None:
    """After a lower uptime, counters are not subtracted from those before the reboot."""
    async with two_watched(lab) as (watch, here):
        web1.run("pkill -KILL -x sshd")
        await watch.until("lost")
        await until(lambda: "connection refused" in watch.changes[-1].detail)
        await here.sampled(2)
        with replaced_file(web1, "/proc/uptime", "7.21 10.00"):
            web1.run(SSHD)
            await watch.sampled(1)
            newest = watch.samples[-1]
            assert newest.reading.uptime == 7.21
            details = [change.detail for change in watch.changes if change.condition == "lost"]
            assert details[-1] == "rebooted 7 s ago"
            assert watch.condition == "up"
            point = watch.host().points[len(watch.samples) - 1]
            assert (point.cpu, point.io, point.spawned) == (None, None, None)
    assert watch.state().markers[0].kind == "gap"


@contextmanager
def replaced_file(host: Host, path: str, content: str) -> Iterator[None]:
    """Replace the content of a file on the host until the end of the block."""
    host.run(f"printf '%s\\n' {shlex.quote(content)} >/tmp/in-place && mount --bind /tmp/in-place {path}")
    try:
        yield
    finally:
        host.run(f"umount -l {path}")


async def test_clock_step_changes_no_metrics(lab: Lab, web1: Host) -> None:
    async with two_watched(lab) as (watch, _):
        before = watch.samples[-1].reading
        stat = web1.run("cat /proc/stat").stdout
        lines = [line for line in stat.splitlines() if not line.startswith(("btime", "intr"))]
        btime = next(int(line.split()[1]) for line in stat.splitlines() if line.startswith("btime"))
        with replaced_file(web1, "/proc/stat", "\n".join([*lines, f"btime {btime + 3600}"])):
            await until(lambda: watch.samples[-1].reading.wall - before.wall > 3500)
            await watch.sampled(2)
            after = watch.samples[-1].reading
            assert 0 < after.uptime - before.uptime < 3000
            processes = {(process.pid, process.start) for process in before.processes}
            assert processes & {(process.pid, process.start) for process in after.processes}
            times = [sample.t for sample in watch.samples]
            assert times == sorted(times)
    assert watch.conditions == ["connecting", "up"]


async def test_full_disks_do_not_affect_probe(lab: Lab, web1: Host) -> None:
    fill = "mount -t tmpfs -o size=16k full {0}; dd if=/dev/zero of={0}/fill bs=4k count=99 2>/dev/null; true"
    directories = ("/tmp", "/root", "/var/tmp", "/run/lock")
    try:
        for directory in directories:
            web1.run(fill.format(directory))
            assert web1.run(f"echo more >{directory}/more", check=False).returncode != 0
        async with watching(WEB1, lab.ssh_config) as watch:
            await watch.sampled(3)
            assert watch.host().processes
        assert watch.conditions == ["connecting", "up"]
    finally:
        for directory in directories:
            web1.run(f"umount -l {directory}", check=False)


@pytest.fixture
def plain_user(web1: Host) -> Iterator[str]:
    """A user without privileges who can log in with the lab's key."""
    web1.run("useradd -m -p '*' -s /bin/sh plain; chmod 644 /etc/ssh/lab_authorized_keys")
    yield "plain"
    web1.run("pkill -KILL -u plain; userdel -r -f plain; chmod 600 /etc/ssh/lab_authorized_keys", check=False)


async def test_unprivileged_user(lab: Lab, web1: Host, plain_user: str) -> None:
    config = replace(WEB1, ssh=f"{plain_user}@web1")
    async with watching(config, lab.ssh_config) as watch:
        await watch.sampled(2)
        pids = {process.pid for process in watch.samples[-1].reading.processes}
        assert pids & set(web1.processes("apache2"))
    web1.run("mount -o remount,hidepid=2 /proc")
    try:
        async with watching(config, lab.ssh_config) as watch:
            await watch.sampled(3)
            reading = watch.samples[-1].reading
            assert reading.hidden and reading.processes == () and reading.memory.total > 0
            assert watch.host().point.cpu is not None  # type: ignore[union-attr]
        assert watch.conditions == ["connecting", "up"]
    finally:
        web1.run("mount -o remount,hidepid=0 /proc")
    web1.run("usermod -s /usr/sbin/nologin plain")
    async with watching(config, lab.ssh_config) as watch:
        lost = await watch.until("lost")
        assert lost.detail.startswith("the login shell ended before `sh -s` started: This account is")


async def test_host_with_dropbear_and_busybox_only(web1: Host, tmp_path: Path) -> None:
    """dropbear closes a channel that is being opened when the process of another channel ends."""
    with small_host(web1, tmp_path) as config:
        small = HostConfig(name="small", ssh="small", processes=("apache2",), interval=0.2)
        async with watching(small, config) as watch:
            await watch.sampled(3)
            shell = await watch.feed.shell()
            assert (await shell.run("readlink /proc/self/exe")).stdout.endswith(b"/busybox\n")
            pids = {process.pid for process in watch.samples[-1].reading.processes}
            assert pids & set(web1.processes("apache2"))
            point = watch.host().point
            assert point is not None and point.cpu is not None
            web1.run("pkill -KILL -x dropbear")
            await watch.until("lost")
            web1.run("chroot /srv/small /bin/dropbear -r /etc/dropbear/key -p 2222 -P /run/dropbear.pid")
            await watch.until("up")
            await watch.sampled(2)
        profile = parse_profile(DROPBEAR_PROFILE, "small", "small.toml")
        for _ in range(5):
            findings = await diagnose_host(profile, profile.hosts[0], config)
            assert {finding.level for finding in findings} == {"ok"}, findings
        rounds = 0
        while rounds < 10:
            shell = await connect(HostConfig(name="small", ssh="small"), config)
            # dropbear 2022.83 fails an assertion if a request arrives for a channel that it has closed.
            with suppress(HostError):
                while rounds < 10:
                    ending = [await shell.open("read -r line") for _ in range(5)]
                    running = asyncio.gather(*(shell.run("echo up") for _ in range(5)))
                    outputs, _ = await asyncio.gather(running, end(ending))
                    assert [output.stdout for output in outputs] == [b"up\n"] * 5
                    rounds += 1
            await shell.close()


async def end(channels: Sequence[Channel]) -> None:
    for channel in channels:
        await channel.write(b"end\n")
        assert await channel.readline() == b""
        channel.close()
