"""Any damaged file opens as far as it is readable and reports its losses, or is refused with one line."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, kind
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.pages import FREQUENT_KINDS
from cockpit.recording.reader import Recording
from tests.commands import cockpit
from tests.recording.test_pages import record_pages, same_events
from tests.session.events import small_session

EVENTS = list(small_session())
# Seconds of the session.
MIDDLE = EVENTS[-1].t / 2


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    record_pages(tmp_path / "whole.cockpit", EVENTS, monkeypatch)
    return (tmp_path / "whole.cockpit").read_bytes()


class Read(NamedTuple):
    """Everything that a file yields: events, states at the beginning, the middle and the end, and reported damage."""

    events: list[AnyEvent]
    states: list[State]
    damage: str


def read_all(path: Path) -> Read:
    """Read a file; the only error is a RecordingError of one line, which is returned as damage."""
    try:
        with Recording(path) as recording:
            events, states = list(recording.events()), []
            for t in (0.0, MIDDLE, recording.end):
                anchor = recording.anchor(t)
                state = fold_all(
                    [record.event for record in recording.following(anchor.number, anchor.instant, t)], anchor.state
                )
                assert len(list(state.seconds)) == len(state.seconds)
                assert all(len(list(host.points)) == len(host.points) for host in state.hosts.values())
                states.append(state)
            return Read(events, states, recording.damage)
    except RecordingError as error:
        assert "\n" not in str(error) and str(path) in str(error)
        return Read([], [], str(error))


def with_checksum(events: list[AnyEvent]) -> list[AnyEvent]:
    """Return the events in pages. A flipped letter in the text of other events is not noticed."""
    return [event for event in events if kind(event) in FREQUENT_KINDS]


def test_flipped_bytes_are_survived_or_reported(whole: bytes, tmp_path: Path) -> None:
    """Without reported damage a file yields what was recorded; with damage a part of it."""
    (tmp_path / "intact.cockpit").write_bytes(whole)
    intact = read_all(tmp_path / "intact.cockpit")
    assert intact.damage == "" and same_events(intact.events, EVENTS)
    drawn = random.Random(5)
    damaged, opened = 0, 0
    for number in range(60):
        content = bytearray(whole)
        for _ in range(drawn.choice((1, 3, 30))):
            content[drawn.randrange(100 if number % 3 else 0, len(content))] ^= drawn.randrange(1, 256)
        path = tmp_path / f"{number}.cockpit"
        path.write_bytes(content)
        found = read_all(path)
        if found.damage:
            recorded = iter(with_checksum(intact.events))
            assert all(event in recorded for event in with_checksum(found.events)), f"file {number}: another event"
        else:
            assert [*map(type, found.events)] == [*map(type, intact.events)], f"file {number}: lost without a report"
            assert with_checksum(found.events) == with_checksum(intact.events), f"file {number}: another event"
            assert found.states == intact.states or found.events != intact.events, f"file {number}: another state"
        damaged += bool(found.damage)
        opened += bool(found.events)
        path.unlink()
    assert opened > 35 and damaged > 15


def test_truncation_is_reported_at_any_length(whole: bytes, tmp_path: Path) -> None:
    for share in range(0, 100, 4):
        path = tmp_path / "cut.cockpit"
        path.write_bytes(whole[: len(whole) * share // 100])
        found = read_all(path)
        assert found.damage and len(found.events) < len(EVENTS)


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
