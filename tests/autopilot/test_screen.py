"""A search on the screen, driven by keys: pause, skip, the board, and what stays at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Static

from cockpit.autopilot.proof import Proof
from cockpit.autopilot.runner import Approve, Autopilot, Keep, SearchResult
from cockpit.model.state import State
from cockpit.session.controls import Mode
from cockpit.session.live_session import LiveSession
from cockpit.study.controls import StudyControls
from cockpit.tui.autopilot.board import BoardScreen
from cockpit.tui.autopilot.screen import ApproveScreen, AutopilotApp, EndScreen, Search, SearchLine
from tests.autopilot.searches import BEFORE, plan, searchable
from tests.tui.driving import press, until

pytestmark = pytest.mark.usefixtures("quick")


def search_of(live: LiveSession, folder: Path, *, ask: bool = False) -> Search:
    live.source.controls = StudyControls(live.source.controls, Mode.SEARCH)

    async def search(approve: Approve | None, keep: Keep, began: Callable[[Autopilot], None]) -> SearchResult:
        await live.knobs_read()
        pilot = Autopilot(live, plan(folder, seconds=0.3), {"Level": "5"}, approve if ask else None)
        began(pilot)
        return await pilot.run(keep)

    return search


def trials(state: State) -> int:
    return len(state.autopilot.trials) if state.autopilot else 0


@pytest.mark.parametrize("kept", ["enter", "escape"])
async def test_what_was_proved_is_applied_with_enter_and_left_with_escape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    # Two rounds of half a second on a busy machine prove nothing.
    monkeypatch.setattr(Proof, "objection", lambda *_: "")
    async with searchable(tmp_path) as live:
        app = AutopilotApp(live.session, search_of(live, tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: trials(live.state) > 0)
            await press(pilot, "P")
            app.screen.query_one(SearchLine).refresh_words()
            assert "PAUSED" in str(app.screen.query_one(SearchLine).render())
            await press(pilot, "P", "A")
            assert isinstance(app.screen, BoardScreen)
            await press(pilot, "escape")
            await until(pilot, lambda: isinstance(app.screen, EndScreen))
            words = str(app.screen.query(Static).first().content)
            assert words.startswith("better: Level ")
            assert f"{trials(live.state)} evaluations, " in words
            await press(pilot, kept)
            await until(pilot, lambda: app.found is not None)
        assert app.failure is None and app.found is not None and app.found.ended.applied == (kept == "enter")
    value = app.found.ended.values["Level"] if kept == "enter" else "5"
    assert (tmp_path / "conf").read_text() == BEFORE.replace("5", value)


async def test_settings_that_nobody_approves_are_not_tried(tmp_path: Path) -> None:
    async with searchable(tmp_path) as live:
        app = AutopilotApp(live.session, search_of(live, tmp_path, ask=True))
        async with app.run_test(size=(80, 24)) as pilot:
            while not isinstance(app.screen, EndScreen):
                await until(pilot, lambda: isinstance(app.screen, ApproveScreen | EndScreen))
                if isinstance(app.screen, ApproveScreen):
                    await press(pilot, "escape")
            assert str(app.screen.query(Static).first().content).startswith("nothing: ")
            await press(pilot, "escape")
            await until(pilot, lambda: app.found is not None)
        assert trials(live.state) == 1 and live.state.changes == ()
    assert (tmp_path / "conf").read_text() == BEFORE
