"""Changes on a real Apache over a real sshd: active, rejected by Apache, interrupted, on a full disk."""

from __future__ import annotations

import asyncio
import shlex
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from cockpit.hosts.ssh import SshShell, connect
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Setting
from cockpit.servers.apache.coercions import WHOLE_NUMBERS
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.remote import ReconnectingRemote
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Host, Lab
from tests.tuning.conftest import until

WEB1 = HostConfig(name="web1", ssh="web1")
ENABLED = "/etc/apache2/mods-enabled/mpm_prefork.conf"
AVAILABLE = "/etc/apache2/mods-available/mpm_prefork.conf"
MAIN = "/etc/apache2/apache2.conf"


def knob(name: str, **changed: object) -> Knob:
    fields: dict[str, object] = {
        "name": name,
        "host": "web1",
        "file": ENABLED,
        "section": "IfModule mpm_prefork_module",
        "directive": name,
        "test": "apachectl -t",
        "reload": "apachectl graceful",
        "workers": "apache2",
    }
    return Knob(**(fields | changed))  # type: ignore[arg-type]


SPARE = knob("MaxSpareServers")
KEEP_ALIVE = knob("KeepAlive", file=MAIN, section=None)


@pytest.fixture
async def shell(fresh_web1: Host) -> AsyncIterator[SshShell]:
    shell = await connect(WEB1, fresh_web1.ssh_config)
    yield shell
    await shell.close()


def workers(web1: Host) -> set[int]:
    """Return the PIDs of Apache's workers."""
    processes = web1.processes("apache2")
    return {pid for pid, parent in processes.items() if parent in processes}


def content(web1: Host, file: str) -> str:
    return web1.run(f"cat {file}").stdout


def state_of(web1: Host) -> str:
    """Return the files of the configuration, with owners, modes and links."""
    return web1.run("cd /etc/apache2 && find . -printf '%p %y %m %u %g %l\\n' | sort").stdout


async def answers(web1: Host) -> bool:
    with await asyncio.to_thread(urllib.request.urlopen, web1.url, timeout=10) as response:
        return response.status == 200 and len(response.read()) == 92


async def test_change_is_active_in_new_workers_and_is_undone(fresh_web1: Host, shell: SshShell) -> None:
    await until(lambda: len(workers(fresh_web1)) >= 5)
    original, before, old = content(fresh_web1, AVAILABLE), state_of(fresh_web1), workers(fresh_web1)
    tuner = Tuner()
    assert await tuner.read(shell, SPARE) == "10"

    applied = await tuner.apply(shell, "web1", [(SPARE, "30"), (knob("MinSpareServers"), "20")])

    assert applied.settings == (
        Setting(knob="MaxSpareServers", old="10", new="30"),
        Setting(knob="MinSpareServers", old="5", new="20"),
    )
    expected = original.replace("MaxSpareServers         10", "MaxSpareServers         30")
    expected = expected.replace("MinSpareServers         5", "MinSpareServers         20")
    assert content(fresh_web1, AVAILABLE) == expected
    assert state_of(fresh_web1) == before
    assert not old & workers(fresh_web1)
    await until(lambda: len(workers(fresh_web1)) >= 20)  # the new MinSpareServers
    assert await answers(fresh_web1)

    undone = await tuner.undo(shell, applied)

    assert undone.notes == ()
    assert content(fresh_web1, AVAILABLE) == original
    assert state_of(fresh_web1) == before
    assert await answers(fresh_web1)


async def test_rejected_apache_value_is_rolled_back(fresh_web1: Host, shell: SshShell) -> None:
    main, prefork, before = content(fresh_web1, MAIN), content(fresh_web1, AVAILABLE), state_of(fresh_web1)
    old = workers(fresh_web1)
    line = GRAMMARS["apache"].read(main.encode(), "KeepAlive").line
    with pytest.raises(ChangeRolledBack) as undone:
        await Tuner().apply(shell, "web1", [(SPARE, "30"), (KEEP_ALIVE, "${banana}")])
    assert str(undone.value) == (
        f"MaxSpareServers, KeepAlive: apachectl -t failed: AH00526: Syntax error on line {line} of {MAIN}: "
        "KeepAlive must be On or Off; rolled back"
    )
    assert (content(fresh_web1, MAIN), content(fresh_web1, AVAILABLE)) == (main, prefork)
    assert state_of(fresh_web1) == before
    assert workers(fresh_web1) == old
    assert await answers(fresh_web1)


async def test_failed_reload_is_rolled_back_and_reloaded(fresh_web1: Host, shell: SshShell) -> None:
    """Apache binds the port at the reload, not in its test: only the reload fails.

    `apachectl stop` returns while Apache still runs, and a start would then succeed without effect: the reload waits.
    """
    original, before = content(fresh_web1, "/etc/apache2/ports.conf"), state_of(fresh_web1)
    restart = "apachectl stop; while pgrep -x apache2 >/dev/null; do sleep 0.02; done; apachectl start"
    listen = knob("Listen", file="/etc/apache2/ports.conf", section=None, reload=restart)
    with pytest.raises(
        ChangeRolledBack, match=r"Listen: apachectl stop; .* failed: .*could not bind.*; rolled back and reloaded"
    ):
        await Tuner().apply(shell, "web1", [(listen, "203.0.113.1:80")])
    assert content(fresh_web1, "/etc/apache2/ports.conf") == original
    assert state_of(fresh_web1) == before
    await until(lambda: bool(workers(fresh_web1)))
    assert await answers(fresh_web1)


async def test_invalid_number_that_apache_accepts_is_refused(fresh_web1: Host, shell: SshShell) -> None:
    before = content(fresh_web1, AVAILABLE)
    with pytest.raises(ChangeRefused, match=r"^MaxSpareServers takes a whole number of at least 1, not 'banana'$"):
        await Tuner().apply(shell, "web1", [(SPARE, "banana")])
    assert content(fresh_web1, AVAILABLE) == before


BARE = "ErrorLog /dev/null\nListen 80\nServerName x\n"


def test_apache_accepts_invalid_numbers(lab: Lab) -> None:
    """WHOLE_NUMBERS are the directives whose invalid values pass Apache's own test."""
    modules = "/usr/lib/apache2/modules"
    accepted = set()
    for mpm in ("prefork", "event"):
        script = f"""
            echo 'LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so' >/tmp/{mpm}
            printf %s {shlex.quote(BARE)} >>/tmp/{mpm}
            for name in {" ".join(sorted(WHOLE_NUMBERS))}; do
                for value in banana 12x; do
                    if apache2 -t -f /tmp/{mpm} -c "$name $value" 2>/dev/null; then echo $name; fi
                done
            done
        """
        accepted |= set(lab.web1.run(script).stdout.split())
    assert accepted == WHOLE_NUMBERS


TEXTS = {
    "plain": b"\t DirectoryIndex \t one  two\t\r\n",
    "quoted": b"DirectoryIndex 'one two'\n",
    "the last": b"DirectoryIndex one\n# DirectoryIndex two\ndirectoryindex three\n",
    "continued": b"Directory\\\nIndex one\\\r\n\\\n  two \\\n\n# \\\nDirectoryIndex three\n",
    "two backslashes": b"DirectoryIndex one \\\\\n\ntwo\n",
    "escaped": b'DirectoryIndex "a \\"b\\" c\\\\"\n',
    "no end": b"DirectoryIndex one",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_parsed_value_matches_apache(lab: Lab, text: bytes) -> None:
    """Compare with Apache's dump of the parsed configuration."""
    modules = "/usr/lib/apache2/modules"
    loaded = {"mpm_prefork_module": "mpm_prefork", "info_module": "info", "dir_module": "dir"}
    head = "".join(f"LoadModule {name} {modules}/mod_{file}.so\n" for name, file in loaded.items()) + BARE
    for raw in (text, GRAMMARS["apache"].change(text, "DirectoryIndex", b"changed")):
        octal = "".join(f"\\{byte:03o}" for byte in raw)
        lab.web1.run(f"printf %s {shlex.quote(head)} >/tmp/conf; printf '{octal}' >>/tmp/conf")
        dump = lab.web1.run("apache2 -t -f /tmp/conf -D DUMP_CONFIG").stdout.splitlines()
        values = [line.partition(" ")[2] for line in dump if line.lower().startswith("directoryindex ")]
        assert values[-1] == GRAMMARS["apache"].read(raw, "DirectoryIndex").value


# Kills the sshd of the connection that this command uses.
END_SSHD = "p=$$; until grep -q ^sshd /proc/$p/comm; do p=$(cut -d' ' -f4 /proc/$p/stat); done; kill -9 $p"


async def test_change_is_rolled_back_over_next_connection(fresh_web1: Host) -> None:
    original, before = content(fresh_web1, AVAILABLE), state_of(fresh_web1)
    opened: list[tuple[SshShell, asyncio.Task[None]]] = []

    async def current() -> SshShell:
        if not opened or opened[-1][1].done():
            shell = await connect(WEB1, fresh_web1.ssh_config)
            opened.append((shell, asyncio.create_task(shell.wait_closed())))
        return opened[-1][0]

    spare = knob("MaxSpareServers", test=f"[ -e /tmp/cut ] || {{ : >/tmp/cut; {END_SSHD}; sleep 60; }}")
    try:
        with pytest.raises(ChangeRolledBack, match=r"connection lost during the change \(web1: .*; rolled back"):
            await Tuner().apply(ReconnectingRemote(current), "web1", [(spare, "30")])
        assert len(opened) == 2
        assert content(fresh_web1, AVAILABLE) == original and state_of(fresh_web1) == before
    finally:
        for shell, closed in opened:
            await shell.close()
            await closed


@contextmanager
def mounted(web1: Host, options: str, place: str) -> Iterator[None]:
    web1.run(f"mkdir -p {place} && mount {options} {place}")
    try:
        yield
    finally:
        web1.run(f"umount {place}")


async def test_read_only_filesystem_is_refused(fresh_web1: Host, shell: SshShell) -> None:
    before = state_of(fresh_web1)
    with mounted(fresh_web1, "--bind /etc/apache2/mods-available", "/etc/apache2/mods-available"):
        fresh_web1.run("mount -o remount,bind,ro /etc/apache2/mods-available")
        with pytest.raises(
            ChangeRefused, match=rf"MaxSpareServers: web1: {ENABLED}: .*read-only.*; nothing was changed"
        ):
            await Tuner().apply(shell, "web1", [(SPARE, "30")])
    assert state_of(fresh_web1) == before


@pytest.mark.parametrize("full", ["/srv/small", "/root/.local/state/cockpit"], ids=["configuration", "backups"])
async def test_full_disk_is_refused(fresh_web1: Host, shell: SshShell, full: str) -> None:
    with mounted(fresh_web1, "-t tmpfs -o size=16k,mode=700 small", full):
        file = "/srv/small/mpm.conf"
        fresh_web1.run(f"mkdir -p /srv/small && cp {AVAILABLE} {file} && chmod 640 {file}")
        fresh_web1.run(f"cat /dev/zero >{full}/filler", check=False)
        snapshot = (
            "ls -lA --time-style=full-iso /srv/small; sha256sum /srv/small/mpm.conf; "
            "find /root/.local/state/cockpit/changes -mindepth 2"
        )
        before = fresh_web1.run(snapshot, check=False).stdout
        with pytest.raises(ChangeRefused, match="No space left on device"):
            await Tuner().apply(shell, "web1", [(knob("MaxSpareServers", file=file), "30")])
        assert fresh_web1.run(snapshot, check=False).stdout == before
    fresh_web1.run("rm -rf /srv/small")
