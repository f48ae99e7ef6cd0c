"""Recordings are read back, complete or cut short; other files are refused with one line."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from tests.recording import kills
from tests.session.events import small_session


def recorded(path: Path) -> Path:
    writer = RecordingWriter(path)
    for event in small_session():
        writer.record([event])
    writer.close()
    assert writer.trouble == ""
    return path


def test_events_are_read_in_order_of_arrival(tmp_path: Path) -> None:
    with Recording(recorded(tmp_path / "s.cockpit")) as recording:
        assert list(recording.events()) == list(small_session())
        assert recording.end == 60.0
        assert recording.started.name == "small"


def test_recording_is_a_single_private_file(tmp_path: Path) -> None:
    path = recorded(tmp_path / "s.cockpit")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.cockpit"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_events_can_be_queried_with_sqlite3(tmp_path: Path) -> None:
    database = sqlite3.connect(recorded(tmp_path / "s.cockpit"))
    kinds = dict(database.execute("SELECT kind, count(*) FROM events GROUP BY kind"))
    database.close()
    assert (kinds["tick"], kinds["run_started"], kinds["note"]) == (400, 2, 2)


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


@pytest.mark.parametrize("seed", range(4))
def test_kill_9_loses_less_than_a_second(seed: int, tmp_path: Path) -> None:
    """On a busy machine an attempt may lose more: only one of five attempts must pass."""
    for attempt in range(5):
        killed = kills.killed(tmp_path / f"{attempt}.cockpit", seed)
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


def test_full_disk_is_reported_and_session_continues() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full is missing")
    # A file system of 64 KiB would need root; a file size limit of the process makes writes fail, too.
    script = (
        "import resource, signal, sys, tempfile; from pathlib import Path\n"
        "from cockpit.recording.writer import RecordingWriter\n"
        "from tests.session.events import small_session\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "folder = tempfile.TemporaryDirectory()\n"
        "writer = RecordingWriter(Path(folder.name) / 's.cockpit')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "writer.record(list(small_session()))\n"
        "writer.close()\n"
        "print(writer.trouble)\n"
        "folder.cleanup()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("s.cockpit: ")
    assert "events" in done.stdout


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


def test_damaged_event_is_skipped_and_reported(tmp_path: Path) -> None:
    path = recorded(tmp_path / "s.cockpit")
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET body = x'00ff' WHERE seq = 10")
    database.commit()
    database.close()
    with Recording(path) as recording:
        events = list(small_session())
        assert list(recording.events()) == [*events[:9], *events[10:]]
        assert recording.damage == "1 event from 00:00:05 to 00:00:05 is damaged and left out: wrong checksum"
