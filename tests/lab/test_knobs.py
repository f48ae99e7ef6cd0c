"""Each kind of knob on a real server over its real sshd: read, changed, active on the server, undone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Option
from cockpit.model.load import LoadPlan
from cockpit.servers import kernel
from cockpit.tuning.applied import AppliedChange
from cockpit.tuning.probing import probe_of
from cockpit.tuning.server_discovery import discover, knob_of
from cockpit.tuning.tuner import Tuner
from tests.lab import app1, proxy1, web1
from tests.lab.command_host import by_command
from tests.lab.lab import Host, Lab
from tests.tuning.conftest import until

# Requests a page on the host itself, without curl or wget.
REQUEST = "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"


def by_ssh(host: Host) -> HostConfig:
    return HostConfig(name=host.name, ssh=host.name)


TRANSPORTS: list[Callable[[Host], HostConfig]] = [by_ssh]


@pytest.fixture(params=[by_ssh, by_command])
def each_transport(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reach hosts by SSH, and by a command."""
    TRANSPORTS.append(request.param)
    yield
    TRANSPORTS.pop()


@asynccontextmanager
async def shell_of(host: Host) -> AsyncIterator[Shell]:
    shell = await open_shell(TRANSPORTS[-1](host), host.ssh_config)
    try:
        yield shell
    finally:
        await shell.close()


def config(host: Host, place: str) -> str:
    """Return names, owners, modes, links and digests of all files in a place."""
    listing = f"find {place} -printf '%p %y %m %u %g %l\\n' | sort; find {place} -type f | sort | xargs sha256sum"
    return host.run(listing).stdout


def get(host: Host, port: int, path: str) -> str:
    return host.run(
        f'bash -c "{REQUEST.format(port=port, path=path)}"'.replace("\\r", "\\\\r").replace("\\n", "\\\\n")
    ).stdout


@asynccontextmanager
async def change_applied(
    host: Host, knob: Knob, value: str, *more: tuple[Knob, str]
) -> AsyncIterator[tuple[Shell, Tuner, AppliedChange]]:
    """Apply a value; undo it at the end of the block."""
    async with shell_of(host) as shell:
        tuner = Tuner(probe_of(LoadPlan(url=host.url)))
        applied = await tuner.apply(shell, host.name, [(knob, value), *more])
        assert await tuner.read(shell, knob) == value
        try:
            yield shell, tuner, applied
        finally:
            await tuner.undo(shell, applied)


def mpm(name: str, others: str) -> Option:
    return Option(
        name=name,
        when=f"test -e /etc/apache2/mods-enabled/mpm_{name}.load",
        set=f"a2dismod -q -f {others}; a2enmod -q mpm_{name}",
    )


MPM = Knob(
    name="MPM",
    host="web1",
    kind="choice",
    option=(
        mpm("prefork", "mpm_worker mpm_event"),
        mpm("worker", "mpm_prefork mpm_event"),
        mpm("event", "mpm_prefork mpm_worker"),
    ),
    test="apachectl -t",
    reload="service apache2 restart",
    workers="apache2",
)


EVENT = "/etc/apache2/mods-available/mpm_event.conf"
# The settings that prefork has not.
OF_EVENT = {
    "MinSpareThreads": "30",
    "MaxSpareThreads": "80",
    "ThreadsPerChild": "20",
    "MaxRequestWorkers": "140",
    "AsyncRequestWorkerFactor": "3",
}


def threads(host: Host) -> int:
    """Return the maximum number of threads of an Apache process."""
    return int(host.run("for p in $(pgrep -x apache2); do ls /proc/$p/task | wc -l; done | sort -n | tail -1").stdout)


@pytest.mark.usefixtures("each_transport")
async def test_mpm_choice(plain_web1: Host) -> None:
    before = config(plain_web1, "/etc/apache2")
    assert threads(plain_web1) == 1
    async with change_applied(plain_web1, MPM, "event") as (shell, tuner, _applied):
        assert threads(plain_web1) > 20
        if TRANSPORTS[-1] is by_ssh:
            found = await discover(shell, "web1", 80)
            knobs = {one.knob.name: one.knob for one in found.offered if one.knob.file == EVENT}
            inner = await tuner.apply(shell, "web1", [(knobs[name], value) for name, value in OF_EVENT.items()])
            await until(lambda: threads(plain_web1) == 22)
            assert {name: await tuner.read(shell, knobs[name]) for name in OF_EVENT} == OF_EVENT
            await tuner.undo(shell, inner)
    assert threads(plain_web1) == 1 and config(plain_web1, "/etc/apache2") == before


def cache(name: str, enable: str, modules: str) -> Option:
    """Return the option for Apache in front of origin1's images with a cache, or without."""
    return Option(
        name=name,
        when=f"[ \"$(cd /etc/apache2/mods-enabled && ls cache_*.load 2>/dev/null)\" = '{modules}' ]",
        set=f"a2dismod -q -f cache_disk cache_socache socache_memcache cache; a2enmod -q {enable}",
    )


CACHE = Knob(
    name="cache",
    host="web1",
    kind="choice",
    option=(
        cache("none", "proxy_http", ""),
        cache("disk", "proxy_http cache_disk", "cache_disk.load"),
        cache("memory", "proxy_http cache_socache", "cache_socache.load"),
    ),
    test="apachectl -t",
    reload="service apache2 restart",
    workers="apache2",
)


async def test_cache_choice(plain_web1: Host) -> None:
    plain_web1.run("a2enmod -q proxy_http && service apache2 restart && service memcached start")
    before = config(plain_web1, "/etc/apache2")
    headers = f"curl -sSI http://{plain_web1.address}/img/00001.jpg"

    def cached() -> bool:
        plain_web1.run(headers.replace("-sSI", "-sS -o /dev/null"))
        return "X-Cache: HIT" in plain_web1.run(headers.replace("-sSI", "-sS -o /dev/null -D -")).stdout

    async with change_applied(plain_web1, CACHE, "disk") as (shell, tuner, _applied):
        await until(cached)
        assert "cache_disk_module" in plain_web1.run("apachectl -M").stdout
        memory = await tuner.apply(shell, "web1", [(CACHE, "memory")])
        await until(cached)
        assert "cache_socache_module" in plain_web1.run("apachectl -M").stdout
        await tuner.undo(shell, memory)
    assert not cached() and config(plain_web1, "/etc/apache2") == before


@pytest.mark.usefixtures("each_transport")
async def test_atime_mount_option(plain_web1: Host) -> None:
    place = web1.ATIME_MOUNT
    knob = Knob(name="atime", host="web1", kind="mount", mount=place)
    rows = f"grep ' {place} ' /proc/self/mountinfo"
    before = plain_web1.run(rows).stdout
    assert "relatime" in before
    async with change_applied(plain_web1, knob, "noatime") as (shell, tuner, _applied):
        assert "noatime" in plain_web1.run(rows).stdout
        atime = f"cat {web1.ATIME_FILE} >/dev/null; stat -c %x {web1.ATIME_FILE}"
        assert plain_web1.run(atime).stdout == plain_web1.run(f"sleep 0.02; {atime}").stdout
        await tuner.apply(shell, "web1", [(knob, "strictatime")])
        assert plain_web1.run(atime).stdout != plain_web1.run(f"sleep 0.02; {atime}").stdout
        await tuner.apply(shell, "web1", [(knob, "noatime")])
    assert plain_web1.run(rows).stdout == before


@pytest.mark.usefixtures("each_transport")
async def test_sysctl_is_set_live_and_in_its_file(plain_web1: Host) -> None:
    file = "/etc/sysctl.d/60-web.conf"
    plain_web1.run(f"printf '# ours\\nnet.core.somaxconn = 4096\\n' >{file}; echo 4096 >/proc/sys/net/core/somaxconn")
    knob = Knob(name="backlog", host="web1", kind="sysctl", key="net.core.somaxconn", file=file, min=128, max=65535)
    before = config(plain_web1, "/etc/sysctl.d")
    async with change_applied(plain_web1, knob, "8192"):
        assert (
            plain_web1.run(f"cat /proc/sys/net/core/somaxconn; tail -1 {file}").stdout
            == "8192\nnet.core.somaxconn = 8192\n"
        )
    assert plain_web1.run("cat /proc/sys/net/core/somaxconn").stdout == "4096\n"
    assert config(plain_web1, "/etc/sysctl.d") == before


async def test_the_kernels_other_settings_are_live(plain_web1: Host) -> None:
    """Those of the lab host's own network; vm.swappiness is this machine's."""
    values = {
        "net.ipv4.tcp_max_syn_backlog": "777",
        "net.ipv4.tcp_tw_reuse": "1",
        "net.ipv4.ip_local_port_range": "20000 60000",
    }
    show = f"cd /proc/sys && cat {' '.join(key.replace('.', '/') for key in values)} | tr '\t' ' '"
    offered = {one.key: one for one in kernel.CANDIDATES}
    (knob, value), *more = [(knob_of(offered[key], "web1"), value) for key, value in values.items()]
    before = plain_web1.run(show).stdout
    async with change_applied(plain_web1, knob, value, *more) as (shell, tuner, _applied):
        assert plain_web1.run(show).stdout.splitlines() == list(values.values())
        swappiness = plain_web1.run("cat /proc/sys/vm/swappiness").stdout.strip()
        assert await tuner.read(shell, knob_of(offered["vm.swappiness"], "web1")) == swappiness
    assert plain_web1.run(show).stdout == before


async def test_java_options_as_key_of_file(whole_lab: Lab) -> None:
    host = whole_lab.hosts["app1"]
    knob = Knob(
        name="JAVA_OPTS",
        host="app1",
        kind="keyvalue",
        file=app1.OPTIONS,
        key="JAVA_OPTS",
        reload="service tomcat10 restart",
    )
    before, options = config(host, "/etc/default"), '-server -Xms96m -Xmx96m -Dname="a b" -Djava.awt.headless=true'
    async with change_applied(host, knob, options):
        command = "tr '\\0' '\\n' </proc/$(cat /run/tomcat10/tomcat10.pid)/cmdline"
        assert "-Xmx96m" in host.run(command).stdout.splitlines()
    assert "-Xmx128m" in host.run(command).stdout.splitlines() and config(host, "/etc/default") == before


def squid(name: str, **changed: str) -> Knob:
    return Knob(
        name=name,
        host="proxy1",
        kind="squid",
        file=proxy1.CONFIG,
        directive=name,
        test="squid -k parse",
        **{"reload": "squid -k reconfigure", **changed},  # type: ignore[arg-type]
    )


STOREDIR = "curl -sS --fail http://localhost:3128/squid-internal-mgr/storedir"
STORE = (
    "service squid stop; while pgrep -x squid; do sleep 0.05; done; rm -rf /var/spool/squid/*; "
    "squid -z --foreground && service squid start"
)


async def test_squid_name_and_store(whole_lab: Lab) -> None:
    host = whole_lab.hosts["proxy1"]
    before = config(host, proxy1.CONFIG)
    name, store = squid("visible_hostname"), squid("cache_dir", reload=STORE)
    via = f"curl -sSI {host.url} | grep -i ^via:"
    async with change_applied(host, name, "proxy-one"):
        await until(lambda: "proxy-one" in host.run(via).stdout)
    await until(lambda: "proxy1" in host.run(via).stdout)
    async with change_applied(host, store, "rock /var/spool/squid 300"):
        assert host.run("ls /var/spool/squid").stdout == "rock\n"
        assert "squid-disk" in host.run("ps -e -o args").stdout  # the process of a rock store
    assert "(ufs)" in host.run(STOREDIR).stdout and config(host, proxy1.CONFIG) == before


NGINX = """\
worker_processes 1;
pid /run/knob-nginx.pid;
error_log /var/log/knob-nginx.log;
events { worker_connections 64; }
http {
    access_log off;
    server { listen 8088; location / { return 200 one; } }
}
"""


@pytest.mark.usefixtures("each_transport")
async def test_nginx_workers(plain_web1: Host) -> None:
    file = "/etc/knob-nginx.conf"
    plain_web1.run(f"printf %s '{NGINX}' >{file} && nginx -c {file}")
    knob = Knob(
        name="workers",
        host="web1",
        kind="nginx",
        file=file,
        directive="worker_processes",
        test=f"nginx -t -c {file}",
        reload=f"nginx -s reload -c {file}",
        workers="nginx",
    )
    body = Knob(
        name="body", host="web1", kind="nginx", file=file, directive="return", section="http { server { location / {",
        test=knob.test, reload=knob.reload,
    )  # fmt: skip
    try:
        async with change_applied(plain_web1, knob, "3", (body, "200 two")):
            assert len(plain_web1.processes("nginx")) == 4
            assert get(plain_web1, 8088, "/").endswith("two")
        await until(lambda: len(plain_web1.processes("nginx")) == 2)
        assert get(plain_web1, 8088, "/").endswith("one")
        assert plain_web1.run(f"cat {file}").stdout == NGINX
    finally:
        plain_web1.run("kill $(cat /run/knob-nginx.pid); while pgrep -x nginx; do sleep 0.02; done", check=False)


async def test_limit_ignored_by_graceful_restart_is_noted(plain_web1: Host) -> None:
    limit = Knob(
        name="ServerLimit",
        host="web1",
        file="/etc/apache2/mods-available/mpm_prefork.conf",
        section="IfModule mpm_prefork_module",
        directive="ServerLimit",
        test="apachectl -t",
        reload="apachectl graceful",
        workers="apache2",
    )
    async with change_applied(plain_web1, limit, "300") as (_shell, _tuner, applied):
        assert any("ServerLimit" in note and "not allowed during restart" in note for note in applied.notes)
