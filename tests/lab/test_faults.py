"""Changes on a real Apache over a real sshd: active and undone, rejected, on a full disk, and cut at every step.

tests/tuning tests all faults; here is one for each kind of step. Values are read as Apache reads them.
"""

import asyncio
import itertools
import json
import shlex
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.shell import SH, Completed, Shell
from cockpit.hosts.ssh.shell import SshShell, connect
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRefused, CockpitError, HostError
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, Option, Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.servers.apache.coercions import WHOLE_NUMBERS
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.discovery.probing import probe_of
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Host, Lab
from tests.waiting import until

AVAILABLE = "/etc/apache2/mods-available"
ENABLED = "/etc/apache2/mods-enabled"
CONF, MAIN, PORTS = f"{AVAILABLE}/mpm_prefork.conf", "/etc/apache2/apache2.conf", "/etc/apache2/ports.conf"
LEVEL_FILE = "/tmp/level"
STATE = (
    f"cat {LEVEL_FILE}; cd /etc/apache2 && find . -printf '%p %y %m %u %g %l\\n' | sort; ls -A /tmp /srv/small; "
    f"sha256sum {CONF} {MAIN} {PORTS}"
)
CHANGES = "/root/.local/state/webcockpit/changes"
LOCK = f"{CHANGES}/*/lock"
# Let the confirmation time expire. The guard checks the time once per second: end its sleep.
TIME_PASSED = f"for change in {CHANGES}/*/*/; do [ ! -d $change ] || echo 0 >$change/deadline; done; pkill -x sleep"

APACHE = Knob(name="", host="web1", test="apachectl -t", reload="apachectl graceful", workers="apache2")
PREFORK = replace(APACHE, file=f"{ENABLED}/mpm_prefork.conf", section="IfModule mpm_prefork_module")
SPARE = replace(PREFORK, name="MaxSpareServers", directive="MaxSpareServers")
KEEP_ALIVE = replace(APACHE, name="KeepAlive", file=MAIN, directive="KeepAlive")
EXPIRES = replace(
    APACHE,
    name="Expires",
    kind="choice",
    option=(
        Option(name="off", when=f"! test -e {ENABLED}/expires.load", set="a2dismod -q -f expires"),
        Option(name="on", when=f"test -e {ENABLED}/expires.load", set="a2enmod -q expires"),
    ),
)
LEVEL = Knob(
    name="Level", host="web1", kind="command", get=f"cat {LEVEL_FILE}", set=f'printf "%s\\n" "$1" >{LEVEL_FILE}'
)


WEB1 = HostConfig(name="web1", ssh="web1")


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    fresh_web1.run(f"echo 5 >{LEVEL_FILE}; mkdir -p /srv/small; rm -rf {CHANGES}")
    yield fresh_web1
    fresh_web1.run("rm -rf /srv/small; a2dismod -q -f expires")


@pytest.fixture
async def shell(web1: Host) -> AsyncIterator[Shell]:
    shell = await open_shell(WEB1, web1.ssh_config)
    yield shell
    await shell.close()


def is_unlocked(web1: Host) -> bool:
    return web1.run(f"test -L {LOCK}", check=False).returncode == 1


async def check_restored(web1: Host, before: str) -> None:
    """Check that the host has its original state, no pending change, and an answering server."""
    assert web1.run(STATE).stdout == before and is_unlocked(web1)
    await until(lambda: web1.run("pgrep -x apache2", check=False).returncode == 0)
    with await asyncio.to_thread(urllib.request.urlopen, web1.url, timeout=20) as response:
        assert response.status == 200 and len(response.read()) == 92


def workers(web1: Host) -> set[int]:
    """Return the PIDs of Apache's workers."""
    processes = web1.processes("apache2")
    return {pid for pid, parent in processes.items() if parent in processes}


async def test_change_is_active_in_new_workers_and_is_undone(web1: Host, shell: Shell) -> None:
    await until(lambda: len(workers(web1)) >= 5)
    original, before, old = web1.run(f"cat {CONF}").stdout, web1.run(STATE).stdout, workers(web1)
    least = replace(PREFORK, name="MinSpareServers", directive="MinSpareServers")
    applied = await Tuner().apply(shell, "web1", [(SPARE, "30"), (least, "20")])
    assert applied.settings == (
        Setting(knob="MaxSpareServers", old="10", new="30"),
        Setting(knob="MinSpareServers", old="5", new="20"),
    )
    expected = original.replace("MaxSpareServers         10", "MaxSpareServers         30")
    expected = expected.replace("MinSpareServers         5", "MinSpareServers         20")
    assert web1.run(f"cat {CONF}").stdout == expected
    # One that has ended is listed until Apache collects it.
    await until(lambda: not old & workers(web1))
    await until(lambda: len(workers(web1)) >= 20)  # the new MinSpareServers
    assert (await Tuner().undo(shell, applied)).notes == ()
    await check_restored(web1, before)


# `apachectl stop` returns while Apache still runs, and a start would then succeed without effect.
RESTART = "apachectl stop; while pgrep -x apache2 >/dev/null; do sleep 0.02; done; apachectl start"
STOPS_ONCE = "if mkdir /run/first; then service apache2 stop; else service apache2 start; rmdir /run/first; fi"


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (
            [(SPARE, "30"), (KEEP_ALIVE, "${banana}")],
            rf"^MaxSpareServers, KeepAlive: apachectl -t failed: AH00526: Syntax error on line \d+ of {MAIN}: "
            "KeepAlive must be On or Off; rolled back$",
        ),
        # Apache binds the port at the reload, not in its test.
        (
            [(replace(APACHE, name="Listen", directive="Listen", file=PORTS, reload=RESTART), "203.0.113.1:80")],
            r"Listen: apachectl stop; .* failed: .*could not bind.*; rolled back and reloaded",
        ),
        ([(replace(SPARE, reload=STOPS_ONCE, workers=""), "30")], "did not become active"),
    ],
    ids=["test", "reload", "start"],
)
async def test_change_that_apache_rejects_is_rolled_back(
    web1: Host, shell: Shell, assignments: Sequence[tuple[Knob, str]], message: str
) -> None:
    before = web1.run(STATE).stdout
    tuner = Tuner(probe_of(LoadPlan(url=web1.url)), Timeouts(effect=1.0))
    with pytest.raises(CockpitError, match=message) as failed:
        await tuner.apply(shell, "web1", assignments)
    assert not isinstance(failed.value, ChangeRefused)
    await check_restored(web1, before)


SMALL = "mount -t tmpfs -o size=16k,mode=700 small {0} && cp " + CONF + " {0}/mpm.conf; cat /dev/zero >{0}/filler || :"


@pytest.mark.parametrize(
    ("place", "mount", "file", "message"),
    [
        (AVAILABLE, "mount --bind {0} {0} && mount -o remount,bind,ro {0}", CONF, "read-only.*; nothing was changed"),
        ("/srv/small", SMALL, "/srv/small/mpm.conf", "No space left on device"),
        (CHANGES, f"mkdir -p {{0}} && {SMALL}", CONF, "No space left on device"),
    ],
    ids=["read-only", "full configuration", "full backups"],
)
async def test_change_is_refused_by_file_system(
    web1: Host, shell: Shell, place: str, mount: str, file: str, message: str
) -> None:
    before = web1.run(STATE).stdout
    web1.run(mount.format(place))
    listing = f"find {place} -type f -printf '%p %s %m %u %T@\\n' | sort"
    try:
        inside = web1.run(listing).stdout
        with pytest.raises(ChangeRefused, match=message):
            await Tuner().apply(shell, "web1", [(replace(SPARE, file=file), "30")])
        assert web1.run(listing).stdout == inside
    finally:
        web1.run(f"umount {place}")
    await check_restored(web1, before)


class CutShell:
    """A shell whose connection is cut during command number `at`; later commands fail."""

    def __init__(self, shell: SshShell, at: int) -> None:
        self.shell = shell
        self.left = at

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        if self.left == 0:
            raise HostError("web1: unreachable")
        self.left -= 1
        running = asyncio.ensure_future(self.shell.run(program, input=input, timeout=timeout, interpreter=interpreter))
        if self.left:
            return await running
        await asyncio.wait([running], timeout=0.05)
        self.shell._connection.abort()
        await asyncio.gather(running, return_exceptions=True)
        raise HostError("web1: the connection is lost")


async def test_host_rolls_back_change_that_is_cut_at_any_step(web1: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    assignments = [(SPARE, "30"), (EXPIRES, "on"), (LEVEL, "7")]
    # Each check whether the change is active is a step: a few of them are enough.
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)
    before, tuner = web1.run(STATE).stdout, Tuner(timeouts=Timeouts(reach=0.05, lease=30))
    for step in itertools.count(1):
        shell = await connect(WEB1, web1.ssh_config)
        cut = CutShell(shell, step)
        try:
            applied = await tuner.apply(cut, "web1", assignments)
        except CockpitError:
            await shell.close()
        else:
            break
        # A command that outlives its client renews the lease at its end.
        await until(lambda: web1.run(TIME_PASSED, check=False) and is_unlocked(web1))
        if web1.run(STATE).stdout != before:
            # The change stays active only if the confirmation arrived and its response was lost.
            shell = await connect(WEB1, web1.ssh_config)
            newest = (await tuner.history(shell, "web1"))[0]
            assert newest.state == "applied"
            await tuner.undo(shell, await tuner.read_record(shell, "web1", newest))
            await shell.close()
        assert web1.run(STATE).stdout == before
    assert cut.left and step > 9 and web1.run(STATE).stdout != before
    await tuner.undo(shell, applied)
    await shell.close()
    await check_restored(web1, before)


PROFILE = f"""\
[target]
url = "{{url}}"
[load]
concurrency = 8
# Leaves CPU to other processes: less than 400 requests/s.
think_time = "20ms"
workers = 1
[[host]]
name = "web1"
ssh = "web1"
processes = ["apache2"]
[[knob]]
name = "KeepAlive"
host = "web1"
file = "{MAIN}"
directive = "KeepAlive"
values = ["On", "Off"]
test = "apachectl -t"
reload = "apachectl graceful"
workers = "apache2"
"""


@asynccontextmanager
async def changing(web1: Host, folder: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command of cockpit with the profile, until it has changed KeepAlive."""
    profile = folder / "p.toml"
    profile.write_text(PROFILE.format(url=web1.url))
    command, *options = arguments
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cockpit", command, profile, *options, "--trust", "--ssh-config", web1.ssh_config),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        await until(lambda: web1.run(f"grep -qx 'KeepAlive Off' {MAIN}", check=False).returncode == 0)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


SEARCH = ("autopilot", "--json", "--budget", "10m", "--seconds", "2s", "--knob", "KeepAlive=On,Off")
TUNE = ("tune", "set", "KeepAlive=Off", "--confirm-within", "300s")


@pytest.mark.parametrize(
    ("command", "end"),
    [(TUNE, signal.SIGKILL), (TUNE, signal.SIGINT), (SEARCH, signal.SIGKILL)],
    ids=["kill", "interrupt", "kill search"],
)
async def test_change_is_rolled_back_if_cockpit_is_killed(
    web1: Host, tmp_path: Path, command: tuple[str, ...], end: signal.Signals
) -> None:
    before = web1.run(STATE).stdout
    async with changing(web1, tmp_path, *command) as process:
        assert process.stderr is not None
        # The search confirms a change by itself.
        while command is TUNE and not (line := await process.stderr.readline()).startswith(b"active"):
            assert line
        process.send_signal(end)
        await process.communicate()
        assert process.returncode == (-9 if end == signal.SIGKILL else 130)
    web1.run(TIME_PASSED, check=False)
    await until(lambda: is_unlocked(web1))
    await check_restored(web1, before)


async def test_lost_host_fails_one_evaluation_of_a_search(lab: Lab, web1: Host, tmp_path: Path) -> None:
    """The search continues on the host without those values."""
    before = web1.run(STATE).stdout
    async with changing(web1, tmp_path, *SEARCH) as process:
        with lab.web1.unplugged():
            await asyncio.sleep(15)  # longer than the timeout of any command
        output, errors = await process.communicate()
    assert process.returncode == 0, errors
    result = json.loads(output)
    outcomes = [(each["values"]["KeepAlive"], each["outcome"]) for each in result["evaluations"]]
    assert outcomes[:2] == [("On", "measured"), ("Off", "failed")] and result["outcome"] == "nothing"
    web1.run(TIME_PASSED, check=False)
    await until(lambda: is_unlocked(web1))
    await check_restored(web1, before)


BARE = "ErrorLog /dev/null\nListen 80\nServerName x\n"
MODULES = "/usr/lib/apache2/modules"


def test_apache_accepts_invalid_numbers(lab: Lab) -> None:
    """WHOLE_NUMBERS are the directives whose invalid values pass Apache's own test."""
    accepted = set()
    for mpm in ("prefork", "event"):
        modules = {f"mpm_{mpm}": f"mod_mpm_{mpm}", "http2": "mod_http2"}
        loads = "".join(f"LoadModule {name}_module {MODULES}/{file}.so\n" for name, file in modules.items())
        head = f"{loads}{BARE}"
        script = f"""
            printf %s {shlex.quote(head)} >/tmp/{mpm}
            for name in {" ".join(sorted(WHOLE_NUMBERS))}; do
                for value in banana 12x; do
                    if apache2 -t -f /tmp/{mpm} -c "$name $value" 2>/dev/null; then echo $name; fi
                done
            done
        """
        accepted |= set(lab.web1.run(script).stdout.split())
    assert accepted == WHOLE_NUMBERS


TEXTS = (
    b"\t DirectoryIndex \t one  two\t\r\n",
    b"DirectoryIndex 'one two'\n",
    b"DirectoryIndex one\n# DirectoryIndex two\ndirectoryindex three\n",
    b"Directory\\\nIndex one\\\r\n\\\n  two \\\n\n# \\\nDirectoryIndex three\n",
    b"DirectoryIndex one \\\\\n\ntwo\n",
    b'DirectoryIndex "a \\"b\\" c\\\\"\n',
    b"DirectoryIndex one",
)


def test_parsed_value_matches_apache(lab: Lab) -> None:
    """Compare with Apache's dump of the parsed configuration."""
    loaded = {"mpm_prefork_module": "mpm_prefork", "info_module": "info", "dir_module": "dir"}
    head = "".join(f"LoadModule {name} {MODULES}/mod_{file}.so\n" for name, file in loaded.items()) + BARE
    changed = [GRAMMARS["apache"].change(text, "DirectoryIndex", b"changed") for text in TEXTS]
    for raw in (*TEXTS, *changed):
        octal = "".join(f"\\{byte:03o}" for byte in raw)
        lab.web1.run(f"printf %s {shlex.quote(head)} >/tmp/conf; printf '{octal}' >>/tmp/conf")
        dump = lab.web1.run("apache2 -t -f /tmp/conf -D DUMP_CONFIG").stdout.splitlines()
        values = [line.partition(" ")[2] for line in dump if line.lower().startswith("directoryindex ")]
        assert values[-1] == GRAMMARS["apache"].read(raw, "DirectoryIndex").value
