"""Clicks on keys, rows, titles and the position bar act like the keys, on wide and small screens."""

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from cockpit.session.controls import Action
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import ChoiceScreen, FilterScreen
from cockpit.tui.footer import Footer
from cockpit.tui.hosts.panes import HostLines, HostPanes
from cockpit.tui.key_names import key_hints, key_named
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import Position
from tests.tui.driving import main, press, reset_screen, running_app, text_of, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.topology import topology

EVENTS = Scenario().events(99)


async def click(pilot: Pilot[object], widget: Widget, text: str) -> None:
    """Click on the first cell of `text` in the widget."""
    lines = text_of(widget).splitlines()
    y = next(y for y, line in enumerate(lines) if text in line)
    at = widget.content_region.offset - widget.region.offset
    await pilot.click(widget, offset=(lines[y].index(text) + at.x, y + at.y))
    await wait_idle(pilot)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_keys_segments_and_position_can_be_clicked(size: tuple[int, int]) -> None:
    async with running_app(EVENTS, size=size) as (pilot, source):
        screen = main(pilot.app)
        footer, runs = screen.query_one(Footer), screen.query_one(Runs)
        await click(pilot, footer, "help")
        assert isinstance(pilot.app.screen, HelpScreen)
        await reset_screen(pilot)
        await click(pilot, footer, "compare")
        assert isinstance(pilot.app.screen, CompareScreen)
        await reset_screen(pilot)
        await click(pilot, runs, " 3  ")
        assert screen.view.segment == 3
        assert "▸ 3" in text_of(runs)
        await click(pilot, runs, "▸ 3")
        assert isinstance(pilot.app.screen, CompareScreen), "the second click on the segment"
        await reset_screen(pilot)
        await press(pilot, "slash", "a", "p")
        assert isinstance(pilot.app.screen, FilterScreen)
        await click(pilot, pilot.app.screen.query("Static").last(), "cancel")
        assert (pilot.app.screen, screen.view.filter) == (screen, "")
        await press(pilot, "l")
        assert isinstance(pilot.app.screen, ChoiceScreen)
        await click(pilot, pilot.app.screen.query(".hint").last(), "Enter")
        assert pilot.app.screen is screen
        assert screen.view.cursor is not None
        await reset_screen(pilot)
        await click(pilot, footer, "space")
        await until(pilot, lambda: source.controls.done == [("toggle", "")])


async def test_click_on_position_bar_seeks() -> None:
    async with running_app(EVENTS, size=(80, 24)) as (pilot, source):
        position = main(pilot.app).query_one(Position)
        source.controls.actions += (Action("jump", "go to", source.controls._record("jump"), footer=False),)
        source.controls.extent, source.controls.position = (0.0, 200.0), 50.0
        await until(pilot, lambda: position.size.area > 0 and "●" in text_of(position))
        bar = text_of(position)
        first, last = len("00:00:00  "), bar.index("  00:03:20") - 1
        await pilot.click(position, offset=(1 + (first + last) // 2, 0))
        await until(pilot, lambda: bool(source.controls.done))
        name, answer = source.controls.done[0]
        assert name == "jump"
        assert float(answer.removesuffix("s")) == pytest.approx(100.0, abs=200 / (last - first))
        await pilot.click(position, offset=(2, 0))
        await wait_idle(pilot)
        assert len(source.controls.done) == 1, "the clock is not part of the bar"


async def test_verdict_process_table_and_each_footer_key_can_be_clicked() -> None:
    async with running_app(EVENTS) as (pilot, _):
        screen = main(pilot.app)
        panes, footer = screen.query_one(HostPanes), screen.query_one(Footer)
        await press(pilot, "up")
        await click(pilot, screen.query_one(VerdictStrip), "segment")
        assert isinstance(pilot.app.screen, CompareScreen)
        await reset_screen(pilot)
        await click(pilot, panes, "RSS ")
        assert (screen.view.order, screen.view.reverse_order) == ("rss", False)
        await click(pilot, panes, "RSS ")
        assert (screen.view.order, screen.view.reverse_order) == ("rss", True)
        await click(pilot, panes, "COMMAND")
        assert screen.view.order == "command"
        await press(pilot, "z")
        row = next(line for line in text_of(panes).splitlines() if "apache2" in line and ":" in line)
        pid = int(row.strip("│").replace("+", " ").split()[0])
        await click(pilot, panes, f" {pid} ")
        assert screen.view.process[0] == pid
        assert screen.view.list_focused
        assert f"PID {pid}" in text_of(panes)
        await reset_screen(pilot)
        await press(pilot, "z", "enter")
        for _ in range(3):
            await click(pilot, footer, "↓")
        await click(pilot, footer, "↑")
        assert screen.view.scroll == 2


async def test_first_click_selects_host_second_click_maximizes() -> None:
    async with running_app(topology()) as (pilot, _):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        await click(pilot, panes, "app1")
        assert (screen.view.host, screen.view.room) == (1, "column")
        await click(pilot, panes, "app1")
        assert screen.view.room == "alone"
        await reset_screen(pilot)
        await pilot.resize_terminal(200, 50)
        await press(pilot, "p", "p")
        assert "web1" in text_of(panes).splitlines()[0], "side by side"
        await click(pilot, panes, "app1")
        assert screen.view.host == 1
        await reset_screen(pilot)
        await pilot.resize_terminal(80, 24)
        await wait_idle(pilot)
        await click(pilot, screen.query_one(HostLines), "app1")
        assert (screen.view.host, screen.view.room) == (1, "alone"), "a line is too small for a selected host"
        await until(pilot, lambda: "app1" in text_of(panes))


def test_key_labels_map_back_to_keys() -> None:
    assert [key_named(name) for name in ("↑", "PgDn", "^U", "?", "Tab", "space", "G")] == [
        *("up", "pagedown", "ctrl+u", "question_mark", "tab", "space", "G")
    ]
    spans = key_hints(("↑ ↓", " scroll"), ("", "read-only"), ("Esc", " close")).spans
    assert any("'escape'" in str(span.style) for span in spans)
