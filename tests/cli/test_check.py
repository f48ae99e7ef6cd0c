"""`cockpit check` on a server, on recordings and before the load: exit codes, flags, table, JSON and JUnit."""

import contextlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from xml.etree import ElementTree

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import Baseline, BaselineRun
from cockpit.analysis.thresholds import AbortCheck
from cockpit.cli import main
from cockpit.cli.commands.check import DEFAULT_MAX_DURATION, default_max_duration
from cockpit.cli.live import _baseline_of
from cockpit.metrics.catalogue import LATENCIES
from cockpit.model.errors import TargetError
from cockpit.model.events import AnyEvent, RunEnded, RunStarted, SessionEnded, SessionStarted
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load.plan import LoadPlan, LogReplay
from cockpit.model.tick import Tick
from cockpit.profiles.profile import Profile
from cockpit.recording import baselines
from cockpit.report.check import CheckJson
from tests.commands import cockpit
from tests.data import data_of
from tests.recording.test_recording import recorded

DATA = data_of(__file__)

# Calls in order, by name: exit code and arguments.
CALLS: dict[str, tuple[int, str]] = DATA["calls"]
HOSTS = DATA["hosts"]
PLAIN = '[target]\nurl = "URL"\n[load]\nrequests = 100\n[check]\nthresholds = ["completed == 100"]\n'


class Ended(NamedTuple):
    """The output of all calls, by name, and the folder with the files that they wrote."""

    folder: Path
    codes: dict[str, int]
    out: dict[str, str]
    err: dict[str, str]

    def failures(self, name: str, kind: str = "failure") -> list[str]:
        """Return the messages of the failed test cases in a JUnit file."""
        root = ElementTree.parse(self.folder / f"{name}.xml").getroot()
        return [str(found.get("message")) for found in root.findall(f"testsuite/testcase/{kind}")]


@pytest.fixture(scope="module")
def ended(url: str, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("check")
    found = Ended(folder, {}, {}, {})
    with contextlib.chdir(folder), patch.dict(os.environ, {"XDG_STATE_HOME": str(folder / "state")}):
        (folder / "hosts.toml").write_text(HOSTS.replace("URL", url))
        (folder / "plain.toml").write_text(PLAIN.replace("URL", url))
        recorded(folder / "slower.cockpit", session((12.0, 1, [round(100 * 0.9 ** (n / 10)) for n in range(120)])))
        for name, (_, line) in CALLS.items():
            done = cockpit("check", *shlex.split(line.replace("URL", url)))
            if name == "recorded":
                assert cockpit("baseline", "set", "same", "run.cockpit").returncode == 0
            found.codes[name], found.out[name], found.err[name] = done.returncode, done.stdout, done.stderr
    return found


def session(*runs: tuple[float, int, list[int]]) -> list[AnyEvent]:
    """Return a session with runs of (seconds, connections, completed requests per tick); 0: connections are refused."""
    events: list[AnyEvent] = [SessionStarted(t=0, wall=1_700_000_000.0, version="0", name="x")]
    start = 0.0
    for number, (seconds, connections, ticks) in enumerate(runs, 1):
        plan = LoadPlan(url="http://web1/", concurrency=connections, duration=seconds)
        events.append(RunStarted(t=start, run=number, plan=plan))
        for at, completed in enumerate(ticks):
            begin, end = (start + seconds * n / len(ticks) for n in (at, at + 1))
            times = Histogram.of([1_000_000] * completed)
            counts: dict[str, Any] = {"sent": completed or 9, "completed": completed, "service": times}
            errors = {} if completed else {"refused": 9}
            events.append(Tick(t=end, start=begin, run=number, worker=0, errors=errors, **counts))
        start += seconds
        events.append(RunEnded(t=start, run=number, reason="completed"))
    return [*events, SessionEnded(t=start)]


def test_exit_codes_and_error_lines(ended: Ended) -> None:
    assert ended.codes == {name: code for name, (code, _) in CALLS.items()}, "".join(ended.err.values())
    assert not [name for name, text in ended.err.items() if "Traceback" in text]
    for name, message in (
        ("other-load", "baseline before: different load (concurrency 1 → 2); compare with --force"),
        ("no-baseline", "gone: no such baseline; saved: before"),
        ("unknown", "unknown metric 'speed'"),
        ("refused", "127.0.0.1 port 1"),
    ):
        (error,) = [line for line in ended.err[name].splitlines() if line.startswith("cockpit: ")]
        assert message in error and ended.out[name] == ""


def test_table_is_compact(ended: Ended) -> None:
    lines = ended.out["broken"].splitlines()
    assert "  FAILED  failed == 0  found 100" in lines
    assert lines[-1] == "check: 1 of 1 thresholds failed" and "100 failed  errors none" in ended.out["broken"]
    # Warnings are extra lines: on a busy machine the generator may have waited for a CPU.
    assert len([line for line in lines if not line.startswith("  ! ")]) <= 8
    assert ended.out["good"].endswith("check: passed\n") and ended.out["good"].count("ok ") == 2
    assert re.search(r"UNSTABLE +stable +too short", ended.out["too-short"])


def test_json_has_reason(ended: Ended) -> None:
    found = {name: json.loads(ended.out[name]) for name, (_, line) in CALLS.items() if "--json" in line}
    assert len(found) == 6
    for name, result in found.items():
        msgspec.convert(result, CheckJson)
        assert result["check"]["exit"] == ended.codes[name]
    assert found["against"]["check"]["baseline"]["name"] == "before"
    (spread,) = found["with-spread"]["thresholds"]
    assert (spread["status"], spread["ratio"]["runs"], spread["ratio"]["assumed"]) == ("holds", [4, 2], False)
    assert spread["ratio"]["low"] < spread["ratio"]["value"] < spread["ratio"]["high"]
    assert found["with-spread"]["completed"] == 200
    assert found["aborted"]["check"]["aborted"] == "failed < 10"
    assert [threshold["holds"] for threshold in found["aborted"]["thresholds"]] == [False, False]
    assert found["aborted"]["ended"] == "stopped"
    assert found["host-aborted"]["check"]["aborted"] == "here.cpu.idle > 100"
    assert 0 <= found["host-aborted"]["thresholds"][1]["value"] <= 100
    assert found["max-duration"]["check"]["stopped_after"] == 0.5
    assert found["unstable"]["check"]["stability"]["kind"] == "rate"
    assert "check" in msgspec.json.schema(CheckJson)["$defs"]["CheckJson"]["required"]


def test_aborted_run_or_run_without_response_is_no_baseline(
    ended: Ended, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "cockpit: baseline cut: not saved: failed < 10 ended the run early\n" in ended.err["aborted"]
    assert not list((ended.folder / "state").rglob("cut.json"))
    down = str(recorded(tmp_path / "down.cockpit", session((12.0, 1, [0]))))
    assert main(["check", down, "--save-baseline", "down"]) == 99
    assert "cockpit: baseline down: not saved: a run has no response\n" in capsys.readouterr().err
    assert baselines.names() == []


def test_runs_of_different_loads_are_not_checked_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = str(recorded(tmp_path / "two.cockpit", session((10.0, 10, [100]), (10.0, 20, [100]))))
    assert main(["check", two]) == 0
    assert main(["check", two, "--runs", "2"]) == 2
    assert "runs 1 and 2 have different loads (concurrency 10 → 20); choose one as FILE#2" in capsys.readouterr().err


def test_junit_has_one_case_per_threshold(ended: Ended) -> None:
    for name, thresholds, failures in (("good", ["failed == 0", "p99 < 10s"], 0), ("broken", ["failed == 0"], 1)):
        suite = ElementTree.parse(ended.folder / f"{name}.xml").getroot().find("testsuite")
        counts = (suite.get("tests"), suite.get("failures"), suite.get("errors"))
        assert counts == (str(len(thresholds)), str(failures), "0")
        assert [case.get("name") for case in suite.findall("testcase")] == thresholds
        assert len(ended.failures(name)) == failures
    (error,) = ended.failures("refused", "error")
    assert "127.0.0.1 port 1 is unreachable" in error
    assert "sesame" not in (ended.folder / "refused.xml").read_text()
    output = ended.out["one-run"]
    assert "  INCONCLUSIVE  rate >= 100% of baseline  found " in output
    assert "n = 1 vs 1; a spread of 15% between runs is assumed); more runs on either side measure the spread" in output
    assert output.endswith("check: 1 of 1 thresholds inconclusive\n")
    (failure,) = ended.failures("one-run")
    assert failure.startswith("inconclusive: ")


def test_invalid_flags_for_recording_are_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, message in (
        (("-c", "3"), "-c: conflicts with a recording; leave the load flags out"),
        (
            ("--seed", "3", "--disable-keepalive"),
            "--disable-keepalive, --seed: conflicts with a recording; leave the load flags out",
        ),
        (("--abort-on", "p99 < 1s"), "--abort-on: conflicts with a recording"),
        (("--threshold", "rate > 90% of baseline"), "no baseline is given; add --baseline NAME"),
        (("--threshold", "web9.cpu.idle > 3"), "no host 'web9' is watched"),
    ):
        assert main(["check", file, *flags]) == 2
        assert message in capsys.readouterr().err


def test_recording_is_checked_for_thresholds_and_stability(file: str, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert main(["check", file, "--stable"]) == 0
    assert "ok      stable" in capsys.readouterr().out
    assert main(["check", f"{file}@5s..9s", "--stable"]) == 4


@pytest.mark.parametrize(("check", "message"), DATA["invalid_section_is_refused"])
def test_invalid_section_is_refused(
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
    (tmp_path / "webcockpit" / "baselines" / "damaged.json").write_text("{")
    assert (latest := baselines.latest(plan)) is not None and latest.name == "new"
    assert baselines.latest(replace(plan, url="http://127.0.0.1:2/")) is None
    on_screen = [_baseline_of(Profile(name="x", plan=plan, baseline=name))(plan) for name in ("", "old")]
    assert [one.name for one in on_screen if one] == ["new", "old"]
    called: dict[str, object] = {}

    def headless(profile: Profile, *_: object, limit: float, runs: int, stop_when: AbortCheck, **__: object) -> object:
        baseline = stop_when.baseline and stop_when.baseline.name
        called.update(seconds=profile.plan.duration, limit=limit, runs=runs, baseline=baseline)
        raise TargetError("refused")

    monkeypatch.setattr("cockpit.cli.commands.check.headless", headless)
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
