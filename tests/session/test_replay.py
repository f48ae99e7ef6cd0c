"""A replay reproduces the live session: same events, same loop, same fold, from any time."""

import asyncio
import datetime as dt
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError, UsageError
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.recording import writer as writing
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.controls import PlaybackPhase
from cockpit.session.loop import Session
from cockpit.session.replay import SPEEDS, ReplaySource, parse_instant, parse_jump
from tests.recording.test_recording import recorded
from tests.session.events import small_session

EVENTS = list(small_session())


@pytest.fixture
async def replayed(tmp_path: Path) -> AsyncIterator[tuple[Session, ReplaySource]]:
    """A paused replay of the small session."""
    with Recording(recorded(tmp_path / "s.cockpit")) as recording:
        source = ReplaySource(recording, playing=False)
        session = Session(source)
        running = asyncio.create_task(session.run())
        yield session, source
        await source.close()
        await running


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


async def test_end_of_replay_equals_live_state(replayed: tuple[Session, ReplaySource]) -> None:
    session, _ = replayed
    state = await do(session, "end")
    assert state == fold_all(EVENTS)
    assert session.controls.status.phase is PlaybackPhase.END


@pytest.mark.parametrize("instant", ["7s", "16s", "59s", "3s"])
async def test_jump_forwards_and_backwards_gives_same_state(
    replayed: tuple[Session, ReplaySource], instant: str
) -> None:
    session, _ = replayed
    seconds = float(instant[:-1])
    assert await do(session, "jump", instant) == expected_state(seconds)
    await do(session, "end")
    assert await do(session, "jump", instant) == expected_state(seconds)


async def test_steps_and_jumps_to_markers(replayed: tuple[Session, ReplaySource]) -> None:
    session, source = replayed
    await do(session, "forward_10")
    assert source.position == 10
    await do(session, "back")
    assert source.position == 9
    await do(session, "next")
    assert source.position == 15
    await do(session, "next")
    assert source.position == 27
    await do(session, "previous")
    assert source.position == 15
    await do(session, "forward_tenth")
    assert source.position == 21
    state = await do(session, "home")
    assert source.position == 0
    assert state == expected_state(0)


async def test_playback_stops_at_end(replayed: tuple[Session, ReplaySource]) -> None:
    session, source = replayed
    for _ in range(6):
        await do(session, "faster")
    assert source.speed == 64
    await do(session, "toggle")
    state = await session.until(lambda state: state.ended)
    assert state == fold_all(EVENTS)
    assert (source.playing, session.controls.status.phase) == (False, PlaybackPhase.END)


async def test_recording_in_progress_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "s.cockpit"
    writer = RecordingWriter(path)
    writer.record(EVENTS[:100])
    await asyncio.to_thread(wait_for_events, path, 100)
    with Recording(path) as recording:
        source = ReplaySource(recording, recording.end)
        session = Session(source)
        running = asyncio.create_task(session.run())
        await session.until(lambda _: session.controls.status.phase is PlaybackPhase.FOLLOWING)
        for _ in SPEEDS:
            source.change_speed(+1)
        writer.record(EVENTS[100:200])
        known = fold_all(EVENTS[:200])
        await asyncio.wait_for(session.until(lambda state: state.t >= known.t), 60)
        assert session.state == known
        source.annotate("seen from outside")
        writer.record(EVENTS[200:])
        await asyncio.to_thread(writer.close)
        assert writer.trouble == ""
        state = await asyncio.wait_for(session.until(lambda state: state.ended), 60)
        assert "seen from outside" in [marker.text for marker in state.markers]
        await session.until(lambda _: session.controls.status.phase is PlaybackPhase.END)
        await source.close()
        await running
    with Recording(path) as recording:
        assert len(list(recording.events())) == len(EVENTS) + 1


async def test_following_continues_when_events_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in the middle of a new page continues from a state that matches its compacted ticks."""
    monkeypatch.setattr(writing, "PAGE_SECONDS", 5.0)
    path = tmp_path / "s.cockpit"
    writer = RecordingWriter(path)
    writer.record(EVENTS[:150])
    await asyncio.to_thread(wait_for_events, path, 150)
    with Recording(path) as recording:
        source = ReplaySource(recording, recording.end)
        session = Session(source)
        running = asyncio.create_task(session.run())
        known = fold_all(EVENTS[:150])
        await asyncio.wait_for(session.until(lambda state: state.t >= known.t), 60)
        writer.record(EVENTS[150:170])
        writer.settle(fold_all(EVENTS[:170]))
        writer.record(EVENTS[170:])
        await asyncio.to_thread(writer.close)
        assert writer.trouble == ""
        for _ in SPEEDS:
            source.change_speed(+1)
        state = await asyncio.wait_for(session.until(lambda state: state.ended), 60)
        await source.close()
        await running
    expected = fold_all(EVENTS)
    assert [segment.counts.service for segment in state.segments] == [
        segment.counts.service for segment in expected.segments
    ]
    assert [segment.counts.completed for segment in state.segments] == [
        segment.counts.completed for segment in expected.segments
    ]


def wait_for_events(path: Path, count: int) -> None:
    """Wait until the file has `count` events."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with Recording(path) as recording:
                if len(list(recording.events())) >= count:
                    return
        except RecordingError as error:
            assert "has no events" in str(error)
    raise TimeoutError


async def test_notes_are_added_during_replay(replayed: tuple[Session, ReplaySource]) -> None:
    session, source = replayed
    await do(session, "jump", "20s")
    state = await do(session, "mark", "a thought")
    assert [(marker.t, marker.text) for marker in state.markers if marker.kind == "note"] == [(20.0, "a thought")]
    assert not any(marker.text == "a thought" for marker in (await do(session, "jump", "19s")).markers)
    assert any(marker.text == "a thought" for marker in (await do(session, "jump", "21s")).markers)
    await do(session, "previous")
    assert source.position == 20.0
    source.recording.path.chmod(0o400)
    if not os.access(source.recording.path, os.W_OK):
        with pytest.raises(RecordingError, match="the note is not saved"):
            await do(session, "mark", "another")


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
    with pytest.raises(UsageError, match="invalid time"):
        parse_jump("soon", 0, wall)
    with pytest.raises(UsageError, match="invalid time"):
        parse_jump("1:75", 0, wall, end=400)
    with pytest.raises(UsageError, match="invalid time"):
        parse_jump("25:00", 0, wall)
