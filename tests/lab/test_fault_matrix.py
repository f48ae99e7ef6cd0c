"""Each way in which a change can go wrong x each kind of knob, on a real Apache over a real sshd: a test a cell.

After each: the original bytes and a serving server or, where somebody else wrote, their bytes and a loud message;
nothing left in the configuration. A connection that is cut is in test_transaction_faults, at every step.
"""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import SH, Completed
from cockpit.hosts.ssh import SshShell, connect
from cockpit.model.errors import ChangeRefused, ChangeUndone, CockpitError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Option
from cockpit.model.load import LoadPlan
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Patience
from cockpit.tuning.effect import Probe
from cockpit.tuning.probing import probe_of
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner
from tests.lab.inside import wait_until_it_answers
from tests.lab.lab import Host
from tests.lab.test_transaction_faults import CONF, LOCK, STATE, TIME_PASSED, said, tune
from tests.tuning.conftest import until

ENABLED = "/etc/apache2/mods-enabled"
HELD = "/tmp/level"
COMMANDS = {"test": "apachectl -t", "reload": "apachectl graceful", "workers": "apache2"}


def module(name: str, other: str) -> Option:
    """One of two modules is enabled, with the other out."""
    return Option(name=name, when=f"test -e {ENABLED}/{name}.load", set=f"a2dismod -q -f {other} && a2enmod -q {name}")


class Cell(NamedTuple):
    """A knob of a kind, its value before, the one it is given, another that somebody else gives it by `foreign`, and
    the file that all of it ends in."""

    knob: Knob
    before: str
    value: str
    foreign: str
    theirs: str
    file: str


CELLS = {
    "directive": Cell(
        Knob(
            name="MaxSpareServers",
            host="web1",
            file=CONF,
            section="IfModule mpm_prefork_module",
            directive="MaxSpareServers",
            **COMMANDS,  # type: ignore[arg-type]
        ),
        "10",
        "30",
        f"sed -i 's/MaxSpareServers .*/MaxSpareServers 44/' {CONF}",
        f"grep -q 'MaxSpareServers 44' {CONF}",
        CONF,
    ),
    "choice": Cell(
        Knob(
            name="Module",
            host="web1",
            kind="choice",
            option=(
                Option(
                    name="none",
                    when=f"! test -e {ENABLED}/expires.load && ! test -e {ENABLED}/headers.load",
                    set="a2dismod -q -f expires headers",
                ),
                module("expires", "headers"),
                module("headers", "expires"),
            ),
            **COMMANDS,  # type: ignore[arg-type]
        ),
        "none",
        "expires",
        "a2dismod -q -f expires && a2enmod -q headers",
        f"test -e {ENABLED}/headers.load && ! test -e {ENABLED}/expires.load",
        ENABLED,
    ),
    "command": Cell(
        Knob(
            name="Level",
            host="web1",
            kind="command",
            get=f"cat {HELD}",
            set=f'printf "%s\\n" "$1" >{HELD}',
            **COMMANDS,  # type: ignore[arg-type]
        ),
        "5",
        "7",
        f"echo 6 >{HELD}",
        f"grep -qx 6 {HELD}",
        HELD,
    ),
}
FIRST = "/run/first"


@pytest.fixture(params=CELLS)
def cell(request: pytest.FixtureRequest) -> Cell:
    return CELLS[request.param]


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"echo 5 >{HELD}; rm -rf /root/.local/state/cockpit {FIRST}; a2dismod -q -f expires headers")
    yield fresh_web1
    fresh_web1.run("a2dismod -q -f expires headers")


@pytest.fixture
async def shell(web1: Host) -> AsyncIterator[SshShell]:
    shell = await connect(HostConfig(name="web1", ssh="web1"), web1.ssh_config)
    yield shell
    await shell.close()


async def must_stand(web1: Host, before: str) -> None:
    """Everything is as it was, no change waits, and the server serves."""
    assert web1.run(STATE).stdout == before
    await must_serve(web1)


async def must_serve(web1: Host) -> None:
    assert web1.run(f"test -L {LOCK}", check=False).returncode == 1
    with await asyncio.to_thread(urllib.request.urlopen, web1.url, timeout=20) as reply:
        assert reply.status == 200 and len(reply.read()) == 92


async def fails(
    shell: Remote, knob: Knob, value: str, probe: Probe | None = None, effect: float = 20.0
) -> CockpitError:
    """The change is asked for and does not come about."""
    tuner = Tuner(probe, Patience(effect=effect))
    with pytest.raises(CockpitError) as failed:
        await tuner.apply(shell, "web1", [(knob, value)])
    return failed.value


class AsNobody:
    """A shell without root's rights."""

    def __init__(self, shell: SshShell) -> None:
        self.shell = shell

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        drop = "env HOME=/var/www setpriv --reuid 33 --regid 33 --clear-groups"
        return await self.shell.run(program, input=input, timeout=timeout, interpreter=f"{drop} {interpreter}")


async def test_no_permission(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    error = await fails(AsNobody(shell), replace(cell.knob, test="", reload="", workers=""), cell.value)
    assert any(words in str(error) for words in ("ermission", "not permitted", "read-only for this user"))
    web1.run("rm -rf /var/tmp/cockpit-33")
    await must_stand(web1, before)


@contextmanager
def read_only(web1: Host, place: str) -> Iterator[None]:
    web1.run(f"mount --bind {place} {place} && mount -o remount,bind,ro {place}")
    try:
        yield
    finally:
        web1.run(f"umount {place}")


async def test_a_read_only_file(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    with read_only(web1, str(Path(cell.file).parent) if cell.file == CONF else cell.file):
        error = await fails(shell, cell.knob, cell.value)
    assert any(words in str(error) for words in ("ead-only file system", "read-only for this user"))
    await must_stand(web1, before)


async def test_a_full_disk(web1: Host, shell: SshShell, cell: Cell) -> None:
    """The one that the originals are kept on: nothing is begun."""
    before, place = web1.run(STATE).stdout, "/root/.local/state/cockpit"
    web1.run(f"mkdir -p {place} && mount -t tmpfs -o size=16k,mode=700 small {place}")
    try:
        web1.run(f"cat /dev/zero >{place}/filler", check=False)
        error = await fails(shell, cell.knob, cell.value)
        assert isinstance(error, ChangeRefused)
        assert any(words in str(error) for words in ("No space left on device", "is the disk full?"))
    finally:
        web1.run(f"umount {place}")
    await must_stand(web1, before)


async def test_the_configuration_is_refused(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    refusing = f"if mkdir {FIRST}; then echo AH00526: no >&2; exit 1; fi; apachectl -t"
    error = await fails(shell, replace(cell.knob, test=refusing), cell.value)
    assert isinstance(error, ChangeUndone) and "AH00526: no; rolled back" in str(error)
    await must_stand(web1, before)


async def test_the_reload_fails(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    reload = f"if mkdir {FIRST}; then echo it is jammed >&2; exit 1; fi; apachectl graceful"
    error = await fails(shell, replace(cell.knob, reload=reload), cell.value)
    assert isinstance(error, ChangeUndone) and "it is jammed; rolled back and reloaded" in str(error)
    await must_stand(web1, before)


async def test_the_server_does_not_come_up(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    reload = f"if mkdir {FIRST}; then service apache2 stop; else service apache2 start; fi"
    error = await fails(shell, replace(cell.knob, reload=reload), cell.value, probe_of(LoadPlan(url=web1.url)), 0.5)
    assert "did not become active" in str(error) and not isinstance(error, ChangeRefused)
    await asyncio.to_thread(wait_until_it_answers, web1.address, 80)
    await must_stand(web1, before)


async def test_the_page_is_bad_from_the_outset(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout
    error = await fails(shell, cell.knob, cell.value, probe_of(LoadPlan(url=f"{web1.url}/none")))
    assert isinstance(error, ChangeRefused)
    assert "before the change already" in str(error) and "answers 404; nothing was changed" in str(error)
    await must_stand(web1, before)


async def test_the_page_is_bad_with_the_change(web1: Host, shell: SshShell, cell: Cell) -> None:
    before = web1.run(STATE).stdout

    async def probe() -> str:
        now = await Tuner().read(shell, cell.knob)
        return "" if now == cell.before else "it answers 500"

    error = await fails(shell, cell.knob, cell.value, probe, 0.5)
    assert isinstance(error, ChangeUndone) and "it answers 500; rolled back and reloaded" in str(error)
    await must_stand(web1, before)


async def test_another_editor_writes_meanwhile(web1: Host, shell: SshShell, cell: Cell) -> None:
    editing = f"if mkdir {FIRST}; then {cell.foreign}; echo refused >&2; exit 1; fi"
    error = await fails(shell, replace(cell.knob, test=editing), cell.value)
    assert isinstance(error, ChangeFailed)
    assert "by somebody else" in str(error) and "left as it is" in str(error)
    assert web1.run(cell.theirs, check=False).returncode == 0, "their bytes stay"
    listing = "find /etc/apache2 -newer /tmp/level -name '.*'; ls -A /etc/apache2/mods-available | grep -i cockpit"
    assert web1.run(listing, check=False).stdout == ""
    await must_serve(web1)


PROFILE = {
    "directive": f'file = "{CONF}"\nsection = "IfModule mpm_prefork_module"\ndirective = "MaxSpareServers"',
    "choice": "\n".join(
        [
            'kind = "choice"',
            *(
                f"[[knob.option]]\nname = {name!r}\nwhen = {when!r}\nset = {set_!r}"
                for name, when, set_ in (
                    ("none", f"! test -e {ENABLED}/expires.load", "a2dismod -q -f expires"),
                    ("expires", f"test -e {ENABLED}/expires.load", "a2enmod -q expires"),
                )
            ),
        ]
    ),
    "command": f"kind = \"command\"\nget = 'cat {HELD}'\nset = 'echo \"$1\" >{HELD}'",
}


@pytest.mark.parametrize("kind", PROFILE)
async def test_the_cockpit_is_killed(web1: Host, tmp_path: Path, kind: str) -> None:
    before, given = web1.run(STATE).stdout, CELLS[kind]
    head, _, options = PROFILE[kind].partition("\n[[knob.option]]")
    knob = f'[[knob]]\nname = "{given.knob.name}"\nhost = "web1"\n{head}\n'
    knob += 'test = "apachectl -t"\nreload = "apachectl graceful"\n'
    knob += f"[[knob.option]]{options}\n" if options else ""
    words = ("set", f"{given.knob.name}={given.value}", "--confirm-within", "300s")
    process = await tune(web1, tmp_path, *words, knobs=knob)
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while not (line := await process.stderr.readline()).startswith(b"active"):
            assert line
    assert web1.run(STATE).stdout != before
    process.send_signal(signal.SIGKILL)
    assert (await said(process))[0] == -9
    web1.run(TIME_PASSED, check=False)
    await until(lambda: web1.run(f"test -L {LOCK}", check=False).returncode == 1, 60)
    await must_stand(web1, before)
