"""`cockpit tune PROFILE rounds`: refusals, output, and the active values afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.analysis import warnings
from cockpit.cli import tune as command
from cockpit.model import fold_load
from cockpit.profiles.reader import read_profile
from cockpit.session import rounds as session_rounds
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit
from tests.servers import http_server

BEFORE = "Level=5\n"
PROFILE = """\
[target]
url = "{url}/"
[load]
concurrency = 2
requests = 100
[[host]]
name = "web1"
[[knob]]
name = "Level"
host = "web1"
kind = "keyvalue"
file = "{file}"
key = "Level"
reload = "true"
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


@pytest.fixture
def profile(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "conf").write_text(BEFORE)
    file = tmp_path / "p.toml"
    file.write_text(PROFILE.format(url=url, file=tmp_path / "conf"))
    return file


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: NAME=VALUE"),
        (("Level",), "tune rounds: 'Level': write NAME=VALUE"),
        (("Other=1",), "unknown knob 'Other'; the profile has: Level"),
        (("Level=7", "--dry-run"), "unrecognized arguments: --dry-run"),
        (("Level=7", "--rounds", "3"), "3 rounds: must be 4 to 50"),
        (("Level=7", "--seconds", "5s"), "5 s: a window must last 15 s or more"),
    ],
)
def test_invalid_rounds_are_refused(profile: Path, arguments: tuple[str, ...], message: str) -> None:
    done = cockpit("tune", "--trust", str(profile), "rounds", *arguments)
    assert done.returncode == 2 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_unchanged_value_is_refused(profile: Path) -> None:
    done = cockpit("tune", "--trust", str(profile), "rounds", "Level=5")
    assert done.returncode == 5 and "these values are already active" in done.stderr


def test_interrupted_rounds_restore_old_values(profile: Path, tmp_path: Path) -> None:
    arguments = ("tune", "--trust", str(profile), "rounds", "Level=7", "--seconds", "60s", "--mirrored")
    with subprocess.Popen((*COCKPIT, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "Level 5 → 7: at most 12 rounds, 29 min" in line and "minimum detectable effect" in line
        while "round 1 of 12: old values" not in line:
            assert line, "ended before the first window"
            line = process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted; the old values are active again" in err
    assert (tmp_path / "conf").read_text() == BEFORE


@pytest.mark.parametrize("keep", [True, False])
def test_rounds_print_verdict_and_active_values(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keep: bool
) -> None:
    """Windows of 0.4 s are always inconclusive, and the generator never waits for a CPU: the output is known."""
    monkeypatch.setattr(fold_load, "saturated", lambda tick: False)
    monkeypatch.setattr(warnings, "CPU_WAIT", 1.0)
    monkeypatch.setattr(command, "check_rounds", lambda rounds, seconds: None)
    monkeypatch.setattr(session_rounds, "UNCOUNTED", 0.0)
    record = tmp_path / "s.cockpit"
    options = Namespace(names=["Level=7"], rounds=2, seconds=0.4, ssh_config=None, record=record, json=not keep)
    options.action, options.dry_run = "rounds", None
    options.confirm_within = options.no_probe = None
    options.seed, options.mirrored, options.keep = 1, True, keep
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
