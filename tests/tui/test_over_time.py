"""Keys of the charts over time: cursor, zoom, markers."""

from textual.events import Key
from textual.pilot import Pilot

from cockpit.analysis.timeline import all_markers
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.charts.window import AXIS
from cockpit.tui.dialogs.prompt import ChoiceScreen
from cockpit.tui.footer import Footer
from cockpit.tui.status_lines import Position
from tests.tui.driving import main, press, reset_screen, running_app, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.screens import RECORDINGS, replayed_app, until_notice

EVENTS = Scenario().events(99)
# Each key moves the cursor by a tenth of the chart.
FAR_LEFT, FAR_RIGHT = ["pageup"] * 11, ["pagedown"] * 11


def title(pilot: Pilot[object]) -> str:
    return text_of(main(pilot.app).query_one(Throughput)).splitlines()[0]


def cursor(pilot: Pilot[object]) -> float | None:
    return main(pilot.app).view.cursor


def cell(pilot: Pilot[object], t: float | None = None) -> int:
    """Return the cell of the charts with an instant, by default the cursor's."""
    window, at = main(pilot.app).query_one(Throughput).window, cursor(pilot) if t is None else t
    assert window is not None and at is not None
    return window.cell(at)


async def test_cursor_moves_by_keys_clicks_and_markers() -> None:
    async with running_app(EVENTS) as (pilot, source):
        await press(pilot, "e", "left", "left", "right")
        assert cell(pilot) == cell(pilot, 93) - 1
        assert "00:01:31  1.2" in title(pilot) and "k req/s" in title(pilot)
        footer = main(pilot.app).query_one(Footer)
        assert text_of(footer).strip().startswith("← → move")
        assert source.controls.done == [], "arrows move the cursor, not the session"
        await press(pilot, *FAR_LEFT)
        assert cursor(pilot) == 5, "the start of the load"
        await press(pilot, "pagedown", "pagedown", "pageup", "right")
        tenth = main(pilot.app).query_one(Throughput).size.width // 10
        assert cell(pilot) == tenth + 1
        await press(pilot, *FAR_RIGHT)
        assert cell(pilot) == cell(pilot, 93), "the end of the load"
        await press(pilot, "escape")
        assert cursor(pilot) is None
        assert "no load now" in title(pilot)
        assert "← → move" not in text_of(footer)
        await press(pilot, "left")
        await until(pilot, lambda: source.controls.done == [("back", "")])
        await press(pilot, "e", "e")
        assert cursor(pilot) is None
        source.controls.done.clear()
        # All at once, as over a slow connection.
        for key in ("e", "left", "left", "escape", "left"):
            pilot.app.post_message(Key(key, None))
        await until(pilot, lambda: source.controls.done == [("back", "")])
        assert cursor(pilot) is None
        await press(pilot, "enter", "e")
        view = main(pilot.app).view
        assert not view.list_focused and view.cursor is not None, "arrows belong to either the host or the charts"
        await press(pilot, "p")
        view = main(pilot.app).view
        assert view.list_focused and view.cursor is None
        await reset_screen(pilot)
        await press(pilot, "e", *FAR_LEFT, *["right"] * 10)
        above, below = (text_of(main(pilot.app).query_one(kind)).splitlines() for kind in (Throughput, Latency))
        assert "00:00:20  1.18k req/s" in above[0] and "00:00:20  p50 1" in below[0]
        at = next(line for line in above if "▲" in line).index("▲")
        assert above[2][at] == "│"
        await reset_screen(pilot)
        for kind, offset in ((Throughput, 20), (Latency, 7)):
            await pilot.click(kind, offset=(AXIS + 2 + offset, 4))
            await wait_idle(pilot)
            assert cell(pilot) == offset
        await pilot.click(Latency, offset=(2, 4))
        await wait_idle(pilot)
        assert cell(pilot) == 7, "the axis labels have no time"
        await press(pilot, "v", "escape")
        await pilot.click(Latency, offset=(AXIS + 2 + 7, 4))
        await wait_idle(pilot)
        assert cursor(pilot) is None, "a histogram is not over time"
        await reset_screen(pilot)
        await press(pilot, "e")
        positions = []
        for _ in range(8):
            await press(pilot, "left_square_bracket")
            positions.append(cell(pilot))
        assert positions == [cell(pilot, t) for t in (90, 85, 82, 70, 45, 40, 5, 5)]
        await press(pilot, "right_square_bracket", "right_square_bracket", "right_square_bracket")
        assert cell(pilot) in (cell(pilot, 45), cell(pilot, 70))
        await press(pilot, *FAR_RIGHT, *["left_square_bracket"] * 2)
        assert "asked Ann about the disk" in text_of(main(pilot.app).query_one(Throughput))
        await reset_screen(pilot)
        chart, heat = (main(pilot.app).query_one(kind) for kind in (Throughput, Latency))
        scale = "1.52 s/cell"
        assert scale in text_of(chart)
        await press(pilot, "o")
        assert chart.window == heat.window
        assert scale in text_of(chart), "the whole session is visible"
        await press(pilot, *["i"] * 5)
        assert "0.5 s/cell" in text_of(chart)
        assert chart.window == heat.window
        assert "00:01:10" in text_of(chart)
        await press(pilot, "e", *FAR_LEFT * 4)
        assert chart.window is not None and chart.window.first == 5, "the window follows the cursor"
        await press(pilot, "o")
        assert "0.75 s/cell" in text_of(chart)
        assert cell(pilot) <= 2
        await press(pilot, "escape", "escape")
        assert main(pilot.app).view.span is None
        await press(pilot, "l")
        screen = pilot.app.screen
        assert isinstance(screen, ChoiceScreen)
        listed = text_of(screen.query_one("OptionList"))
        assert "00:00:40  A  MinSpareServers 5 → 20, MaxSpareServers 10 → 40" in listed
        assert "asked Ann about the disk" in listed
        await press(pilot, "up", "up", "enter")
        assert cell(pilot) == cell(pilot, 70)
        assert "MaxConnectionsPerChild 10 → 1000" in text_of(main(pilot.app).query_one(Throughput))
        await press(pilot, "l", "escape")
        assert cell(pilot) == cell(pilot, 70)
        await pilot.resize_terminal(60, 15)
        for keys in (("e",), ("i",), ("o",), ("l", "enter")):
            await reset_screen(pilot)
            await press(pilot, *keys)
            await until_notice(pilot, "no room for the charts")
            assert cursor(pilot) is None


async def test_cursor_keeps_time_while_session_continues() -> None:
    async with running_app(Scenario().events(60)) as (pilot, source):
        await press(pilot, "e", "left")
        chosen, before = cursor(pilot), title(pilot)
        source.push(*[event for event in EVENTS if event.t > 60])
        await wait_for_events(pilot, source, len(EVENTS))
        assert cursor(pilot) == chosen
        # The start of the cursor's cell.
        assert (before.split()[3], title(pilot).split()[3]) == ("00:00:57", "00:00:56")


async def test_empty_marker_list_explains_markers() -> None:
    async with running_app(Scenario().events(20)) as (pilot, _):
        await press(pilot, "l")
        assert "No markers yet" in text_of(pilot.app.screen.query_one(".hint"))
        await press(pilot, "enter", "l")
        assert not isinstance(pilot.app.screen, ChoiceScreen)


async def test_enter_seeks_replay_to_cursor() -> None:
    async with replayed_app(RECORDINGS / "under-load.cockpit") as (pilot, session):
        await press(pilot, "i", "e", "left_square_bracket", "left", "left")
        before = title(pilot)
        assert "00:00:58" in before and "req/s" in before
        await press(pilot, "enter")
        await until(pilot, lambda: "00:01:00" in text_of(main(pilot.app).query_one(Position)))
        await until(pilot, lambda: session.state.t < 61)
        main(pilot.app).frame()
        assert title(pilot).split("req/s")[0] == before.split("req/s")[0], "the seconds before the cursor are complete"
        assert session.state.markers == ()
        end = session.controls.end_state()
        await press(pilot, "escape", "l")
        screen = pilot.app.screen
        assert isinstance(screen, ChoiceScreen) and len(screen.lines) == len(all_markers(end))
        await press(pilot, "home", "enter")
        first = end.markers[0]
        await until(pilot, lambda: session.state.markers == end.markers[:1])
        assert first.t <= (session.controls.position or 0.0) <= first.t + 1
        main(pilot.app).frame()
        assert "MinSpareServers 5 → 30" in text_of(main(pilot.app).query_one(Throughput)), "the replay is at the marker"
