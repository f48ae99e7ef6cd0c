"""`cockpit tune PROFILE abab`: what is refused, what is printed, and that the values of before come back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.analysis import objections
from cockpit.cli import flip as flipping_command
from cockpit.cli.flip import flip
from cockpit.model import fold_load
from cockpit.profiles.reader import read_profile
from cockpit.session import flipping
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
    ("arguments", "said"),
    [
        ((), "tune abab: name what: Level"),
        (("Level",), "tune abab: 'Level': write NAME=VALUE"),
        (("Other=1",), "unknown knob 'Other'; the profile has: Level"),
        (("Level=7", "--dry-run"), "tune abab: --dry-run has no meaning here"),
        (("Level=7", "--pairs", "1"), "--pairs: it takes 2 or more"),
        (("Level=7", "--seconds", "5s"), "--seconds 5: a window below 15 s tells nothing"),
    ],
)
def test_what_is_asked_for_wrongly(profile: Path, arguments: tuple[str, ...], said: str) -> None:
    done = cockpit("tune", "--trust", str(profile), "abab", *arguments)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_the_host_has_already_is_refused(profile: Path) -> None:
    done = cockpit("tune", "--trust", str(profile), "abab", "Level=5")
    assert done.returncode == 5 and "the host has these values already" in done.stderr


def test_an_interruption_leaves_the_values_of_before(profile: Path, tmp_path: Path) -> None:
    command = (*COCKPIT, "tune", "--trust", str(profile), "abab", "Level=7", "--seconds", "60s")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        while "window 1 of 6 (as it was)" not in line:
            assert line, "it ended before its first window"
            line = process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted; rolling back" in err
    assert (tmp_path / "conf").read_text() == BEFORE


@pytest.mark.parametrize("as_data", [True, False])
def test_a_verdict_is_the_result(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_data: bool
) -> None:
    """Windows far too short for one, so that the words are known, from a generator that never waits for a CPU."""
    monkeypatch.setattr(fold_load, "saturated", lambda tick: False)
    monkeypatch.setattr(objections, "STARVED", 1.0)
    monkeypatch.setattr(flipping_command, "SHORTEST", 0.1)
    monkeypatch.setattr(flipping_command, "_LOOK", 0.02)
    monkeypatch.setattr(flipping, "UNCOUNTED", 0.0)
    record = tmp_path / "s.cockpit"
    options = Namespace(names=["Level=7"], pairs=2, seconds=0.4, ssh_config=None, record=record, json=as_data)
    options.dry_run = options.confirm_within = options.no_probe = None
    assert flip(options, read_profile(profile)) == 0
    out, err = capsys.readouterr()
    assert "window 1 of 4 (as it was)" in err and "window 4 of 4 (changed)" in err
    if as_data:
        verdict = json.loads(out)
        assert (verdict["design"], verdict["values"], verdict["after"]) == ("rounds", [2, 2], [2, 4])
    else:
        assert out.startswith("A Level 5 → 7: ") and "2 rounds" in out
    assert (tmp_path / "conf").read_text() == BEFORE and record.exists()
