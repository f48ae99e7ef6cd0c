"""A prompt takes every key of a burst, also those that come before its field is there."""

from __future__ import annotations

from textual.events import Key

from tests.tui.driving import at_rest, driven, press, until
from tests.tui.scripted import ScriptedSource


async def test_keys_in_a_burst_reach_the_prompt() -> None:
    async with driven() as (pilot, source):
        assert isinstance(source, ScriptedSource)
        for char in "m14:05 +q":
            pilot.app.post_message(Key(char, char))
        pilot.app.post_message(Key("enter", "\r"))
        await until(pilot, lambda: bool(source.controls.done))
        assert source.controls.done == [("mark", "14:05 +q")]


async def test_escape_in_a_burst_leaves_it() -> None:
    async with driven() as (pilot, source):
        for key, char in (("m", "m"), ("x", "x"), ("escape", "\x1b")):
            pilot.app.post_message(Key(key, char))
        await at_rest(pilot)
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await press(pilot, "plus")
        await until(pilot, lambda: ("more", "") in source.controls.done)
        assert source.controls.done == [("more", "")]
