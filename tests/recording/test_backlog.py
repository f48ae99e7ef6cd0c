"""A recorder that cannot keep up, or whose disk fails, reports lost events in bounded memory; no failure is silent."""

import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording import writer as writing
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.write_queue import Gap, WriteBatch, WriteQueue, weight
from cockpit.recording.writer import RecordingWriter
from tests.data import data_of
from tests.model.hosts import process, sample
from tests.recording.test_pages import raw, same_events
from tests.servers import http_server
from tests.session.events import reading, small_session
from tests.waiting import wait_until

DATA = data_of(__file__)

EVENTS = list(small_session())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.cockpit"


def start_recording(path: Path) -> RecordingWriter:
    """Start a recording, with the first 50 events on the disk."""
    recorder = RecordingWriter(path)
    recorder.record(EVENTS[:50])

    def is_stored() -> bool:
        database = sqlite3.connect(path)
        stored = database.execute("SELECT count(*) FROM events").fetchone()
        database.close()
        return stored == (50,)

    wait_until(lambda: is_stored() and recorder.backlog == 0)
    return recorder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the write lock of the file."""
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    yield
    lock.execute("ROLLBACK")
    lock.close()


def tick(t: float) -> ev.Tick:
    return ev.Tick(t=t, run=1, worker=0, start=t - 0.1)


def test_frequent_events_are_dropped_first_and_range_is_noted() -> None:
    backlog = WriteQueue(limit=160, reserve=40)
    backlog.offer([(n, tick(float(n))) for n in range(1, 11)])
    assert backlog.weight == 160 and not backlog.gaps
    backlog.offer([(n, tick(float(n))) for n in range(11, 16)])
    backlog.offer([(16, ev.RunEnded(t=16.0, run=1, reason="completed"))])
    assert backlog.gaps == (Gap(11, 11.0, 15.0, 5),)
    taken = [item for _ in range(2) if isinstance(item := backlog.next_item(0.0), WriteBatch)]
    assert [number for item in taken for number, _ in item.events] == [*range(1, 11), 16]
    backlog.release(80)
    backlog.offer([(17, tick(17.0))])
    assert backlog.gaps == (Gap(11, 11.0, 17.0, 6),), "events are dropped until half of the limit is free"
    backlog.release(60)
    backlog.offer([(18, tick(18.0))])
    item = backlog.next_item(0.0)
    assert isinstance(item, WriteBatch)
    note = ev.Note(t=11.0, text="00:00:11 to 00:00:17 is not recorded: 6 events lost")
    assert item.events == [(11, note), (18, tick(18.0))]


def test_memory_is_bounded_if_writes_stall() -> None:
    backlog = WriteQueue(limit=1000, reserve=100)
    for n in range(1, 5000):
        backlog.offer([(2 * n, tick(float(n))), (2 * n + 1, ev.Note(t=float(n), text="x"))])
    assert backlog.weight <= 1100
    assert len(backlog.gaps) <= 50
    idle, busy = (sample(1.0, processes=tuple(map(process, range(count)))) for count in (0, 9))
    assert weight(busy) == weight(idle) + 9
    lost = sum(gap.lost for gap in backlog.gaps)
    assert lost > 9000 and backlog.gaps[-1].end == 4999.0


def test_every_gap_is_noted_with_a_number_of_its_own() -> None:
    backlog, numbers, number = WriteQueue(limit=32), [], 0
    for _ in range(60):
        for _ in range(4):
            number += 1
            backlog.offer([(number, tick(float(number)))])
        while backlog.weight:
            batch = backlog.next_item(0.0)
            assert isinstance(batch, WriteBatch)
            numbers += [number for number, _ in batch.events]
            backlog.release(batch.weight)
    assert len(backlog.gaps) == 50 and len(numbers) == len({*numbers})


def test_page_that_ends_in_a_gap_is_intact(path: Path) -> None:
    events = list(raw(1, 150.0, response=False))
    recorder, state = RecordingWriter(path), fold_all(events)
    recorder.record(events[:9])
    recorder.settle(state)
    recorder.close()
    with Recording(path) as recording:
        assert recording.damage == "" and last_state(recording).t == recording.end == state.t


def test_locked_file_loses_a_range_and_recording_continues(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is held until the backlog is full; then recording continues and reports the lost range."""
    monkeypatch.setattr(writing, "WriteQueue", lambda: WriteQueue(limit=3000, reserve=200))
    recorder = start_recording(path)
    t = begin = EVENTS[-1].t
    with locked(path):
        while not recorder.gaps:
            t += 0.1
            recorder.record([tick(t)])
        first_lost = t
        for _ in range(100):
            t += 0.1
            recorder.record([tick(t)])
        wait_until(lambda: recorder.trouble != "")
    wait_until(lambda: recorder.trouble == "" and recorder.backlog == 0)
    recorder.record([tick(t + 1.0), ev.Note(t=t + 1.0, text="after")])
    recorder.close()
    (gap,) = recorder.gaps
    assert "is not recorded: 101 events lost" in gap
    with Recording(path) as recording:
        found = list(recording.events())
    assert not recording.damage
    texts = [event.text for event in found if isinstance(event, ev.Note)]
    assert texts[-2:] == [gap, "after"]
    times = [event.t for event in found if isinstance(event, ev.Tick) and event.t > begin]
    assert not [instant for instant in times if first_lost <= instant < t] and times[-1] == t + 1.0


def test_stalled_disk_is_reported_until_it_responds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "STALLED", 0.2)
    recorder = start_recording(path)
    stalled = "s.cockpit: the disk does not respond; the session is recorded up to "
    with locked(path):
        recorder.record(EVENTS[50:])
        wait_until(lambda: recorder.trouble.startswith(stalled))
    wait_until(lambda: recorder.trouble == "")
    recorder.close()
    assert recorder.trouble == ""
    with Recording(path) as recording:
        assert list(recording.events()) == EVENTS


def test_moved_file_is_reported_immediately(path: Path) -> None:
    recorder = start_recording(path)
    path.rename(path.with_name("t.cockpit"))
    recorder.record(EVENTS[50:])
    wait_until(lambda: "is gone" in recorder.trouble)
    recorder.close()
    assert "is gone" in recorder.trouble


def record_all(path: Path, events: list[ev.AnyEvent], unfolded: object = None, **odd: Any) -> RecordingWriter:
    """Record the events in pages of 5 s, without `unfolded` in the state; `odd` replaces fields of all changes."""
    recorder, state = RecordingWriter(path), State()
    for event in events:
        recorder.record([event])
        state = state if event is unfolded else fold_all([event], state)
        recorder.settle(replace(state, changes=tuple(replace(change, **odd) for change in state.changes)))
    recorder.close()
    return recorder


SAMPLE = ev.HostSample(t=1.0, host="web1", round_trip=0.0, reading=reading(1.0))


def huge(number: int) -> ev.HostSample:
    """Return a sample with numbers that parsers refuse."""
    process, *others = SAMPLE.reading.processes
    processes = (replace(process, utime=number, rss=number), *others)
    return replace(SAMPLE, reading=replace(SAMPLE.reading, forks=number, processes=processes))


@pytest.mark.parametrize(
    "unencodable",
    [
        *(huge(number) for number in (1 << 63, 10**400)),
        *(ev.StatusRead(t=1.0, host="web1", page=0, values={"requests": x}) for x in (math.nan, -math.inf)),
    ],
    ids=["2**63", "10**400", "nan", "-inf"],
)
def test_event_that_cannot_be_encoded_is_reported_and_no_other_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch, unencodable: ev.AnyEvent
) -> None:
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    recorder = record_all(path, [*EVENTS[:60], unencodable, *EVENTS[60:]], unencodable)
    assert "1 events lost; an event cannot be encoded: " in recorder.trouble
    with Recording(path) as recording:
        assert same_events(recording.events(), EVENTS) and not recording.damage and recording.ended


def test_recorder_failure_is_reported_and_other_events_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to_row = writing.to_row

    def failing(number: int, event: ev.AnyEvent) -> object:
        if number == 60:
            raise MemoryError("no room")
        return to_row(number, event)

    monkeypatch.setattr(writing, "to_row", failing)
    recorder = RecordingWriter(path)
    for event in EVENTS:
        recorder.record([event])
    recorder.close()
    assert "the recorder failed: MemoryError: out of memory" in recorder.trouble
    assert not [thread for thread in threading.enumerate() if thread.name == "recorder"]
    assert not Path(f"{path}-wal").exists()
    with Recording(path) as recording:
        assert recording.ended
        kept = list(recording.events())
    assert kept[-1] == EVENTS[-1] and EVENTS[59] not in kept


def test_unpackable_page_stays_as_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    # The time of the change exceeds the integers of SQLite.
    recorder = record_all(path, EVENTS, begun=1 << 70)
    assert "cannot be packed: OverflowError" in recorder.trouble
    with Recording(path) as recording:
        assert same_events(recording.events(), EVENTS) and not recording.damage


def test_large_numbers_of_samples_round_trip(path: Path) -> None:
    """The start of a process is in clock ticks, which after days exceed any bound on session seconds."""
    events = list(EVENTS)
    for at, event in enumerate(events):
        if isinstance(event, ev.HostSample):
            processes = tuple(replace(process, start=1 << 40) for process in event.reading.processes)
            events[at] = replace(event, reading=replace(event.reading, wall=1e12, processes=processes))
    record_all(path, events)
    with Recording(path) as recording:
        assert same_events(recording.events(), events) and not recording.damage
    sample = replace(SAMPLE, reading=replace(SAMPLE.reading, forks=-(1 << 80)))
    assert ev.decode(ev.encode(sample)) == sample


# Mount a file system in a private namespace, record a run on it, and break the file system during the run.
SCRIPT = DATA["script"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


LATER = r"; the session is recorded up to 00:00:0\d; \d+ later events are not recorded"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("read-only", rf"s\.cockpit: (disk I/O error|attempt to write a read\w+ database){LATER}"),
        ("full", rf"s\.cockpit: database or disk is full{LATER}"),
        ("unmounted", r"s\.cockpit: the file is gone: moved or deleted, or its file system was unmounted"),
        # Writers to a frozen file system block in the kernel, until it is thawed after the run.
        ("frozen", None),
    ],
)
def test_run_continues_and_reports_recorded_range(url: str, tmp_path: Path, lost: str, message: str | None) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    variables = {"PATH": path, "PYTHON": sys.executable, "LOST": lost, "URL": url, "COPIES": str(tmp_path)}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **variables},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["duration"] > 5.5
    lines = [line for line in done.stderr.splitlines() if "recording: " in line]
    assert len(lines) == (message is not None)
    assert all(re.fullmatch(f"cockpit: recording: {message}", line) for line in lines), lines
    if lost == "unmounted":
        assert [*tmp_path.iterdir()] == []
        return
    with Recording(tmp_path / "s.cockpit") as recording:
        (segment,) = last_state(recording).segments
    assert 0 < segment.counts.completed <= result["completed"]
    assert (segment.counts.completed == result["completed"]) == (lost == "frozen")
