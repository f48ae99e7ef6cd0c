"""The board of a search: all evaluations, the best so far, and the metric along each knob."""

from __future__ import annotations

from textual.widgets import Static

from cockpit.model import events as ev
from cockpit.model.autopilot import AutopilotBegun, AutopilotTrial, SearchedKnob, SearchPlan
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from tests.tui.driving import main, press, running_app
from tests.tui.scenario import session_started

PLAN = SearchPlan(
    metric="rate",
    maximize=True,
    knobs=(SearchedKnob("Level", ("1", "2", "4", "8"), 4), SearchedKnob("Mode", ("on", "off"), 0)),
    constraints=("p99 < 20ms",),
    budget=600.0,
)


def trial(number: int, level: str, mode: str, metric: float | None, margin: float, **values: object) -> AutopilotTrial:
    return AutopilotTrial(
        t=float(number),
        number=number,
        purpose="original" if number == 1 else "spread",
        values={"Level": level, "Mode": mode},
        outcome="failed" if metric is None else "measured",
        metric=metric,
        margins=(margin,),
        **values,  # type: ignore[arg-type]
    )


def events() -> list[ev.AnyEvent]:
    return [
        session_started(),
        AutopilotBegun(t=0.0, plan=PLAN, original={"Level": "1", "Mode": "on"}),
        trial(1, "1", "on", 1000.0, 0.4),
        trial(2, "4", "on", 2000.0, 0.3),
        trial(3, "2", "off", 1500.0, 0.3),
        trial(4, "8", "on", 2500.0, -0.2),
        trial(5, "8", "off", None, -0.5, detail="the server\x1b[2J refused it"),
    ]


async def test_board_lists_evaluations_best_and_knob_effects() -> None:
    async with running_app(events()) as (pilot, _):
        await press(pilot, "A")
        assert isinstance(pilot.app.screen, EvaluationsScreen)
        text = str(pilot.app.screen.query_one("#text", Static).content)
        lines = [line.strip() for line in text.splitlines()]
        assert lines[0] == "maximize rate subject to p99 < 20ms; budget 10:00 including the proof; seed 1"
        assert "Level: 1, 2, 4, 8 (now 1)" in lines and "Mode: on, off (now on)" in lines
        assert "best so far, by the fitted mean: Level 4" in lines
        assert "1 original  the original values: rate 1k/s" in lines
        assert "▸   2 spread    Level 4: rate 2k/s" in lines
        assert "4 spread    Level 8: rate 2.5k/s, constraint failed: p99 < 20ms" in lines
        assert "5 spread    Level 8, Mode off: failed: the server·[2J refused it" in lines
        assert sum("relative importance" in line for line in lines) == 2 and "\x1b" not in text
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)


async def test_board_does_not_open_without_search() -> None:
    async with running_app([session_started()]) as (pilot, _):
        await press(pilot, "A")
        assert pilot.app.screen is main(pilot.app)
