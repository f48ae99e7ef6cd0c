"""The library of unnamed recordings: file names, listing, renaming and deletion; other files are not touched."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, SessionEnded, SessionStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.load.plan import LoadPlan
from cockpit.recording import library
from tests.capacities import SECONDS, search_events
from tests.recording.test_recording import recorded
from tests.session.events import small_session

WALL = 1_700_000_000.0


@pytest.fixture(autouse=True)
def junk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a library with a file that is no recording."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert library.recent(5) == []
    path = library.folder() / "junk.cockpit"
    path.parent.mkdir(parents=True)
    path.write_text("hello " * 1000)
    return path


def recorded_in_library(name: str, events: Sequence[AnyEvent] = tuple(small_session())) -> Path:
    writer = library.new_recording(name, WALL)
    writer.record(list(events))
    writer.settle(fold_all(events))
    writer.close()
    return Path(writer.path)


def test_names_have_profile_and_time_and_are_unique(junk: Path) -> None:
    junk.unlink()
    junk.parent.rmdir()
    writer = library.new_recording("spare servers/../x", WALL)
    other = library.new_recording("spare servers/../x", WALL)
    first, second = Path(writer.path), Path(other.path)
    assert first.parent == library.folder() and first.name.startswith("spare-servers-..-x-2023111")
    assert stat.S_IMODE(library.folder().stat().st_mode) == 0o700
    writer.close()
    other.close()
    assert second.stem == f"{first.stem}-2"


def test_recording_is_found_by_path_or_name(tmp_path: Path) -> None:
    recording = recorded_in_library("x")
    assert library.find(recording.stem) == library.find(recording.name) == recording
    other = recorded(tmp_path / "other.cockpit")
    assert library.find(str(other)) == other
    assert library.find("nothing") == Path("nothing")
    with pytest.raises(RecordingError, match="no such recording in the library"):
        library.in_library("../other")


def test_recordings_are_listed_renamed_and_deleted() -> None:
    recording = recorded_in_library("x")
    listed = {entry.name: entry for entry in library.list_recordings()}
    entry = listed[recording.stem]
    assert (entry.session, entry.runs, entry.seconds, entry.ended) == ("small", 2, 60.0, True)
    assert listed["junk"].problem.startswith("cannot be read")
    with pytest.raises(RecordingError, match="invalid name"):
        library.rename(recording.stem, "../x")
    with pytest.raises(RecordingError, match="exists already"):
        library.rename(recording.stem, "junk")
    assert library.rename(recording.stem, "before").is_file()
    assert library.delete("before") > 0
    assert [entry.name for entry in library.list_recordings()] == ["junk"]


def test_newest_recordings_are_listed_with_summary(junk: Path) -> None:
    for age, name in enumerate(("newest", "older", "oldest")):
        os.utime(recorded_in_library(name), (WALL - age, WALL - age))
    os.utime(junk, (WALL - 1.5, WALL - 1.5))
    found = {entry.info.name.partition("-")[0]: entry for entry in library.recent(3)}
    assert set(found) == {"newest", "older", "junk"}
    newest = found["newest"]
    assert newest.rate is not None and newest.rate > 0 and newest.p99_ms is not None
    assert newest.info.runs == 2
    assert found["junk"].info.problem and found["junk"].rate is None


def test_capacity_is_listed_with_its_limits(junk: Path) -> None:
    junk.unlink()
    plan = LoadPlan(url="http://a/", rate=50.0)
    recorded_in_library(
        "x",
        (
            SessionStarted(t=0.0, version="1", name="x", wall=WALL, target=plan.url),
            *search_events(0.0, 1, plan, 200.0),
            SessionEnded(t=SECONDS + 1.0),
        ),
    )
    (entry,) = library.recent(1)
    rate, _, limits = entry.capacity.partition("/s at ")
    assert float(rate) == pytest.approx(200, rel=0.1) and limits == "p99 < 50ms, failed < 1%"


def test_recording_in_progress_cannot_be_deleted() -> None:
    writer = library.new_recording("x", WALL)
    path = Path(writer.path)
    writer.record(list(small_session())[:5])
    with pytest.raises(RecordingError, match="is open in another cockpit"):
        library.delete(path.stem)
    writer.close()
    library.delete(path.stem)
