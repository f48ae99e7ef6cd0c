"""Load from flags and profiles to the JSON, the requests that a server receives, and streams to other tools."""

import hashlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
import msgspec
import pytest

from cockpit.cli.typed_load import plan_with
from cockpit.model.events import RunStarted
from cockpit.model.load.plan import LoadPlan, PathList, Stage
from cockpit.recording.reader import Recording
from cockpit.report.run_json import RunJson
from tests.cli.terminals import COCKPIT
from tests.commands import cockpit


def run_json(*arguments: str | Path, code: int = 0) -> RunJson:
    done = cockpit("run", *arguments, "--json")
    assert done.returncode == code, done.stderr
    return msgspec.convert(json.loads(done.stdout), RunJson)


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


def test_ramps_are_segments_of_changing_load(url: str, tmp_path: Path) -> None:
    recorded = tmp_path / "r.cockpit"
    found = run_json(url, "-q", "100:300", "-z", "1s", "-w", "2", "--record", recorded)
    assert found.sent + found.unsent == 200 and found.verdicts == []
    [segment] = found.segments
    assert (segment.label, segment.offered_rate, segment.ramp_to) == ("baseline", 100.0, 300.0)
    assert "open 100→300/s 1 s" in cockpit("report", recorded).stdout
    profile = tmp_path / "p.toml"
    profile.write_text(
        f'[target]\nurl = "{url}"\n[load]\nstages = [{{duration = 0.3, concurrency = "1:5"}}, '
        "{duration = 0.3, concurrency = 5}]\n"
    )
    found = run_json(profile)
    assert [(one.label, one.ramp_to) for one in found.segments] == [("baseline · c=1→5", 5.0), ("baseline · c=5", None)]


def test_think_time_and_requests_per_connection(url: str) -> None:
    flags = ["-c", "4", "-n", "40", "--requests-per-connection", "5", "--no-tui"]
    done = cockpit("run", url, *flags, "--think-time", "1ms to 20ms")
    assert done.returncode == 0, done.stderr
    assert "5 requests per connection · think time 0.001 s to 0.02 s" in done.stdout
    assert re.search("completed +40 of 40 sent, 0 failed", done.stdout)


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


def test_duet_reads_its_log_once_with_the_urls_of_both_targets(url: str, tmp_path: Path) -> None:
    other = url.replace("127.0.0.1", "localhost")
    text = access_log(tmp_path / "log", f"GET {url}", f"GET {other}", "GET http://elsewhere/").read_text()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
    done = cockpit("duet", url, other, "--replay-log", pipe, "--no-tui", "--no-record")
    assert "pipe: 2 requests over 0.1 s" in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


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
    result = run_json(url, *once, code=3)
    assert result.statuses == {str(status): 1 for status in range(200, 210)}
    assert (result.completed, result.failed, result.unexpected) == (10, 10, {"contains": 10})
    assert result.generator.workers == 2 and len(result.generator.cpus) == 2


def test_ends_at_first_limit_and_matches_schema(url: str) -> None:
    assert run_json(url, "-q", "100", "-n", "30", "-z", "10m").sent == 30
    by_time = run_json(url, "-n", "100m", "-z", "0.3s")
    assert 0 < by_time.sent < 100_000_000 and by_time.duration >= 0.3
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
    received, requests, transfer = (
        float(fields[name].split()[0]) for name in ("Total transferred", "Requests per second", "Transfer rate")
    )
    assert transfer == pytest.approx(received / 200 / 1024 * requests, rel=0.01)
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


def test_flags_are_parsed() -> None:
    for flags, values in (
        ("-q 200 -c 3", {"rate": 200.0, "max_in_flight": 3, "concurrency": PLAN.concurrency}),
        ("-n 50 -z 10m", {"requests": 50, "duration": 600.0}),
        ("-w auto -c 8", {"workers": min(8, len(os.sched_getaffinity(0)))}),
        ("-w auto -c 1", {"workers": 1}),
        ("--levels 1,2:300ms --warmup 200ms", {"stages": LEVELS, "warmup": 0.2, "duration": None}),
        (
            "--urls /a{1..3} --order once",
            {"paths": PathList(pattern="/a{1..3}", order="once", seed=1), "requests": None},
        ),
    ):
        found = plan_with(PLAN, flags.split())
        assert {name: getattr(found, name) for name in values} == values


Requests = list[tuple[str, list[tuple[str, str]]]]


@pytest.fixture
def server() -> Iterator[tuple[str, Requests]]:
    """Yield a server's URL, and method and headers of its requests; the body is the header `:body`."""
    requests: Requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = [(name.lower(), value) for name, value in self.headers.items()]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.command, [*headers, (":body", body.decode("latin-1"))]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: tests read stderr."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/", requests
    listening.shutdown()
    thread.join()
    listening.server_close()


def values(requests: Requests, name: str) -> list[str]:
    """Return the values of a header of the last request."""
    return [value for key, value in requests[-1][1] if key == name]


@pytest.mark.parametrize("command", [("run", "-d", "x", "--no-tui"), ("ab", "-q", "-p")])
def test_headers_are_sent_and_content_type_once(
    server: tuple[str, Requests], tmp_path: Path, command: tuple[str, ...]
) -> None:
    url, requests = server
    (tmp_path / "body").write_text("x")
    file = [tmp_path / "body"] if command[-1] == "-p" else []
    headers = ("-H", "X-A: 1", "-H", "X-A: 2", "-T", "a/b", "-H", "content-type: c/d")
    done = cockpit(*command, *file, "-n", "3", *headers, url)
    assert done.returncode == 0, done.stderr
    assert [method for method, _ in requests if method == "POST"] == ["POST"] * 3
    assert (values(requests, "x-a"), values(requests, "content-type")) == (["1", "2"], ["c/d"])


def test_header_flag_replaces_profile_header(server: tuple[str, Requests], tmp_path: Path) -> None:
    url, requests = server
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 3\nheaders = {{X-A = "1", X-B = "2"}}\n')
    done = cockpit("run", profile, "--no-tui", "-H", "x-a: 3")
    assert done.returncode == 0, done.stderr
    assert (values(requests, "x-a"), values(requests, "x-b")) == (["3"], ["2"])
    limited = cockpit("ab", "-q", "-t", "0.3", url)
    assert limited.returncode == 0 and "stopped before its plan" not in limited.stderr


@pytest.mark.parametrize("source", ["profile", "request block", "-D", "ab"])
def test_binary_body_is_sent_and_recorded_as_digest(server: tuple[str, Requests], tmp_path: Path, source: str) -> None:
    url, requests = server
    raw = bytes(range(256)) * 3
    (tmp_path / "body").write_bytes(raw)
    profile, recording = tmp_path / "p.toml", tmp_path / "s.cockpit"
    block = '[[request]]\nname = "a"\n' if source == "request block" else ""
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 3\n{block}method = "POST"\nbody_file = "body"\n')
    commands: dict[str, tuple[str | Path, ...]] = {
        "-D": ("run", url, "-n", "3", "-D", tmp_path / "body", "--no-tui", "--record", recording),
        "ab": ("ab", "-q", "-n", "3", "-p", tmp_path / "body", url),
    }
    done = cockpit(*commands.get(source, ("run", "--trust", profile, "--no-tui", "--record", recording)))
    assert done.returncode == 0, done.stderr
    assert [dict(headers)[":body"] for _, headers in requests if dict(headers)[":body"]] == [raw.decode("latin-1")] * 3
    if source != "ab":
        with Recording(recording) as recorded:
            [plan] = [event.plan for event in recorded.events() if isinstance(event, RunStarted)]
        request = plan.mix[0] if plan.mix else plan
        assert request.body == f"sha256:{hashlib.sha256(raw).hexdigest()} ({len(raw)} bytes)"
        assert request.binary is None


def test_ndjson_matches_schema_and_ends_with_result(url: str) -> None:
    done = cockpit("run", url, "-q", "50", "-z", "1.5s", "--ndjson", "--no-record", "--prometheus", "0")
    assert done.returncode == 0, done.stderr
    assert "metrics at http://127.0.0.1:" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    schema = json.loads(cockpit("schema", "ndjson").stdout)
    for line in lines:
        jsonschema.validate(line, schema)
    seconds = [line for line in lines if line["type"] == "second"]
    assert lines[0]["type"] == "session" and lines[-1]["type"] == "run"
    assert lines[-1]["result"]["completed"] == sum(line["load"].get("completed", 0) for line in seconds) > 0
    assert [line["t"] for line in seconds] == list(range(len(seconds)))


def test_run_continues_if_ndjson_reader_closes(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    command = [*COCKPIT, "run", url, "-q", "50", "-z", "1.5s", "--ndjson", "--record", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert '"type":"session"' in process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 0 and "cockpit: --ndjson: the reader closed the pipe" in errors
    assert json.loads(cockpit("report", file, "--json").stdout)[0]["duration"] > 1.0
