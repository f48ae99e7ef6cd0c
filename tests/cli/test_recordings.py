"""The library of recordings, disk errors during a run, and `cockpit baseline`."""

import json
import os
import resource
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cockpit.cli import main
from cockpit.recording import baselines, library
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


def test_baseline_is_set_shown_listed_and_deleted(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "list"]) == 0
    assert "no baselines in " in capsys.readouterr().out
    assert main(["baseline", "set", "spring", f"{file}#1"]) == 0
    assert main(["baseline", "set", "spring", file]) == 0
    assert oct(baselines.folder().joinpath("spring.json").stat().st_mode & 0o777) == "0o600"
    assert sorted(path.name for path in baselines.folder().iterdir()) == ["spring.json"]
    capsys.readouterr()
    (baselines.folder() / "broken.json").write_text("{}")
    assert main(["baseline", "list", "--json"]) == 0
    printed = capsys.readouterr()
    listed = json.loads(printed.out)
    assert [entry["name"] for entry in listed] == ["spring"] and "broken.json: invalid baseline" in printed.err
    (baselines.folder() / "broken.json").unlink()
    (run,) = listed[0]["runs"]
    assert run["metrics"]["rate"] == pytest.approx(200)
    assert main(["baseline", "show", "spring"]) == 0
    shown = capsys.readouterr().out
    assert "2023-11-14 22:13 UTC" in shown
    assert "p99.9" in shown
    assert "web1.cpu.idle" in shown
    assert main(["check", file, "--baseline", "spring"]) == 4
    assert "INCONCLUSIVE  rate >= 95% of baseline  found 200/s, 100.0% of baseline" in capsys.readouterr().out
    assert main(["baseline", "add", "spring", f"{file}#1", file]) == 0
    assert "baseline spring: 3 runs: " in capsys.readouterr().err
    assert main(["baseline", "show", "spring"]) == 0
    assert "200/s  ± 0.0%" in capsys.readouterr().out
    assert main(["check", file, "--baseline", "spring"]) == 0
    assert "(95% CI 100.0–100.0%, n = 3 vs 1)" in capsys.readouterr().out
    assert main(["baseline", "set", "spring", file, "--runs", "2"]) == 0
    assert "baseline spring: 2 runs: " in capsys.readouterr().err
    assert main(["check", file, "--runs", "2", "--baseline", "spring"]) == 0
    assert "n = 2 vs 2)" in capsys.readouterr().out
    assert main(["baseline", "delete", "spring"]) == 0
    assert main(["baseline", "show", "spring"]) == 2


def test_invalid_baseline_commands_are_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (("set", "x", "FILE", "--runs", "3"), "3 runs requested; runs of the recording: 1 to 2"),
        (("set", "../x", "FILE"), "invalid baseline name"),
        (("delete", "none"), "none: no such baseline"),
        (("set", "x", "none.cockpit"), "none.cockpit: no such recording"),
    ):
        assert main(["baseline", *(file if argument == "FILE" else argument for argument in arguments)]) == 2
        assert message in capsys.readouterr().err


def test_damaged_baseline_is_one_error_line(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "set", "x", file]) == 0
    path = baselines.folder() / "x.json"
    intact = path.read_bytes()
    empty = json.dumps(json.loads(intact) | {"runs": []}).encode()
    for broken in (b"", intact[:500], b"{}", intact.replace(b'"format":2', b'"format":9'), b"\xff\xfe", empty):
        path.write_bytes(broken)
        assert main(["baseline", "show", "x"]) == 2
        assert "x.json: " in capsys.readouterr().err.splitlines()[-1]


def test_missing_state_directory_is_made_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "home" / "state" / "webcockpit"
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    monkeypatch.setattr(library, "folder", lambda: state / "recordings")
    library.new_recording("x", 1.7e9).close()
    made = (state / "recordings", state, state.parent)
    assert [oct(folder.stat().st_mode & 0o777) for folder in made] == ["0o700"] * 3
