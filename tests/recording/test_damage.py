"""Any damaged file opens as far as it is readable and reports its losses, or is refused with one line."""

import random
import re
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, Note, kind
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording.pages import FREQUENT_KINDS
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from tests.data import data_of
from tests.recording.test_pages import record_pages, same_events
from tests.session.events import small_session

DATA = data_of(__file__)

EVENTS = list(small_session())
# Seconds of the session.
MIDDLE = EVENTS[-1].t / 2


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
                anchor = recording.latest_checkpoint(t)
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


def altered(path: Path, whole: bytes, *statements: str) -> Path:
    path.write_bytes(whole)
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "whole.cockpit"
    with pytest.MonkeyPatch.context() as monkeypatch:
        record_pages(path, EVENTS, monkeypatch)
    return path.read_bytes()


@pytest.fixture(scope="module")
def intact(whole: bytes, tmp_path_factory: pytest.TempPathFactory) -> Read:
    return read_all(altered(tmp_path_factory.mktemp("intact") / "s.cockpit", whole))


def test_flipped_bytes_are_survived_or_reported(whole: bytes, intact: Read, tmp_path: Path) -> None:
    """Without reported damage a file yields what was recorded; with damage a part of it."""
    assert intact.damage == "" and same_events(intact.events, EVENTS)
    drawn = random.Random(5)
    damaged, opened = 0, 0
    for number in range(30):
        content = bytearray(whole)
        for _ in range(drawn.choice((1, 3, 30))):
            content[drawn.randrange(100 if number % 3 else 0, len(content))] ^= drawn.randrange(1, 256)
        path = tmp_path / f"{number}.cockpit"
        path.write_bytes(content)
        found = read_all(path)
        if found.damage:
            recorded = iter(intact.events)
            assert all(event in recorded for event in found.events), f"file {number}: another event"
        else:
            assert found.events == intact.events, f"file {number}: lost or altered without a report"
            assert found.states == intact.states, f"file {number}: another state"
        damaged += bool(found.damage)
        opened += bool(found.events)
        path.unlink()
    assert opened > 17 and damaged > 7


# The number of a note at 27 s.
NOTE = 228


@pytest.mark.parametrize("change", DATA["any_change_of_a_row_loses_this_event_alone"])
def test_any_change_of_a_row_loses_this_event_alone(whole: bytes, intact: Read, tmp_path: Path, change: str) -> None:
    [at] = [at for at, event in enumerate(intact.events) if isinstance(event, Note) and event.t == 27.0]
    found = read_all(altered(tmp_path / "s.cockpit", whole, f"UPDATE events SET {change} WHERE seq = {NOTE}"))
    assert found.damage == "1 event from 00:00:25 to 00:00:27 is damaged and left out: wrong checksum"
    assert found.events == [*intact.events[:at], *intact.events[at + 1 :]]


def test_damaged_instant_of_an_unpacked_row_does_not_move_the_end(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    recorder = RecordingWriter(path)
    recorder.record(EVENTS)
    recorder.close()
    altered(path, path.read_bytes(), "UPDATE events SET t = 9e7 WHERE seq = 100")
    with Recording(path) as recording:
        assert recording.end == EVENTS[-1].t
        assert list(recording.events()) == [*EVENTS[:99], *EVENTS[100:]]


def test_a_damaged_number_hides_no_other_event(whole: bytes, intact: Read, tmp_path: Path) -> None:
    """The number of an event is the key of the table: a wrong one misleads the search for those around it."""
    content = bytearray(whole)
    # The key of one byte, the header of its record, its instant, its kind.
    found_key = re.search(rb"\x73(?=.\x00\x07.{3,6}.{8}change_begun)", whole, re.DOTALL)
    assert found_key is not None
    content[found_key.start()] = 127
    path = tmp_path / "s.cockpit"
    path.write_bytes(content)
    found = read_all(path)
    assert "1 event is missing from 00:00:10 to 00:00:15" in found.damage
    assert found.events == [event for event in intact.events if kind(event) != "change_begun"]


@pytest.mark.parametrize("column", ["first", "last", "begin", "end", "rows", "grown"])
def test_any_change_of_a_page_loses_its_ticks_and_samples_alone(
    whole: bytes, intact: Read, tmp_path: Path, column: str
) -> None:
    change = f"{column} = replace({column}, '1', '2')" if column == "grown" else f"{column} = {column} + 1"
    found = read_all(altered(tmp_path / "s.cockpit", whole, f"UPDATE pages SET {change} WHERE first = 61"))
    lost = "ticks and samples from 00:00:10 to 00:00:15 are damaged and left out: wrong checksum"
    assert found.damage == lost
    gone = [event for event in intact.events if event not in found.events]
    assert len(gone) > 10 and found.events == [event for event in intact.events if event not in gone]
    assert all(kind(event) in FREQUENT_KINDS and 10 <= event.t <= 15.1 for event in gone)


def test_damaged_events_and_states_of_pages_are_left_out(whole: bytes, tmp_path: Path) -> None:
    path = altered(tmp_path / "s.cockpit", whole)
    database = sqlite3.connect(path)
    for column, first in (("events", 118), ("state", 400)):
        (blob,) = database.execute(f"SELECT {column} FROM pages WHERE first = ?", (first,)).fetchone()
        flipped = bytes([*blob[:40], blob[40] ^ 255, *blob[41:]])
        database.execute(f"UPDATE pages SET {column} = ? WHERE first = ?", (flipped, first))
    database.commit()
    database.close()
    found = read_all(path)
    assert 0 < len(found.events) < len(EVENTS) * 0.8 and "damaged and left out" in found.damage


def test_lost_ranges_are_reported(whole: bytes, tmp_path: Path) -> None:
    """Lost pages are as if the database has lost the table's leaves."""
    found = read_all(altered(tmp_path / "s.cockpit", whole, "DELETE FROM pages WHERE first IN (118, 175, 400)"))
    first, second = found.damage.split("; ")
    assert first == "109 events are missing from 00:00:15 to 00:00:25"
    assert second == "50 events are missing from 00:00:50 to 00:00:55"
    assert read_all(altered(tmp_path / "s.cockpit", whole, "DELETE FROM pages")).damage
    in_a_row = altered(tmp_path / "s.cockpit", whole, "UPDATE events SET crc = 1 WHERE seq BETWEEN 2 AND 3")
    assert read_all(in_a_row).damage == "2 events from 00:00:00 to 00:00:05 are damaged and left out: wrong checksum"


def test_a_damaged_note_is_left_out(whole: bytes, tmp_path: Path) -> None:
    path = altered(tmp_path / "s.cockpit", whole)
    with Recording(path) as recording:
        recording.annotate(3.0, "first")
        recording.annotate(4.0, "second")
    altered(path, path.read_bytes(), "UPDATE notes SET text = 'worst' WHERE text = 'first'")
    with Recording(path) as recording:
        assert [note.text for note in recording.notes] == ["second"]
        assert recording.damage == "a note is damaged and left out: wrong checksum"


def test_truncation_is_reported_at_any_length(whole: bytes, tmp_path: Path) -> None:
    for share in range(0, 100, 8):
        path = tmp_path / "cut.cockpit"
        path.write_bytes(whole[: len(whole) * share // 100])
        found = read_all(path)
        assert found.damage and len(found.events) < len(EVENTS)
