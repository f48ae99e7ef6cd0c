"""Faults of a change x kinds of knobs, on a real Apache over a real sshd: one test per combination.

The faults of one kind also on a host that is reached by a command.

Afterwards the original bytes are restored and the server answers. After a foreign edit the foreign bytes stay and the
error says so. No files remain in the configuration. Cut connections are in test_transaction_faults.
"""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Option
from cockpit.model.load import LoadPlan
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.effect import Probe
from cockpit.tuning.probing import probe_of
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner
from tests.lab.command_host import by_command
from tests.lab.inside import wait_until_reachable
from tests.lab.lab import Host
from tests.lab.test_knobs import by_ssh
from tests.lab.test_transaction_faults import CONF, LOCK, STATE, TIME_PASSED, output_of, tune
from tests.tuning.conftest import until

ENABLED = "/etc/apache2/mods-enabled"
LEVEL_FILE = "/tmp/level"
COMMANDS = {"test": "apachectl -t", "reload": "apachectl graceful", "workers": "apache2"}


def module(name: str, other: str) -> Option:
    """Return the option that enables one of two modules and disables the other."""
    return Option(name=name, when=f"test -e {ENABLED}/{name}.load", set=f"a2dismod -q -f {other} && a2enmod -q {name}")


class KnobCase(NamedTuple):
    """A knob of one kind, its old and new value, and the file that it changes.

    `foreign`: a command that sets another value; `has_foreign`: a command that succeeds while that value is set.
    """

    knob: Knob
    before: str
    value: str
    foreign: str
    has_foreign: str
    file: str


CASES = {
    "directive": KnobCase(
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
    "choice": KnobCase(
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
    "command": KnobCase(
        Knob(
            name="Level",
            host="web1",
            kind="command",
            get=f"cat {LEVEL_FILE}",
            set=f'printf "%s\\n" "$1" >{LEVEL_FILE}',
            **COMMANDS,  # type: ignore[arg-type]
        ),
        "5",
        "7",
        f"echo 6 >{LEVEL_FILE}",
        f"grep -qx 6 {LEVEL_FILE}",
        LEVEL_FILE,
    ),
}
FIRST = "/run/first"


class Way(NamedTuple):
    """A kind of knob, and how the host is reached."""

    kind: str
    reach: Callable[[Host], HostConfig] = by_ssh

    def __str__(self) -> str:
        return f"{self.kind} {self.reach.__name__}"


@pytest.fixture(params=[*map(Way, CASES), Way("directive", by_command)], ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


@pytest.fixture
def case(way: Way) -> KnobCase:
    return CASES[way.kind]


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"echo 5 >{LEVEL_FILE}; rm -rf /root/.local/state/cockpit {FIRST}; a2dismod -q -f expires headers")
    yield fresh_web1
    fresh_web1.run("a2dismod -q -f expires headers")


@pytest.fixture
async def shell(web1: Host, way: Way) -> AsyncIterator[Shell]:
    shell = await open_shell(way.reach(web1), web1.ssh_config)
    yield shell
    await shell.close()


async def assert_restored(web1: Host, before: str) -> None:
    """Check that the host has its original state, no pending change, and an answering server."""
    assert web1.run(STATE).stdout == before
    await assert_answers(web1)


async def assert_answers(web1: Host) -> None:
    assert web1.run(f"test -L {LOCK}", check=False).returncode == 1
    with await asyncio.to_thread(urllib.request.urlopen, web1.url, timeout=20) as response:
        assert response.status == 200 and len(response.read()) == 92


async def error_of(
    shell: Remote, knob: Knob, value: str, probe: Probe | None = None, effect: float = 20.0
) -> CockpitError:
    """Apply a change that must fail, and return its error."""
    tuner = Tuner(probe, Timeouts(effect=effect))
    with pytest.raises(CockpitError) as failed:
        await tuner.apply(shell, "web1", [(knob, value)])
    return failed.value


class UnprivilegedShell:
    """A shell without root's rights."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        drop = "env HOME=/var/www setpriv --reuid 33 --regid 33 --clear-groups"
        return await self.shell.run(program, input=input, timeout=timeout, interpreter=f"{drop} {interpreter}")


async def test_missing_permission(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    error = await error_of(UnprivilegedShell(shell), replace(case.knob, test="", reload="", workers=""), case.value)
    assert any(text in str(error) for text in ("ermission", "not permitted", "read-only for this user"))
    web1.run("rm -rf /var/tmp/cockpit-33")
    await assert_restored(web1, before)


@contextmanager
def read_only(web1: Host, place: str) -> Iterator[None]:
    web1.run(f"mount --bind {place} {place} && mount -o remount,bind,ro {place}")
    try:
        yield
    finally:
        web1.run(f"umount {place}")


async def test_read_only_file(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    with read_only(web1, str(Path(case.file).parent) if case.file == CONF else case.file):
        error = await error_of(shell, case.knob, case.value)
    assert any(text in str(error) for text in ("ead-only file system", "read-only for this user"))
    await assert_restored(web1, before)


async def test_full_disk_for_backups(web1: Host, shell: Shell, case: KnobCase) -> None:
    """The disk of the backups is full: the change does not start."""
    before, place = web1.run(STATE).stdout, "/root/.local/state/cockpit"
    web1.run(f"mkdir -p {place} && mount -t tmpfs -o size=16k,mode=700 small {place}")
    try:
        web1.run(f"cat /dev/zero >{place}/filler", check=False)
        error = await error_of(shell, case.knob, case.value)
        assert isinstance(error, ChangeRefused)
        assert any(text in str(error) for text in ("No space left on device", "is the disk full?"))
    finally:
        web1.run(f"umount {place}")
    await assert_restored(web1, before)


async def test_rejected_configuration(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    refusing = f"if mkdir {FIRST}; then echo AH00526: no >&2; exit 1; fi; apachectl -t"
    error = await error_of(shell, replace(case.knob, test=refusing), case.value)
    assert isinstance(error, ChangeRolledBack) and "AH00526: no; rolled back" in str(error)
    await assert_restored(web1, before)


async def test_failed_reload(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    reload = f"if mkdir {FIRST}; then echo it is jammed >&2; exit 1; fi; apachectl graceful"
    error = await error_of(shell, replace(case.knob, reload=reload), case.value)
    assert isinstance(error, ChangeRolledBack) and "it is jammed; rolled back and reloaded" in str(error)
    await assert_restored(web1, before)


async def test_server_does_not_start_after_reload(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    reload = f"if mkdir {FIRST}; then service apache2 stop; else service apache2 start; fi"
    error = await error_of(shell, replace(case.knob, reload=reload), case.value, probe_of(LoadPlan(url=web1.url)), 0.5)
    assert "did not become active" in str(error) and not isinstance(error, ChangeRefused)
    await asyncio.to_thread(wait_until_reachable, web1.address, 80)
    await assert_restored(web1, before)


async def test_probe_fails_before_change(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout
    error = await error_of(shell, case.knob, case.value, probe_of(LoadPlan(url=f"{web1.url}/none")))
    assert isinstance(error, ChangeRefused)
    assert "the target fails without the change" in str(error) and "answers 404; nothing was changed" in str(error)
    await assert_restored(web1, before)


async def test_probe_fails_after_change(web1: Host, shell: Shell, case: KnobCase) -> None:
    before = web1.run(STATE).stdout

    async def probe() -> str:
        now = await Tuner().read(shell, case.knob)
        return "" if now == case.before else "it answers 500"

    error = await error_of(shell, case.knob, case.value, probe, 0.5)
    assert isinstance(error, ChangeRolledBack) and "it answers 500; rolled back and reloaded" in str(error)
    await assert_restored(web1, before)


async def test_foreign_edit_during_change_is_kept(web1: Host, shell: Shell, case: KnobCase) -> None:
    editing = f"if mkdir {FIRST}; then {case.foreign}; echo refused >&2; exit 1; fi"
    error = await error_of(shell, replace(case.knob, test=editing), case.value)
    assert isinstance(error, ChangeFailed)
    assert "somebody else" in str(error) and "was not rolled back" in str(error)
    assert web1.run(case.has_foreign, check=False).returncode == 0, "the foreign bytes stay"
    listing = "find /etc/apache2 -newer /tmp/level -name '.*'; ls -A /etc/apache2/mods-available | grep -i cockpit"
    assert web1.run(listing, check=False).stdout == ""
    await assert_answers(web1)


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
    "command": f"kind = \"command\"\nget = 'cat {LEVEL_FILE}'\nset = 'echo \"$1\" >{LEVEL_FILE}'",
}


async def test_killed_cockpit(web1: Host, tmp_path: Path, way: Way) -> None:
    kind = way.kind
    before, case = web1.run(STATE).stdout, CASES[kind]
    head, _, options = PROFILE[kind].partition("\n[[knob.option]]")
    knob = f'[[knob]]\nname = "{case.knob.name}"\nhost = "web1"\n{head}\n'
    knob += 'test = "apachectl -t"\nreload = "apachectl graceful"\n'
    knob += f"[[knob.option]]{options}\n" if options else ""
    arguments = ("set", f"{case.knob.name}={case.value}", "--confirm-within", "300s")
    process = await tune(web1, tmp_path, *arguments, knobs=knob, via=way.reach(web1).via)
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while not (line := await process.stderr.readline()).startswith(b"active"):
            assert line
    assert web1.run(STATE).stdout != before
    process.send_signal(signal.SIGKILL)
    assert (await output_of(process))[0] == -9
    web1.run(TIME_PASSED, check=False)
    await until(lambda: web1.run(f"test -L {LOCK}", check=False).returncode == 1, 60)
    await assert_restored(web1, before)
