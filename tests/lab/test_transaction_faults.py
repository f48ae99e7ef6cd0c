"""Cut connections and killed cockpits, on a real Apache over a real sshd: the host rolls the change back by itself."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from cockpit.hosts.shell import Completed
from cockpit.hosts.ssh import SshShell, connect
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, Option
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.commands import cockpit
from tests.lab.lab import Host
from tests.tuning.conftest import until

CONF = "/etc/apache2/mods-available/mpm_prefork.conf"
SPARE = Knob(
    name="MaxSpareServers",
    host="web1",
    file=CONF,
    section="IfModule mpm_prefork_module",
    directive="MaxSpareServers",
    test="apachectl -t",
    reload="apachectl graceful",
    workers="apache2",
)
ENABLED = "/etc/apache2/mods-enabled"
# A module on or off: a quick choice.
EXPIRES = Knob(
    name="Expires",
    host="web1",
    kind="choice",
    option=(
        Option(name="off", when=f"! test -e {ENABLED}/expires.load", set="a2dismod -q -f expires"),
        Option(name="on", when=f"test -e {ENABLED}/expires.load", set="a2enmod -q expires"),
    ),
    test="apachectl -t",
    reload="apachectl graceful",
    workers="apache2",
)
LEVEL_FILE = "/tmp/level"
LEVEL = Knob(
    name="Level", host="web1", kind="command", get=f"cat {LEVEL_FILE}", set=f'printf "%s\\n" "$1" >{LEVEL_FILE}'
)
KINDS = {"directive": (SPARE, "30"), "choice": (EXPIRES, "on"), "command": (LEVEL, "7")}
STATE = f"cat {LEVEL_FILE}; cd /etc/apache2 && find . -printf '%p %y %m %u %g %l\\n' | sort; sha256sum {CONF}; ls /tmp"
LOCK = "/root/.local/state/cockpit/changes/*/lock"
CHANGES = "/root/.local/state/cockpit/changes/*"
# Let the confirmation time expire. The guard checks the time once per second: end its sleep.
TIME_PASSED = f"for change in {CHANGES}/*/; do [ ! -d $change ] || echo 0 >$change/deadline; done; pkill -x sleep"


# Minimum number of commands of a change: read, write, test, reload, check, confirm.
FEWEST_STEPS = 5


class CutConnection:
    """A shell whose connection is cut after command number `at` has been sent."""

    def __init__(self, shell: SshShell, at: int) -> None:
        self.shell = shell
        self.left = at
        self.calls = 0

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed:  # noqa: ASYNC109
        if self.left == 0:
            raise HostError("web1: unreachable")
        self.calls += 1
        self.left -= 1
        running = asyncio.ensure_future(self.shell.run(command, input=input, timeout=timeout))
        if self.left:
            return await running
        await asyncio.sleep(0)
        self.shell._connection.abort()
        await asyncio.wait([running])
        running.exception()
        raise HostError("web1: the connection is lost")


@pytest.mark.parametrize("kind", KINDS)
async def test_change_is_rolled_back_if_connection_is_cut_at_any_step(
    fresh_web1: Host, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host rolls the change back by itself, for a cut during each command."""
    # Each check whether the change is active is a step: a few of them are enough.
    monkeypatch.setattr("cockpit.tuning.effect.PACE", 0.5)
    fresh_web1.run(f"echo 5 >{LEVEL_FILE}; rm -rf /root/.local/state/cockpit")
    before = fresh_web1.run(STATE).stdout
    knob, value = KINDS[kind]
    for step in itertools.count(1):
        shell = await connect(HostConfig(name="web1", ssh="web1"), fresh_web1.ssh_config)
        cut = CutConnection(shell, step)
        try:
            applied = await Tuner(timeouts=Timeouts(reach=0.05, lease=30)).apply(cut, "web1", [(knob, value)])
        except CockpitError:
            await shell.close()
        else:
            # The number of checks whether the change is active varies.
            break
        fresh_web1.run(TIME_PASSED, check=False)
        await until(lambda: fresh_web1.run(f"test -L {LOCK}", check=False).returncode == 1, 60)
        if fresh_web1.run(STATE).stdout != before:
            # The change may stay active only if the confirmation arrived and its response was lost.
            history = f"cd {CHANGES}; readlink $(ls -t | head -1)/settled"
            assert fresh_web1.run(history).stdout.strip() == "confirmed"
            new_shell = await connect(HostConfig(name="web1", ssh="web1"), fresh_web1.ssh_config)
            newest = (await Tuner().history(new_shell, "web1"))[0]
            await Tuner().undo(new_shell, await Tuner().read_record(new_shell, "web1", newest))
            await new_shell.close()
        assert fresh_web1.run(STATE).stdout == before

    assert cut.left and step > FEWEST_STEPS
    assert fresh_web1.run(STATE).stdout != before
    await Tuner().undo(shell, applied)
    assert fresh_web1.run(STATE).stdout == before
    await shell.close()
    await until(lambda: fresh_web1.run("apachectl -t && pgrep -x apache2", check=False).returncode == 0)


PROFILE = """\
[target]
url = "{url}"
[[host]]
name = "web1"
ssh = "web1"
processes = ["apache2"]
[[knob]]
name = "MaxSpareServers"
host = "web1"
file = "{conf}"
section = "IfModule mpm_prefork_module"
directive = "MaxSpareServers"
test = "apachectl -t"
reload = "apachectl graceful"
min = 1
max = 500
[[action]]
name = "restart"
host = "web1"
command = "echo restart >>/tmp/restarts"
times = 3
"""


def tuning(web1: Host, folder: Path, *arguments: str, knobs: str = "", via: str = "") -> list[str]:
    """Return the arguments of `cockpit tune` for a small profile, or a profile with these knobs, by SSH or `via`."""
    profile = folder / "p.toml"
    head, sign, others = PROFILE.format(url=web1.url, conf=CONF).partition("[[knob]]")
    if via:
        head = head.replace('ssh = "web1"', f"via = '{via}'")
    profile.write_text(head + (knobs or sign + others))
    return ["tune", "--trust", str(profile), *arguments, "--ssh-config", str(web1.ssh_config)]


async def tune(web1: Host, folder: Path, *arguments: str, knobs: str = "", via: str = "") -> asyncio.subprocess.Process:
    """Start `cockpit tune`."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cockpit", *tuning(web1, folder, *arguments, knobs=knobs, via=via)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def output_of(process: asyncio.subprocess.Process, typed: bytes | None = None) -> tuple[int | None, str, str]:
    stdout, stderr = await asyncio.wait_for(process.communicate(typed), 120)
    return process.returncode, stdout.decode(), stderr.decode()


async def test_tune_commands(fresh_web1: Host, tmp_path: Path) -> None:
    original = fresh_web1.run(f"cat {CONF}").stdout
    fresh_web1.run("rm -rf /root/.local/state/cockpit /tmp/restarts")

    async def run(*arguments: str, typed: bytes | None = None) -> tuple[int | None, str, str]:
        if typed is not None:
            return await output_of(await tune(fresh_web1, tmp_path, *arguments), typed)
        done = await asyncio.to_thread(cockpit, *tuning(fresh_web1, tmp_path, *arguments))
        return done.returncode, done.stdout, done.stderr

    code, out, _ = await run("show")
    assert code == 0 and out.splitlines()[1].split()[:6] == ["MaxSpareServers", "10", "web1", "graceful", "1", "to"]
    assert (await run("show", "MaxSpareServers"))[:2] == (0, "10\n")
    code, out, _ = await run("set", "MaxSpareServers=30", "--dry-run")
    assert code == 0 and "+\tMaxSpareServers         30" in out.splitlines() and "cost: graceful" in out
    assert (await run("set", "MaxSpareServers=900"))[0] == 5
    assert (await run("set", "Other=1"))[0] == 2
    assert fresh_web1.run(f"cat {CONF}").stdout == original
    code, out, err = await run("set", "MaxSpareServers=30", "--json")
    assert code == 0 and '"outcome": "applied"' in out and "active\nconfirmed\n" in err
    assert (await run("show", "MaxSpareServers"))[:2] == (0, "30\n")
    row = json.loads((await run("show", "--json"))[1])[0]
    assert {name: row[name] for name in ("name", "value", "allowed", "cost", "problem")} == {
        "name": "MaxSpareServers", "value": "30", "allowed": "1 to 500", "cost": "graceful", "problem": ""
    }  # fmt: skip
    assert (await run("undo"))[0] == 0
    assert fresh_web1.run(f"cat {CONF}").stdout == original
    code, _, err = await run("set", "MaxSpareServers=30", "--confirm-within", "60s", typed=b"no\n")
    assert code == 5 and "it was not confirmed; rolled back and reloaded" in err
    code, _, _ = await run("set", "MaxSpareServers=30", "--confirm-within", "60s", typed=b"y\n")
    assert code == 0
    code, out, _ = await run("history")
    states = [line.rpartition("  ")[2].partition(" by ")[0] for line in out.splitlines()]
    assert code == 0 and states == ["applied", "rolled back", "applied", "undone"]
    newest = json.loads((await run("history", "--json"))[1])[0]
    assert (newest["host"], newest["state"], newest["undoes"]) == ("web1", "applied", None)
    assert newest["settings"] == [{"knob": "MaxSpareServers", "old": "10", "new": "30"}]
    assert (await run("action", "restart"))[:2] == (0, "web1: restart done 3 times\n")
    assert fresh_web1.run("wc -l </tmp/restarts").stdout == "3\n"
    assert (await run("action", "other"))[0] == 2
    assert (await run("action"))[1].startswith("restart  web1  3 x  echo restart")


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
async def test_change_is_rolled_back_if_cockpit_is_killed(
    fresh_web1: Host, tmp_path: Path, end: signal.Signals
) -> None:
    original = fresh_web1.run(f"cat {CONF}").stdout
    process = await tune(fresh_web1, tmp_path, "set", "MaxSpareServers=30", "--confirm-within", "8s")
    assert process.stderr is not None
    async with asyncio.timeout(60):
        while not (line := await process.stderr.readline()).startswith(b"active"):
            assert line
    assert fresh_web1.run(f"cat {CONF}").stdout != original
    os.kill(process.pid, end)
    assert (await output_of(process))[0] == (-9 if end == signal.SIGKILL else 130)
    await until(lambda: fresh_web1.run(f"test -L {LOCK}", check=False).returncode == 1, 60)
    assert fresh_web1.run(f"cat {CONF}").stdout == original
    assert "10" in fresh_web1.run(f"grep MaxSpare {shlex.quote(CONF)} | tail -1").stdout
