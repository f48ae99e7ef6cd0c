"""`cockpit capture`: a time range of an access log as a profile, and the requests that its replay sends."""

import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cockpit.traffic.capture import CapturedLog, CapturedRange
from tests.commands import cockpit

START = 1_795_000_000
# Requests per second, so that a place in the log has to be searched: it is larger than the accuracy of the search.
RATE, SECONDS = 20, 2000


def moment(second: float) -> datetime:
    return datetime.fromtimestamp(START + second, UTC)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "access log"
    lines = [
        f"192.0.2.1 - alice [{moment(number / RATE):%d/%b/%Y:%H:%M:%S} +0000] "
        f'"GET /?n={number}&api_token=s3cret HTTP/1.1" 200 1 "-" "agent{"x" * 40}" 9\n'
        for number in range(RATE * SECONDS)
    ]
    lines.insert(RATE * 1000, "garbage\n")
    path.write_text("".join(lines))
    return path


def test_captured_requests_are_sent_again(url: str, log: Path, tmp_path: Path) -> None:
    output = tmp_path / "range.toml"
    times = ["--from", moment(1000).isoformat(), "--to", moment(1001).isoformat()]
    flags = ["--host", ".", "--log", log, *times, "-o", output]
    captured = cockpit("capture", url, *flags)
    assert captured.returncode == 0, captured.stderr
    assert captured.stdout == f"{output}\n"
    written = output.with_suffix(".log").read_text()
    assert output.with_suffix(".log").stat().st_mode & 0o777 == 0o600
    numbers = [int(line.split("n=")[1].split("&")[0]) for line in written.splitlines()]
    assert numbers == list(range(1000 * RATE, 1002 * RATE))
    assert not any(secret in written for secret in ("s3cret", "alice", "192.0.2.1", "agent"))
    run = cockpit("run", output, "--json", "--trust", "--no-record")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert (result["completed"], result["statuses"]) == (2 * RATE, {"200": 2 * RATE})
    assert result["duration"] >= 2 - 2 / RATE
    again = cockpit("capture", url, *flags)
    assert (again.returncode, "replace it with --force" in again.stderr) == (2, True)
    assert cockpit("capture", url, *flags, "--force", "--cut-queries").returncode == 0
    paths = Counter(line.split('"')[1] for line in output.with_suffix(".log").read_text().splitlines())
    assert paths == {"GET / HTTP/1.1": 2 * RATE}


def test_last_seconds(url: str, log: Path, tmp_path: Path) -> None:
    output = tmp_path / "last.toml"
    captured = cockpit("capture", url, "--host", ".", "--log", log, "--last", "2s", "-o", output, "--json")
    assert captured.returncode == 0, captured.stderr
    written = [(row["action"], row["path"]) for row in json.loads(captured.stdout)]
    assert written == [("wrote", str(output)), ("wrote", str(output.with_suffix(".log")))]
    assert len(output.with_suffix(".log").read_text().splitlines()) == 3 * RATE


@pytest.mark.parametrize(
    ("flags", "code", "problem"),
    [
        ([], 2, "choose a time: --last 10m, or --from TIME and --to TIME"),
        (["--last", "1m", "--from", "2026-11-24T14:05", "--to", "2026-11-24T14:06"], 2, "choose a time"),
        (["--from", "yesterday", "--to", "now"], 2, "'yesterday': write a time as 2026-11-24T14:05"),
        (["--from", "2001-01-01T00:00", "--to", "2001-01-01T00:01"], 2, "no request in this time"),
        (["--last", "1m", "--log", "/none"], 3, "No such file"),
    ],
)
def test_invalid_use(flags: list[str], code: int, problem: str, log: Path, tmp_path: Path) -> None:
    given = ["--host", ".", "--log", log, *flags, "-o", tmp_path / "x.toml"]
    done = cockpit("capture", "http://127.0.0.1:9/", *given)
    assert (done.returncode, problem in done.stderr) == (code, True), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stamp", ["31/Dec/9999:23:59:59 -0100", "31/Dec/9999:23:59:59 +0000"])
def test_times_beyond_the_calendar_are_no_requests(stamp: str) -> None:
    log = io.BytesIO(f'h - - [{stamp}] "GET / HTTP/1.1" 200 1\n'.encode())
    assert not list(CapturedLog(log, CapturedRange(0.0, 1e12)).lines(cut_queries=False))


def test_escapes_of_servers_are_percent_encoded() -> None:
    target = rb"/caf\xC3\xA9 \"a\"\\|?q=\x22&key=s3cret"
    log = io.BytesIO(b'h - - [31/Dec/1999:23:59:59 +0000] "GET %s HTTP/1.1" 200 1\n' % target)
    [line] = CapturedLog(log, CapturedRange(0.0, 1e12)).lines(cut_queries=False)
    assert line.split()[6] == b"/caf%C3%A9%20%22a%22%5C|?q=%22&key=redacted"


def test_logs_of_several_formats_are_captured_together(tmp_path: Path) -> None:
    stamp = f"{moment(1):%d/%b/%Y:%H:%M:%S}"
    common = f'192.0.2.1 - - [{stamp} +0000] "GET /common HTTP/1.1" 200 1\ngarbage\n'
    request = {"method": "GET", "uri": "/caddy"}
    caddy = json.dumps(
        {"logger": "http.log.access", "ts": START + 1.5, "request": request, "duration": 0.1, "status": 200}
    )
    hosts = ""
    for name, text in (("a", common), ("b", f"{caddy}\n")):
        (tmp_path / name).write_text(text)
        hosts += f'[[host]]\nname = "{name}"\naccess_log = "{tmp_path / name}"\n'
    profile, output = tmp_path / "p.toml", tmp_path / "out.toml"
    profile.write_text(f'target.url = "http://127.0.0.1:9/"\n{hosts}')
    times = ["--from", moment(0).isoformat(), "--to", moment(5).isoformat()]
    done = cockpit("capture", profile, "--trust", *times, "-o", output)
    assert done.returncode == 0, done.stderr
    paths = [line.split()[6] for line in output.with_suffix(".log").read_text().splitlines()]
    assert paths == ["/common", "/caddy"]
    assert f"cockpit: a: {tmp_path}/a: lines without a request, which are left out: 1\n" in done.stderr
    assert f"cockpit: b: {tmp_path}/b: starts at " in done.stderr
