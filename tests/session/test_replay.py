"""A replay reproduces the live session: same events, same loop, same fold, from any time."""

import asyncio
import datetime as dt
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cockpit.analysis.words.timeline import marker_text
from cockpit.model.errors import RecordingError, UsageError
from cockpit.model.events import HostChanged
from cockpit.model.fold.fold import fold_all
from cockpit.model.state import State
from cockpit.recording import writer as writing
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.controls import PlaybackPhase
from cockpit.session.loop import Session
from cockpit.session.replay import SPEEDS, ReplaySource, parse_instant, parse_jump
from tests.recording.test_pages import record_pages
from tests.recording.test_recording import recorded
from tests.session.events import session_with_a_round, small_session
from tests.session.sessions import running
from tests.session.sessions import until as until_state
from tests.waiting import until

EVENTS = list(small_session())
Replayed = tuple[Session, ReplaySource]


@pytest.fixture
async def replayed(tmp_path: Path) -> AsyncIterator[Replayed]:
    """A paused replay of the small session."""
    with Recording(recorded(tmp_path / "s.cockpit")) as recording:
        source = ReplaySource(recording, playing=False)
        async with running(Session(source)) as session:
            yield session, source


async def do(session: Session, name: str, answer: str = "") -> State:
    """Run an action by name, and return the state after it."""
    before = session.revision
    await next(action for action in session.controls.actions if action.name == name).run(answer)
    return await session.until(lambda _: session.revision > before)


def expected_state(t: float) -> State:
    """Return the state at `t`, folded from the events in order of arrival."""
    known, latest = [], 0.0
    for event in EVENTS:
        latest = max(latest, event.t)
        if latest > t:
            break
        known.append(event)
    return fold_all(known)


async def test_jumps_and_end_give_the_live_state(replayed: Replayed) -> None:
    session, _ = replayed
    for seconds in (7, 16, 59, 3):
        assert await do(session, "jump", f"{seconds}s") == expected_state(seconds), "from the last jump"
        assert await do(session, "end") == fold_all(EVENTS)
        assert session.controls.status.phase is PlaybackPhase.END
        assert await do(session, "jump", f"{seconds}s") == expected_state(seconds), "from the end"


async def test_steps_and_jumps_to_markers(replayed: Replayed) -> None:
    session, source = replayed
    steps = {"forward_10": 10, "back": 9, "next": 15}
    for action, position in (*steps.items(), ("next", 27), ("previous", 15), ("forward_tenth", 21), ("home", 0)):
        state = await do(session, action)
        assert source.position == position, action
    assert state == expected_state(0)


async def test_lost_hosts_and_windows_of_rounds_are_markers_to_move_to(tmp_path: Path) -> None:
    lost = HostChanged(t=30.0, host="web1", condition="lost", detail="no answer")
    events = sorted((*session_with_a_round(), lost), key=lambda event: event.t)
    with Recording(recorded(tmp_path / "s.cockpit", events)) as recording:
        source = ReplaySource(recording, 20.0, playing=False)
        async with running(Session(source)) as session:
            for position in (27, 30, 35, 40, 45, 57):
                await do(session, "next")
                assert source.position == position


async def test_playback_stops_at_end(replayed: Replayed) -> None:
    session, source = replayed
    for _ in range(6):
        await do(session, "faster")
    assert source.speed == 64
    await do(session, "toggle")
    state = await session.until(lambda state: state.ended)
    assert state == fold_all(EVENTS)
    assert (source.playing, session.controls.status.phase) == (False, PlaybackPhase.END)


@asynccontextmanager
async def followed(path: Path, count: int) -> AsyncIterator[tuple[RecordingWriter, Session, ReplaySource]]:
    """Replay a recording in progress from the end of its first `count` events."""
    writer = RecordingWriter(path)
    writer.record(EVENTS[:count])
    await until(lambda: has_events(path, count))
    with Recording(path) as recording:
        source = ReplaySource(recording, recording.end)
        async with running(Session(source)) as session:
            yield writer, session, source


def has_events(path: Path, count: int) -> bool:
    try:
        with Recording(path) as recording:
            return len(list(recording.events())) >= count
    except RecordingError as error:
        assert "has no events" in str(error)
        return False


async def test_recording_in_progress_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    async with followed(path, 100) as (writer, session, source):
        await session.until(lambda _: session.controls.status.phase is PlaybackPhase.FOLLOWING)
        for _ in SPEEDS:
            source.change_speed(+1)
        writer.record(EVENTS[100:200])
        known = fold_all(EVENTS[:200])
        await until_state(session, lambda state: state.t >= known.t)
        assert session.state == known
        source.annotate("seen from outside")
        writer.record(EVENTS[200:])
        await asyncio.to_thread(writer.close)
        assert writer.trouble == ""
        state = await until_state(session, lambda state: state.ended)
        assert "seen from outside" in [marker_text(marker) for marker in state.markers]
        await session.until(lambda _: session.controls.status.phase is PlaybackPhase.END)
    with Recording(path) as recording:
        assert len(list(recording.events())) == len(EVENTS) + 1


async def test_following_continues_when_events_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in the middle of a new page continues from a state that matches its compacted ticks."""
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    async with followed(tmp_path / "s.cockpit", 150) as (writer, session, source):
        known = fold_all(EVENTS[:150])
        await until_state(session, lambda state: state.t >= known.t)
        writer.record(EVENTS[150:170])
        writer.settle(fold_all(EVENTS[:170]))
        writer.record(EVENTS[170:])
        await asyncio.to_thread(writer.close)
        assert writer.trouble == ""
        for _ in SPEEDS:
            source.change_speed(+1)
        state = await until_state(session, lambda state: state.ended)
    found, expected = (
        [(segment.counts.service, segment.counts.completed) for segment in folded.segments]
        for folded in (state, fold_all(EVENTS))
    )
    assert found == expected


async def test_notes_are_added_during_replay(replayed: Replayed) -> None:
    session, source = replayed
    await do(session, "jump", "20s")
    state = await do(session, "mark", "a thought")
    assert [(marker.t, marker_text(marker)) for marker in state.markers if marker.kind == "note"] == [
        (20.0, "a thought")
    ]
    assert not any(marker_text(marker) == "a thought" for marker in (await do(session, "jump", "19s")).markers)
    assert any(marker_text(marker) == "a thought" for marker in (await do(session, "jump", "21s")).markers)
    await do(session, "previous")
    assert source.position == 20.0
    source.recording.path.chmod(0o400)
    if not os.access(source.recording.path, os.W_OK):
        with pytest.raises(RecordingError, match="the note is not saved"):
            await do(session, "mark", "another")


async def test_events_after_a_note_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_pages(tmp_path / "s.cockpit", EVENTS, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        source = ReplaySource(recording, 19.05, playing=False)
        async with running(Session(source)) as session:
            await do(session, "mark", "a thought")
            state = await do(session, "forward")
    found, expected = (
        [segment.counts.completed for segment in folded.segments] for folded in (state, expected_state(20.05))
    )
    assert found == expected


def test_jump_targets_are_parsed() -> None:
    wall = 1_700_000_000.0
    assert parse_jump("-30s", 100, wall) == 70
    assert parse_jump("+2m", 100, wall) == 220
    assert [parse_instant(text, 600, wall, 20) for text in ("-30s", "+2m", "90s")] == [570, 140, 90]
    assert parse_jump("90s", 100, wall) == parse_jump("00:01:30", 100, wall) == 90
    assert parse_jump("5:20", 100, wall, end=400) == parse_jump("5m20s", 100, wall) == 320
    # Beyond the end of the session, or with its length unknown: a time of day within a day of its start.
    day = parse_jump("5:20", 100, wall, end=300)
    assert day == parse_jump("5:20", 100, wall) != 320
    assert dt.datetime.fromtimestamp(wall + day).strftime("%H:%M:%S") == "05:20:00" and -60 <= day < 86_400
    for text in ("soon", "1:75", "25:00", f"{'9' * 400}:00"):
        with pytest.raises(UsageError, match="invalid time"):
            parse_jump(text, 0, wall, end=400)
