"""Kinds of knobs that belong to no server, and Apache's MPM, on a real host: read, changed, active, undone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.knobs import Knob, Option
from cockpit.model.load.plan import LoadPlan
from cockpit.servers import kernel
from cockpit.tuning.applied import AppliedChange
from cockpit.tuning.discovery.probing import probe_of
from cockpit.tuning.discovery.servers import discover, knob_of
from cockpit.tuning.tuner import Tuner
from tests.lab import web1
from tests.lab.lab import Host
from tests.lab.test_faults import WEB1
from tests.waiting import until

EVENT = "/etc/apache2/mods-available/mpm_event.conf"
# The settings that prefork has not.
OF_EVENT = {
    "MinSpareThreads": "30",
    "MaxSpareThreads": "80",
    "ThreadsPerChild": "20",
    "MaxRequestWorkers": "140",
    "AsyncRequestWorkerFactor": "3",
}
SYSCTLS = {
    "net.ipv4.tcp_max_syn_backlog": "777",
    "net.ipv4.tcp_tw_reuse": "1",
    "net.ipv4.ip_local_port_range": "20000 60000",
}


@asynccontextmanager
async def change_applied(
    shell: Shell, host: Host, *changes: tuple[Knob, str]
) -> AsyncIterator[tuple[Tuner, AppliedChange]]:
    """Apply values; undo them at the end of the block."""
    tuner = Tuner(probe_of(LoadPlan(url=host.url)))
    applied = await tuner.apply(shell, host.name, list(changes))
    assert [await tuner.read(shell, knob) for knob, _ in changes] == [value for _, value in changes]
    try:
        yield tuner, applied
    finally:
        await tuner.undo(shell, applied)


async def test_mount_and_sysctl(fresh_web1: Host) -> None:
    web, place, file = fresh_web1, web1.ATIME_MOUNT, "/etc/sysctl.d/60-web.conf"
    web.run(f"printf '# ours\\nnet.core.somaxconn = 4096\\n' >{file}; echo 4096 >/proc/sys/net/core/somaxconn")
    atime = Knob(name="atime", host="web1", kind="mount", mount=place)
    backlog = Knob(name="backlog", host="web1", kind="sysctl", key="net.core.somaxconn", file=file, min=128, max=65535)
    mount, live = f"grep ' {place} ' /proc/self/mountinfo", "cat /proc/sys/net/core/somaxconn"
    before, files = web.run(mount).stdout, web.files("/etc/sysctl.d")
    assert "relatime" in before
    shell = await open_shell(WEB1, web.ssh_config)
    async with change_applied(shell, web, (atime, "noatime"), (backlog, "8192")) as (tuner, _):
        assert "noatime" in web.run(mount).stdout
        assert web.run(f"{live}; tail -1 {file}").stdout == "8192\nnet.core.somaxconn = 8192\n"
        read = f"cat {web1.ATIME_FILE} >/dev/null; stat -c %x {web1.ATIME_FILE}"
        assert web.run(read).stdout == web.run(f"sleep 0.02; {read}").stdout
        strict = await tuner.apply(shell, "web1", [(atime, "strictatime")])
        assert web.run(read).stdout != web.run(f"sleep 0.02; {read}").stdout
        await tuner.undo(shell, strict)
    await shell.close()
    assert (web.run(mount).stdout, web.run(live).stdout, web.files("/etc/sysctl.d")) == (before, "4096\n", files)


async def test_the_kernels_other_settings_are_live(fresh_web1: Host) -> None:
    """Those of the lab host's own network; vm.swappiness is this machine's."""
    show = f"cd /proc/sys && cat {' '.join(key.replace('.', '/') for key in SYSCTLS)} | tr '\t' ' '"
    offered = {one.key: knob_of(one, "web1") for one in kernel.CANDIDATES}
    before = fresh_web1.run(show).stdout
    shell = await open_shell(WEB1, fresh_web1.ssh_config)
    changes = [(offered[key], value) for key, value in SYSCTLS.items()]
    async with change_applied(shell, fresh_web1, *changes) as (tuner, _):
        assert fresh_web1.run(show).stdout.splitlines() == list(SYSCTLS.values())
        swappiness = fresh_web1.run("cat /proc/sys/vm/swappiness").stdout.strip()
        assert await tuner.read(shell, offered["vm.swappiness"]) == swappiness
    await shell.close()
    assert fresh_web1.run(show).stdout == before


def mpm(name: str, others: str) -> Option:
    return Option(
        name=name,
        when=f"test -e /etc/apache2/mods-enabled/mpm_{name}.load",
        set=f"a2dismod -q -f {others}; a2enmod -q mpm_{name}",
    )


async def test_mpm_and_a_limit_that_a_reload_ignores(fresh_web1: Host) -> None:
    options = (mpm("prefork", "mpm_event"), mpm("event", "mpm_prefork"))
    common = {"host": "web1", "test": "apachectl -t", "workers": "apache2"}
    choice = Knob(name="MPM", kind="choice", option=options, reload="service apache2 restart", **common)  # type: ignore[arg-type]
    limit = Knob(
        name="ServerLimit",
        file="/etc/apache2/mods-available/mpm_prefork.conf",
        section="IfModule mpm_prefork_module",
        directive="ServerLimit",
        reload="apachectl graceful",
        **common,  # type: ignore[arg-type]
    )

    def threads() -> int:
        """Return the maximum number of threads of an Apache process."""
        count = "for p in $(pgrep -x apache2); do ls /proc/$p/task | wc -l; done | sort -n | tail -1"
        return int(fresh_web1.run(count).stdout)

    before = fresh_web1.files("/etc/apache2")
    assert threads() == 1
    shell = await open_shell(WEB1, fresh_web1.ssh_config)
    async with change_applied(shell, fresh_web1, (limit, "300")) as (_, applied):
        assert any("ServerLimit" in note and "not allowed during restart" in note for note in applied.notes)
    async with change_applied(shell, fresh_web1, (choice, "event")) as (tuner, _):
        assert threads() > 20
        found = await discover(shell, "web1", 80)
        knobs = {one.knob.name: one.knob for one in found.suggested if one.knob.file == EVENT}
        inner = await tuner.apply(shell, "web1", [(knobs[name], value) for name, value in OF_EVENT.items()])
        await until(lambda: threads() == 22)
        assert {name: await tuner.read(shell, knobs[name]) for name in OF_EVENT} == OF_EVENT
        await tuner.undo(shell, inner)
    await shell.close()
    assert threads() == 1 and fresh_web1.files("/etc/apache2") == before
