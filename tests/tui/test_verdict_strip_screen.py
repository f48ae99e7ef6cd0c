"""The verdict strip on the screen: in a replay, in a live session, in ASCII."""

from __future__ import annotations

import pytest

from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import driven, main, press, text_of, until
from tests.tui.test_themes import strips
from tests.tui.test_verdict_strip import (
    EARLY,
    INCONCLUSIVE,
    OVER,
    RECORDINGS,
    TENTATIVE,
    at,
    drawn,
    lines_of,
    replayed,
    sought,
    under_load,
)


@pytest.mark.parametrize(("size", "height"), [((120, 40), 8), ((80, 24), 4)], ids=["wide", "narrow"])
async def test_a_replay_shows_the_state_at_the_cursor(size: tuple[int, int], height: int) -> None:
    async with replayed("under-load", OVER, size) as (pilot, session):
        over = await drawn(pilot)
        assert "▲  better, at least" in over and len(over.splitlines()) == height
        assert "▲? likely better" in await sought(pilot, session, TENTATIVE)
        assert "?  inconclusive so far" in await sought(pilot, session, EARLY)
        assert await sought(pilot, session, 30.0) == "", "the first row has nothing to be compared with"
        assert await sought(pilot, session, OVER) == over


async def test_on_a_tiny_screen_it_is_a_line() -> None:
    async with replayed("under-load", OVER, (60, 15)) as (pilot, _):
        assert "verdict  ▲  better, at least: rate ≥ ×3.2" in text_of(main(pilot.app).query_one(TinyScreen))


async def test_a_live_session_shows_it_while_it_grows() -> None:
    events = list(under_load())
    first = [event for event in events if event.t <= EARLY]
    async with driven(first) as (pilot, source):
        assert "?  inconclusive so far" in await drawn(pilot)
        source.push(*(event for event in events if EARLY < event.t <= TENTATIVE))
        await until(pilot, lambda: main(pilot.app).session.state.t > TENTATIVE - 1)
        assert "▲? likely better: rate ×3.8" in await drawn(pilot)
        source.push(*(event for event in events if event.t > TENTATIVE))
        await until(pilot, lambda: main(pilot.app).session.state.t >= events[-1].t)
        assert "▲  better, at least" in await drawn(pilot)


def test_the_first_seconds_of_another_run_are_no_verdict() -> None:
    with Recording(RECORDINGS / "spare-servers.cockpit") as recording:
        events = list(recording.events())
    begun = fold_all(events).segments[1].start
    for after in (0.4, 0.8, 1.5, 2.5, 5.5):
        found = at(begun + after, events)
        assert found.verdict.growing and found.verdict.outcome is INCONCLUSIVE
        assert lines_of(found)[1].startswith("?  inconclusive so far")
        assert " s more" in lines_of(found)[1]
    assert lines_of(at(begun + 0.4, events))[1].endswith("10 s more to be sure")


async def test_runs_of_a_recording_are_compared_too() -> None:
    async with replayed("spare-servers", 1e9) as (pilot, _):
        text = await drawn(pilot)
        assert "▲  better: rate ×" in text
        assert text.startswith("─ verdict MinSpareServers 5 → "), "what differs from row 1, not that it was run again"
        await press(pilot, "up", "up", "up")
        assert (await drawn(pilot)).startswith("─ verdict again ─"), "no setting differs"


async def test_reasons_and_what_was_left_out_are_only_behind_c() -> None:
    async with replayed("under-load", OVER) as (pilot, _):
        screen = main(pilot.app)
        assert "discarded" not in await drawn(pilot)
        await press(pilot, "c")
        await until(pilot, lambda: pilot.app.screen is not screen)
        await until(pilot, lambda: "discarded after" in text_of(pilot.app.screen.query_one("#text")))


@pytest.mark.parametrize("t", [EARLY, TENTATIVE, OVER])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])
async def test_in_ascii_it_tells_the_same(size: tuple[int, int], t: float) -> None:
    async with replayed("under-load", t, size, Appearance(ascii=True)) as (pilot, _):
        text = "\n".join(strip.text for strip in strips(pilot.app))
        assert text.isascii()
        word = {EARLY: "?  inconclusive so far", TENTATIVE: "^? likely better", OVER: "^  better, at least"}[t]
        assert word in text
        assert ("====" in text) if t == TENTATIVE else True
