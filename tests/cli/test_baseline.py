"""`cockpit baseline`: set, add, show, list, delete."""

from __future__ import annotations

import json

import pytest

from cockpit.cli import main
from cockpit.report import baselines


def test_baseline_is_set_shown_listed_and_deleted(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", "list"]) == 0
    assert "no baselines in " in capsys.readouterr().out
    assert main(["baseline", "set", "spring", f"{file}#1"]) == 0
    assert main(["baseline", "set", "spring", file]) == 0
    assert oct(baselines.folder().joinpath("spring.json").stat().st_mode & 0o777) == "0o600"
    assert sorted(path.name for path in baselines.folder().iterdir()) == ["spring.json"]
    capsys.readouterr()
    assert main(["baseline", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == ["spring"]
    (run,) = listed[0]["runs"]
    assert run["metrics"]["rate"] == pytest.approx(200)
    assert main(["baseline", "show", "spring"]) == 0
    shown = capsys.readouterr().out
    assert "2023-11-14 22:13 UTC" in shown
    assert "p99.9" in shown
    assert "web1.cpu.idle" in shown
    assert main(["check", file, "--baseline", "spring"]) == 4
    assert "INCONCLUSIVE  rate >= 95% of baseline  found 200, 100.0% of baseline" in capsys.readouterr().out
    assert main(["baseline", "add", "spring", f"{file}#1", file]) == 0
    assert "baseline spring: 3 runs: " in capsys.readouterr().err
    assert main(["baseline", "show", "spring"]) == 0
    assert "200  ± 0.0%" in capsys.readouterr().out
    assert main(["check", file, "--baseline", "spring"]) == 0
    assert "(95% CI 100.0–100.0%, n = 3 vs 1)" in capsys.readouterr().out
    assert main(["baseline", "set", "spring", file, "--runs", "2"]) == 0
    assert "baseline spring: 2 runs: " in capsys.readouterr().err
    assert main(["check", file, "--runs", "2", "--baseline", "spring"]) == 0
    assert "n = 2 vs 2)" in capsys.readouterr().out
    assert main(["baseline", "delete", "spring"]) == 0
    assert main(["baseline", "show", "spring"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "x", "FILE", "--runs", "3"), "3 runs requested; runs of the recording: 1 to 2"),
        (("set", "../x", "FILE"), "invalid baseline name"),
        (("delete", "none"), "none: no such baseline"),
        (("set", "x", "none.cockpit"), "none.cockpit: no such recording"),
    ],
)
def test_invalid_baseline_commands_are_refused(
    file: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
