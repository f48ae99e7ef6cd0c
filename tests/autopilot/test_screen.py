"""A search on the screen, driven by keys: pause, skip, the board, and the active settings at the end."""

import asyncio
import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.autopilot.decisions import RunSearch, SearchDecisions
from cockpit.autopilot.diagnosis import Bottleneck, BottleneckKind
from cockpit.autopilot.proof import Proof
from cockpit.autopilot.runner import Autopilot, SearchResult
from cockpit.autopilot.words import result_line
from cockpit.model.autopilot import AutopilotEnded
from cockpit.model.state import State
from cockpit.session.controls import Mode
from cockpit.session.live_session import LiveSession
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from cockpit.tui.autopilot.screen import AutopilotApp, KnobsScreen, SearchLine
from cockpit.tui.dialogs import prompt
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.terminal.appearance import Appearance
from tests.autopilot.searches import BEFORE, plan, unstarted
from tests.tui.driving import press, until

pytestmark = pytest.mark.usefixtures("quick")


def search_of(live: LiveSession, folder: Path, *, ask: bool = False) -> RunSearch:
    live.source.controls.mode = Mode.SEARCH

    async def search(person: SearchDecisions) -> SearchResult:
        await live.knobs_read()
        pilot = Autopilot(
            live, plan(folder, levels="2,3", seconds=1.0), {"Level": "5"}, person.approve if ask else None
        )
        person.search_started(pilot)
        return await pilot.run(person.keep)

    return search


def trials(state: State) -> int:
    return len(state.autopilot.trials) if state.autopilot else 0


def question(app: AutopilotApp) -> str:
    return str(app.screen.query(Static).first().content)


async def test_proved_settings_are_applied_with_enter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two rounds of half a second on a busy machine prove nothing.
    monkeypatch.setattr(Proof, "rejection_reason", lambda *_: "")
    async with unstarted(tmp_path, step=0.01) as live:
        app = AutopilotApp(live.session, search_of(live, tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: trials(live.state) > 0)
            await press(pilot, "P")
            app.screen.query_one(SearchLine).refresh_words()
            assert "PAUSED" in str(app.screen.query_one(SearchLine).render())
            await press(pilot, "A")
            assert isinstance(app.screen, EvaluationsScreen)
            await press(pilot, "escape")
            await until(pilot, lambda: not isinstance(app.screen, EvaluationsScreen))
            await press(pilot, "P")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            assert question(app).startswith("better: Level "), live.state.autopilot
            assert f"{trials(live.state)} evaluations, " in question(app)
            assert (tmp_path / "conf").read_text() == BEFORE
            await press(pilot, "enter")
            await until(pilot, lambda: app.found is not None)
        assert app.failure is None and app.found is not None and app.found.ended.applied
        assert app.found.ended.outcome == "better" and live.state.autopilot is not None
        line = result_line(live.state.autopilot, app.found.verdict)
        assert line.startswith("better: Level ") and line.endswith("; now active")
    assert (tmp_path / "conf").read_text() == BEFORE.replace("5", app.found.ended.values["Level"])


async def test_unapproved_settings_are_not_tried(tmp_path: Path) -> None:
    async with unstarted(tmp_path) as live:
        app = AutopilotApp(live.session, search_of(live, tmp_path, ask=True))
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            while question(app).startswith("Try "):
                await press(pilot, "escape")
                await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            assert question(app).startswith("nothing: ")
            await press(pilot, "escape")
            await until(pilot, lambda: app.found is not None)
        assert trials(live.state) == 1 and live.state.changes == ()
    assert (tmp_path / "conf").read_text() == BEFORE


async def test_search_ends_if_the_terminal_closes_at_its_question(tmp_path: Path) -> None:
    async with unstarted(tmp_path) as live:
        app = AutopilotApp(live.session, search_of(live, tmp_path, ask=True), Appearance(outlive=True))
        approve, asked = app.approve, []

        async def counted_approve(values: Mapping[str, str]) -> bool:
            asked.append(values)
            return await approve(values)

        async def hang_up(pilot: Pilot[object]) -> None:
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
            app.lost_terminal()

        app.approve = counted_approve  # type: ignore[method-assign]
        await app.run_async(headless=True, size=(80, 24), auto_pilot=hang_up)
        assert len(asked) == 1 and app.found is not None and app.found.ended.outcome == "nothing"


FOUND = [
    Bottleneck(BottleneckKind.WORKERS, "web1", "150 busy, 0 idle (apache)", ("MaxRequestWorkers", "ThreadsPerChild")),
    Bottleneck(BottleneckKind.CPU, "web1", "97% busy", ("KeepAlive",)),
]
KNOBS = ["KeepAlive", "MaxRequestWorkers", "StartServers", "ThreadsPerChild"]


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        # Knobs of the limits are chosen at first.
        (["space", "down", "down", "space", "enter"], ["MaxRequestWorkers", "StartServers", "ThreadsPerChild"]),
        # With no knob chosen, Enter does not close the screen.
        (["space", "down", "space", "down", "down", "space", "enter", "space", "enter"], ["ThreadsPerChild"]),
        (["escape"], None),
        (["q"], None),
    ],
)
async def test_knobs_of_limits_are_proposed_and_others_selectable(
    tmp_path: Path, keys: list[str], chosen: list[str] | None
) -> None:
    answers = []

    async def search(person: SearchDecisions) -> SearchResult:
        answers.append(list(await person.choose(FOUND, KNOBS, ["left out: MPM: no range"])))
        return SearchResult(AutopilotEnded(t=0.0, outcome="nothing"))

    async with unstarted(tmp_path) as live:
        live.source.controls.mode = Mode.SEARCH
        app = AutopilotApp(live.session, search)
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, KnobsScreen))
            assert "bottleneck: web1: all workers are busy (150 busy" in question(app)
            await press(pilot, *keys)
            await until(pilot, lambda: app.found is not None or not app.is_running or app.leaving)
        assert app.failure is None and answers == ([chosen] if chosen else [])
        assert chosen or (app.found is None and app.interrupted)


async def test_question_of_a_search_waits_until_other_screens_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncio.Event()

    async def search(person: SearchDecisions) -> SearchResult:
        await opened.wait()
        await person.choose(FOUND, KNOBS, [])
        return SearchResult(AutopilotEnded(t=0.0, outcome="nothing"))

    async with unstarted(tmp_path) as live:
        live.source.controls.mode = Mode.SEARCH
        app = AutopilotApp(live.session, search)
        async with app.run_test(size=(80, 24)) as pilot:
            monkeypatch.setattr(prompt, "UNSEEN", math.inf)
            await press(pilot, "question_mark")
            opened.set()
            await until(pilot, lambda: any("the search has a question" in note.message for note in app.notices()))
            assert isinstance(app.screen, HelpScreen)
            await press(pilot, "escape")
            await until(pilot, lambda: isinstance(app.screen, KnobsScreen))
            await press(pilot, "enter", "escape", "q")
            assert isinstance(app.screen, KnobsScreen), "these keys were typed for another screen"
            app.screen._unseen_until = 0.0
            await press(pilot, "enter")
            await until(pilot, lambda: app.found is not None)
