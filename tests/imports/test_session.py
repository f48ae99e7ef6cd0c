"""Foreign requests as a session: counts, seconds and latencies are those of the file; and the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.cli.commands import import_results
from cockpit.imports.formats import FORMATS, ForeignRequest
from cockpit.imports.runs import UNKNOWN_URL, run_of
from cockpit.imports.session import session_of
from cockpit.metrics.results import run_result
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording import writer as writing
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.write_queue import WriteQueue
from cockpit.recording.writer import RecordingWriter
from tests.commands import cockpit
from tests.recording.test_pages import same_events
from tests.servers import http_server
from tests.session.events import small_session

BY_TOOL = {each.tool.split()[0]: each for each in FORMATS}


def state_of(requests: list[ForeignRequest], tool: str, url: str = "", concurrency: int | None = None) -> State:
    return fold_all(session_of("x", 1000.0, run_of(requests, BY_TOOL[tool], url, concurrency)))


def test_a_second_has_what_began_and_ended_within_it() -> None:
    requests = [
        ForeignRequest(101.6, 0.2, 200, 10, "", "http://a/"),
        ForeignRequest(100.5, 0.25, 200, 10),
        ForeignRequest(100.6, 1.5, 0, 0, "timeout"),
        ForeignRequest(103.5, 0.5, 503, 10),
    ]
    state = state_of(requests, "vegeta")
    assert state.started is not None and state.started.wall == 100.5 and state.ended
    found = [(one.second, one.completed, one.errors) for one in state.seconds]
    assert found == [(0, 1, 0), (1, 1, 1), (2, 0, 0), (3, 1, 0)]
    result = run_result(state, 1)
    assert result is not None and result.seconds == pytest.approx(3.5) and result.plan.url == "http://a/"
    assert (result.counts.sent, result.counts.completed, result.counts.failed) == (4, 3, 2)
    assert result.counts.statuses == {200: 2, 503: 1} and result.counts.bytes_received == 30
    assert result.counts.latency.max == pytest.approx(1.5) and result.plan.concurrency == 2
    assert (
        result.warnings
        == ("imported from vegeta encode --to json; not in the file, shown as 0 or none: CPU and lag of the generator",)
        or "csv" in result.warnings[0]
    )


def test_what_a_file_lacks_is_said() -> None:
    state = state_of([ForeignRequest(50.0, 0.5)] * 8, "ab")
    result = run_result(state, 1)
    assert result.plan.url == UNKNOWN_URL and result.seconds == 1 and result.plan.concurrency == 4
    assert result.warnings[0].endswith("bytes, statuses, failures (their rows count as completed)")
    assert "records whole seconds only" in result.warnings[1]
    result = run_result(state_of([ForeignRequest(0.5, 0.5, 200, 9)], "oha"), 1)
    assert result is not None and result.warnings[0].endswith("lag of the generator, requests without a response")
    state = state_of([ForeignRequest(0.5, 0.5, 200)], "hey", "http://b/", 7)
    assert state.started is not None and state.started.wall == 1000.0 and state.plans[1].concurrency == 7


def test_a_url_of_a_file_is_recorded_without_secrets_and_only_if_it_is_one() -> None:
    for url, recorded in (
        ("https://me:s3cret@web1:8443/a?token=s3cret#x", "https://web1:8443/a"),
        ("http://[::1]:80", "http://[::1]:80/"),
        ("http://a:99999999/", UNKNOWN_URL),
        ("http://[::1", UNKNOWN_URL),
        ("file:///etc/passwd", UNKNOWN_URL),
        ("http://a/\x1b[31m", UNKNOWN_URL),
    ):
        state = state_of([ForeignRequest(0.0, 0.5, 200, 1, "", url)], "k6")
        assert state.started is not None and state.plans[1].url == state.started.target == recorded


@pytest.mark.parametrize(
    ("requests", "said"),
    [([], "no requests"), ([ForeignRequest(0, 1), ForeignRequest(1e6, 1)], "lasts 12 days; the maximum is 7")],
)
def test_what_is_no_run_is_refused(requests: list[ForeignRequest], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run_of(requests, BY_TOOL["ab"])
    with pytest.raises(ValueError, match="--target web1: write it as http://host/path"):
        run_of([ForeignRequest(0, 1)], BY_TOOL["ab"], "web1")


def test_a_long_pipe_is_imported_whole(tmp_path: Path) -> None:
    lines = ["response-time,offset,status-code", *(f"0.1,{at / 100},200" for at in range(3000))]
    recorded = tmp_path / "x.cockpit"
    command = [sys.executable, "-m", "cockpit", "import", "/dev/stdin", "-o", str(recorded)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with Recording(recorded) as recording:
        assert sum(segment.counts.completed for segment in last_state(recording).segments) == 3000


def test_an_import_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WriteQueue", lambda: WriteQueue(limit=4000))
    monkeypatch.setattr(import_results, "_MAX_BACKLOG", 1000)
    events = list(small_session())
    import_results._record(events, RecordingWriter(tmp_path / "x.cockpit"))
    with Recording(tmp_path / "x.cockpit") as recording:
        assert same_events(recording.events(), events) and not recording.damage


@pytest.mark.lab
def test_a_result_of_ab_has_its_latencies(tmp_path: Path) -> None:
    file, recorded = tmp_path / "ab.tsv", tmp_path / "ab.cockpit"
    with http_server() as url:
        done = subprocess.run(
            ["ab", "-q", "-n", "500", "-c", "4", "-g", str(file), f"{url}/"], capture_output=True, text=True, check=True
        )
    told = cockpit("import", file, "-o", recorded, "--target", url, "-c", "4")
    assert told.returncode == 0 and "ab.tsv: ab -g" in told.stderr and "replay it: cockpit replay" in told.stderr
    [result] = json.loads(cockpit("report", recorded, "--json").stdout)
    assert result["completed"] == 500 and result["url"] == f"{url}/"
    took = sorted(float(line.split("\t")[4]) for line in file.read_text().splitlines()[1:])
    printed = dict(line.split()[:2] for line in done.stdout.splitlines() if line.startswith(("  50%", "  99%")))
    for percent, theirs in printed.items():
        # Theirs is the next value of the same list.
        at = len(took) * int(percent[:-1]) // 100
        assert took[at] == int(theirs)
        assert 1000 * result["service"][f"p{percent[:-1]}"] == pytest.approx(took[at - 1], rel=0.01, abs=0.01)
    again = cockpit("import", file, "-o", recorded)
    assert again.returncode == 2 and "exists already; name another file" in again.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "unknown format"),
        (b"\xff\xfe\x00", "unknown format"),
        (b"response-time,offset,status-code\n", "no requests"),
        (b"response-time,offset,status-code\n1,2\n", "line 2: "),
        (b"response-time,offset,status-code\n1,nan,200\n", "line 2: 'nan' is out of range"),
        (b"response-time,offset\n1,2\n", "line 2: 'status-code' is missing"),
        (b"response-time," + 2_000_000 * b"x", "line 1 is longer than"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(content)
    done = cockpit("import", file, "-o", tmp_path / "x.cockpit")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "x.cockpit").exists()
