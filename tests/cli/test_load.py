"""Open load, load levels, mixes and expectations from flags and profiles to the JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from cockpit.report.run_json import RunJson
from tests.commands import cockpit
from tests.servers import http_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


def run_json(*arguments: str | Path) -> RunJson:
    done = cockpit("run", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return msgspec.convert(json.loads(done.stdout), RunJson)


def test_open_load_sends_all_due_requests(url: str) -> None:
    result = run_json(url, "-q", "200", "-z", "2s")
    assert result.sent + result.unsent == 400
    assert result.sent == result.completed + sum(result.errors.values()) + result.abandoned
    assert result.response.p50 is not None and result.service.p50 is not None
    assert result.response.max is not None and result.service.max is not None
    assert result.response.max >= result.service.max


def test_summary_has_response_and_service_time(url: str) -> None:
    done = cockpit("run", url, "-q", "100", "-n", "100", "--poisson", "--no-tui")
    assert done.returncode == 0, done.stderr
    for text in ("response time: from the scheduled send", "service time: from the connect", "queued     0"):
        assert text in done.stdout


def test_each_load_level_is_a_segment_without_warm_up(url: str) -> None:
    result = run_json(url, "--levels", "1,2,4:600ms", "--warmup", "300ms")
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
    done = cockpit(
        *(
            "run",
            url,
            "-c",
            "4",
            "-n",
            "40",
            "--think-time",
            "1ms to 20ms",
            "--requests-per-connection",
            "5",
            "--no-tui",
        )
    )
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


def test_auto_workers_match_cpus(url: str) -> None:
    cpus = len(os.sched_getaffinity(0))
    result = run_json(url, "-n", "200", "-c", "8", "-w", "auto")
    assert (result.completed, result.generator.workers) == (200, min(8, cpus))
    assert len(result.generator.cpus) == result.generator.workers
    assert run_json(url, "-n", "20", "-c", "1", "-w", "auto").generator.workers == 1


def test_unexpected_response_fails(url: str) -> None:
    result = run_json(url, "-n", "50", "--expect-body", "no such text")
    assert (result.completed, result.failed, result.unexpected) == (50, 50, {"contains": 50})


def test_each_path_is_sent_once_over_all_workers(url: str) -> None:
    result = run_json(url, "--urls", "/status/2{00..09}", "--order", "once", "-c", "4", "-w", "2")
    assert result.statuses == {str(status): 1 for status in (200, 201, 202, 203, 205, 206, 207, 208, 209, 204)}


def test_schema_matches_output(url: str) -> None:
    schema = json.loads(cockpit("schema", "run").stdout)
    produced = json.loads(cockpit("run", url, "-n", "10", "--json").stdout)
    assert set(schema["$defs"]["RunJson"]["properties"]) == set(produced)
    assert "request" in json.loads(cockpit("schema", "profile").stdout)["$defs"]["ProfileFile"]["properties"]


def ab(program: list[str], *arguments: str | Path) -> str:
    command = [*program, "-q", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_ab_output_has_the_fields_of_ab(url: str, tmp_path: Path) -> None:
    text = ab([sys.executable, "-m", "cockpit", "ab"], "-n", "200", "-c", "5", "-e", tmp_path / "e",
              "-g", tmp_path / "g", f"{url}/")  # fmt: skip
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    assert fields["Complete requests"].split() == ["200"]
    assert fields["Failed requests"].split() == ["0"]
    assert fields["HTML transferred"].split() == [str(200 * 92), "bytes"]
    assert float(fields["Requests per second"].split()[0]) > 0
    assert (tmp_path / "e").read_text().count("\n") == 101
    assert (tmp_path / "g").read_text().count("\n") == 201
    assert (tmp_path / "g").read_text().startswith("starttime\tseconds\tctime\tdtime\tttime\twait\n")
    if shutil.which("ab"):
        theirs = ab(["ab"], "-n", "200", "-c", "5", f"{url}/")
        ignored = ("This is ApacheBench", "Copyright", "Licensed", "Benchmarking", "WARNING", "ERROR")
        labels = [line.split(":")[0] for line in theirs.splitlines() if ":" in line and not line.startswith(ignored)]
        ours = [line.split(":")[0] for line in text.splitlines() if ":" in line]
        assert ours == labels


def test_ab_accepts_all_flags(url: str, tmp_path: Path) -> None:
    (tmp_path / "body").write_text("a=1")
    text = ab([sys.executable, "-m", "cockpit", "ab"], "-n", "20", "-c", "2", "-k", "-l", "-r", "-s", "5", "-t", "20",
              "-H", "X-A: b", "-C", "c=d", "-A", "me:sesame", f"{url}/status/201")  # fmt: skip
    assert "Keep-Alive requests:    20" in text
    assert "Complete requests:      20" in text


def test_run_ends_at_first_of_requests_and_duration(url: str) -> None:
    by_count = run_json(url, "-n", "50", "-z", "10m")
    assert by_count.completed == 50
    by_time = run_json(url, "-n", "100m", "-z", "1s")
    assert 0 < by_time.sent < 100_000_000
    assert by_time.duration >= 1
    opened = run_json(url, "-q", "100", "-n", "30", "-z", "10m")
    assert opened.sent == 30


def test_connections_limit_requests_in_flight_under_open_load(tmp_path: Path) -> None:
    with slow_server() as (slow, most_at_once):
        result = run_json(slow, "-q", "200", "-c", "3", "-n", "40")
    assert result.sent == result.completed == 40
    assert result.queued > 0
    assert most_at_once() == 3


@contextmanager
def slow_server() -> Iterator[tuple[str, Callable[[], int]]]:
    """Serve responses that wait until three requests are in flight; yield the URL and a function with the maximum."""
    lock, current, most, seen = threading.Condition(), 0, 0, 0

    class SlowHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            nonlocal current, most, seen
            with lock:
                seen += 1
                current += 1
                most = max(most, current)
                lock.notify_all()
                # The first request is cockpit's check of the target.
                lock.wait_for(lambda: most >= 3 or seen == 1, timeout=30)
            time.sleep(0.02)
            with lock:
                current -= 1
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), SlowHandler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", lambda: most
        server.shutdown()


def test_connections_and_max_in_flight_are_refused_together(url: str) -> None:
    done = cockpit("run", url, "-q", "10", "-c", "3", "--max-in-flight", "3")
    assert done.returncode == 2 and "-c: conflicts with --max-in-flight" in done.stderr
