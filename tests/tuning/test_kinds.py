"""Knobs with a value on the running host (command, choice, sysctl, mount): read, set, undo, faults at every step."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, HostError
from cockpit.model.knobs import Knob, Option, Setting
from cockpit.tuning import live
from cockpit.tuning.applied import AppliedChange, ChangeFailed
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, FaultyShell, Server, until


class HostValues:
    """Values of a host: a level, and a mode as one of two files; `fails` makes the next command fail."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.level = server.state / "level"
        self.level.write_text("5\n")
        self.modes = server.state / "modes"
        self.modes.mkdir()
        (self.modes / "prefork").touch()
        self.fails = server.state / "fails"

    def command(self, **changed: object) -> Knob:
        file = shlex.quote(str(self.level))
        return self._knob(
            "Level", kind="command", get=f"cat {file}", set=f'{self._guard} && printf "%s\\n" "$1" >{file}', **changed
        )

    def choice(self, **changed: object) -> Knob:
        def option(name: str, other: str) -> Option:
            directory = shlex.quote(str(self.modes))
            return Option(
                name=name,
                when=f"test -e {directory}/{name}",
                set=f"rm -f {directory}/{other}; {self._guard} && touch {directory}/{name}",
            )

        return self._knob(
            "Mode", kind="choice", option=(option("prefork", "event"), option("event", "prefork")), **changed
        )

    @property
    def _guard(self) -> str:
        fails = shlex.quote(str(self.fails))
        return f"if [ -e {fails} ]; then echo 'cannot: it is jammed' >&2; rm {fails}; exit 3; fi"

    def _knob(self, name: str, **given: object) -> Knob:
        shared = {"name": name, "host": "web1", "test": self.server.check, "reload": self.server.reload}
        return Knob(**(shared | given))  # type: ignore[arg-type]

    def current(self) -> tuple[str, set[str]]:
        return self.level.read_text().strip(), {path.name for path in self.modes.iterdir()}


BEFORE = ("5", {"prefork"})


@pytest.fixture
def host_values(server: Server) -> HostValues:
    return HostValues(server)


async def test_command_choice_and_file_are_one_change(
    host_values: HostValues, server: Server, shell: FaultyShell
) -> None:
    tuner = Tuner()
    level, mode = host_values.command(), host_values.choice()
    assert [await tuner.read(shell, knob) for knob in (level, mode)] == ["5", "prefork"]
    plan = await tuner.prepare(shell, "web1", [(level, "7"), (mode, "event"), (server.knob(), "30")])
    assert plan.cost == "restart"
    assert plan.diff.splitlines() == [
        f"--- {server.prefork}",
        f"+++ {server.prefork}",
        "@@ -4 +4 @@",
        '-\tMaxSpareServers\t  "10"  \t',
        '+\tMaxSpareServers\t  "30"  \t',
        "Level on web1",
        "-5",
        "+7",
        "Mode on web1",
        "-prefork",
        "+event",
    ]
    assert host_values.current() == BEFORE and server.changes() == []
    applied = await tuner.apply(shell, "web1", [(level, "7"), (mode, "event"), (server.knob(), "30")])
    assert applied.settings == (
        Setting(knob="Level", old="5", new="7"),
        Setting(knob="Mode", old="prefork", new="event"),
        Setting(knob="MaxSpareServers", old="10", new="30"),
    )
    assert host_values.current() == ("7", {"event"}) and server.reloads == 1
    undone = await tuner.undo(shell, applied)
    assert host_values.current() == BEFORE and server.bytes() == ORIGINAL and server.reloads == 2
    assert [setting.new for setting in undone.settings] == ["5", "prefork", "10"]
    assert [past.state for past in await tuner.history(shell, "web1")] == ["applied", "undone"]


async def test_values_are_never_executed(server: Server, shell: FaultyShell) -> None:
    values = ["$(touch pwned)", "`touch pwned`", "';touch pwned;'", '"', "it's", "-rf", "a b", "*", "--", "%s", "é"]
    values.append("\\")
    levels = [server.state / f"level{number}" for number in range(len(values))]
    knobs = []
    for level in levels:
        level.write_text("5\n")
        file = shlex.quote(str(level))
        knob = {"get": f"cat {file}", "set": f'printf "%s\\n" "$1" >{file}', "reload": server.reload}
        knobs.append(Knob(name=level.name, host="web1", kind="command", **knob))
    await Tuner().apply(shell, "web1", list(zip(knobs, values, strict=True)))
    assert [level.read_text() for level in levels] == [f"{value}\n" for value in values]
    assert [await Tuner().read(shell, knob) for knob in knobs] == values
    assert not server.pwned()


@pytest.mark.parametrize("value", ["", " 7", "7 ", "a  b", "a\nb", "\x1b[31m", "a\tb"])
async def test_value_that_is_not_one_plain_line_is_refused(
    host_values: HostValues, shell: FaultyShell, value: str
) -> None:
    with pytest.raises(ChangeRefused, match=r"Level: .*one line of text"):
        await Tuner().apply(shell, "web1", [(host_values.command(), value)])
    assert host_values.current() == BEFORE


@pytest.mark.parametrize(
    ("changed", "value", "message"),
    [
        ({"values": ("5", "7")}, "6", "Level: '6' is not one of 5, 7"),
        ({"min": 1, "max": 10}, "11", "Level: '11' is out of range; allowed: 1 to 10"),
        ({"min": 1, "unit": "s"}, "0s", "Level: '0s' is out of range; allowed: 1 or more s"),
        ({"max": 10, "unit": "s"}, "many", "Level: 'many' is not a number of s; allowed: at most 10 s"),
        ({"max": 10}, "5s", "Level: '5s' is not a number; allowed: at most 10"),
    ],
)
async def test_value_outside_profile_limits_is_refused(
    host_values: HostValues, shell: FaultyShell, changed: dict[str, object], value: str, message: str
) -> None:
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(shell, "web1", [(host_values.command(**changed), value)])
    assert str(refused.value) == message
    with pytest.raises(ChangeRefused, match="Mode: 'worker' is not one of prefork, event"):
        await Tuner().apply(shell, "web1", [(host_values.choice(), "worker")])


async def test_unreadable_value_is_not_changed(host_values: HostValues, shell: FaultyShell) -> None:
    (host_values.modes / "prefork").unlink()
    with pytest.raises(ChangeRefused, match="Mode: web1: none of its options is active"):
        await Tuner().apply(shell, "web1", [(host_values.choice(), "event")])
    host_values.level.write_text("5\n6\n")
    with pytest.raises(ChangeRefused, match="Level: web1: the command prints 2 lines"):
        await Tuner().read(shell, host_values.command())
    host_values.level.unlink()
    with pytest.raises(ChangeRefused, match=r"Level: web1: .*No such file"):
        await Tuner().read(shell, host_values.command())


async def test_value_corrected_by_host_is_noted(host_values: HostValues, shell: FaultyShell) -> None:
    knob = host_values.command()
    file = shlex.quote(str(host_values.level))
    corrects = Knob(name="Level", host="web1", kind="command", get=knob.get, set=f"echo $(($1 / 10 * 10)) >{file}")
    applied = await Tuner().apply(shell, "web1", [(corrects, "77")])
    assert applied.notes == ("web1 corrected Level 77 to 70",)
    assert applied.settings == (Setting(knob="Level", old="5", new="70"),)
    with pytest.raises(ChangeRolledBack, match="it is still 70: the host ignored 79"):
        await Tuner().apply(shell, "web1", [(corrects, "79")])


# The commands of a change of such a knob, in order.
GET, OPEN, ARM, GET_AGAIN, SET, GOT, TEST, RELOAD, READ_BACK, CONFIRM = STEPS = range(1, 11)
KINDS: dict[str, Callable[[HostValues], tuple[Knob, str]]] = {
    "command": lambda host_values: (host_values.command(), "7"),
    "choice": lambda host_values: (host_values.choice(), "event"),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_change_runs_these_steps(host_values: HostValues, shell: FaultyShell, kind: str) -> None:
    await Tuner().apply(shell, "web1", [KINDS[kind](host_values)])
    assert shell.count == CONFIRM
    assert "begun-0" in shell.commands[SET - 1][0] and "got-0" in shell.commands[GOT - 1][0]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS[ARM - 1 : CONFIRM - 1])
@pytest.mark.parametrize("kind", KINDS)
async def test_change_is_rolled_back_after_disconnection(
    host_values: HostValues, server: Server, shell: FaultyShell, kind: str, step: int, when: str
) -> None:
    """The connection returns at once, or stays lost until the lease has expired."""
    assignment = KINDS[kind](host_values)
    (shell.cut_before if when == "before" else shell.cut_after).add(step)
    with pytest.raises(HostError if step <= ARM else ChangeRolledBack):
        await Tuner().apply(shell, "web1", [assignment])
    assert host_values.current() == BEFORE and not server.locked()
    shell.count = 0
    shell.cut_before.update(range(step + (when == "after"), 1000))
    with pytest.raises(HostError if step <= ARM else ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [assignment])
    server.expire()
    await until(lambda: not server.locked())
    assert host_values.current() == BEFORE and server.entries() == ENTRIES


@pytest.mark.parametrize("kind", KINDS)
async def test_change_with_failing_command_is_rolled_back(
    host_values: HostValues, server: Server, shell: FaultyShell, kind: str
) -> None:
    knob, value = KINDS[kind](host_values)
    host_values.fails.touch()
    with pytest.raises(ChangeRolledBack, match=r"failed: cannot: it is jammed; rolled back"):
        await Tuner().apply(shell, "web1", [(knob, value)])
    assert host_values.current() == BEFORE and server.reloads == 0
    for failing, message in (("test", "failed: .*rolled back"), ("reload", "fails with the original files too")):
        changed = (
            host_values.command(**{failing: "exit 9"})
            if kind == "command"
            else host_values.choice(**{failing: "exit 9"})
        )
        with pytest.raises(CockpitError, match=message):
            await Tuner().apply(shell, "web1", [(changed, value)])
        assert host_values.current() == BEFORE and not server.locked()


async def test_foreign_value_before_set_fails_change(
    host_values: HostValues, server: Server, shell: FaultyShell
) -> None:
    shell.before[GET_AGAIN] = lambda: host_values.level.write_text("6\n")
    with pytest.raises(CockpitError, match="Level: somebody else set it to 6 after cockpit read it"):
        await Tuner().apply(shell, "web1", [(host_values.command(), "7")])
    assert host_values.level.read_text() == "6\n" and not server.locked()


async def test_foreign_value_after_set_is_kept(host_values: HostValues, server: Server, shell: FaultyShell) -> None:
    shell.before[TEST] = lambda: host_values.level.write_text("6\n")
    with pytest.raises(ChangeFailed, match="Level was not rolled back: somebody else set it to 6"):
        await Tuner().apply(shell, "web1", [(host_values.command(test="exit 9"), "7")])
    assert host_values.level.read_text() == "6\n" and not server.locked()
    with pytest.raises(ChangeRefused, match="Level is 8 on web1, not 7: somebody else changed it since"):
        await Tuner().undo(shell, await _applied(host_values, shell))


async def _applied(host_values: HostValues, shell: FaultyShell) -> AppliedChange:
    applied = await Tuner().apply(shell, "web1", [(host_values.command(), "7")])
    host_values.level.write_text("8\n")
    return applied


@pytest.mark.parametrize("key", ["vm.swappiness", "vm/swappiness"])
def test_sysctl_is_read_from_proc(key: str) -> None:
    knob = Knob(name="s", host="web1", kind="sysctl", key=key)
    message = subprocess.run(["sh", "-c", live.getter(knob)], capture_output=True, check=True).stdout
    assert message.split() == Path("/proc/sys/vm/swappiness").read_bytes().split()


@pytest.mark.parametrize("key", ["../../etc/passwd", "a b", "$(rm)", "-x", ""])
def test_invalid_sysctl_name_is_refused(key: str) -> None:
    with pytest.raises(ChangeRefused, match="is not a sysctl name"):
        live.getter(Knob(name="s", host="web1", kind="sysctl", key=key))


@pytest.mark.parametrize("busybox", [False, True])
def test_mount_option_is_read(busybox: bool) -> None:
    """Compared with the options of /proc in /proc/self/mountinfo."""
    shell = ["busybox", "sh"] if busybox else ["sh"]
    if busybox and not any(os.access(f"{directory}/busybox", os.X_OK) for directory in os.get_exec_path()):
        pytest.skip("busybox is not there")
    knob = Knob(name="m", host="web1", kind="mount", mount="/proc/")
    message = subprocess.run([*shell, "-c", live.getter(knob)], capture_output=True, check=True).stdout.decode().strip()
    rows = [row.split() for row in Path("/proc/self/mountinfo").read_text().splitlines()]
    options = [row[5].split(",") for row in rows if row[4] == "/proc"][-1]
    assert message == next((option for option in ("noatime", "relatime") if option in options), "strictatime")
    nowhere = Knob(name="m", host="web1", kind="mount", mount="/nowhere at all")
    done = subprocess.run([*shell, "-c", live.getter(nowhere)], capture_output=True)
    assert done.returncode == 1 and b"not a mount point" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("mount", ["mount", "busybox mount"])
def test_the_access_time_of_a_read_only_mount_leaves_its_file_system_writable(mount: str, tmp_path: Path) -> None:
    """A read-only bind mount of a directory of a file system that is mounted elsewhere too."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.mkdir()
    part.mkdir()
    setter = live.setter(Knob(name="m", host="web1", kind="mount", mount=str(part)), "noatime")
    steps = f"""
        mount -t tmpfs whole {whole} && mkdir {whole}/part && mount --bind {whole}/part {part} &&
        mount -o remount,bind,ro {part} || exit 9
        mount() {{ command {mount} "$@"; }}
        change() {{ {setter}
        }}
        for option in strictatime noatime relatime noatime; do change "$option" || exit 8; done
        touch {whole}/written || exit 7
        grep ' {part} ' /proc/self/mountinfo | cut -d ' ' -f 6
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", steps], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ro,noatime\n"), done.stderr


async def test_live_value_is_set_after_file_passes_test(server: Server, shell: FaultyShell) -> None:
    file, level, calls = server.directory / "my.cnf", server.state / "level", server.state / "calls"
    file.write_text("[mysqld]\nmax_connections = 50\n")
    level.write_text("50\n")
    knob = Knob(
        name="connections",
        host="web1",
        kind="mariadb",
        file=str(file),
        section="mysqld",
        directive="max_connections",
        get=f"cat {shlex.quote(str(level))}",
        set=f'echo "$1" | tee -a {shlex.quote(str(calls))} >{shlex.quote(str(level))}',
        test=f"! grep 60 {shlex.quote(str(file))} >&2",
    )
    with pytest.raises(ChangeRolledBack, match="max_connections = 60"):
        await Tuner().apply(shell, "web1", [(knob, "60")])
    assert not calls.exists(), "the running server never had the value"
    assert (file.read_text(), level.read_text()) == ("[mysqld]\nmax_connections = 50\n", "50\n")
    applied = await Tuner().apply(shell, "web1", [(knob, "70")])
    assert (file.read_text(), level.read_text()) == ("[mysqld]\nmax_connections = 70\n", "70\n")
    await Tuner().undo(shell, applied)
    assert (file.read_text(), calls.read_text()) == ("[mysqld]\nmax_connections = 50\n", "70\n50\n")
