"""Keys of the main screen, also in quick succession, and its notices."""

import asyncio
import time

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot

from cockpit.model import events as ev
from cockpit.model.text import clock
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.draw_context import View
from cockpit.tui.footer import Footer
from cockpit.tui.hosts.panes import HostLines
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import Position
from cockpit.tui.terminal.base_app import NOTICE
from tests.tui.driving import (
    main,
    press,
    reset_screen,
    running_app,
    screen_text,
    text_of,
    until,
    wait_for_events,
    wait_idle,
)
from tests.tui.scenario import Scenario
from tests.tui.screens import notices, rendered_text, until_notice
from tests.tui.scripted import scripted_app

EVENTS = Scenario().events(99)


async def test_screen_follows_session_from_its_start() -> None:
    async with running_app() as (pilot, source):
        text = screen_text(pilot)
        assert "No requests sent yet" in text
        assert "press space: start/stop" in text
        for extent, words in ((None, "No runs yet. Press space to start."), ((0.0, 60.0), "Loading the recording …")):
            source.controls.extent = extent
            for key in ("b", "c", "H"):
                await press(pilot, key)
                await until_notice(pilot, words)
                pilot.app.forget_notices(pilot.app.notices())
        source.controls.extent = None
        source.push(*EVENTS[:200])
        await wait_for_events(pilot, source, 200)
        assert "baseline" in text_of(main(pilot.app).query_one(Runs))
        source.push(*EVENTS[200:])
        await wait_for_events(pilot, source, len(EVENTS))
        await until(pilot, lambda: "≠ load" in text_of(main(pilot.app).query_one(Runs)))
        assert clock(EVENTS[-1].t) in screen_text(pilot)


async def test_lines_of_many_hosts_leave_room_for_the_latency_chart() -> None:
    async with running_app(Scenario(12).events(8), size=(80, 30)) as (pilot, _):
        screen = main(pilot.app)
        assert screen.query_one(HostLines).size.height == 8 and screen.query_one("#latency").display


async def test_keys_select_latency_view_segment_and_baseline() -> None:
    async with running_app(EVENTS, size=(140, 40)) as (pilot, _):
        screen = main(pilot.app)
        latency, runs = screen.query_one(Latency), screen.query_one(Runs)
        before = text_of(latency)
        assert "last 10 s  ─ p50" in before
        await press(pilot, "v", "v")
        assert text_of(latency) == before
        await press(pilot, "up", "up")
        assert "#2 last 10 s" in text_of(latency)
        await press(pilot, "v")
        assert "segment 2 " in text_of(latency)
        assert "▸ 2" in text_of(runs)
        await press(pilot, "down")
        assert "segment 3 " in text_of(latency)
        await press(pilot, "up", "up", "up", "up")
        assert "segment 1 " in text_of(latency)
        await press(pilot, "escape")
        assert "segment 4 " in text_of(latency) and "200 – 500 ms" in text_of(latency)
        await press(pilot, "up", "up", "b")
        rows = text_of(runs).splitlines()
        assert "base 2 notes" in rows[3]
        assert rows[2].strip("│ ").split()[-1] == "gen-sat", "the baseline has a saturated generator"


async def test_session_keys_run_actions_and_footer_has_position_bar() -> None:
    async with running_app(EVENTS) as (pilot, source):
        done = source.controls.done
        for key, name in (("space", "toggle"), ("plus", "more"), ("left", "back")):
            await press(pilot, key)
            await until(pilot, lambda name=name: done[-1:] == [(name, "")])  # type: ignore[misc]
        done.clear()
        await press(pilot, "m")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, *"swap?", "enter")
        await until(pilot, lambda: done == [("mark", "swap?")])
        await press(pilot, "m")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))
        await press(pilot, "minus", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert done == [("mark", "swap?")]
        await press(pilot, "minus")
        await until_notice(pilot, "no [load] in ·[31mthis profile: add one")
        await reset_screen(pilot)
        text = text_of(main(pilot.app).query_one(Footer))
        assert "+ load" in text and "back 1 s" not in text, "not a footer action"
        position = main(pilot.app).query_one(Position)
        assert not position.display
        source.controls.extent, source.controls.position = (0.0, 200.0), 50.0
        await until(pilot, lambda: position.size.area > 0 and "●" in text_of(position))
        bar = text_of(position)
        assert bar.endswith("00:03:20")
        assert "A" in bar
        track = bar[len("00:00:00  ") : -len("  00:03:20")]
        assert track.index("●") == pytest.approx(len(track) / 4, abs=1)
        assert "00:00:50" in screen_text(pilot), "the clock shows the position of the replay"
        for size in ((80, 24), (40, 12), (20, 5), (8, 2), (200, 50), (120, 40)):
            await pilot.resize_terminal(*size)
            await wait_idle(pilot)
        assert "1.39k" in screen_text(pilot)


CHARACTERS = {"slash": "/", "enter": "\r", "escape": "\x1b"}


def burst(pilot: Pilot[object], *keys: str) -> None:
    """Post all keys at once, as over a slow connection."""
    for key in keys:
        pilot.app.post_message(Key(key, CHARACTERS.get(key, key if len(key) == 1 else None)))


async def test_burst_of_keys_reaches_prompt() -> None:
    async with running_app() as (pilot, source):
        burst(pilot, *"m14:05 +q", "enter")
        await until(pilot, lambda: source.controls.done == [("mark", "14:05 +q")])
        burst(pilot, "m")
        pilot.app.post_message(Paste("swap 3 G"))
        burst(pilot, "enter")
        await until(pilot, lambda: source.controls.done[1:] == [("mark", "swap 3 G")])
        burst(pilot, "m", "x", "escape")
        await wait_idle(pilot)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await press(pilot, "plus")
        await until(pilot, lambda: source.controls.done[2:] == [("more", "")])


async def test_burst_of_keys_reaches_prompt_after_a_pause_of_the_process() -> None:
    async with running_app() as (pilot, source):
        burst(pilot, *"mq", "enter")

        def pause(passes: int) -> None:
            """Stop the event loop after this many passes, while the prompt opens."""
            if passes:
                asyncio.get_running_loop().call_soon(pause, passes - 1)
            else:
                time.sleep(1.1)

        pause(3)
        await until(pilot, lambda: source.controls.done == [("mark", "q")])


async def test_burst_of_keys_reaches_screen_opened_by_binding() -> None:
    async with running_app(Scenario().events(30)) as (pilot, _):
        burst(pilot, "slash", *"apa", "enter", "v")
        await until(pilot, lambda: main(pilot.app).view.latency != View().latency)
        assert main(pilot.app).view.filter == "apa"
        assert main(pilot.app).view.room == "column", "p is part of the filter text"
        await reset_screen(pilot)
        burst(pilot, *"t77", "down", "8", "escape", "v")
        await until(pilot, lambda: main(pilot.app).view.latency != View().latency)


RUNNING = Scenario().events(60.0)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_notice_hides_no_verdict_and_ends_with_the_next_handled_key(size: tuple[int, int]) -> None:
    app, source = scripted_app(RUNNING)
    async with app.run_test(size=size, notifications=True) as pilot:
        await wait_for_events(pilot, source, len(RUNNING))
        await press(pilot, "minus")
        await until(pilot, lambda: any(toast.region.area for toast in pilot.app.screen.query("Toast")))
        (toast,) = pilot.app.screen.query("Toast")
        assert toast.region.right >= size[0] - 2
        for kind in (VerdictStrip, Runs, Footer):
            assert not toast.region.overlaps(main(pilot.app).query_one(kind).region)
        assert all(notice.timeout <= NOTICE <= 4 for notice in pilot.app.notices())
        for key in ("v", "space", "e"):
            await press(pilot, "minus", "minus", "Z", "f9")
            await until(pilot, lambda: len(notices(pilot)) == 1)
            await press(pilot, key)
            await until(pilot, lambda: notices(pilot) == [])
        assert ("toggle", "") in source.controls.done
        await press(pilot, "minus", "A")
        await until(pilot, lambda: len(notices(pilot)) == 1)
        assert "no search" in notices(pilot)[0], "the new notice replaces the earlier one"


async def test_ends_of_chart_lines_are_sent_alone_except_where_characters_can_be_wide() -> None:
    async with running_app(RUNNING) as (pilot, _):
        cuts = pilot.app.screen._compositor.cuts
        for kind, plain in ((Throughput, (0, 1, -1)), (Latency, (0,))):
            region = main(pilot.app).query_one(kind).region
            inner = [[x for x in cuts[y] if region.x < x < region.right] for y in range(region.y, region.bottom)]
            assert all(not inner[y] for y in plain), kind
            assert all(len(line) >= 3 for y, line in enumerate(inner) if y not in (*plain, len(inner) - 1)), kind


async def test_shutdown_notice_names_pending_work() -> None:
    app, source = scripted_app(RUNNING)
    release = asyncio.Event()
    close = source.close

    async def slow_close() -> None:
        await release.wait()
        await close()

    source.close = slow_close  # type: ignore[method-assign]
    async with app.run_test() as pilot:
        try:
            await wait_for_events(pilot, source, len(RUNNING))
            tuning = source.controls.tuning
            tuning.gate.clear()
            pending = asyncio.ensure_future(tuning.apply({"MinSpareServers": "30"}))
            await until(pilot, lambda: isinstance(source.recorder.events[-1], ev.ChangeBegun))
            await press(pilot, "q", "q")
            letter = source.session.state.changes[-1].letter
            footer = main(pilot.app).query_one(Footer)
            await until(pilot, lambda: "ending: waiting for the end of the load and change " in text_of(footer))
            assert f"change {letter} (" in text_of(footer)
            tuning.gate.set()
            await pending
        finally:
            release.set()


@pytest.mark.parametrize("key", ["", "ctrl+p"], ids=["charts", "commands"])
async def test_a_terminal_narrowed_to_a_few_columns_is_drawn(key: str) -> None:
    async with running_app(EVENTS) as (pilot, _):
        if key:
            await press(pilot, key)
        for width in (12, 7, 5, 3, 2, 1):
            await pilot.resize_terminal(width, 40 if key else 8)
            await wait_idle(pilot)
            assert {len(line) for line in rendered_text(pilot.app).splitlines()} == {width}
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "start/stop" in screen_text(pilot) if key else "1.39k" in screen_text(pilot))
