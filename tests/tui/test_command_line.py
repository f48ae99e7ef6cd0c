"""The command line: settings, load, times, notes and commands by their names, with completion and errors."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.model.errors import UsageError
from cockpit.session.controls import Mode
from cockpit.tui.command_line import CommandLine, completions, match
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.palette import Command
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import main, press, running_app, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.screens import RECORDINGS, rendered_text, replayed_app
from tests.tui.test_start import running_start_app, start_choices

EVENTS = Scenario(2).events(38)
KEYS = {" ": "space", ":": "colon", "-": "minus", ".": "full_stop"}


async def type_command(pilot: Pilot[object], text: str, *keys: str) -> None:
    await press(pilot, "colon")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandLine))
    await press(pilot, *(KEYS.get(letter, letter) for letter in text), *keys)


def typed(pilot: Pilot[object]) -> str:
    return pilot.app.screen.query_one(Input).value


def offers(pilot: Pilot[object]) -> str:
    return text_of(pilot.app.screen.query_one("#offers", Static)).strip()


async def test_set_shows_the_diff_in_the_tuning_panel_and_enter_applies_it() -> None:
    async with running_app(EVENTS) as (pilot, source):
        tuning = source.controls.tuning
        await type_command(pilot, "set Max", "tab")
        assert typed(pilot) == "set MaxSpareServers "
        assert offers(pilot).startswith("type a value; MaxSpareServers is 10; allowed: a whole number")
        await press(pilot, "x", "enter")
        assert "takes a whole number" in offers(pilot) and isinstance(pilot.app.screen, CommandLine)
        await press(pilot, "backspace", "1", "0", "enter")
        assert offers(pilot) == "MaxSpareServers is 10 already"
        await press(pilot, "backspace", "backspace", "3", "0", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await until(pilot, lambda: ("preview", {"MaxSpareServers": "30"}) in tuning.calls)
        await until(pilot, lambda: "Enter again: apply" in text_of(pilot.app.screen.query_one("#status")))
        assert "\nMaxSpareServers in " in text_of(pilot.app.screen.query_one("#details")), "not the first setting"
        assert not any(name == "apply" for name, _ in tuning.calls)
        await press(pilot, "enter")
        await until(pilot, lambda: ("apply", {"MaxSpareServers": "30"}) in tuning.calls)
        await until(pilot, lambda: source.session.state.knobs["MaxSpareServers"].value == "30")


async def test_load_commands_change_the_load_as_the_form_does() -> None:
    async with running_app(EVENTS) as (pilot, source):
        load = source.controls.load
        await type_command(pilot, "rate 500", "enter")
        await until(pilot, lambda: load.plan.rate == 500)
        await type_command(pilot, "connections 50", "enter")
        await until(pilot, lambda: (load.plan.rate, load.plan.concurrency) == (None, 50))
        await type_command(pilot, "duration 90s", "enter")
        await until(pilot, lambda: load.plan.duration == 90)
        await type_command(pilot, "rate many", "enter")
        assert offers(pilot).startswith("rate: ") and "many" in offers(pilot)
        await press(pilot, "escape")
        await type_command(pilot, "connections 500/s", "enter")
        assert offers(pilot) == "connections: 500/s is a rate; type rate 500"
        await press(pilot, "escape")
        source.controls.load = None
        await type_command(pilot, "rate 5", "enter")
        assert "the load cannot be changed" in offers(pilot)


async def test_note_names_and_starts_of_names_are_commands() -> None:
    async with running_app(EVENTS) as (pilot, source):
        await type_command(pilot, "mark disk swapped", "enter")
        await until(pilot, lambda: source.controls.done == [("mark", "disk swapped")])
        await type_command(pilot, "comp", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen))
        await press(pilot, "escape")
        await type_command(pilot, "help rtt", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        assert "round-trip time" in rendered_text(pilot.app)
        assert "tuning panel" not in rendered_text(pilot.app)
        await press(pilot, "escape")
        for text, problem in (
            ("help nothing of it", "not in the help"),
            ("view latency", "ambiguous: view latency as heat map"),
            ("compare it", "unknown command"),
            ("set", "settings: MinSpareServers, MaxSpareServers"),
            ("12:30", "cannot show another time"),
        ):
            await type_command(pilot, text, "enter")
            assert problem in offers(pilot)
            await press(pilot, "escape")
        await type_command(pilot, "", "enter")
        assert pilot.app.screen is main(pilot.app)
        await type_command(pilot, "quit", "enter")
        await until(pilot, lambda: not pilot.app.is_running)


async def test_times_notes_and_settings_in_a_replay(tmp_path: Path) -> None:
    file = tmp_path / "copy.cockpit"
    file.write_bytes((RECORDINGS / "under-load.cockpit").read_bytes())
    async with replayed_app(file) as (pilot, session):
        assert session.controls.mode is Mode.REPLAY
        await type_command(pilot, "0:20", "enter")
        await until(pilot, lambda: session.controls.position == 20)
        await type_command(pilot, "-5s", "enter")
        await until(pilot, lambda: session.controls.position == 15)
        await type_command(pilot, "jump 1m", "enter")
        await until(pilot, lambda: session.controls.position == 60)
        await type_command(pilot, "note here", "enter")
        await until(pilot, lambda: "here" in [getattr(m, "text", "") for m in session.shown.markers])
        name = next(iter(session.shown.knobs))
        await type_command(pilot, f"set {name} 1", "enter")
        assert offers(pilot) == "settings are read-only in this session"


async def test_command_line_completes_in_turn_and_works_on_the_start_screen() -> None:
    async with running_start_app(start_choices()) as (pilot, _):
        await type_command(pilot, "theme ")
        assert [offers(pilot).split()[at] for at in (1, 3)] == ["dark", "light"]
        await press(pilot, "tab", "tab")
        assert typed(pilot) == "theme light"
        await press(pilot, "tab", "tab")
        assert typed(pilot) == "theme dark"
        await press(pilot, *["backspace"] * 10, *"open", "space", *"spare", "enter")
        await until(pilot, lambda: not pilot.app.is_running)
        assert "spare-servers" in pilot.app.return_value.what


def test_longest_name_before_an_argument_counts() -> None:
    commands = [
        Command("set", "", print, "NAME VALUE"),
        Command("set all", "", print, "VALUE"),
        Command("x", "", print),
    ]
    assert match("set all 3", commands) == (commands[1], "3")
    assert match("set al 3", commands) == (commands[0], "al 3")
    assert match("SET A", commands) == (commands[1], "")
    assert completions("a", commands) == ["set all "]
    with pytest.raises(UsageError, match="unknown command"):
        match("x 3", commands)
