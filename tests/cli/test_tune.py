"""`cockpit tune`: history, undo by name, inactive values."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cockpit.cli.arguments import make_parser
from cockpit.cli.commands.watch import _undo_command
from tests.cli.conftest import in_process, keyvalue
from tests.data import data_of

DATA = data_of(__file__)


@pytest.mark.parametrize("line", ["tune P set --dry-urn A=1", "tune P set --dry-run A=1 -x"])
def test_unknown_flag_is_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(line.split())
    errors = capsys.readouterr().err
    assert ended.value.code == 2 and "unrecognized arguments: -" in errors and "tune --help" in errors


PROFILE = DATA["profile"]
LEVEL, MODE = b"# levels\nLevel = 1\n", b"Mode=slow # by hand"


class TunedHost:
    """Configuration files of a host, and the `tune` command for them."""

    def __init__(self, root: Path) -> None:
        self.level, self.mode = root / "level.conf", root / "mode.conf"
        self.level.write_bytes(LEVEL)
        self.mode.write_bytes(MODE)
        (root / "limit.conf").write_bytes(b"Limit = 1\n")
        self.profile = root / "p.toml"
        knobs = [keyvalue("Level", self.level), keyvalue("Mode", self.mode)]
        limit = keyvalue("Limit", root / "limit.conf", 'action = "restart"')
        self.profile.write_text("".join((PROFILE, *knobs, limit)))

    @property
    def files(self) -> tuple[bytes, bytes]:
        return self.level.read_bytes(), self.mode.read_bytes()

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        probe = ("--no-probe",) if arguments[0] in ("set", "undo") else ()
        done = in_process("tune", "--trust", self.profile, *arguments, *probe)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def set(self, *values: str) -> str:
        """Set the values and return the name of the change."""
        self.run("set", *values)
        return self.history()[0]["name"]

    def history(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run("history", "--json").stdout)
        return found

    def states(self) -> list[str]:
        return [change["state"] for change in self.history()]


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TunedHost:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return TunedHost(tmp_path)


def test_repeated_undo_restores_original_bytes(tuned: TunedHost) -> None:
    states = [tuned.files]
    for values in (["Level=2"], ["Mode=fast"], ["Level=3", "Mode=faster"]):
        tuned.run("set", *values)
        states.append(tuned.files)
    names = [row["name"] for row in tuned.history()]
    for before in reversed(states[:-1]):
        tuned.run("undo")
        assert tuned.files == before
    assert tuned.files == (LEVEL, MODE)
    rows = tuned.history()
    assert [row["undoes"] for row in rows[:3]] == list(reversed(names))
    assert [(row["name"], row["state"]) for row in rows[3:]] == [(name, "undone") for name in names]
    assert [row["undone_by"] for row in rows[3:]] == [row["name"] for row in reversed(rows[:3])]
    done = tuned.run("undo", code=5)
    assert done.stderr == "cockpit: nothing to undo: this user has no applied change on web1\n"
    assert tuned.files == (LEVEL, MODE)


def test_undo_by_change_name(tuned: TunedHost) -> None:
    level, mode = tuned.set("Level=2"), tuned.set("Mode=fast")
    line = tuned.run("history").stdout.splitlines()[1]
    assert line.startswith(level) and "Level 1 → 2" in line and line.endswith("applied")
    tuned.run("undo", level)
    assert tuned.files == (LEVEL, MODE.replace(b"slow", b"fast"))
    shown = tuned.run("history").stdout.splitlines()
    assert f"undo {level}: Level 2 → 1" in shown[0] and shown[2].endswith(f"undone by {shown[0].split()[0]}")
    tuned.run("undo")
    assert tuned.files == (LEVEL, MODE) and tuned.history()[0]["undoes"] == mode
    assert "already undone by" in tuned.run("undo", level, code=5).stderr
    # An undo can be undone by its name, too.
    tuned.run("undo", shown[0].split()[0])
    assert tuned.level.read_bytes() == LEVEL.replace(b"1", b"2")
    assert tuned.states() == ["applied", "applied", "undone", "undone", "applied"]
    assert "unknown change 'nowhere'" in tuned.run("undo", "nowhere", code=2).stderr
    assert "unrecognized arguments: b" in tuned.run("undo", "a", "b", code=2).stderr


def test_unreachable_host_keeps_others_in_history_and_undo(tuned: TunedHost, tmp_path: Path) -> None:
    name = tuned.set("Level=2")
    gone = f'[[host]]\nname = "gone"\nvia = "{tmp_path}/none"\n'
    tuned.profile.write_text(tuned.profile.read_text() + gone + keyvalue("Gone", "/gone", host="gone"))
    listed = tuned.run("history")
    assert listed.stdout.startswith(name) and "cockpit: gone: " in listed.stderr
    assert "the newest change may be on gone; name a change of cockpit tune " in tuned.run("undo", code=5).stderr
    tuned.run("undo", name)
    assert tuned.files == (LEVEL, MODE)
    tuned.profile.write_text(DATA["profile"].replace('name = "web1"', f'name = "web1"\nvia = "{tmp_path}/none"'))
    assert tuned.run("history", code=3).stderr.startswith("cockpit: web1: ")


def test_change_is_undone_by_url_and_host_without_a_profile(tuned: TunedHost) -> None:
    """As `cockpit watch URL` prints it, whose knobs are in no profile."""
    name = tuned.set("Level=2")
    options = make_parser().parse_args(["watch", "http://ada:secret@127.0.0.1:9/", "--host", "."])
    command, *words = shlex.split(_undo_command(options))
    assert command == "cockpit" and "secret" not in " ".join(words)
    assert "no host; add --host" in in_process("tune", "http://127.0.0.1:9/", "history").stderr
    done = in_process(*words, name, "--no-probe")
    assert done.returncode == 0 and f"{name} undone" in done.stderr, done.stderr
    assert tuned.files == (LEVEL, MODE)
    refused = tuned.run("undo", "--host", "web2", code=2).stderr
    assert "--host: conflicts with the hosts of the profile; leave it out, or name a URL" in refused


def test_older_change_of_same_knob_cannot_be_undone_first(tuned: TunedHost) -> None:
    older, newer = tuned.set("Level=2"), tuned.set("Level=1", "Mode=fast")
    done = tuned.run("undo", older, code=5)
    assert done.stderr == f"cockpit: {older}: {newer} changed Level, Mode since; undo {newer} first\n"
    tuned.run("undo", newer)
    tuned.run("undo", older)
    assert tuned.files == (LEVEL, MODE)


def test_manually_reverted_change_does_not_block_undo(tuned: TunedHost) -> None:
    tuned.run("set", "Level=2")
    tuned.run("set", "Mode=fast")
    tuned.mode.write_bytes(MODE)
    undone = tuned.run("undo")
    assert "nothing to change" in undone.stderr and "nothing to change" in undone.stdout
    assert tuned.states() == ["applied", "undone", "applied"]
    tuned.run("undo")
    assert tuned.files == (LEVEL, MODE)


def test_value_without_reload_is_reported_as_written(tuned: TunedHost) -> None:
    inactive = "written, not yet active: Limit (run action restart)"
    assert f"cost: written ({inactive})" in tuned.run("set", "Limit=2", "--dry-run").stdout
    done = tuned.run("set", "Limit=2", "--json")
    (result,) = json.loads(done.stdout)
    assert (result["outcome"], result["inactive"], result["cost"]) == ("written", ["Limit"], "written")
    assert result["stages"] == ["armed", "written", "not yet active", "confirmed"]
    *lines, recorded, replay = done.stderr.splitlines()
    assert lines == [*result["stages"], inactive]
    assert recorded.startswith("cockpit: recorded in ") and replay.startswith("replay it: cockpit replay ")
    assert tuned.run("history").stdout.endswith("Limit 1 → 2  written without a reload: Limit\n")
    assert tuned.history()[0]["inactive"] == ["Limit"]
    (mixed,) = json.loads(tuned.run("set", "Limit=3", "Level=2", "--json").stdout)
    assert (mixed["outcome"], mixed["inactive"]) == ("applied", ["Limit"])
    assert inactive in tuned.run("undo").stderr
