"""The first steps in the place of the verdict: ticks while they are done, no pane moves, gone with a verdict."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from textual.geometry import Region

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.guide import guide_lines, guide_steps
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.terminal.lines import Lines
from tests.tui.driving import context_of, main, plain, running_app, text_of, wait_for_events
from tests.tui.scenario import Scenario
from tests.tui.test_verdicts import changed_under_load

CHANGED = changed_under_load()


def events_until(t: float) -> list[ev.AnyEvent]:
    return [event for event in CHANGED if event.t <= t]


def lines_after(events: Sequence[ev.AnyEvent], height: int = 4) -> list[str]:
    lines = guide_lines(context_of(events), 76, height)
    return [re.sub(r"\d+ (of \d+ )?s", "N s", " ".join(line.split())) for line in plain(lines)]


@pytest.mark.parametrize(
    ("t", "steps"),
    [
        (
            20.0,
            ["▸ 1 measure a baseline N s; about N s more", "2 change a setting", "3 read the verdict better,"],
        ),
        (58.0, ["✓ 1 measure a baseline", "▸ 2 change a setting change the server, then space: next run", "3 read"]),
        (60.0, ["✓ 1", "▸ 2 change a setting A is under way", "3"]),
        (66.0, ["✓ 1", "✓ 2 change a setting A is active", "▸ 3 read the verdict in about N s of load."]),
    ],
)
def test_steps_are_ticked_and_the_next_has_its_key(t: float, steps: list[str]) -> None:
    title, *lines = lines_after(events_until(t))
    assert title.startswith("─ first steps")
    assert [line.startswith(step) for line, step in zip(lines, steps, strict=True)] == [True] * 3, lines
    assert lines_after(events_until(t), 1) == [next(line for line in lines if line.startswith("▸"))]


def test_guide_ends_with_a_verdict_and_is_only_for_live_sessions() -> None:
    assert guide_steps(context_of(events_until(200.0))) == ()
    for mode in set(Mode) - {Mode.LIVE}:
        assert guide_steps(replace(context_of(events_until(20.0)), mode=mode)) == ()


def test_guide_before_the_load_and_with_settings() -> None:
    lines = lines_after(Scenario().events(0.2))
    assert lines[1:3] == [
        "▸ 1 measure a baseline space: start load",
        "2 change a setting t: type a new value, or :set NAME VALUE",
    ]
    unmeasured = [event for event in CHANGED if not isinstance(event, ev.RunStarted | ev.Tick | ev.RunEnded)]
    assert lines_after(unmeasured)[3] == "▸ 3 read the verdict space: start load to see the effect of A"


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_no_pane_moves_from_the_start_to_the_change(size: tuple[int, int]) -> None:
    def places() -> dict[str, Region]:
        return {type(pane).__name__: pane.region for pane in main(pilot.app).query(Lines)}

    async with running_app(events_until(0.5), size) as (pilot, source):
        initial = places()
        assert "▸ 1 measure a baseline" in text_of(main(pilot.app).query_one(VerdictStrip))
        for t, words in ((20.0, "▸ 1"), (58.0, "✓ 1 measure a baseline"), (61.0, "✓ reloaded")):
            known = len(source.recorder.events)
            due = events_until(t)[known:]
            source.push(*due)
            await wait_for_events(pilot, source, known + len(due))
            assert places() == initial, t
            assert words in text_of(main(pilot.app).query_one(VerdictStrip))
