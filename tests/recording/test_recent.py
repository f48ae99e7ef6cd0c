"""The newest recordings with their summaries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.model.fold import fold_all
from cockpit.recording import library
from cockpit.recording.library import recent
from tests.session.events import small_session

WALL = 1_700_000_000.0


@pytest.fixture(autouse=True)
def empty_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_newest_recordings_are_listed_with_summary() -> None:
    assert recent(5) == []
    for age, name in enumerate(("newest", "older", "oldest")):
        writer = library.new_recording(name, WALL)
        path = Path(writer.path)
        writer.record(list(small_session()))
        writer.settle(fold_all(small_session()))
        writer.close()
        os.utime(path, (WALL - age, WALL - age))
    (library.folder() / "junk.cockpit").write_text("hello " * 1000)
    os.utime(library.folder() / "junk.cockpit", (WALL - 1.5, WALL - 1.5))
    found = {entry.kept.name.partition("-")[0]: entry for entry in recent(3)}
    assert set(found) == {"newest", "older", "junk"}
    newest = found["newest"]
    assert newest.rate is not None and newest.rate > 0 and newest.p99_ms is not None
    assert newest.kept.runs == 2
    assert found["junk"].kept.problem and found["junk"].rate is None
