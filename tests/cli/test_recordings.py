"""`run` records by default, `recordings` manages the library, and disk errors do not stop a run."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.commands import cockpit as command

Cockpit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cockpit(tmp_path: Path) -> Cockpit:
    """Return a function that runs cockpit with its own state directory; `limit` is the maximum file size (bytes)."""

    def run(*arguments: str, state: Path = tmp_path, limit: int = 0) -> subprocess.CompletedProcess[str]:
        confine = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)) if limit else None
        return command(*arguments, env={**os.environ, "XDG_STATE_HOME": str(state)}, before=confine)

    return run


def listed(cockpit: Cockpit) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(cockpit("recordings", "list", "--json").stdout)
    return found


def test_runs_are_recorded_renamed_deleted_and_pruned(url: str, cockpit: Cockpit) -> None:
    assert cockpit("recordings", "list").stdout.startswith("no recordings in ")
    assert cockpit("run", url, "-n", "50", "--no-record").returncode == 0
    assert listed(cockpit) == []
    for _ in range(3):
        assert cockpit("run", url, "-n", "50").returncode == 0
    kept = listed(cockpit)
    assert [(entry["runs"], entry["ended"], entry["problem"]) for entry in kept] == [(1, True, "")] * 3
    name = str(kept[0]["name"])
    report = cockpit("report", name, "--json")
    assert [run["completed"] for run in json.loads(report.stdout)] == [50]
    assert cockpit("recordings", "rename", name, "before").returncode == 0
    assert "before" in cockpit("recordings", "list").stdout
    assert cockpit("recordings", "delete", "before", "nothing").stderr.startswith("cockpit: nothing: no such recording")
    assert len(listed(cockpit)) == 3
    assert cockpit("recordings", "delete", "before").stdout.startswith("deleted before: ")
    assert cockpit("recordings", "prune").returncode == 2
    assert cockpit("recordings", "prune", "--keep", "1", "--dry-run").stdout.startswith("would delete ")
    assert cockpit("recordings", "prune", "--keep", "0", "--older", "30d").stdout == ""
    assert cockpit("recordings", "prune", "--keep", "1").stdout.count("deleted ") == 1
    assert len(listed(cockpit)) == 1


def test_disk_errors_do_not_stop_run(url: str, cockpit: Cockpit, tmp_path: Path) -> None:
    full = cockpit("run", url, "-n", "500", "--json", limit=20_000)
    assert full.returncode == 0 and json.loads(full.stdout)["completed"] == 500
    assert "cockpit: recording: " in full.stderr
    (tmp_path / "file").touch()
    nowhere = cockpit("run", url, "-n", "50", "--json", state=tmp_path / "file")
    assert nowhere.returncode == 0 and json.loads(nowhere.stdout)["completed"] == 50
    assert "cannot create" in nowhere.stderr
    named = cockpit("run", url, "-n", "50", "--record", str(tmp_path / "file" / "x.cockpit"))
    assert (named.returncode, named.stdout) == (2, "") and "cannot create" in named.stderr
