"""Keys of the host panes, beside the charts and on 80x24 terminals, where a host is a single line."""

import re

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.markers import RestartMarker
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.help import help_entries
from cockpit.tui.dialogs.prompt import FilterScreen
from cockpit.tui.footer import Footer
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.key_table import MainKey, ViewKey
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.details import ends_with
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import shortened
from cockpit.tui.view_keys import ViewKeys
from tests.tui.driving import (
    context_of,
    main,
    plain,
    press,
    reset_screen,
    running_app,
    screen_text,
    text_of,
    until,
    wait_for_events,
    wait_idle,
)
from tests.tui.scenario import Scenario, plan, session_started
from tests.tui.screens import rendered_text, until_notice
from tests.tui.test_verdicts import changed_under_load
from tests.tui.topology import VMSTAT, topology

EVENTS = Scenario().events(99)
TWO_HOSTS = topology()


async def test_keys_cycle_details_and_layouts_of_hosts() -> None:
    async with running_app(TWO_HOSTS) as (pilot, source):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width > 100 and "app1" not in text_of(panes).splitlines()[0])
        for text in ("CPU    %user", "DEV", "IFACE", "apache  http://127.0.0.1/server-status", "tail -F", "sar -b 1"):
            await press(pilot, "d")
            await until(pilot, lambda text=text: text in text_of(panes))
        await press(pilot, "d")
        await until(pilot, lambda: "PID STAT" in text_of(panes))
        await press(pilot, "D", "D", "D")
        await until(pilot, lambda: "server-status" in text_of(panes))
        await press(pilot, "p")
        await until(pilot, lambda: "app1" in text_of(panes).splitlines()[0])
        assert "web1" in text_of(panes).splitlines()[0]
        await press(pilot, "p")
        await until(pilot, lambda: panes.size.width < 60)
        await reset_screen(pilot)
        await press(pilot, "d", "tab", "d", "d", "tab")
        web, app = text_of(panes).split("app1 ", 1)
        assert "%user" in web and "DEV" in app, "each host keeps its detail"
        restarted = RestartMarker(t=20.0, host="web1", server="apache2", shown_by="pid", old=1, new=2)
        source.session.state = replace(source.session.state, markers=(restarted,))
        source.session.revision += 1
        screen.frame()
        await wait_idle(pilot)
        lines = text_of(screen.query_one(Throughput)).splitlines()
        assert "R restart" in lines[0]
        assert "R" in lines[1]


async def test_enter_moves_arrows_from_runs_table_to_host_detail() -> None:
    async with running_app(EVENTS) as (pilot, source):
        screen, controls = main(pilot.app), source.controls
        back = next(action for action in controls.actions if action.name == "back")
        controls.actions = (*controls.actions, type(back)("back_tenth", "back 10%", back.run, footer=False))
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
        await press(pilot, "pageup")
        await until(pilot, lambda: controls.done == [("back", "")])
        await press(pilot, "enter", "G")
        bottom = screen.view.scroll
        await press(pilot, "pageup")
        assert screen.view.scroll < bottom
        assert controls.done == [("back", "")]
        await press(pilot, "left")
        await until(pilot, lambda: len(controls.done) == 2)
        await reset_screen(pilot)
        await pilot.resize_terminal(80, 24)
        await wait_idle(pilot)
        await press(pilot, "enter")
        await until(pilot, lambda: "COMMAND" in text_of(screen.query_one(HostPanes)))
        await press(pilot, "escape")
        await until(pilot, lambda: screen.query_one(Throughput).size.area > 0)


async def test_selected_process_is_kept_across_churn_and_sorting() -> None:
    async with running_app(Scenario().events(20.6)) as (pilot, source):
        screen = main(pilot.app)
        await press(pilot, "p", "z", "G", "up", "up")
        chosen = screen.view.process
        assert chosen is not None
        source.push(*[event for event in Scenario().events(21.6) if event.t > 20.6])
        await wait_for_events(pilot, source, len(Scenario().events(21.6)))
        await press(pilot, "s", "S")
        assert screen.view.process == chosen
        assert f"PID {chosen[0]}  parent" in text_of(screen.query_one(HostPanes))


def without_blocks(text: str) -> str:
    return re.sub("[ ▁-█]+", " ", text)


async def test_frozen_hosts_can_be_sorted_and_filtered_while_chart_continues() -> None:
    all_events = Scenario().events(30.6)
    async with running_app(Scenario().events(20.6)) as (pilot, source):
        screen = main(pilot.app)
        panes, chart = screen.query_one(HostPanes), screen.query_one(Throughput)
        await press(pilot, "f")
        before, drawn = text_of(panes), text_of(chart)
        assert "FROZEN at 00:00:20" in before
        source.push(*[event for event in all_events if event.t > 20.6])
        await wait_for_events(pilot, source, len(all_events))
        # The histories keep their samples on the time axis of the charts, which moves.
        assert without_blocks(text_of(panes)) == without_blocks(before)
        assert text_of(chart) != drawn
        await press(pilot, "s")
        assert "▾RSS" in text_of(panes)
        await press(pilot, "enter", "down", "escape", "f")
        assert "FROZEN" not in text_of(panes)
        assert text_of(panes) != before
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
        assert "paused" not in text_of(panes)
        await press(pilot, "up", "up", "down", "down")
        assert screen.view.paused_tail is None, "the tail follows again from the newest line"
        await press(pilot, "g")
        assert "procs ---" in text_of(panes)


async def test_host_keys_without_hosts_report_no_host() -> None:
    async with running_app(Scenario(0).events(20)) as (pilot, _):
        assert main(pilot.app).query_one(Throughput).size.width > 100, "without hosts the charts have the full width"
        await press(pilot, "up", "pagedown", "g", "s", "S", "tab")
        for key in ("d", "D", "a", "f", "slash", "enter", "p"):
            await reset_screen(pilot)
            await press(pilot, key)
            await until_notice(pilot, "no host is watched")
            assert not main(pilot.app).view.metrics


def test_keys_are_in_help_and_free_in_multiplexers() -> None:
    bindings = [*MainScreen.BINDINGS, *ViewKeys.BINDINGS]
    keys = {key for binding in bindings for key in binding.key.split(",")}  # type: ignore[union-attr]
    assert not keys & {"ctrl+a", "ctrl+b", "shift+up", "shift+down", "shift+left", "shift+right"}
    named = " ".join(name for name, _ in help_entries(()))
    scrolling = {MainKey.BACK, ViewKey.PAGE_UP, ViewKey.PAGE_DOWN, ViewKey.TOP, ViewKey.BOTTOM}
    listed = {*MainKey, *ViewKey} - scrolling - {ViewKey.PREVIOUS_HOST}
    assert {str(key) for key in listed} <= set(named.split())
    for width in (80, 120):
        (line,) = plain(Footer().draw(context_of(changed_under_load()), width, 1))
        assert all(key in line for key in ("t tune", "c compare", "r rounds", "? help", "q quit"))


async def test_question_of_host_is_on_small_screen() -> None:
    asking = [*topology(8.0), ev.HostChanged(t=8.5, host="app1", condition="asking", detail="password")]
    async with running_app(asking, size=(80, 24)) as (pilot, _):
        assert "ASKING  password" in rendered_text(pilot.app)


async def test_keys_for_details_maximize_host_and_footer_keeps_compare_key() -> None:
    async with running_app(Scenario(2).events(99), size=(80, 24)) as (pilot, _):
        screen = main(pilot.app)
        for width in (60, 80, 100):
            await pilot.resize_terminal(width, 24)
            await wait_idle(pilot)
            text = text_of(screen.query_one(Footer))
            assert "c compare" in text
            assert text.startswith("space start/stop")
            assert text.endswith("? help  q quit")
        await pilot.resize_terminal(80, 24)
        await wait_idle(pilot)
        assert "COMMAND" not in screen_text(pilot)
        await press(pilot, "d")
        assert "COMMAND" in screen_text(pilot)
        await press(pilot, "d")
        assert "COMMAND" not in screen_text(pilot)
        assert screen.view.details, "the next detail"
        await press(pilot, "escape")
        assert screen.view.room == "column"
        await reset_screen(pilot)
        await press(pilot, "d", "d")
        assert screen.view.details, "keys in quick succession"


def visible_rows(**view: object) -> list[str]:
    runs = [ev.RunStarted(t=float(run), run=run, plan=plan()) for run in range(1, 31)]
    lines = plain(Runs().draw(context_of([session_started(), *runs], **view), 78, 4))
    return ["".join(line[:3].split()) for line in lines[2:4]]


def test_selected_segment_and_baseline_are_both_visible() -> None:
    assert visible_rows() == ["1", "▸30"]
    assert visible_rows(segment=12) == ["1", "▸12"]
    assert visible_rows(segment=12, baseline=20) == ["▸12", "20"]
    assert visible_rows(segment=20, baseline=20) == ["▸20", "21"], "the baseline has no other comparison"


def test_long_text_and_url_are_shortened() -> None:
    assert ends_with("rate +5%, demo spawned -4/s", "… c: all", 30) == "rate +5%, demo … c: all"
    assert ends_with("rate +5%, demo", "… c: all", 20) == "rate +5% … c: all"
    assert ends_with("short", "… c: all", 30) == "short … c: all"
    assert ends_with("oneverylongwordindeed", "…", 10) == "onevery …"
    url = "127.0.0.1:38412/static/hello.html"
    assert shortened(url, len(url)) == url
    for width in (12, 16, 20, 27):
        head, tail = shortened(url, width).split("…")
        assert len(head) + 1 + len(tail) == width
        assert url.startswith(head) and url.endswith(tail) and min(len(head), len(tail)) >= 5
