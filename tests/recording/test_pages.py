"""A recording in pages is the session again: the same events, and at any instant the state that was folded live."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from cockpit.model.events import AnyEvent
from cockpit.model.fold import fold, fold_all
from cockpit.model.host_figures import host_figures
from cockpit.model.state import State
from cockpit.model.sums import Sums, Weighted
from cockpit.recording import writer
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from tests.session.events import session_with_a_round, small_session

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


@pytest.mark.parametrize("name", ["small", "rounds", "spare-servers", "two-hosts"])
def test_the_same_at_every_tenth_event_whichever_way_one_comes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"small": small_session, "rounds": session_with_a_round}
    events = list(made[name]()) if name in made else of_the_lab(name)
    states = settled(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        assert list(recording.events()) == events
        assert recording.damage == ""
        known = recording.following(0, -1.0, recording.end)
        assert [one.number for one in known] == list(range(1, len(events) + 1))
        tenths = list(range(9, len(events), 10))
        random.Random(1).shuffle(tenths)
        kept = 0
        for at in tenths:
            # All that was known at that instant, of which the event need not be the last.
            last = max(place for place, one in enumerate(known) if one.instant <= known[at].instant)
            anchor = recording.anchor(known[at].instant)
            kept += anchor.number > 0
            following = recording.following(anchor.number, anchor.instant, known[at].instant)
            assert fold_all([one.event for one in following], anchor.state) == states[last + 1]
        assert kept > len(tenths) / 2


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
        assert len(events) * 0.7 < len(found) < len(events)
        assert "is damaged and left out" in recording.damage
        for t in range(0, 60, 7):
            anchor = recording.anchor(t)
            fold_all([one.event for one in recording.following(anchor.number, anchor.instant, t)], anchor.state)


def test_sums_as_earlier_versions_kept_them_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_name(self: Sums) -> dict[str, Weighted]:
        return self.by_name()

    with monkeypatch.context() as before:
        before.setattr(Sums, "wire", by_name)
        states = settled(tmp_path / "s.cockpit", of_the_lab("two-hosts"), before)
    with Recording(tmp_path / "s.cockpit") as recording:
        anchor = recording.anchor(recording.end)
        events = [known.event for known in recording.following(anchor.number, anchor.instant, recording.end)]
        assert anchor.number > 0 and recording.damage == ""
        found = fold_all(events, anchor.state)
    for name, window in found.segments[-1].hosts.items():
        assert host_figures(window) == pytest.approx(host_figures(states[-1].segments[-1].hosts[name]))
