"""Open load, load levels, mixes and expectations from flags and profiles to the JSON."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from cockpit.cli.typed_load import plan_with
from cockpit.model.load import LoadPlan, PathList, Stage
from cockpit.report.run_json import RunJson
from tests.commands import cockpit


def run_json(*arguments: str | Path) -> RunJson:
    done = cockpit("run", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return msgspec.convert(json.loads(done.stdout), RunJson)


def test_open_load_sends_all_due_requests(url: str) -> None:
    result = run_json(url, "-q", "200", "-z", "1s")
    assert result.sent + result.unsent == 200
    assert result.sent == result.completed + sum(result.errors.values()) + result.abandoned
    assert None not in (result.response.p50, result.service.p50)
    assert result.response.max is not None and result.service.max is not None
    assert result.response.max >= result.service.max


def test_summary_has_response_and_service_time(url: str) -> None:
    done = cockpit("run", url, "-q", "100", "-n", "100", "--poisson", "--no-tui")
    assert done.returncode == 0, done.stderr
    for text in ("response time: from the scheduled send", "service time: from the connect", "queued     0"):
        assert text in done.stdout


def test_each_load_level_is_a_segment_without_warm_up(url: str) -> None:
    result = run_json(url, "--levels", "1,2,4:300ms", "--warmup", "200ms")
    assert [segment.label for segment in result.segments] == ["baseline · c=1", "baseline · c=2", "baseline · c=4"]
    assert [segment.concurrency for segment in result.segments] == [1, 2, 4]
    assert sum(segment.completed for segment in result.segments) == result.completed
    assert sum(segment.duration for segment in result.segments) == pytest.approx(result.duration)


def test_mix_is_reported_by_request_name(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(
        f'[target]\nurl = "{url}"\n[load]\nrequests = 300\nconcurrency = 3\n'
        '[[request]]\nname = "page"\npath = "/"\nweight = 2\nexpect = {status = 200, length = 92}\n'
        '[[request]]\nname = "gone"\npath = "/status/404"\nexpect = {status = 404}\n'
    )
    result = run_json(profile)
    assert (result.requests["page"].completed, result.requests["gone"].completed) == (200, 100)
    assert (result.failed, result.statuses) == (0, {"200": 200, "404": 100})
    assert result.body_bytes == 300 * 92


def test_think_time_and_requests_per_connection(url: str) -> None:
    flags = ["-c", "4", "-n", "40", "--requests-per-connection", "5", "--no-tui"]
    done = cockpit("run", url, *flags, "--think-time", "1ms to 20ms")
    assert done.returncode == 0, done.stderr
    assert "5 requests per connection · think time 0.001 s to 0.02 s" in done.stdout
    assert "completed  40 of 40 sent, 0 failed" in done.stdout


def access_log(path: Path, *requests: str) -> Path:
    """Write a log with one request per 100 ms."""
    lines = (
        f'10.0.0.9 - - [23/Nov/2026:01:00:{number / 10:06.3f} +0000] "{request} HTTP/1.1" 200 5\n'
        for number, request in enumerate(requests)
    )
    path.write_text("".join(lines))
    return path


def test_log_is_replayed_and_skipped_lines_are_counted(url: str, tmp_path: Path) -> None:
    log = access_log(tmp_path / "access.log", *10 * ("GET /", "HEAD /", "POST /", "GET /status/404"))
    done = cockpit("run", url, "--replay-log", log, "--speed", "10", "--no-tui")
    assert done.returncode == 0, done.stderr
    first, second, *_ = done.stderr.splitlines()
    assert first.endswith("access.log: 30 requests over 3.9 s, replayed at speed 10 in 0.39 s")
    assert second.endswith("10 of 40 lines are not replayed (methods other than GET and HEAD: 10)")
    assert "open access.log ×10 n=30" in done.stdout
    assert "200 OK 20, 404 Not Found 10" in done.stdout


def test_profile_replays_log_of_its_folder(url: str, tmp_path: Path) -> None:
    access_log(tmp_path / "day.log", *10 * ("GET /",))
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nreplay_log = "day.log"\nreplay_speed = 5\n')
    result = run_json(profile, "--trust")
    assert (result.sent, result.failed) == (10, 0)
    assert [segment.concurrency for segment in result.segments] == [None]
    faster = run_json(profile, "--trust", "--speed", "50", "-n", "4")
    assert faster.sent == 4


def test_each_path_is_sent_once_over_all_workers_and_unexpected_responses_fail(url: str) -> None:
    once = ["--urls", "/status/2{00..09}", "--order", "once", "-c", "4", "-w", "2", "--expect-body", "nothing"]
    result = run_json(url, *once)
    assert result.statuses == {str(status): 1 for status in range(200, 210)}
    assert (result.completed, result.failed, result.unexpected) == (10, 10, {"contains": 10})
    assert result.generator.workers == 2 and len(result.generator.cpus) == 2


def test_run_ends_at_first_of_requests_and_duration(url: str) -> None:
    assert run_json(url, "-q", "100", "-n", "30", "-z", "10m").sent == 30
    by_time = run_json(url, "-n", "100m", "-z", "0.3s")
    assert 0 < by_time.sent < 100_000_000 and by_time.duration >= 0.3


def test_schema_matches_output(url: str) -> None:
    schema = json.loads(cockpit("schema", "run").stdout)
    produced = json.loads(cockpit("run", url, "-n", "10", "--json").stdout)
    assert set(schema["$defs"]["RunJson"]["properties"]) == set(produced)
    assert "request" in json.loads(cockpit("schema", "profile").stdout)["$defs"]["ProfileFile"]["properties"]


def ab(*arguments: str | Path) -> str:
    done = cockpit("ab", "-q", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ab_writes_the_fields_and_files_of_ab(url: str, tmp_path: Path) -> None:
    files = ("-e", tmp_path / "e", "-g", tmp_path / "g")
    text = ab("-n", "200", "-c", "5", *files, f"{url}/")
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    assert fields["Complete requests"].split() == ["200"]
    assert fields["Failed requests"].split() == ["0"]
    assert fields["HTML transferred"].split() == [str(200 * 92), "bytes"]
    assert float(fields["Requests per second"].split()[0]) > 0
    assert (tmp_path / "e").read_text().count("\n") == 101
    assert (tmp_path / "g").read_text().count("\n") == 201
    assert (tmp_path / "g").read_text().startswith("starttime\tseconds\tctime\tdtime\tttime\twait\n")
    flags = ["-n", "20", "-c", "2", "-k", "-l", "-r", "-s", "5", "-t", "20", "-C", "c=d", "-A", "me:sesame"]
    text = ab(*flags, "-H", "X-A: b", f"{url}/status/201")
    assert "Keep-Alive requests:    20" in text
    assert "Complete requests:      20" in text


@pytest.mark.lab
def test_ab_has_the_labels_of_ab(url: str) -> None:
    flags = ["-n", "200", "-c", "5", f"{url}/"]
    theirs = subprocess.run(["ab", "-q", *flags], capture_output=True, text=True, check=True, timeout=60).stdout
    ignored = ("This is ApacheBench", "Copyright", "Licensed", "Benchmarking", "WARNING", "ERROR")
    labels = [line.split(":")[0] for line in theirs.splitlines() if ":" in line and not line.startswith(ignored)]
    assert [line.split(":")[0] for line in ab(*flags).splitlines() if ":" in line] == labels


PLAN = LoadPlan(url="http://web1/")
LEVELS = (Stage(duration=0.3, concurrency=1), Stage(duration=0.3, concurrency=2))


@pytest.mark.parametrize(
    ("flags", "values"),
    [
        ("-q 200 -c 3", {"rate": 200.0, "max_in_flight": 3, "concurrency": PLAN.concurrency}),
        ("-n 50 -z 10m", {"requests": 50, "duration": 600.0}),
        ("-w auto -c 8", {"workers": min(8, len(os.sched_getaffinity(0)))}),
        ("-w auto -c 1", {"workers": 1}),
        ("--levels 1,2:300ms --warmup 200ms", {"stages": LEVELS, "warmup": 0.2, "duration": None}),
        (
            "--urls /a{1..3} --order once",
            {"paths": PathList(pattern="/a{1..3}", order="once", seed=1), "requests": None},
        ),
    ],
)
def test_flags_are_parsed(flags: str, values: dict[str, object]) -> None:
    found = plan_with(PLAN, flags.split())
    assert {name: getattr(found, name) for name in values} == values
