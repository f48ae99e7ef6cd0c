"""Keys of the charts over time: cursor, zoom, markers."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from cockpit.recording.reader import Recording, last_state
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.markers import all_markers
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.charts.window import AXIS
from cockpit.tui.dialogs.prompt import ChoiceScreen
from cockpit.tui.footer import Footer
from cockpit.tui.status_lines import TopLine
from tests.tui.driving import main, press, running_app, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario

EVENTS = Scenario().events(99)
RECORDING = Path(__file__).parents[1] / "recordings" / "under-load.cockpit"


def title(pilot: Pilot[object]) -> str:
    return text_of(main(pilot.app).query_one(Throughput)).splitlines()[0]


def cursor(pilot: Pilot[object]) -> float | None:
    return main(pilot.app).view.cursor


async def test_e_moves_arrows_to_charts_and_escape_returns() -> None:
    async with running_app(EVENTS) as (pilot, source):
        await press(pilot, "e", "left", "left", "right")
        assert cursor(pilot) == 90
        assert "00:01:30  1.22k req/s" in title(pilot)
        footer = main(pilot.app).query_one(Footer)
        assert text_of(footer).strip().startswith("← → move")
        assert source.controls.done == [], "arrows move the cursor, not the session"
        await press(pilot, "home")
        assert cursor(pilot) == 0
        await press(pilot, "pagedown", "pagedown", "pageup", "right")
        tenth = main(pilot.app).query_one(Throughput).size.width // 10
        assert cursor(pilot) == 2 * (tenth + 1)
        await press(pilot, "end")
        assert cursor(pilot) == 92, "the end of the load"
        await press(pilot, "escape")
        assert cursor(pilot) is None
        assert "no load now" in title(pilot)
        assert "← → move" not in text_of(footer)
        await press(pilot, "left")
        await until(pilot, lambda: source.controls.done == [("back", "")])
        await press(pilot, "e", "e")
        assert cursor(pilot) is None


async def test_burst_of_keys_keeps_order() -> None:
    async with running_app(EVENTS) as (pilot, source):
        # All at once, as over a slow connection.
        for key in ("e", "left", "left", "escape", "left"):
            pilot.app.post_message(Key(key, None))
        await until(pilot, lambda: source.controls.done == [("back", "")])
        assert cursor(pilot) is None


async def test_both_charts_show_cursor_and_values() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "e", "home", *["right"] * 10)
        above, below = (text_of(main(pilot.app).query_one(kind)).splitlines() for kind in (Throughput, Latency))
        assert "00:00:20  1.19k req/s" in above[0]
        assert "web1 cpu 78%" in above[0]
        assert "00:00:20  p50 14 p99 79" in below[0]
        at = next(line for line in above if "▲" in line).index("▲")
        assert above[2][at] == "│"
        await press(pilot, "v", "v")
        assert "p50 14 p99 79" in title(pilot), "the chart below is not over time"


async def test_cursor_keeps_time_while_session_continues() -> None:
    async with running_app(Scenario().events(60)) as (pilot, source):
        await press(pilot, "e", "left")
        chosen, before = cursor(pilot), title(pilot)
        source.push(*[event for event in EVENTS if event.t > 60])
        await wait_for_events(pilot, source, len(EVENTS))
        assert cursor(pilot) == chosen
        assert title(pilot).split("req/s")[0] == before.split("req/s")[0]


async def test_brackets_move_cursor_between_markers_and_segments() -> None:
    async with running_app(EVENTS, size=(120, 40)) as (pilot, _):
        await press(pilot, "e")
        positions = []
        for _ in range(8):
            await press(pilot, "left_square_bracket")
            positions.append(cursor(pilot))
        assert positions == [90, 84, 82, 70, 44, 40, 4, 4]
        await press(pilot, "right_square_bracket", "right_square_bracket", "right_square_bracket")
        assert cursor(pilot) == 70 or cursor(pilot) == 44
        await press(pilot, "end", *["left_square_bracket"] * 2)
        assert "asked Ann about the disk" in text_of(main(pilot.app).query_one(Throughput))


async def test_click_moves_cursor() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await pilot.click(Throughput, offset=(AXIS + 1 + 20, 6))
        await wait_idle(pilot)
        assert cursor(pilot) == 40
        await pilot.click(Latency, offset=(AXIS + 1 + 7, 4))
        await wait_idle(pilot)
        assert cursor(pilot) == 14
        await pilot.click(Latency, offset=(2, 4))
        await wait_idle(pilot)
        assert cursor(pilot) == 14, "the axis labels have no time"
        await press(pilot, "v", "escape")
        await pilot.click(Latency, offset=(AXIS + 1 + 7, 4))
        await wait_idle(pilot)
        assert cursor(pilot) is None, "a histogram is not over time"


async def test_i_and_o_zoom_both_charts() -> None:
    async with running_app(EVENTS) as (pilot, _):
        chart, heat = (main(pilot.app).query_one(kind) for kind in (Throughput, Latency))
        assert "2 s/cell" in text_of(chart)
        await press(pilot, "o")
        assert chart.window == heat.window
        assert "2 s/cell" in text_of(chart), "the whole session is visible"
        await press(pilot, "i", "i", "i", "i")
        assert "0.5 s/cell" in text_of(chart)
        assert chart.window == heat.window
        assert "00:01:10" in text_of(chart)
        await press(pilot, "e", "home")
        assert chart.window is not None and chart.window.first == 0, "the window follows the cursor"
        await press(pilot, "o")
        assert "1 s/cell" in text_of(chart)
        assert cursor(pilot) == 0
        await press(pilot, "escape", "escape")
        assert main(pilot.app).view.span is None


async def test_l_lists_markers_and_enter_moves_cursor() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "l")
        screen = pilot.app.screen
        assert isinstance(screen, ChoiceScreen)
        listed = text_of(screen.query_one("OptionList"))
        assert "00:00:40  A  MinSpareServers 5 → 20, MaxSpareServers 10 → 40" in listed
        assert "asked Ann about the disk" in listed
        await press(pilot, "up", "up", "enter")
        assert cursor(pilot) == 70
        assert "MaxConnectionsPerChild 10 → 1000" in text_of(main(pilot.app).query_one(Throughput))
        await press(pilot, "l", "escape")
        assert cursor(pilot) == 70


async def test_l_lists_later_replay_markers_and_enter_seeks() -> None:
    with Recording(RECORDING.with_name("spare-servers.cockpit")) as recording:
        whole = last_state(recording)
        app = CockpitApp(Session(ReplaySource(recording, 1.0, playing=False)))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: main(pilot.app).session.state.started is not None)
            assert whole.markers and not main(pilot.app).session.state.markers
            await press(pilot, "l")
            screen = pilot.app.screen
            assert isinstance(screen, ChoiceScreen) and len(screen.lines) == len(all_markers(whole))
            await press(pilot, "enter")
            first = whole.markers[0]
            await until(pilot, lambda: main(pilot.app).session.state.markers == whole.markers[:1])
            assert first.t <= (main(pilot.app).session.controls.position or 0.0) <= first.t + 1


async def test_empty_marker_list_explains_markers() -> None:
    async with running_app(Scenario().events(20)) as (pilot, _):
        await press(pilot, "l")
        assert "No markers yet" in text_of(pilot.app.screen.query_one(".hint"))
        await press(pilot, "enter", "l")
        assert not isinstance(pilot.app.screen, ChoiceScreen)


@pytest.mark.parametrize("keys", [("e",), ("i",), ("o",), ("l", "enter")])
async def test_chart_keys_are_refused_without_room(keys: tuple[str, ...]) -> None:
    async with running_app(EVENTS, size=(60, 15)) as (pilot, _):
        await press(pilot, *keys)
        await until(pilot, lambda: any("no room for the charts" in note.message for note in pilot.app._notifications))
        assert cursor(pilot) is None


async def test_arrows_belong_to_either_host_or_charts() -> None:
    async with running_app(EVENTS) as (pilot, _):
        view = lambda: main(pilot.app).view  # noqa: E731
        await press(pilot, "enter", "e")
        assert not view().list_focused and view().cursor is not None
        await press(pilot, "p")
        assert view().list_focused and view().cursor is None


async def test_enter_seeks_replay_to_cursor() -> None:
    with Recording(RECORDING) as recording:
        session = Session(ReplaySource(recording, recording.end, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: session.state.ended)
            main(app).frame()
            await press(pilot, "e", "left_square_bracket", "left", "left")
            before = title(pilot)
            assert "00:00:58" in before and "req/s" in before
            await press(pilot, "enter")
            await until(pilot, lambda: "00:01:00" in text_of(app.screen.query_one(TopLine)))
            await until(pilot, lambda: session.state.t < 61)
            main(app).frame()
            assert title(pilot).split("req/s")[0] == before.split("req/s")[0], (
                "the seconds before the cursor are complete"
            )
            assert [marker.sign for marker in session.state.markers] == []
            await press(pilot, "escape", "right_square_bracket")
            await until(pilot, lambda: session.state.markers != ())
            main(app).frame()
            assert "MinSpareServers 5 → 30" in text_of(app.screen.query_one(Throughput)), "the replay is at the marker"
