"""Keys of the host panes."""

from __future__ import annotations

import pytest

from cockpit.model import events as ev
from cockpit.session.controls import Controls
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.dialogs.prompt import FilterScreen
from cockpit.tui.footer import Footer
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.key_table import MainKey, ViewKey
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.table import Runs
from cockpit.tui.view_keys import ViewKeys
from tests.tui.driving import main, press, running_app, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.topology import VMSTAT, topology

EVENTS = Scenario().events(99)
TWO_HOSTS = topology()


async def test_d_cycles_host_details_in_both_directions() -> None:
    async with running_app(TWO_HOSTS) as (pilot, _):
        await press(pilot, "p")
        panes = main(pilot.app).query_one(HostPanes)
        for text in ("CPU    %user", "DEV", "IFACE", "apache  http://127.0.0.1/server-status", "tail -F", "sar -b 1"):
            await press(pilot, "d")
            await until(pilot, lambda text=text: text in text_of(panes))
        await press(pilot, "d")
        await until(pilot, lambda: "PID STAT" in text_of(panes))
        await press(pilot, "D", "D", "D")
        await until(pilot, lambda: "server-status" in text_of(panes))


async def test_each_host_keeps_selected_detail() -> None:
    async with running_app(TWO_HOSTS) as (pilot, _):
        screen = main(pilot.app)
        await press(pilot, "d", "tab", "d", "d", "tab")
        panes = text_of(screen.query_one(HostPanes))
        web, app = panes.split("app1 ")
        assert "%user" in web
        assert "DEV" in app


async def test_enter_moves_arrows_from_runs_table_to_host_detail() -> None:
    async with running_app(EVENTS) as (pilot, _):
        screen = main(pilot.app)
        await press(pilot, "up")
        assert screen.view.segment == 3
        await press(pilot, "z", "enter", "down", "down")
        assert screen.view.segment == 3, "the selected segment does not change"
        assert screen.view.scroll == 2
        await until(pilot, lambda: "↑↓ PgUp PgDn scroll" in text_of(screen.query_one(Footer)))
        await press(pilot, "escape", "up")
        assert screen.view.segment == 2
        assert "scroll" not in text_of(screen.query_one(Footer))
        await press(pilot, "enter", "enter", "up")
        assert screen.view.segment == 1, "Enter also leaves the detail"


async def test_enter_maximizes_host_without_visible_pane() -> None:
    async with running_app(EVENTS, size=(80, 24)) as (pilot, _):
        screen = main(pilot.app)
        await press(pilot, "enter")
        await until(pilot, lambda: "COMMAND" in text_of(screen.query_one(HostPanes)))
        await press(pilot, "escape")
        await until(pilot, lambda: screen.query_one(Throughput).size.area > 0)


async def test_p_cycles_host_layouts() -> None:
    async with running_app(TWO_HOSTS) as (pilot, _):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width > 100 and "app1" not in text_of(panes).splitlines()[0])
        await press(pilot, "p")
        await until(pilot, lambda: "app1" in text_of(panes).splitlines()[0])
        assert "web1" in text_of(panes).splitlines()[0]
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width < 60)


async def test_wide_screen_shows_two_hosts_beside_chart() -> None:
    async with running_app(TWO_HOSTS, size=(200, 50)) as (pilot, _):
        first = text_of(main(pilot.app).query_one(HostPanes)).splitlines()[0]
        assert "web1" in first
        assert "app1" in first
        assert main(pilot.app).query_one(Throughput).size.width > 80


async def test_selected_process_is_kept_across_churn_and_sorting() -> None:
    async with running_app(Scenario().events(20.6)) as (pilot, source):
        screen = main(pilot.app)
        await press(pilot, "p", "z", "G", "up", "up")
        chosen = screen.view.process
        assert chosen is not None
        more = [event for event in Scenario().events(21.6) if event.t > 20.6]
        source.push(*more)
        await wait_for_events(pilot, source, len(Scenario().events(21.6)))
        await press(pilot, "s", "S")
        assert screen.view.process == chosen
        assert f"PID {chosen[0]}  parent" in text_of(screen.query_one(HostPanes))


async def test_frozen_hosts_can_be_sorted_while_chart_continues() -> None:
    all_events = Scenario().events(30.6)
    async with running_app(Scenario().events(20.6)) as (pilot, source):
        screen = main(pilot.app)
        panes, chart = screen.query_one(HostPanes), screen.query_one(Throughput)
        await press(pilot, "f")
        before, drawn = text_of(panes), text_of(chart)
        assert "FROZEN at 00:00:20" in before
        source.push(*[event for event in all_events if event.t > 20.6])
        await wait_for_events(pilot, source, len(all_events))
        assert text_of(panes) == before
        assert text_of(chart) != drawn
        await press(pilot, "s")
        assert "▾RSS" in text_of(panes)
        await press(pilot, "enter", "down", "escape", "f")
        assert "FROZEN" not in text_of(panes)
        assert text_of(panes) != before


async def test_filter_applies_while_typing_and_escape_clears_filter() -> None:
    async with running_app(EVENTS) as (pilot, _):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        await press(pilot, "slash", *"zzz")
        await until(pilot, lambda: isinstance(pilot.app.screen, FilterScreen) and "none of" in text_of(panes))
        await press(pilot, "escape")
        await until(pilot, lambda: "none of" not in text_of(panes))
        await press(pilot, "slash", *"start", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen) and "/start" in text_of(panes))
        await press(pilot, "escape")
        assert "/start" not in text_of(panes)


async def test_scrolled_tail_is_paused_and_counts_newer_lines() -> None:
    events = topology(30.7)
    async with running_app(events) as (pilot, source):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        await press(pilot, "tab", "p", "D", "pageup")
        assert screen.view.paused_tail is not None
        before = text_of(panes).splitlines()
        at = next(at for at, line in enumerate(before) if VMSTAT in line)
        assert "paused at 00:00:30, 0 newer" in before[at]
        later = [event for event in TWO_HOSTS if 30.7 < event.t < 42.7]
        source.push(*later)
        await wait_for_events(pilot, source, len(events) + len(later))
        after = text_of(panes).splitlines()
        assert "paused at 00:00:30, 12 newer" in after[at]
        assert after[at + 1 :] == before[at + 1 :]
        await press(pilot, "escape")
        assert screen.view.paused_tail is None
        assert "paused" not in text_of(panes)
        await press(pilot, "up", "up", "down", "down")
        assert screen.view.paused_tail is None, "the tail follows again from the newest line"
        await press(pilot, "g")
        assert "procs ---" in text_of(panes)


async def test_w_shows_selected_segment_averages_for_every_host() -> None:
    async with running_app(Scenario(2).events(99)) as (pilot, _):
        panes = main(pilot.app).query_one(HostPanes)
        await press(pilot, "w")
        assert text_of(panes).count("averages of segment 4") == 2
        await press(pilot, "up")
        assert text_of(panes).count("averages of segment 3") == 2
        await press(pilot, "w")
        assert "PID STAT" in text_of(panes)


@pytest.mark.parametrize("key", ["d", "D", "w", "a", "f", "slash", "enter", "p"])
async def test_host_keys_without_hosts_report_no_host(key: str) -> None:
    async with running_app(Scenario(0).events(20)) as (pilot, _):
        await press(pilot, "up", "pagedown", "g", "s", "S", "tab", key)
        await until(pilot, lambda: any("no host is watched" in note.message for note in pilot.app._notifications))


async def test_page_keys_run_session_actions_outside_detail() -> None:
    async with running_app(EVENTS) as (pilot, source):
        controls = source.controls
        back = next(action for action in controls.actions if action.name == "back")
        controls.actions = (*controls.actions, type(back)("back_tenth", "back 10%", back.run, footer=False))
        await press(pilot, "pageup")
        await until(pilot, lambda: controls.done == [("back", "")])
        await press(pilot, "enter", "G")
        bottom = main(pilot.app).view.scroll
        await press(pilot, "pageup")
        assert main(pilot.app).view.scroll < bottom
        assert controls.done == [("back", "")]
        await press(pilot, "left")
        await until(pilot, lambda: len(controls.done) == 2)


def test_no_binding_conflicts_with_terminal_multiplexers() -> None:
    bindings = [*MainScreen.BINDINGS, *ViewKeys.BINDINGS]
    keys = {key for binding in bindings for key in binding.key.split(",")}  # type: ignore[union-attr]
    assert not keys & {"ctrl+a", "ctrl+b", "shift+up", "shift+down", "shift+left", "shift+right"}


async def test_help_lists_every_screen_key() -> None:
    async with running_app(TWO_HOSTS) as (pilot, source):
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        controls: Controls = source.controls
        named = " ".join(name for name, _ in help_entries(controls.actions))
        scrolling = {MainKey.BACK, ViewKey.PAGE_UP, ViewKey.PAGE_DOWN, ViewKey.TOP, ViewKey.BOTTOM}
        listed = {*MainKey, *ViewKey} - scrolling - {ViewKey.PREVIOUS_HOST}
        assert {str(key) for key in listed} <= set(named.split())


async def test_restart_is_marked_and_labelled_on_chart() -> None:
    from msgspec.structs import replace

    from cockpit.model.state import Marker

    async with running_app(TWO_HOSTS) as (pilot, source):
        state = source.session.state
        source.session.state = replace(
            state, markers=(Marker(t=20.0, kind="restart", sign="R", text="web1: apache2 was restarted"),)
        )
        source.session.revision += 1
        main(pilot.app).frame()
        await wait_idle(pilot)
        lines = text_of(main(pilot.app).query_one(Throughput)).splitlines()
        assert "R restart" in lines[0]
        assert "R" in lines[1]


async def test_asking_host_is_labelled_on_host_line() -> None:
    source_events = [*topology(8.0), ev.HostChanged(t=8.5, host="app1", condition="asking", detail="password")]
    async with running_app(source_events, size=(80, 24)) as (pilot, _):
        assert "ASKING  password" in "\n".join(
            text_of(widget)
            for widget in main(pilot.app).query("HostLines")  # type: ignore[arg-type]
        )


async def test_runs_table_stays_visible_with_many_hosts() -> None:
    async with running_app(Scenario(8).events(62.5), size=(80, 24)) as (pilot, source):
        assert isinstance(source, ScriptedSource)
        screen = main(pilot.app)
        assert "⣿" in text_of(screen.query_one(Throughput))
        assert "baseline" in text_of(screen.query_one(Runs))
