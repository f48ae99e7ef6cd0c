"""`cockpit history`: checks are kept, change points name the release, hostile lines are left out."""

import json
import math
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from cockpit.model.load.plan import LoadPlan
from cockpit.recording.check_history import PastCheck, append, checked_targets, folder, past_checks
from cockpit.report.history import HistoryJson
from tests.cli.conftest import in_process

HOUR = 3600.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def months(random: np.random.Generator) -> list[PastCheck]:
    """Return 40 checks; from release v2 on, which another machine checked, the p99 is 30% higher."""
    checks = []
    for number in range(40):
        later = number >= 25
        p99 = (0.013 if later else 0.010) * math.exp(random.normal(0, 0.03))
        metrics = {"rate": 500 * math.exp(random.normal(0, 0.02)), "p50": 0.002, "p99": p99, "failed.share": 0.0}
        checks.append(
            PastCheck(
                wall=(number + 0.5) * 24 * HOUR,
                release="v2\x1b[2J" if later else "v1",
                machine="b" if later else "a",
                plan=LoadPlan(url="http://web1/", rate=500.0),
                metrics=metrics,
            )
        )
    return checks


def test_checks_are_kept_and_listed(url: str) -> None:
    load = ("-n", "50", "--threshold", "errors == 0")
    for release in ("v1", "v2"):
        done = in_process("check", url, *load, "--release", release, "--json")
        assert done.returncode == 0, done.stderr
    assert in_process("check", url, "-n", "50", "-c", "2").returncode == 0, "another load"
    assert in_process("check", url, *load).returncode == 0
    first, *_ = past_checks(f"{url}/")
    assert first.metrics["rate"] > 0 and first.metrics["failed.share"] == 0 and first.machine
    listed = in_process("history", url)
    assert "3 checks under one load" in listed.stdout and "1 check under other loads left out" in listed.stdout
    assert "no metric changed" in listed.stdout and " v2 " in listed.stdout
    assert in_process("history", url.removeprefix("http://")).stdout == listed.stdout
    assert "no check yet; run: cockpit check other" in in_process("history", "other").stderr
    assert "end the name in .html, .md, .txt" in in_process("history", url, "-o", "x.csv").stderr


def test_checks_keep_the_cost_of_a_response_on_each_host(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "cost.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[[host]]\nname = "here"\nprocesses = ["python*"]\ninterval = 0.2\n')
    assert in_process("check", str(profile), "-z", "2s", "-c", "2", "--trust").returncode == 0
    (kept,) = past_checks(str(profile))
    assert kept.metrics["here.request.run"] > 0


def test_report_has_the_history_of_its_profile_on_request(file: str, tmp_path: Path) -> None:
    assert "--history: no check of " in in_process("report", file, "--history", "--format", "html").stderr
    append("small", months(np.random.default_rng(1))[0])
    page = in_process("report", file, "--history", "--format", "html").stdout
    assert "History: checks of small" in page and "1 check under one load" in page
    assert "History" not in in_process("report", file, "--format", "html").stdout
    assert "--history: only for a recording as html or md" in in_process("report", file, "--history").stderr


def test_checked_targets_are_listed_newest_first(tmp_path: Path) -> None:
    old, new = months(np.random.default_rng(1))[:2]
    for target, checks in (("http://web1/a b", [old]), ("shop", [old, new])):
        for check in checks:
            append(target, check)
    (folder() / "empty.ndjson").write_text("junk\n")
    (folder() / "other%2.ndjson").write_text("{}")
    found = [(target, checks, newest.wall) for target, checks, newest in checked_targets()]
    assert found == [("shop", 2, new.wall), ("http://web1/a b", 1, old.wall)]


def test_every_profile_and_url_has_a_history_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    long = "http://web1/" + 99 * "ä"
    targets = ["api.v1", "api.v2", "./a/shop.toml", "./b/shop.toml", f"{long}?1", f"{long}?2"]
    for target in targets:
        append(target, months(np.random.default_rng(1))[0])
    assert {len(past_checks(target)) for target in targets} == {1}
    listed = {checked.target for checked in checked_targets()}
    assert listed == {target.replace("./", f"{tmp_path}/") for target in targets}
    shipped = Path(__file__).parents[2] / "profiles" / "spare-servers.toml"
    append(str(shipped), months(np.random.default_rng(1))[0])
    assert past_checks("spare-servers") == past_checks(str(shipped))


def test_a_check_after_an_incomplete_line_is_kept() -> None:
    old, new = months(np.random.default_rng(1))[:2]
    append("shop", old)
    file = folder() / "shop.ndjson"
    file.write_bytes(file.read_bytes()[:-9])
    append("shop", new)
    assert [check.wall for check in past_checks("shop")] == [new.wall]


def test_change_point_names_the_release(tmp_path: Path) -> None:
    folder().mkdir(parents=True)
    lines = [msgspec.json.encode(check) for check in months(np.random.default_rng(1))]
    (folder() / "shop.ndjson").write_bytes(b"\n".join([b"\x00\xff{", *lines, b'{"wall": "x"}', lines[0][:40]]))
    found = msgspec.json.decode(in_process("history", "shop", "--json").stdout, type=HistoryJson)
    [change] = found.changes
    assert (change.metric, change.wall, change.release[:2]) == ("p99", 25.5 * 24 * HOUR, "v2")
    assert change.after / change.before == pytest.approx(1.3, abs=0.04) and change.p <= 0.01
    text = in_process("history", "shop").stdout
    assert re.search(r"^ {57}▲ 1970-01-26 v2", text, re.MULTILINE), "the sign is below the first check with v2"
    assert "1970-01-26" in text and "another machine" in text and "\x1b[2J" not in text
    assert in_process("history", "shop", "-o", str(tmp_path / "shop.html")).returncode == 0
    assert "<svg" in (tmp_path / "shop.html").read_text()
    assert json.loads(in_process("history", "shop", "--json", "--seed", "3").stdout)["changes"][0]["metric"] == "p99"
