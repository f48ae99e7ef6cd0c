"""Keys of the main screen."""

from __future__ import annotations

import pytest

from cockpit.model.text import clock
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.footer import Footer
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import Position
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import main, press, running_app, screen_text, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario

EVENTS = Scenario().events(99)


async def test_empty_session_names_start_key() -> None:
    async with running_app() as (pilot, _):
        text = screen_text(pilot)
        assert "No requests sent yet" in text
        assert "press space: start/stop" in text


async def test_screen_follows_session() -> None:
    async with running_app(EVENTS[:200]) as (pilot, source):
        assert "baseline" in text_of(main(pilot.app).query_one(Runs))
        source.push(*EVENTS[200:])
        await wait_for_events(pilot, source, len(EVENTS))
        await until(pilot, lambda: "≠ load" in text_of(main(pilot.app).query_one(Runs)))
        assert clock(EVENTS[-1].t) in screen_text(pilot)


async def test_v_cycles_latency_views() -> None:
    async with running_app(EVENTS) as (pilot, _):
        latency = main(pilot.app).query_one(Latency)
        before = text_of(latency)
        assert "· max" in before
        for text in ("200 – 500 ms", "▀ segment 1", "of a cell's responses", "first byte ms"):
            await press(pilot, "v")
            assert text in text_of(latency)
        await press(pilot, "v")
        assert text_of(latency) == before


async def test_arrows_select_segment_and_escape_clears_selection() -> None:
    async with running_app(EVENTS, size=(140, 40)) as (pilot, _):
        screen = main(pilot.app)
        latency, runs = screen.query_one(Latency), screen.query_one(Runs)
        assert "segment 4 x p50" in text_of(latency)
        await press(pilot, "up", "up")
        assert "segment 2 p50" in text_of(latency)
        assert "▸ 2" in text_of(runs)
        await press(pilot, "down")
        assert "segment 3 p50" in text_of(latency)
        await press(pilot, "up", "up", "up", "up")
        assert "segment 1 p50" in text_of(latency)
        await press(pilot, "escape")
        assert "segment 4 x p50" in text_of(latency)


async def test_b_makes_selected_segment_baseline() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "up", "up", "b")
        rows = text_of(main(pilot.app).query_one(Runs)).splitlines()
        assert "base gen-sat+" in rows[3]
        assert rows[2].split()[-1] in ("short", "gen-sat"), "the baseline has a saturated generator"


async def test_b_without_segment_suggests_starting_run() -> None:
    async with running_app() as (pilot, _):
        await press(pilot, "b")
        await until(pilot, lambda: any("space: start a run" in note.message for note in pilot.app._notifications))


async def test_tab_cycles_hosts() -> None:
    async with running_app(Scenario(3).events(30)) as (pilot, _):
        panes = main(pilot.app).query_one(HostPanes)
        assert "▸ web1" in text_of(panes)
        await press(pilot, "tab")
        assert "▸ web2" in text_of(panes)
        await press(pilot, "shift+tab", "shift+tab")
        assert "▸ web3" in text_of(panes)


async def test_s_sorts_processes_and_p_maximizes_host() -> None:
    async with running_app(EVENTS) as (pilot, _):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        assert "▾%CPU" in text_of(panes)
        await press(pilot, "s")
        assert "▾RSS" in text_of(panes)
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width > 100)
        assert not screen.query_one(Throughput).size.area
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width < 60)


async def test_p_shows_processes_on_small_terminal() -> None:
    async with running_app(EVENTS, size=(60, 15)) as (pilot, _):
        assert "COMMAND" not in screen_text(pilot)
        await press(pilot, "p")
        await until(pilot, lambda: "apache2 -k start" in screen_text(pilot))


async def test_p_without_hosts_reports_no_host() -> None:
    async with running_app(Scenario(0).events(20)) as (pilot, _):
        await press(pilot, "p")
        await until(pilot, lambda: any("no host is watched" in note.message for note in pilot.app._notifications))
        assert main(pilot.app).query_one(Throughput).size.width > 100, "without hosts the charts have the full width"


async def test_question_mark_opens_help_and_escape_closes() -> None:
    async with running_app(EVENTS) as (pilot, _source):
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await press(pilot, "end", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))


async def test_t_opens_tuning_panel() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))


@pytest.mark.parametrize(("key", "name"), [("space", "toggle"), ("plus", "more"), ("left", "back")])
async def test_session_keys_run_session_actions(key: str, name: str) -> None:
    async with running_app(EVENTS) as (pilot, source):
        await press(pilot, key)
        await until(pilot, lambda: source.controls.done == [(name, "")])


async def test_prompted_action_receives_answer() -> None:
    async with running_app(EVENTS) as (pilot, source):
        await press(pilot, "m")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, *"swap?", "enter")
        await until(pilot, lambda: source.controls.done == [("mark", "swap?")])
        await press(pilot, "m")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, "minus", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert source.controls.done == [("mark", "swap?")]


async def test_failed_action_shows_sanitized_reason() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "minus")
        message = "no [load] in ·[31mthis profile: add one"
        await until(pilot, lambda: any(note.message == message for note in pilot.app._notifications))


async def test_footer_lists_session_keys() -> None:
    async with running_app(EVENTS) as (pilot, _):
        text = text_of(main(pilot.app).query_one(Footer))
        assert "space start/stop" in text
        assert "+ load" in text
        assert "back 1 s" not in text, "not a footer action"
        assert text.endswith("? help  q quit")


async def test_session_with_extent_has_position_bar() -> None:
    async with running_app(EVENTS) as (pilot, source):
        position = main(pilot.app).query_one(Position)
        assert not position.display
        source.controls.extent = (0.0, 200.0)
        source.controls.position = 50.0
        await until(pilot, lambda: position.size.area > 0 and "●" in text_of(position))
        bar = text_of(position)
        assert bar.endswith("00:03:20")
        assert "A" in bar
        track = bar[len("00:00:00  ") : -len("  00:03:20")]
        assert track.index("●") == pytest.approx(len(track) / 4, abs=1)
        assert "00:00:50" in screen_text(pilot), "the clock shows the position of the replay"


async def test_resize_keeps_metrics_visible() -> None:
    async with running_app(EVENTS) as (pilot, _):
        for size in ((80, 24), (40, 12), (20, 5), (8, 2), (200, 50), (120, 40)):
            await pilot.resize_terminal(*size)
            await wait_idle(pilot)
        assert "1.39k" in screen_text(pilot)
