"""Finding what there is to do: the palette, the help of what is in focus, tooltips, first-run hints."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.draw_context import Detail
from cockpit.tui.hints import Hints
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.palette import Command, commands_of
from cockpit.tui.runs.table import Runs
from cockpit.tui.start.choices import Choice
from cockpit.tui.status_lines import HintLine
from cockpit.tui.tips import tip, word_at
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import at_rest, driven, main, press, settled, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.tui.test_start import ended, offers, started

EVENTS = Scenario(2).events(99)


def titles(pilot: Pilot[object]) -> dict[str, Command]:
    return {command.title: command for command in commands_of(pilot.app, pilot.app.screen)}


async def choose(pilot: Pilot[object], letters: str) -> None:
    """Opens the palette, types, and takes the first that is found."""
    await press(pilot, "ctrl+p")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await press(pilot, *letters)
    palette = pilot.app.screen
    await until(pilot, lambda: palette.query_one(OptionList).highlighted == 0)
    await press(pilot, "enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, CommandPalette))


async def test_every_binding_and_action_of_the_screen_is_offered_with_its_key() -> None:
    async with driven(EVENTS) as (pilot, source):
        found = titles(pilot)
        for action in source.controls.actions:
            assert action.label in found
        assert found["mark"].words == "m   asks: What happened?"
        assert found["freeze"].words == "f   Freeze the hosts, or continue"
        assert found["larger"].words.startswith("p   ")
        assert {"view latency as percentiles", "show web2", "web1: processes", "help", "quit"} <= set(found)
        assert "up" not in found, "moving a cursor is no command"


async def test_typing_a_few_letters_finds_a_command_and_enter_does_it() -> None:
    async with driven(EVENTS) as (pilot, _):
        await choose(pilot, "tune")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))


async def test_an_action_with_a_question_asks_it() -> None:
    async with driven(EVENTS) as (pilot, _):
        await choose(pilot, "mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptScreen))


async def test_a_host_and_its_panes_are_gone_to_by_name() -> None:
    async with driven(EVENTS) as (pilot, _):
        await choose(pilot, "web2cores")
        await until(pilot, lambda: main(pilot.app).view.host == 1)
        assert main(pilot.app).view.details == {"web2": Detail("cores")}
        assert "▸ web2" in text_of(main(pilot.app).query_one(HostPanes))


async def test_a_marker_is_jumped_to_where_the_session_can() -> None:
    async with driven(EVENTS) as (pilot, source):
        assert not any(title.startswith("jump to") for title in titles(pilot))
        jump = source.controls.actions[1]
        object.__setattr__(jump, "name", "jump")
        marker = source.session.state.markers[0]
        title = next(title for title in titles(pilot) if title.startswith("jump to A"))
        assert title.split()[3] != "A", "its letter is said once"
        titles(pilot)[title].run()
        await until(pilot, lambda: source.controls.done == [("mark", f"{marker.t:.1f}s")])


async def test_the_start_screen_opens_a_profile_by_name() -> None:
    async with started(offers()) as (pilot, app):
        await choose(pilot, "opensparese")
        what = await ended(pilot, app)
        assert what is not None and what.kind == "profile" and what.what.endswith("spare-servers.toml")
    async with started(offers()) as (pilot, app):
        await choose(pilot, "try it")
        assert await ended(pilot, app) == Choice("demo")


def told(pilot: Pilot[object]) -> str:
    return "\n".join("".join(s.text for s in line) for line in pilot.app.screen._compositor.render_strips())


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        ((), "the runs table"),
        (("e", "left"), "the charts over time"),
        (("enter",), "processes of web1"),
        (("enter", "d"), "cores of web1"),
    ],
)
async def test_help_begins_with_what_is_in_focus(keys: tuple[str, ...], first: str) -> None:
    async with driven(EVENTS) as (pilot, _):
        await press(pilot, *keys, "question_mark")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await at_rest(pilot)
        assert f"in focus: {first}" in told(pilot)
        assert told(pilot).index(first) < told(pilot).index("everywhere") < told(pilot).index("start/stop")


async def test_f1_helps_where_a_question_mark_would_be_typed() -> None:
    async with driven(EVENTS) as (pilot, _):
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await at_rest(pilot)
        assert "rounds" in told(pilot)
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))


async def test_the_start_screens_help_lists_its_keys() -> None:
    async with started(offers()) as (pilot, app):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await at_rest(pilot)
        assert "write a profile" in told(pilot)


def test_the_word_under_a_cell_is_found_whatever_stands_before_it() -> None:
    assert word_at("─ 日本 spawns 12", 7) == "spawns"
    assert word_at("─ 日本 born/s 12", 4) == "日本"
    assert word_at("a  b", 1) == ""


def test_a_figure_is_explained_in_the_words_of_the_help() -> None:
    lines = [(("#  change  ", "dim"), ("spawns", "dim"))]
    assert (tip("Runs", lines, 12, 0) or "").startswith("spawns: Processes spawned per second")
    assert (tip("Runs", lines, 3, 0) or "").startswith("One segment per run")
    assert tip("HintLine", [], 0, 0) is None


async def test_the_mouse_over_a_figure_brings_its_words() -> None:
    app, source = scripted_app(EVENTS)
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        await settled(pilot, source, len(EVENTS))
        runs = main(app).query_one(Runs)
        head = text_of(runs).splitlines()[1]
        await pilot.hover(Runs, offset=(head.index("p99") + 1, 1))
        await until(pilot, lambda: "99% of the responses took at most" in told(pilot))


async def hinted(pilot: Pilot[object]) -> str:
    line = main(pilot.app).query_one(HintLine)
    await at_rest(pilot)
    return text_of(line) if line.display else ""


async def test_hints_go_when_the_thing_was_done_and_never_come_again(tmp_path: Path) -> None:
    file = tmp_path / "state" / "hints.json"
    app, source = scripted_app()
    app.hints = Hints(file)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source)
        assert "space: start the load" in await hinted(pilot)
        await press(pilot, "space")
        assert "?: help for" in await hinted(pilot), "there is no row to compare and no knob yet"
        source.push(*EVENTS)
        await settled(pilot, source, len(EVENTS))
        assert "t: tuning panel" in await hinted(pilot)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert "d: next list" in await hinted(pilot)
    again, source = scripted_app(EVENTS)
    again.hints = Hints(file)
    async with again.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source, len(EVENTS))
        assert "d: next list" in await hinted(pilot)
        await press(pilot, "d", "c", "escape", "question_mark", "escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        assert await hinted(pilot) == ""


async def test_escape_hides_all_hints_for_good(tmp_path: Path) -> None:
    file = tmp_path / "hints.json"
    app, source = scripted_app(EVENTS)
    app.hints = Hints(file)
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot, source, len(EVENTS))
        await press(pilot, "up", "escape")
        assert await hinted(pilot), "the first one went one step back"
        await press(pilot, "escape")
        assert await hinted(pilot) == ""
        assert Hints(file).next(main(app).context()) == ""


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[3]"])
def test_a_file_of_hints_that_does_not_read_is_no_trouble(content: str, tmp_path: Path) -> None:
    file = tmp_path / "hints.json"
    file.write_text(content)
    assert Hints(file)._done == set()


async def test_there_are_none_in_tests_pictures_and_replays() -> None:
    async with driven(EVENTS) as (pilot, _):
        assert not main(pilot.app).query_one(HintLine).display
