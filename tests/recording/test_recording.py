"""Recordings are read back, complete or cut short; other files are refused with one line."""

import resource
import sqlite3
import stat
from collections.abc import Iterable
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from tests.recording import kills
from tests.session.events import small_session


def recorded(path: Path, events: Iterable[AnyEvent] | None = None) -> Path:
    """Record the events, by default a small session."""
    writer = RecordingWriter(path)
    for event in small_session() if events is None else events:
        writer.record([event])
    writer.close()
    assert writer.trouble == ""
    return path


def test_events_are_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = recorded(tmp_path / "s.cockpit")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.cockpit"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with Recording(path) as recording:
        assert list(recording.events()) == list(small_session())
        assert recording.end == 60.0
        assert recording.started.name == "small"
    database = sqlite3.connect(path)
    kinds = dict(database.execute("SELECT kind, count(*) FROM events GROUP BY kind"))
    assert (kinds["tick"], kinds["run_started"], kinds["note"]) == (400, 2, 2)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq = 10")
    database.commit()
    database.close()
    with Recording(path) as recording:
        events = list(small_session())
        assert list(recording.events()) == [*events[:9], *events[10:]]
        assert recording.damage == "1 event from 00:00:05 to 00:00:05 is damaged and left out: wrong checksum"


def test_recording_in_progress_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    writer = RecordingWriter(path)
    events = list(small_session())
    writer.record(events[:50])
    while True:
        try:
            with Recording(path) as recording:
                assert list(recording.events()) == events[:50]
            break
        except RecordingError as error:
            assert "has no events" in str(error)
    writer.close()


@pytest.mark.parametrize("seed", [1, 3])
def test_kill_9_loses_less_than_a_second(seed: int, tmp_path: Path) -> None:
    """Before and after the first page. On a busy machine an attempt may lose more: one of five must pass."""
    for attempt in range(5):
        killed = kills.killed(tmp_path / f"{attempt}.cockpit", seed, 10.0)
        assert killed.opened, killed
        if killed.missing <= 1.0:
            return
    pytest.fail(str(killed))


def test_unwritable_path_is_refused_immediately(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file or directory"):
        RecordingWriter(tmp_path / "none" / "s.cockpit")
    recorded(tmp_path / "s.cockpit")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(tmp_path / "s.cockpit")


def test_full_disk_is_reported_and_session_continues(tmp_path: Path) -> None:
    """A file size limit of the process makes writes fail, too."""
    writer = RecordingWriter(tmp_path / "s.cockpit")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, limits[1]))
    try:
        writer.record(list(small_session()))
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert writer.trouble.startswith("s.cockpit: ") and "events" in writer.trouble


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello " * 1000)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE events (t)")
    other.commit()
    other.close()
    newer = sqlite3.connect(recorded(tmp_path / "newer"))
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    messages = {
        "none": "no such recording",
        "empty": "is not a cockpit recording",
        "text": "cannot be read as a recording",
        "other": "is not a cockpit recording",
        "newer": "written by a newer cockpit",
        ".": "is a folder",
    }
    for name, message in messages.items():
        with pytest.raises(RecordingError, match=message):
            Recording(tmp_path / name)
