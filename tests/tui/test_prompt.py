"""A prompt receives every key of a burst, including keys typed before its field exists."""

from __future__ import annotations

from textual.events import Key, Paste

from cockpit.tui.draw_context import View
from tests.tui.driving import main, press, running_app, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource


async def test_burst_of_keys_reaches_prompt() -> None:
    async with running_app() as (pilot, source):
        assert isinstance(source, ScriptedSource)
        for char in "m14:05 +q":
            pilot.app.post_message(Key(char, char))
        pilot.app.post_message(Key("enter", "\r"))
        await until(pilot, lambda: bool(source.controls.done))
        assert source.controls.done == [("mark", "14:05 +q")]


async def test_burst_of_keys_reaches_screen_opened_by_binding() -> None:
    async with running_app(Scenario().events(30)) as (pilot, _):
        for key, char in (("slash", "/"), ("a", "a"), ("p", "p"), ("a", "a"), ("enter", "\r"), ("v", "v")):
            pilot.app.post_message(Key(key, char))
        await until(pilot, lambda: main(pilot.app).view.latency != View().latency)
        assert main(pilot.app).view.filter == "apa"
        assert main(pilot.app).view.room == "column", "p is part of the filter text"


async def test_paste_after_key_reaches_prompt() -> None:
    async with running_app() as (pilot, source):
        pilot.app.post_message(Key("m", "m"))
        pilot.app.post_message(Paste("swap 3 G"))
        pilot.app.post_message(Key("enter", "\r"))
        await until(pilot, lambda: bool(source.controls.done))
        assert source.controls.done == [("mark", "swap 3 G")]


async def test_burst_of_keys_reaches_tuning_panel() -> None:
    async with running_app(Scenario().events(30)) as (pilot, _):
        for key in ("t", "7", "7", "down", "8", "escape", "v"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: main(pilot.app).view.latency != View().latency)


async def test_escape_in_burst_closes_prompt() -> None:
    async with running_app() as (pilot, source):
        for key, char in (("m", "m"), ("x", "x"), ("escape", "\x1b")):
            pilot.app.post_message(Key(key, char))
        await wait_idle(pilot)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await press(pilot, "plus")
        await until(pilot, lambda: ("more", "") in source.controls.done)
        assert source.controls.done == [("more", "")]
