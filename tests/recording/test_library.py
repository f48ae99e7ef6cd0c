"""Recordings that nobody names: where they go, what is told of them, and that nothing else is touched."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError
from cockpit.recording import library
from tests.recording.test_recording import recorded
from tests.session.events import small_session

WALL = 1_700_000_000.0


@pytest.fixture(autouse=True)
def own_shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def recorded_in_library() -> Path:
    writer = library.new_recording("x", WALL)
    writer.record(list(small_session()))
    writer.close()
    return Path(writer.path)


def test_names_tell_profile_and_time_and_are_never_taken_twice() -> None:
    one = library.new_recording("spare servers/../x", WALL)
    other = library.new_recording("spare servers/../x", WALL)
    first, second = Path(one.path), Path(other.path)
    assert first.parent == library.folder() and first.name.startswith("spare-servers-..-x-2023111")
    assert stat.S_IMODE(library.folder().stat().st_mode) == 0o700
    one.close()
    other.close()
    assert second.stem == f"{first.stem}-2"


def test_found_by_file_or_by_name(tmp_path: Path) -> None:
    kept = recorded_in_library()
    assert library.find(kept.stem) == library.find(kept.name) == kept
    other = recorded(tmp_path / "other.cockpit")
    assert library.find(str(other)) == other
    assert library.find("nothing") == Path("nothing")
    with pytest.raises(RecordingError, match="no recording of that name"):
        library.in_library("../other")


def test_listed_renamed_deleted() -> None:
    kept = recorded_in_library()
    (library.folder() / "junk.cockpit").write_text("hello " * 1000)
    told = {one.name: one for one in library.all_kept()}
    about = told[kept.stem]
    assert (about.session, about.runs, about.seconds, about.ended) == ("small", 2, 60.0, True)
    assert told["junk"].problem.startswith("does not read")
    with pytest.raises(RecordingError, match="a name is"):
        library.rename(kept.stem, "../x")
    with pytest.raises(RecordingError, match="exists already"):
        library.rename(kept.stem, "junk")
    assert library.rename(kept.stem, "before").is_file()
    assert library.delete("before") > 0
    assert [one.name for one in library.all_kept()] == ["junk"]


def test_what_is_being_written_stays() -> None:
    writer = library.new_recording("x", WALL)
    path = Path(writer.path)
    writer.record(list(small_session())[:5])
    with pytest.raises(RecordingError, match="is being written"):
        library.delete(path.stem)
    writer.close()
    library.delete(path.stem)
