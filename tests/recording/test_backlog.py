"""A recorder that cannot keep up reports lost events, in bounded memory, and continues; no failure is silent."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.recording import writer as writing
from cockpit.recording.reader import Recording
from cockpit.recording.write_queue import Gap, WriteBatch, WriteQueue
from cockpit.recording.writer import RecordingWriter
from tests.recording.test_pages import same_events
from tests.session.events import reading, small_session


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def stored_events(path: Path) -> int:
    database = sqlite3.connect(path)
    found = int(database.execute("SELECT count(*) FROM events").fetchone()[0])
    database.close()
    return found


def tick(t: float) -> ev.Tick:
    return ev.Tick(t=t, run=1, worker=0, start=t - 0.1)


def test_frequent_events_are_dropped_first_and_range_is_noted() -> None:
    backlog = WriteQueue(limit=160, reserve=40)
    backlog.offer([(n, tick(float(n))) for n in range(1, 11)])
    assert backlog.weight == 160 and not backlog.gaps
    backlog.offer([(n, tick(float(n))) for n in range(11, 16)])
    backlog.offer([(16, ev.RunEnded(t=16.0, run=1, reason="completed"))])
    assert backlog.gaps == (Gap(11, 11.0, 15.0, 5),)
    taken = [backlog.take(0.0), backlog.take(0.0)]
    assert [number for item in taken if isinstance(item, WriteBatch) for number, _ in item.events] == [
        *range(1, 11),
        16,
    ]
    backlog.release(80)
    backlog.offer([(17, tick(17.0))])
    assert backlog.gaps == (Gap(11, 11.0, 17.0, 6),), "events are dropped until half of the limit is free"
    backlog.release(60)
    backlog.offer([(18, tick(18.0))])
    item = backlog.take(0.0)
    assert isinstance(item, WriteBatch)
    assert item.events == [
        (11, ev.Note(t=11.0, text="00:00:11 to 00:00:17 is not recorded: 6 events lost")),
        (18, tick(18.0)),
    ]


def test_memory_is_bounded_if_writes_stall() -> None:
    backlog = WriteQueue(limit=1000, reserve=100)
    for n in range(1, 5000):
        backlog.offer([(2 * n, tick(float(n))), (2 * n + 1, ev.Note(t=float(n), text="x"))])
    assert backlog.weight <= 1100
    assert len(backlog.gaps) <= 50
    lost = sum(gap.lost for gap in backlog.gaps)
    assert lost > 9000 and backlog.gaps[-1].end == 4999.0


def test_locked_file_loses_a_range_and_recording_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real write lock is held until the backlog is full; then recording continues and reports the lost range."""
    monkeypatch.setattr(writing, "WriteQueue", lambda: WriteQueue(limit=3000, reserve=200))
    path = tmp_path / "s.cockpit"
    recorder, events = RecordingWriter(path), list(small_session())
    recorder.record(events[:50])
    until(lambda: stored_events(path) == 50 and recorder.backlog == 0)
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    begin = events[-1].t
    t = begin
    while not recorder.gaps:
        t += 0.1
        recorder.record([tick(t)])
    first_lost = t
    for _ in range(100):
        t += 0.1
        recorder.record([tick(t)])
    until(lambda: recorder.trouble != "")
    lock.execute("ROLLBACK")
    lock.close()
    until(lambda: recorder.trouble == "" and recorder.backlog == 0)
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


def record_all(recorder: RecordingWriter, events: list[ev.AnyEvent]) -> None:
    state = State()
    for event in events:
        recorder.record([event])
        state = fold_all([event], state)
        recorder.settle(state)


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, 10**400], ids=["2**63", "2**64", "10**400"])
def test_numbers_beyond_64_bits_do_not_stop_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Parsers refuse such numbers; an event with such a number is reported, and no other event is lost."""
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    path = tmp_path / "s.cockpit"
    events = list(small_session())
    at = next(n for n, event in enumerate(events) if isinstance(event, ev.HostSample) and event.t > 3)
    sample = events[at]
    assert isinstance(sample, ev.HostSample)
    process = replace(sample.reading.processes[0], utime=number, rss=number)
    huge = replace(sample.reading, forks=number, processes=(process, *sample.reading.processes[1:]))
    events[at] = replace(sample, reading=huge)
    recorder = RecordingWriter(path)
    # The state is folded without the event: how the model treats such numbers is not tested here.
    state = State()
    for n, event in enumerate(events):
        recorder.record([event])
        state = state if n == at else fold_all([event], state)
        recorder.settle(state)
    recorder.close()
    with Recording(path) as recording:
        assert same_events(recording.events(), [*events[:at], *events[at + 1 :]])
        assert recording.ended
    assert "1 events lost; an event cannot be encoded: " in recorder.trouble


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_number_is_rejected_and_reported(tmp_path: Path, value: float) -> None:
    path = tmp_path / "s.cockpit"
    recorder, events = RecordingWriter(path), list(small_session())
    bad = ev.StatusRead(t=1.0, host="web1", page=0, values={"requests": value})
    record_all(recorder, [*events[:60], bad, *events[60:]])
    recorder.close()
    assert "1 events lost; an event cannot be encoded: " in recorder.trouble
    with Recording(path) as recording:
        assert same_events(recording.events(), events) and not recording.damage


def test_recorder_failure_is_reported_and_other_events_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.cockpit"
    events = list(small_session())
    to_row = writing.to_row

    def failing(number: int, event: ev.AnyEvent) -> object:
        if number == 60:
            raise MemoryError("no room")
        return to_row(number, event)

    monkeypatch.setattr(writing, "to_row", failing)
    recorder = RecordingWriter(path)
    for event in events:
        recorder.record([event])
    recorder.close()
    assert "the recorder failed: MemoryError: out of memory" in recorder.trouble
    assert not [thread for thread in threading.enumerate() if thread.name == "recorder"]
    assert not Path(f"{path}-wal").exists()
    with Recording(path) as recording:
        assert recording.ended
        kept = list(recording.events())
    assert kept[-1] == events[-1] and events[59] not in kept


def test_unpackable_page_stays_as_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    events = list(small_session())
    path = tmp_path / "s.cockpit"
    recorder = RecordingWriter(path)
    state = State()
    for event in events:
        recorder.record([event])
        state = fold_all([event], state)
        # A time of a change that exceeds the integers of SQLite.
        odd = [replace(change, begun=1 << 70) for change in state.changes]
        recorder.settle(replace(state, changes=tuple(odd)))
    recorder.close()
    assert "cannot be packed: OverflowError" in recorder.trouble
    with Recording(path) as recording:
        assert same_events(recording.events(), events) and not recording.damage


def test_process_start_after_years_of_uptime_round_trips(tmp_path: Path) -> None:
    """The start is in clock ticks, which after days exceed any bound on session seconds."""
    path = tmp_path / "s.cockpit"
    events = list(small_session())
    for at, event in enumerate(events):
        if isinstance(event, ev.HostSample):
            processes = tuple(replace(process, start=1 << 40) for process in event.reading.processes)
            events[at] = replace(event, reading=replace(event.reading, wall=1e12, processes=processes))
    recorder = RecordingWriter(path)
    record_all(recorder, events)
    recorder.close()
    with Recording(path) as recording:
        assert same_events(recording.events(), events) and not recording.damage


def test_sample_beyond_64_bits_round_trips(tmp_path: Path) -> None:
    sample = ev.HostSample(t=1.0, host="h", round_trip=0.0, reading=replace(reading(1.0), forks=-(1 << 80)))
    assert ev.decode(ev.encode(sample)) == sample
