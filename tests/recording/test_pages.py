"""A recording in pages reproduces the session: the same events except for compacted ticks, and at the end of each page
the state that was folded live."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from cockpit.model.events import AnyEvent
from cockpit.model.fold import fold, fold_all
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.recording import writer
from cockpit.recording.checkpoints import StateCheckpoint
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


def record_pages(path: Path, events: list[AnyEvent], monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Record the events as a session does, in short pages; return the states after each event."""
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


def lab_events(name: str) -> list[AnyEvent]:
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        return list(recording.events())


def same_events(found: Iterable[AnyEvent], expected: Iterable[AnyEvent]) -> bool:
    """Return whether both have the same events except for compacted ticks, and the same counts."""
    found, expected = list(found), list(expected)
    others, expected_others = (
        [event for event in events if not isinstance(event, Tick)] for events in (found, expected)
    )
    return others == expected_others and fold_all(found).segments == fold_all(expected).segments


def test_checkpoint_has_all_fields_of_state() -> None:
    """Except for the seconds, which are series, and a study, whose events are read again."""
    assert {*StateCheckpoint.__struct_fields__, "closed_seconds", "study"} == set(State.__struct_fields__)


SESSIONS = {
    "small": lambda: list(small_session()),
    "rounds": lambda: list(session_with_a_round()),
    "generators": lambda: list(session_with_a_generator()),
    "search": lambda: list(session_with_a_search()),
    "two-hosts": lambda: lab_events("two-hosts"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_pages_reproduce_events_and_states(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = SESSIONS[name]()
    states = record_pages(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        assert same_events(recording.events(), events)
        assert recording.damage == "" and last_state(recording) == states[-1]
        anchors = {
            anchor.number: anchor for t in range(int(recording.end)) for anchor in (recording.latest_checkpoint(t),)
        }
        assert len(anchors) > recording.end / PAGE / 2
        for number, anchor in anchors.items():
            assert anchor.state == states[number], number
        # The state at a time is the same from the preceding page and from the beginning.
        for t in range(0, int(recording.end), 7):
            anchor = recording.latest_checkpoint(t)
            following = recording.following(anchor.number, anchor.instant, t)
            near = fold_all([record.event for record in following], anchor.state)
            far = fold_all(record.event for record in recording.following(0, -1.0, t))
            for field in ("segments", "hosts", "changes", "rounds", "markers", "knobs"):
                assert getattr(near, field) == getattr(far, field), field


def test_sqlite_tables_can_be_queried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(small_session())
    final = record_pages(tmp_path / "s.cockpit", events, monkeypatch)[-1]
    database = sqlite3.connect(tmp_path / "s.cockpit")
    ask = database.execute
    assert ask("SELECT count(*), sum(completed) FROM seconds").fetchone() == (
        len(final.seconds),
        sum(second.completed for second in final.seconds),
    )
    rows = ask("SELECT number, label, completed, p99_ms FROM runs ORDER BY number").fetchall()
    assert [row[:3] for row in rows] == [
        (segment.number, segment.label, segment.counts.completed) for segment in final.segments
    ]
    assert rows[0][3] == 1000 * final.segments[0].counts.latency.percentile(99)
    assert ask("SELECT letter, outcome FROM changes").fetchall() == [("A", "applied")]
    assert ask("SELECT count(*) FROM markers").fetchone() == (len(final.markers),)
    assert ask("SELECT kind FROM events WHERE kind IN ('tick', 'host_sample')").fetchall() == []
    database.close()
