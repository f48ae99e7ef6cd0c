"""`cockpit check` with its flags and [check], on a recording or before the load starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import Baseline, BaselineRun
from cockpit.analysis.thresholds import AbortCheck
from cockpit.cli import main
from cockpit.cli.check import DEFAULT_MAX_DURATION, default_max_duration
from cockpit.model.errors import TargetError
from cockpit.model.histogram import EMPTY
from cockpit.model.load import LoadPlan, LogReplay
from cockpit.model.metrics import LATENCIES
from cockpit.profiles.profile import Profile
from cockpit.report import baselines


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-c", "3"), "-c: conflicts with a recording; leave the load flags out"),
        (
            ("--seed", "3", "--disable-keepalive"),
            "--disable-keepalive, --seed: conflicts with a recording; leave the load flags out",
        ),
        (("--abort-on", "p99 < 1s"), "--abort-on: conflicts with a recording"),
        (("--threshold", "rate > 90% of baseline"), "no baseline is given; add --baseline NAME"),
        (("--threshold", "web9.cpu.idle > 3"), "no host 'web9' is watched"),
    ],
)
def test_invalid_flags_for_recording_are_refused(
    file: str, flags: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", file, *flags]) == 2
    assert message in capsys.readouterr().err


def test_thresholds_of_hosts_are_checked_and_equal_ones_once(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = ("web1.cpu.idle > 20", "web1.processes.defunct == 0", "p99.9 < 200ms", "web1.cpu.idle > 80")
    equal = ("failed == 0", "failed==0", "failed == 0.0", "p99 < 1s", "p99<1000ms")
    flags = (flag for threshold in (*hosts, *equal) for flag in ("--threshold", threshold))
    assert main(["check", file, *flags]) == 99
    output = capsys.readouterr().out
    assert output.count("ok ") == 5
    assert "FAILED  web1.cpu.idle > 80" in output
    assert "check: 1 of 6 thresholds failed" in output
    assert output.count("failed ==") == 1 and "failed==" not in output
    assert output.count("p99 <") == 1 and "p99<" not in output


def test_recording_is_checked_for_stability(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", file, "--stable"]) == 0
    assert "ok      stable" in capsys.readouterr().out
    assert main(["check", f"{file}@5s..9s", "--stable"]) == 4


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ('abort_on = ["completed > 3"]', "completed is known only at the end of a run"),
        ('abort_on = ["speed > 3"]', "check.abort_on: 'speed > 3': unknown metric"),
        ('max_duration = "soon"', "check.max_duration: 'soon' is not a duration"),
        ('stable = "yes"', "check.stable: found 'yes'; allowed: true or false"),
        ('baseline = "none"', "none: no such baseline"),
    ],
)
def test_invalid_check_section_is_refused(
    tmp_path: Path, check: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "http://127.0.0.1:1/"\n[check]\n{check}\n')
    assert main(["check", str(profile)]) == 2
    assert message in capsys.readouterr().err


def test_quick_is_one_run_of_15_s_with_latest_baseline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    plan = LoadPlan(url="http://127.0.0.1:1/", duration=10.0)
    run = BaselineRun(source="x", wall=0.0, metrics={}, histograms=dict.fromkeys(LATENCIES, EMPTY), hosts={})
    for at, (name, found) in enumerate({"old": plan, "new": plan, "other": replace(plan, concurrency=9)}.items()):
        path = baselines.save(Baseline(name=name, plan=found, runs=(run,)))
        os.utime(path, (1e9 + at, 1e9 + at))
    (tmp_path / "cockpit" / "baselines" / "damaged.json").write_text("{")
    assert (latest := baselines.latest(plan)) is not None and latest.name == "new"
    assert baselines.latest(replace(plan, url="http://127.0.0.1:2/")) is None
    called: dict[str, object] = {}

    def headless(
        profile: Profile, *_: object, limit: float | None, runs: int, stop_when: AbortCheck, **__: object
    ) -> object:
        called.update(
            seconds=profile.plan.duration,
            limit=limit,
            runs=runs,
            baseline=stop_when.baseline and stop_when.baseline.name,
        )
        raise TargetError("refused")

    monkeypatch.setattr("cockpit.cli.check.headless", headless)
    assert main(["check", plan.url, "-z", "10m", "--quick"]) == 3
    assert called == {"seconds": 15.0, "limit": None, "runs": 1, "baseline": "new"}
    assert main(["check", plan.url, "-z", "10m", "--quick", "--max-duration", "5s", "--runs", "2"]) == 3
    assert called == {"seconds": 15.0, "limit": 5.0, "runs": 2, "baseline": "new"}
    stepped = ["check", plan.url, "--levels", "1,2:10m", "--quick"]
    assert main(stepped) == 3
    assert called == {"seconds": None, "limit": 15.0, "runs": 1, "baseline": None}


def test_only_unlimited_load_has_default_max_duration() -> None:
    url = "http://localhost/"
    endless = Profile(name="x", plan=LoadPlan(url=url))
    assert default_max_duration(endless) == DEFAULT_MAX_DURATION
    assert default_max_duration(replace(endless, max_duration=3.0)) == 3.0
    assert default_max_duration(replace(endless, plan=LoadPlan(url=url, duration=60.0))) is None
    assert default_max_duration(replace(endless, plan=LoadPlan(url=url, replay=LogReplay(file="access.log")))) is None
