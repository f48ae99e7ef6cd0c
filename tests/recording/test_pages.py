"""A recording in pages is the session again: the same events but for compacted ticks, and at the end of each page the
state that was folded live."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from cockpit.model.events import AnyEvent, Tick
from cockpit.model.fold import fold, fold_all
from cockpit.model.state import State
from cockpit.recording import writer
from cockpit.recording.checkpoints import KeptState
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from tests.session.events import (
    session_with_a_generator,
    session_with_a_round,
    session_with_a_search,
    small_session,
)

RECORDINGS = Path(__file__).parents[1] / "recordings"
PAGE = 5.0


def settled(path: Path, events: list[AnyEvent], monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Records them as a session does, in short pages; the states after each event."""
    monkeypatch.setattr(writer, "PAGE_SECONDS", PAGE)
    recorder = RecordingWriter(path)
    states = [State()]
    for at in range(0, len(events), 3):
        recorder.record(events[at : at + 3])
        for event in events[at : at + 3]:
            states.append(fold(states[-1], event))
        recorder.settle(states[-1])
    recorder.close()
    assert recorder.trouble == ""
    return states


def of_the_lab(name: str) -> list[AnyEvent]:
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        return list(recording.events())


def same_events(found: Iterable[AnyEvent], expected: Iterable[AnyEvent]) -> bool:
    """Whether both are the same but for compacted ticks, and these count the same."""
    found, expected = list(found), list(expected)
    others, wanted = ([event for event in some if not isinstance(event, Tick)] for some in (found, expected))
    rows, wanted_rows = (fold_all(some).segments for some in (found, expected))
    return others == wanted and rows == wanted_rows


def test_a_checkpoint_has_every_field_of_a_state() -> None:
    """But for the seconds, which are series, and a study, whose events are read again."""
    assert {*KeptState.__struct_fields__, "closed_seconds", "study"} == set(State.__struct_fields__)


@pytest.mark.parametrize("name", ["small", "rounds", "generators", "search", "spare-servers", "two-hosts"])
def test_the_same_events_and_at_each_page_the_same_state(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {
        "small": small_session,
        "rounds": session_with_a_round,
        "generators": session_with_a_generator,
        "search": session_with_a_search,
    }
    events = list(made[name]()) if name in made else of_the_lab(name)
    states = settled(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        found = list(recording.events())
        assert same_events(found, events)
        assert recording.damage == "" and last_state(recording) == states[-1]
        anchors = {recording.anchor(t).number: recording.anchor(t) for t in range(int(recording.end))}
        assert len(anchors) > recording.end / PAGE / 2
        for number, anchor in anchors.items():
            assert anchor.state == states[number], number
        # Whichever way one comes: from the page before it, or from the beginning.
        for t in range(0, int(recording.end), 7):
            anchor = recording.anchor(t)
            near = fold_all([one.event for one in recording.following(anchor.number, anchor.instant, t)], anchor.state)
            far = fold_all(one.event for one in recording.following(0, -1.0, t))
            assert near.segments == far.segments
            for one in ("hosts", "changes", "rounds", "markers", "knobs"):
                assert getattr(near, one) == getattr(far, one), one


def test_what_sqlite3_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(small_session())
    final = settled(tmp_path / "s.cockpit", events, monkeypatch)[-1]
    database = sqlite3.connect(tmp_path / "s.cockpit")
    ask = database.execute
    assert ask("SELECT count(*), sum(completed) FROM seconds").fetchone() == (
        len(final.seconds),
        sum(second.completed for second in final.seconds),
    )
    rows = ask("SELECT number, label, completed, p99_ms FROM runs ORDER BY number").fetchall()
    assert [row[:3] for row in rows] == [(row.number, row.label, row.counts.completed) for row in final.segments]
    assert rows[0][3] == 1000 * final.segments[0].counts.latency.percentile(99)
    assert ask("SELECT letter, outcome FROM changes").fetchall() == [("A", "applied")]
    assert ask("SELECT count(*) FROM markers").fetchone() == (len(final.markers),)
    assert ask("SELECT kind FROM events WHERE kind IN ('tick', 'host_sample')").fetchall() == []
    database.close()


def test_a_damaged_page_is_left_out_and_the_rest_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(small_session())
    settled(tmp_path / "s.cockpit", events, monkeypatch)
    database = sqlite3.connect(tmp_path / "s.cockpit")
    firsts = [first for (first,) in database.execute("SELECT first FROM pages ORDER BY first")]
    for column, first in (("events", firsts[2]), ("state", firsts[4])):
        (blob,) = database.execute(f"SELECT {column} FROM pages WHERE first = ?", (first,)).fetchone()
        flipped = bytes([*blob[:40], blob[40] ^ 255, *blob[41:]])
        database.execute(f"UPDATE pages SET {column} = ? WHERE first = ?", (flipped, first))
    database.commit()
    database.close()
    with Recording(tmp_path / "s.cockpit") as recording:
        found = list(recording.events())
        assert 0 < len(found) < len(events) * 0.7
        assert "is damaged and left out" in recording.damage
        for t in range(0, 60, 7):
            anchor = recording.anchor(t)
            fold_all([one.event for one in recording.following(anchor.number, anchor.instant, t)], anchor.state)
