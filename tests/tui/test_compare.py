"""`c`: the row looked at against the baseline."""

from __future__ import annotations

from textual.widgets import Static

from cockpit.tui.app import CockpitApp
from cockpit.tui.screens.compare import CompareScreen, comparison_lines
from tests.tui.driving import driven, plain, press, scene_of
from tests.tui.scenario import Scenario


def content(app: object) -> str:
    assert isinstance(app, CockpitApp)
    assert isinstance(app.screen, CompareScreen)
    return str(app.screen.query_one(Static).render())


async def test_c_puts_the_row_looked_at_beside_the_baseline() -> None:
    async with driven(Scenario().events()) as (pilot, _):
        await press(pilot, "C")
        told = content(pilot.app)
        for piece in ("before  row 1", "MaxSpareServers", "service time, ms", "p99.9", "web1", "cpu.idle"):
            assert piece in told
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, CompareScreen)


async def test_there_must_be_two_rows() -> None:
    async with driven() as (pilot, _):
        await press(pilot, "C")
        assert not isinstance(pilot.app.screen, CompareScreen)


def test_it_fits_narrow_and_wide() -> None:
    state = scene_of(Scenario().events()).state
    last = len(state.segments)
    for width in (34, 74, 114, 194):
        lines = plain(comparison_lines(state, 1, last, width))
        tables = [line for line in lines if line.startswith(("p99 ", "rate ", "cpu."))]
        assert tables
        assert all(len(line) <= max(width, 70) for line in tables)
    wide = plain(comparison_lines(state, 1, last, 114))
    assert any("rate" in line and "cpu.user" in line for line in wide)


def test_a_row_that_is_not_there_is_said() -> None:
    state = scene_of(Scenario().events()).state
    assert plain(comparison_lines(state, 1, 99, 80)) == ["row 99: no load was counted there"]
