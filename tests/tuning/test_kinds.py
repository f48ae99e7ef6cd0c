"""Values on the host (command, choice, sysctl, mount), set by a reload, or secret: read, set, undo, faults."""

import shlex
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused, ChangeRolledBack, CockpitError, HostError
from cockpit.model.knobs import SECRET, Knob, Option, Setting
from cockpit.tuning.applied import ChangeFailed
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.tuning.conftest import ENTRIES, ORIGINAL, SHELL_TEXTS, FaultyShell, Server
from tests.waiting import programs, until


class HostValues:
    """Values of a host: a level, and a mode as one of two files; `fails` makes the next command fail."""

    def __init__(self, server: Server) -> None:
        self.level, self.modes, self.fails = (server.state / name for name in ("level", "modes", "fails"))
        self.level.write_text("5\n")
        self.modes.mkdir()
        (self.modes / "prefork").touch()
        level, modes, fails = (shlex.quote(str(path)) for path in (self.level, self.modes, self.fails))
        guard = f"if [ -e {fails} ]; then echo 'cannot: it is jammed' >&2; rm {fails}; exit 3; fi"
        knob = Knob(name="Level", host="web1", kind="command", test=server.check, reload=server.reload)
        self.command = replace(knob, get=f"cat {level}", set=f'{guard} && printf "%s\\n" "$1" >{level}')
        options = (
            Option(name=name, when=f"test -e {modes}/{name}", set=f"rm -f {modes}/*; {guard} && touch {modes}/{name}")
            for name in ("prefork", "event")
        )
        self.choice = replace(knob, name="Mode", kind="choice", option=tuple(options))

    def assignment(self, kind: str) -> tuple[Knob, str]:
        return (self.choice, "event") if kind == "choice" else (self.command, "7")

    def current(self) -> tuple[str, set[str]]:
        return self.level.read_text().strip(), {path.name for path in self.modes.iterdir()}


BEFORE = ("5", {"prefork"})


@pytest.fixture
def values(server: Server) -> HostValues:
    return HostValues(server)


async def test_command_choice_and_file_are_one_change(values: HostValues, server: Server, shell: FaultyShell) -> None:
    tuner = Tuner()
    level, mode = values.command, values.choice
    assert [await tuner.read(shell, knob) for knob in (level, mode)] == ["5", "prefork"]
    plan = await tuner.prepare(shell, "web1", [(level, "7"), (mode, "event"), (server.knob(), "30")])
    assert plan.cost == "restart"
    hunk = [f"--- {server.prefork}", f"+++ {server.prefork}", "@@ -4 +4 @@"]
    hunk += ['-\tMaxSpareServers\t  "10"  \t', '+\tMaxSpareServers\t  "30"  \t']
    assert plan.diff.splitlines() == [*hunk, "Level on web1", "-5", "+7", "Mode on web1", "-prefork", "+event"]
    assert values.current() == BEFORE and server.changes() == []
    applied = await tuner.apply(shell, "web1", [(level, "7"), (mode, "event"), (server.knob(), "30")])
    assert applied.settings == (
        Setting(knob="Level", old="5", new="7"),
        Setting(knob="Mode", old="prefork", new="event"),
        Setting(knob="MaxSpareServers", old="10", new="30"),
    )
    assert values.current() == ("7", {"event"}) and server.reloads == 1
    undone = await tuner.undo(shell, applied)
    assert values.current() == BEFORE and server.bytes() == ORIGINAL and server.reloads == 2
    assert [setting.new for setting in undone.settings] == ["5", "prefork", "10"]
    assert [past.state for past in await tuner.history(shell, "web1")] == ["applied", "undone"]


async def test_values_are_never_executed(server: Server, shell: FaultyShell) -> None:
    values = [*SHELL_TEXTS[:5], *SHELL_TEXTS[6:13], '"', "\\"]
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


@pytest.mark.parametrize(
    ("changed", "value", "message"),
    [
        *(({}, value, "one line of text") for value in ("", " 7", "7 ", "a  b", "a\nb", "\x1b[31m", "a\tb")),
        ({"values": ("5", "7")}, "6", "Level: '6' is not one of 5, 7"),
        ({"min": 1, "max": 10}, "11", "Level: '11' is out of range; allowed: 1 to 10"),
        ({"min": 1, "unit": "s"}, "0s", "Level: '0s' is out of range; allowed: 1 or more s"),
        ({"max": 10, "unit": "s"}, "many", "Level: 'many' is not a number of s; allowed: at most 10 s"),
        ({"max": 10}, "5s", "Level: '5s' is not a number; allowed: at most 10"),
    ],
)
async def test_invalid_value_is_refused(
    values: HostValues, shell: FaultyShell, changed: dict[str, object], value: str, message: str
) -> None:
    with pytest.raises(ChangeRefused) as refused:
        await Tuner().apply(shell, "web1", [(replace(values.command, **changed), value)])
    assert str(refused.value).startswith("Level: ") and message in str(refused.value)
    assert values.current() == BEFORE


async def test_unreadable_value_is_not_changed(values: HostValues, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRefused, match="Mode: 'worker' is not one of prefork, event"):
        await Tuner().apply(shell, "web1", [(values.choice, "worker")])
    (values.modes / "prefork").unlink()
    with pytest.raises(ChangeRefused, match="Mode: web1: none of its options is active"):
        await Tuner().apply(shell, "web1", [(values.choice, "event")])
    values.level.write_text("5\n6\n")
    with pytest.raises(ChangeRefused, match="Level: web1: the command prints 2 lines"):
        await Tuner().read(shell, values.command)
    values.level.unlink()
    with pytest.raises(ChangeRefused, match=r"Level: web1: .*No such file"):
        await Tuner().read(shell, values.command)


async def test_value_corrected_by_host_is_noted(values: HostValues, shell: FaultyShell) -> None:
    corrects = replace(values.command, set=f"echo $(($1 / 10 * 10)) >{shlex.quote(str(values.level))}")
    applied = await Tuner().apply(shell, "web1", [(corrects, "77")])
    assert applied.notes == ("web1 corrected Level 77 to 70",)
    assert applied.settings == (Setting(knob="Level", old="5", new="70"),)
    with pytest.raises(ChangeRolledBack, match="it is still 70: the host ignored 79"):
        await Tuner().apply(shell, "web1", [(corrects, "79")])


# The commands of a change of such a knob, in order.
GET, OPEN, ARM, GET_AGAIN, SET, GOT, TEST, RELOAD, READ_BACK, CONFIRM = STEPS = range(1, 11)


# The kinds differ in SET only.
@pytest.mark.parametrize(("kind", "step"), [*(("command", step) for step in STEPS[ARM - 1 : -1]), ("choice", SET)])
async def test_change_is_rolled_back_after_disconnection(
    values: HostValues, server: Server, shell: FaultyShell, kind: str, step: int
) -> None:
    """The connection returns at once, or stays lost until the lease has expired."""
    assignment = values.assignment(kind)
    shell.cut_after.add(step)
    with pytest.raises(HostError if step <= ARM else ChangeRolledBack):
        await Tuner().apply(shell, "web1", [assignment])
    assert values.current() == BEFORE and not server.locked()
    assert step < SET or "begun-0" in shell.commands[SET - 1][0]
    shell.count = 0
    shell.lose_connection_at(step, after=True)
    with pytest.raises(HostError if step <= ARM else ChangeFailed):
        await Tuner(timeouts=Timeouts(reach=0.05)).apply(shell, "web1", [assignment])
    server.expire()
    await until(lambda: not server.locked())
    assert values.current() == BEFORE and server.entries() == ENTRIES


@pytest.mark.parametrize("kind", ["command", "choice"])
async def test_change_with_failing_command_is_rolled_back(
    values: HostValues, server: Server, shell: FaultyShell, kind: str
) -> None:
    values.fails.touch()
    knob, value = values.assignment(kind)
    with pytest.raises(ChangeRolledBack, match=r"failed: cannot: it is jammed; rolled back"):
        await Tuner().apply(shell, "web1", [(knob, value)])
    assert values.current() == BEFORE and server.reloads == 0
    for failing, message in (("test", "failed: .*rolled back"), ("reload", "fails with the original files too")):
        with pytest.raises(CockpitError, match=message):
            await Tuner().apply(shell, "web1", [(replace(knob, **{failing: "exit 9"}), value)])
        assert values.current() == BEFORE and not server.locked()


async def test_foreign_value_is_kept(values: HostValues, server: Server, shell: FaultyShell) -> None:
    assignment = values.command, "7"
    shell.before[GET_AGAIN] = lambda: values.level.write_text("6\n")
    with pytest.raises(CockpitError, match="Level: set to 6 elsewhere after cockpit read it"):
        await Tuner().apply(shell, "web1", [assignment])
    assert values.level.read_text() == "6\n" and not server.locked()
    shell.before = {shell.count + TEST: lambda: values.level.write_text("9\n")}
    with pytest.raises(ChangeFailed, match="Level was not rolled back: set to 9 elsewhere"):
        await Tuner().apply(shell, "web1", [(replace(values.command, test="exit 9"), "7")])
    assert values.level.read_text() == "9\n" and not server.locked()
    applied = await Tuner().apply(shell, "web1", [assignment])
    values.level.write_text("8\n")
    with pytest.raises(ChangeRefused, match="Level is 8 on web1, not 7: modified elsewhere"):
        await Tuner().undo(shell, applied)


@pytest.mark.parametrize("key", ["vm.swappiness", "vm/swappiness"])
def test_sysctl_is_read_from_proc(key: str) -> None:
    knob = Knob(name="s", host="web1", kind="sysctl", key=key)
    message = subprocess.run(["sh", "-c", knob.getter()], capture_output=True, check=True).stdout
    assert message.split() == Path("/proc/sys/vm/swappiness").read_bytes().split()


@pytest.mark.parametrize("key", ["../../etc/passwd", "a b", "$(rm)", "-x", ""])
def test_invalid_sysctl_name_is_refused(key: str) -> None:
    with pytest.raises(ChangeRefused, match="is not a sysctl name"):
        Knob(name="s", host="web1", kind="sysctl", key=key).getter()


@pytest.mark.parametrize("program", programs("sh", "busybox sh"))
def test_mount_option_is_read(program: str) -> None:
    """Compared with the options of /proc in /proc/self/mountinfo."""
    knob = Knob(name="m", host="web1", kind="mount", mount="/proc/")
    command = (*program.split(), "-c")
    message = subprocess.run([*command, knob.getter()], capture_output=True, check=True).stdout.decode().strip()
    rows = [row.split() for row in Path("/proc/self/mountinfo").read_text().splitlines()]
    options = [row[5].split(",") for row in rows if row[4] == "/proc"][-1]
    assert message == next((option for option in ("noatime", "relatime") if option in options), "strictatime")
    nowhere = Knob(name="m", host="web1", kind="mount", mount="/nowhere at all")
    done = subprocess.run([*command, nowhere.getter()], capture_output=True)
    assert done.returncode == 1 and b"not a mount point" in done.stderr


@pytest.mark.lab
@pytest.mark.parametrize("mount", ["mount", "busybox mount"])
def test_the_access_time_of_a_read_only_mount_leaves_its_file_system_writable(mount: str, tmp_path: Path) -> None:
    """A read-only bind mount of a directory of a file system that is mounted elsewhere too."""
    whole, part = tmp_path / "whole", tmp_path / "part"
    setter = Knob(name="m", host="web1", kind="mount", mount=str(part)).setter("noatime")
    steps = f"""
        mkdir {whole} {part} && mount -t tmpfs whole {whole} && mkdir {whole}/part &&
        mount --bind {whole}/part {part} &&
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
    knob = Knob(name="connections", host="web1", kind="mariadb", file=str(file), section="mysqld")
    knob = replace(knob, directive="max_connections", test=f"! grep 60 '{file}' >&2")
    knob = replace(knob, get=f"cat '{level}'", set=f"echo \"$1\" | tee -a '{calls}' >'{level}'")
    with pytest.raises(ChangeRolledBack, match="max_connections = 60"):
        await Tuner().apply(shell, "web1", [(knob, "60")])
    assert not calls.exists(), "the running server never had the value"
    assert (file.read_text(), level.read_text()) == ("[mysqld]\nmax_connections = 50\n", "50\n")
    applied = await Tuner().apply(shell, "web1", [(knob, "70")])
    assert (file.read_text(), level.read_text()) == ("[mysqld]\nmax_connections = 70\n", "70\n")
    await Tuner().undo(shell, applied)
    assert (file.read_text(), calls.read_text()) == ("[mysqld]\nmax_connections = 50\n", "70\n50\n")
    with pytest.raises(CockpitError, match="connections: set to 66 elsewhere after cockpit read it"):
        await Tuner().apply(shell, "web1", [(replace(knob, test=f"echo 66 >'{level}'"), "70")])
    assert level.read_text() == "66\n"


@pytest.fixture
def reloaded(server: Server) -> Knob:
    """A file value that a reload activates and a command reads: the running server has that of the last reload."""
    file, level = server.directory / "service.env", server.state / "level"
    file.write_text("WORKERS=2\n")
    level.write_text("2\n")
    knob = Knob(name="workers", host="web1", kind="keyvalue", file=str(file), key="WORKERS")
    return replace(knob, get=f"cat '{level}'", reload=f"sed -n s/WORKERS=//p '{file}' >'{level}'")


async def test_value_is_active_after_reload_and_can_be_undone(
    reloaded: Knob, server: Server, shell: FaultyShell
) -> None:
    tuner, late = Tuner(), shlex.quote(str(server.state / "late"))
    delayed_get = f"if [ -e {late} ]; then rm {late}; echo 2; else {reloaded.get}; fi"
    # It may become active a moment later.
    for knob in (reloaded, replace(reloaded, get=delayed_get, reload=f"{reloaded.reload}; touch {late}")):
        applied = await tuner.apply(shell, "web1", [(knob, "8")])
        assert await tuner.read(shell, reloaded) == "8" and applied.outcome == "applied"
        assert applied.settings == (Setting(knob="workers", old="2", new="8"),)
        await tuner.undo(shell, applied)
        assert (server.directory / "service.env").read_text() == "WORKERS=2\n" and await tuner.read(
            shell, reloaded
        ) == "2"
    assert not (server.state / "late").exists()


async def test_value_that_reload_ignores_or_corrects(reloaded: Knob, server: Server, shell: FaultyShell) -> None:
    with pytest.raises(ChangeRolledBack, match="workers: it is still 2: the host ignored 8"):
        await Tuner(timeouts=Timeouts(effect=0.5)).apply(shell, "web1", [(replace(reloaded, reload="true"), "8")])
    assert (server.directory / "service.env").read_text() == "WORKERS=2\n"
    capped_at_4 = replace(reloaded, reload=reloaded.reload.replace("s/WORKERS=//p", "'s/WORKERS=.*/4/p'"))
    applied = await Tuner().apply(shell, "web1", [(capped_at_4, "8")])
    assert applied.notes == ("web1 corrected workers 8 to 4",)


OLD, NEW = "old-T0ken-5b1f", "new-T0ken-9c2e"


def secret(server: Server, **changed: object) -> Knob:
    token = server.state / "token"
    if not token.exists():
        token.write_text(f"{OLD}\n")
    file = shlex.quote(str(token))
    get, set_ = f"{listing(server)}; cat {file}", f'{listing(server)}; printf "%s\\n" "$1" >{file}'
    values = {"name": "Token", "host": "web1", "kind": "command", "secret": True, "get": get, "set": set_}
    return Knob(**(values | changed))  # type: ignore[arg-type]


def listing(server: Server) -> str:
    """A command that appends the command lines of all processes to a file."""
    return f"cat /proc/[0-9]*/cmdline 2>/dev/null >>{shlex.quote(str(server.root / 'listing'))}"


async def test_secret_value_is_in_no_command_line(server: Server, shell: FaultyShell) -> None:
    applied = await Tuner().apply(shell, "web1", [(secret(server), NEW)])
    assert (server.state / "token").read_text() == f"{NEW}\n"
    await Tuner().undo(shell, applied)
    with pytest.raises(ChangeRolledBack):
        await Tuner().apply(shell, "web1", [(secret(server, test=f"{listing(server)}; exit 1"), NEW)])
    assert (server.state / "token").read_text() == f"{OLD}\n"
    listed = (server.root / "listing").read_bytes()
    assert b"/cmdline" in listed and b"T0ken" not in listed
    assert not any("T0ken" in program for program, _ in shell.commands)


@pytest.mark.parametrize(
    "changed",
    [
        {"values": (OLD, "other")},
        {"set": 'echo "cannot set $1" >&2; exit 3'},
        {"set": "true"},
        {"test": f"echo 'bad value {NEW}' >&2; exit 1"},
        {"reload": f"echo 'bad value {NEW}' >&2; exit 1"},
    ],
)
async def test_secret_value_is_in_no_error(server: Server, shell: FaultyShell, changed: dict[str, object]) -> None:
    with pytest.raises(CockpitError) as failed:
        await Tuner().apply(shell, "web1", [(secret(server, **changed), NEW)])
    assert "T0ken" not in str(failed.value) and "Token" in str(failed.value)


async def test_history_diff_and_refused_undo_hide_secret_value(server: Server, shell: FaultyShell) -> None:
    assignments = [(secret(server), NEW), (server.keep_alive(secret=True), "${S0me_T0ken}")]
    plan = await Tuner().prepare(shell, "web1", assignments)
    assert "T0ken" not in plan.diff and SECRET in plan.diff
    applied = await Tuner().apply(shell, "web1", assignments)
    (past,) = await Tuner().history(shell, "web1")
    assert {(s.old, s.new) for s in past.facts.settings} == {(SECRET, SECRET)}
    (change,) = server.changes()
    assert "T0ken" not in (change / "facts").read_text() + (change / "owner").read_text()
    assert "T0ken" not in " ".join(map(str, applied.notes))
    (server.state / "token").write_text("third-T0ken\n")
    with pytest.raises(ChangeRefused, match="modified elsewhere") as failed:
        await Tuner().undo(shell, applied)
    assert "T0ken" not in str(failed.value)
