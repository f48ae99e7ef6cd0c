"""Command palette, help for the focused pane, tooltips."""

from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from cockpit.model.text import clock
from cockpit.tui.command_line import CommandLine
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.draw_context import Detail
from cockpit.tui.hosts.panes import HostPanes
from cockpit.tui.palette import Command, commands_of
from cockpit.tui.runs.table import Runs
from cockpit.tui.start.choices import Choice
from cockpit.tui.tips import tip, word_at
from cockpit.tui.tuning.screen import TuningScreen
from tests.tui.driving import (
    main,
    press,
    reset_screen,
    running_app,
    text_of,
    until,
    wait_for_events,
    wait_idle,
)
from tests.tui.scenario import Scenario
from tests.tui.screens import rendered_text
from tests.tui.scripted import scripted_app
from tests.tui.test_start import exit_choice, running_start_app, start_choices

EVENTS = Scenario(2).events(99)


def commands(pilot: Pilot[object]) -> dict[str, Command]:
    return {command.title: command for command in commands_of(pilot.app, pilot.app.screen)}


async def run_command(pilot: Pilot[object], letters: str) -> None:
    """Open the palette, type, and run the first command found."""
    await press(pilot, "ctrl+p")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandPalette))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await press(pilot, *letters)
    palette = pilot.app.screen
    await until(pilot, lambda: palette.query_one(OptionList).highlighted == 0)
    await press(pilot, "enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, CommandPalette))


async def test_palette_and_help_of_start_screen() -> None:
    async with running_start_app(start_choices()) as (pilot, app):
        await press(pilot, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await wait_idle(pilot)
        assert "write a profile" in rendered_text(app)
        await press(pilot, "escape")
        await run_command(pilot, "opensparese")
        choice = await exit_choice(pilot, app)
        assert choice is not None and choice.kind == "profile" and choice.what.endswith("spare-servers.toml")
    async with running_start_app(start_choices()) as (pilot, app):
        await run_command(pilot, "try it")
        assert await exit_choice(pilot, app) == Choice("demo")


async def test_help_starts_with_focused_pane_and_palette_runs_commands() -> None:
    async with running_app(EVENTS) as (pilot, source):
        for keys, first in (
            ((), "the runs table"),
            (("e", "left"), "the charts over time"),
            (("enter",), "processes of web1"),
            (("enter", "d"), "cores of web1"),
        ):
            await reset_screen(pilot)
            await press(pilot, *keys, "question_mark")
            await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
            await wait_idle(pilot)
            shown = rendered_text(pilot.app)
            assert f"in focus: {first}" in shown
            assert shown.index(first) < shown.index("everywhere") < shown.index("start/stop")
        await reset_screen(pilot)
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
        await wait_idle(pilot)
        assert "rounds" in rendered_text(pilot.app)
        await press(pilot, "f1")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await reset_screen(pilot)
        found = commands(pilot)
        for action in source.controls.actions:
            assert action.label in found
        assert found["mark"].words == "m   asks: What happened?"
        assert found["freeze"].words == "f   Freeze the hosts, or continue"
        assert found["larger"].words.startswith("p   ")
        assert {"view latency as histogram", "show web2", "web1: processes", "help", "quit"} <= set(found)
        assert "up" not in found, "cursor keys are not commands"
        for letters, kind in (("tune", TuningScreen), ("mark", PromptScreen)):
            await run_command(pilot, letters)
            await until(pilot, lambda kind=kind: isinstance(pilot.app.screen, kind))  # type: ignore[misc]
            await reset_screen(pilot)
        await run_command(pilot, "web2cores")
        await until(pilot, lambda: main(pilot.app).view.host == 1)
        assert main(pilot.app).view.details == {"web2": Detail("cores")}
        assert "▸ web2" in text_of(main(pilot.app).query_one(HostPanes))
        assert not any(title.startswith("jump to") for title in commands(pilot))
        jump = source.controls.actions[1]
        object.__setattr__(jump, "name", "jump")
        marker = source.session.state.markers[0]
        title = next(title for title in commands(pilot) if title.startswith("jump to A"))
        assert title.split()[3] != "A", "the letter appears once"
        assert title.endswith(f" at {clock(marker.t)}"), "equal notes differ"
        commands(pilot)[title].run()
        await until(pilot, lambda: source.controls.done == [("mark", f"{marker.t + 0.5:.1f}s")])


def test_tooltip_explains_word_at_cell() -> None:
    assert word_at("─ 日本 spawns 12", 7) == "spawns"
    assert word_at("─ 日本 born/s 12", 4) == "日本"
    assert word_at("a  b", 1) == ""
    lines = [(("#  change  ", "dim"), ("spawns", "dim"))]
    assert (tip("Runs", lines, 12, 0) or "").startswith("spawns: Processes spawned per second")
    assert (tip("Runs", lines, 3, 0) or "").startswith("One segment per run")
    for word, start in (
        ("connect", "Time to establish"),
        ("io", "As sar -b"),
        ("the", "One segment"),
        ("err", "Failed"),
    ):
        assert (tip("Runs", [((word, ""),)], 0, 0) or "").removeprefix(f"{word}: ").startswith(start)


async def test_hover_shows_metric_tooltip() -> None:
    app, source = scripted_app(EVENTS)
    async with app.run_test(size=(120, 40), tooltips=True) as pilot:
        await wait_for_events(pilot, source, len(EVENTS))
        runs = main(app).query_one(Runs)
        head = text_of(runs).splitlines()[1]
        await pilot.hover(Runs, offset=(head.index("p99") + 1, 1))
        await until(pilot, lambda: "99% of the responses took at most" in rendered_text(pilot.app))


async def test_palette_asks_for_an_argument_in_the_command_line() -> None:
    async with running_app(EVENTS) as (pilot, _):
        for title, command in commands(pilot).items():
            if not command.argument or command.argument in ("TIME", "TEXT", "TOPIC"):
                continue
            await run_command(pilot, title)
            await until(pilot, lambda: isinstance(pilot.app.screen, CommandLine))
            assert pilot.app.screen.query_one(Input).value == f"{title} "
            await press(pilot, "escape")
            await until(pilot, lambda: not isinstance(pilot.app.screen, CommandLine))
