"""The verdict strip on the screen: in a replay, in a live session, in ASCII."""

from __future__ import annotations

import pytest

from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import main, press, running_app, text_of, until
from tests.tui.test_themes import strips
from tests.tui.test_verdict_strip import (
    EARLY,
    FINAL,
    INCONCLUSIVE,
    RECORDINGS,
    TENTATIVE,
    lines_of,
    replayed_app,
    seek,
    strip_at,
    strip_text,
    under_load_events,
)


@pytest.mark.parametrize(("size", "height"), [((120, 40), 8), ((80, 24), 4)], ids=["wide", "narrow"])
async def test_replay_shows_strip_at_position(size: tuple[int, int], height: int) -> None:
    async with replayed_app("under-load", FINAL, size) as (pilot, session):
        over = await strip_text(pilot)
        assert "▲  better, at least" in over and len(over.splitlines()) == height
        assert "▲? likely better" in await seek(pilot, session, TENTATIVE)
        assert "?  inconclusive so far" in await seek(pilot, session, EARLY)
        assert await seek(pilot, session, 30.0) == "", "the first segment has no comparison"
        assert await seek(pilot, session, FINAL) == over


async def test_tiny_screen_shows_verdict_line() -> None:
    async with replayed_app("under-load", FINAL, (60, 15)) as (pilot, _):
        assert "verdict  ▲  better, at least: rate ≥ ×3.2" in text_of(main(pilot.app).query_one(TinyScreen))


async def test_live_session_shows_growing_verdict() -> None:
    events = list(under_load_events())
    first = [event for event in events if event.t <= EARLY]
    async with running_app(first) as (pilot, source):
        assert "?  inconclusive so far" in await strip_text(pilot)
        source.push(*(event for event in events if EARLY < event.t <= TENTATIVE))
        await until(pilot, lambda: main(pilot.app).session.state.t > TENTATIVE - 1)
        assert "▲? likely better: rate ×3.8" in await strip_text(pilot)
        source.push(*(event for event in events if event.t > TENTATIVE))
        await until(pilot, lambda: main(pilot.app).session.state.t >= events[-1].t)
        assert "▲  better, at least" in await strip_text(pilot)


def test_first_seconds_of_run_are_inconclusive() -> None:
    with Recording(RECORDINGS / "spare-servers.cockpit") as recording:
        events = list(recording.events())
    begun = fold_all(events).segments[1].start
    for after in (0.4, 0.8, 1.5, 2.5, 5.5):
        found = strip_at(begun + after, events)
        assert found.verdict.growing and found.verdict.outcome is INCONCLUSIVE
        assert lines_of(found)[1].startswith("?  inconclusive so far")
        assert " s more" in lines_of(found)[1]
    assert lines_of(strip_at(begun + 0.4, events))[1].endswith("10 s more to be sure")


async def test_recorded_runs_are_compared() -> None:
    async with replayed_app("spare-servers", 1e9) as (pilot, _):
        text = await strip_text(pilot)
        assert "▲  better: rate ×" in text
        assert text.startswith("─ verdict MinSpareServers 5 → "), "the settings that differ from segment 1, not 'again'"
        await press(pilot, "up", "up", "up")
        assert (await strip_text(pilot)).startswith("─ verdict again ─"), "no setting differs"


async def test_discarded_seconds_are_shown_only_in_comparison() -> None:
    async with replayed_app("under-load", FINAL) as (pilot, _):
        screen = main(pilot.app)
        assert "discarded" not in await strip_text(pilot)
        await press(pilot, "c")
        await until(pilot, lambda: pilot.app.screen is not screen)
        await until(pilot, lambda: "discarded after" in text_of(pilot.app.screen.query_one("#text")))


@pytest.mark.parametrize("t", [EARLY, TENTATIVE, FINAL])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])
async def test_strip_in_ascii_shows_same_outcome(size: tuple[int, int], t: float) -> None:
    async with replayed_app("under-load", t, size, Appearance(ascii=True)) as (pilot, _):
        text = "\n".join(strip.text for strip in strips(pilot.app))
        assert text.isascii()
        outcome = {EARLY: "?  inconclusive so far", TENTATIVE: "^? likely better", FINAL: "^  better, at least"}[t]
        assert outcome in text
        assert ("====" in text) if t == TENTATIVE else True
