"""`cockpit tune PROFILE rounds`: refusals, output, and the active values afterwards."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from cockpit.analysis import warnings
from cockpit.cli.arguments import make_parser
from cockpit.cli.commands import tune as command
from cockpit.model.fold import load as fold_load
from cockpit.profiles.reader import read_profile
from cockpit.recording.library import list_recordings
from cockpit.session import rounds as session_rounds
from tests.cli.conftest import in_process, keyvalue
from tests.cli.terminals import running
from tests.data import data_of
from tests.waiting import wait_until

DATA = data_of(__file__)

BEFORE = "Level=5\n"
PROFILE = '[target]\nurl = "{url}/"\n[load]\nconcurrency = 2\nrequests = 100\n[[host]]\nname = "web1"\n'


@pytest.fixture
def profile(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "conf").write_text(BEFORE)
    file = tmp_path / "p.toml"
    file.write_text(PROFILE.format(url=url) + keyvalue("Level", tmp_path / "conf"))
    return file


@pytest.mark.parametrize(("arguments", "message"), DATA["invalid_rounds_are_refused"])
def test_invalid_rounds_are_refused(profile: Path, arguments: list[str], message: str) -> None:
    done = in_process("tune", "--trust", str(profile), "rounds", *arguments)
    assert done.returncode == (5 if arguments == ["Level=5"] else 2)
    [line] = done.stderr.splitlines()
    assert message in line and list_recordings() == []


def test_interrupted_rounds_restore_old_values(profile: Path, tmp_path: Path) -> None:
    arguments = ("tune", "--trust", profile, "rounds", "Level=7", "--seconds", "60s", "--mirrored")
    with running(*arguments, folder=tmp_path) as command:
        wait_until(lambda: command.poll() is not None or "round 1 of 12: old values" in command.err.read_text())
        command.send_signal(signal.SIGINT)
        assert command.wait() == 130
    first, *_ = err = command.err.read_text().splitlines()
    assert "Level 5 → 7: at most 12 rounds, 29 min" in first and "minimum detectable effect" in first
    assert any("interrupted; the old values are active again" in line for line in err)
    assert (tmp_path / "conf").read_text() == BEFORE


@pytest.mark.parametrize("keep", [True, False])
def test_rounds_print_verdict(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: bool
) -> None:
    """Windows of 0.4 s are always inconclusive, and the generator never waits for a CPU: the output is known."""
    monkeypatch.setattr(fold_load, "saturated", lambda tick: False)
    monkeypatch.setattr(warnings, "CPU_WAIT", 1.0)
    monkeypatch.setattr(command, "check_rounds", lambda rounds, seconds: None)
    monkeypatch.setattr(session_rounds, "UNCOUNTED", 0.0)
    record = tmp_path / "s.cockpit"
    flags = ["--mirrored", "--record", str(record), "--keep" if keep else "--json"]
    options = make_parser().parse_args(["tune", str(profile), "rounds", "Level=7", *flags])
    options.rounds, options.seconds = 2, 0.4
    assert asyncio.run(command.measure_rounds(options, read_profile(profile))) == 0
    out, err = capsys.readouterr()
    assert "round 1 of 2: old values" in err and "round 2 of 2: old values" in err
    assert f"cockpit: recorded in {record}\nreplay it: cockpit replay {record}\n" in err
    if keep:
        assert out.startswith("Level 5 → 7: ") and "2 rounds" in out
        assert "the new values are active: the rounds do not show that they are worse" in err
    else:
        verdict = json.loads(out)
        assert (verdict["design"], verdict["values"]) == ("rounds", [2, 2])
        assert "the old values are active, as at the start" in err
    assert (tmp_path / "conf").read_text() == ("Level=7\n" if keep else BEFORE) and record.exists()


def test_budget_of_a_search_is_checked_before_its_diagnosis(profile: Path) -> None:
    profile.write_text(f"{profile.read_text()}min = 1\nmax = 8\n")
    done = in_process("autopilot", "--trust", str(profile), "--budget", "30s", "--no-tui")
    assert done.returncode == 2 and "too short for the diagnosis, the first 4 evaluations" in done.stderr
    assert list_recordings() == [] and "recorded" not in done.stderr
