"""Any damaged file opens as far as it is readable and reports its losses, or is refused with one line."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError
from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording
from tests.commands import cockpit
from tests.recording.test_pages import record_pages
from tests.session.events import small_session

EVENTS = list(small_session())


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    record_pages(tmp_path / "whole.cockpit", EVENTS, monkeypatch)
    return (tmp_path / "whole.cockpit").read_bytes()


def read_all(path: Path) -> tuple[int, str]:
    """Return the number of events and the reported damage; the only error is a RecordingError of one line."""
    try:
        with Recording(path) as recording:
            count = len(list(recording.events()))
            for t in (0.0, recording.end / 2, recording.end):
                anchor = recording.anchor(t)
                state = fold_all(
                    [record.event for record in recording.following(anchor.number, anchor.instant, t)], anchor.state
                )
                assert len(list(state.seconds)) == len(state.seconds)
                assert all(len(list(host.points)) == len(host.points) for host in state.hosts.values())
            return count, recording.damage
    except RecordingError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return 0, str(error)


def test_flipped_bytes_are_survived_or_reported(whole: bytes, tmp_path: Path) -> None:
    drawn = random.Random(5)
    opened = 0
    for number in range(60):
        content = bytearray(whole)
        for _ in range(drawn.choice((1, 3, 30))):
            content[drawn.randrange(100 if number % 3 else 0, len(content))] ^= drawn.randrange(1, 256)
        path = tmp_path / f"{number}.cockpit"
        path.write_bytes(content)
        count, damage = read_all(path)
        opened += count > 0
        assert damage or count == len(EVENTS) or count > 0
        path.unlink()
    assert opened > 35


def test_truncation_is_reported_at_any_length(whole: bytes, tmp_path: Path) -> None:
    for share in range(0, 100, 4):
        path = tmp_path / "cut.cockpit"
        path.write_bytes(whole[: len(whole) * share // 100])
        count, damage = read_all(path)
        assert damage and count < len(EVENTS)


def test_replay_of_damaged_file_prints_a_single_line(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "empty.cockpit").touch()
    (tmp_path / "text.cockpit").write_text("hello " * 1000)
    (tmp_path / "folder.cockpit").mkdir()
    other = sqlite3.connect(tmp_path / "other.cockpit")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    (tmp_path / "newer.cockpit").write_bytes(whole)
    newer = sqlite3.connect(tmp_path / "newer.cockpit")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    (tmp_path / "cut.cockpit").write_bytes(whole[: len(whole) // 8])
    for name in ("empty", "text", "folder", "other", "newer", "cut", "none"):
        done = cockpit("replay", tmp_path / f"{name}.cockpit")
        assert done.returncode == 2 and done.stderr.count("\n") == 1, (name, done.stderr)
        assert done.stderr.startswith("cockpit: ")
