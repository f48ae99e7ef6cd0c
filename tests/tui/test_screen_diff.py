"""Differential output: the terminal shows the expected screen, and only changes are sent."""

import contextlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from textual._compositor import LayoutUpdate
from textual.events import Resize
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip

from cockpit.model import events as ev
from cockpit.tui.app import CockpitApp
from cockpit.tui.terminal.appearance import Appearance
from tests.tui.driving import press, until, wait_for_events, wait_idle
from tests.tui.emulator import Cell, Emulator, attach_emulator
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.test_verdicts import changed_under_load

# A key, a second of the session, or a size.
Step = str | float | tuple[int, int]


def expected_screen(app: CockpitApp) -> Emulator:
    """Return an emulator that was sent the whole current screen, piece by piece."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    emulator = Emulator()
    system = app.console._color_system
    assert system is not None
    for y, strips in enumerate(update.strips, 1):
        emulator.feed(f"\x1b[{y};1H")
        for text, style, _ in Strip.join(strips):
            emulator.feed(f"\x1b[{Strip.render_ansi(style, system)}m{text}\x1b[0m" if style else text)
    return emulator


async def run_steps(
    events: Sequence[ev.AnyEvent], steps: Sequence[Step], appearance: Appearance | None = None
) -> list[int]:
    """Perform steps; after each the terminal must show the expected screen.

    Returns the bytes that were sent to draw second 46 of the session, and those sent for each step.
    """
    first = [event for event in events if event.t <= 46]
    source = ScriptedSource(first)
    app = CockpitApp(source.session, appearance=appearance or Appearance())
    size = (120, 40)
    emulator = attach_emulator(app, size)
    sent = [0]

    pictures: tuple[list[list[Cell]], ...] = ()

    def matches() -> bool:
        nonlocal pictures
        pictures = emulator.picture(size), expected_screen(app).picture(size)
        return pictures[0] == pictures[1]

    async def check(pilot: Pilot[object], step: Step) -> None:
        await wait_idle(pilot)
        # A frame of the screen may be due, or a notice may disappear.
        with contextlib.suppress(TimeoutError):
            await until(pilot, matches)
        for line, (actual, expected) in enumerate(zip(*pictures, strict=True), 1):
            assert actual == expected, f"line {line} after {step}"
        sent.append(emulator.sent)

    async def drive(pilot: Pilot[object]) -> None:
        nonlocal size
        await wait_for_events(pilot, source, len(first))
        await check(pilot, "start")
        for step in steps:
            if isinstance(step, tuple):
                app._driver.width, app._driver.height = size = step  # type: ignore[union-attr]
                app.post_message(Resize(Size(*step), Size(*step)))
            elif isinstance(step, float):
                known = len(source.recorder.events)
                due = [event for event in events[known:] if event.t <= step]
                source.push(*due)
                await wait_for_events(pilot, source, known + len(due))
            else:
                await press(pilot, step)
            await check(pilot, step)
        app.exit()

    await app.run_async(auto_pilot=drive)
    return [after - before for before, after in pairwise(sent)]


class Case(NamedTuple):
    """Steps of a session on a terminal with these environment variables."""

    events: Sequence[ev.AnyEvent]
    steps: Sequence[Step]
    variables: dict[str, str]
    appearance: Appearance = Appearance()


HOSTILE = Scenario(2, hostile=True).events()
TRUE_COLOURS, XTERM = {"COLORTERM": "truecolor"}, {"TERM": "xterm"}
_VIEWS = ("v", 47.0, "p", 48.0, "p", 49.0, "p", "enter", "down", "s", "d", "d", 50.0, "escape", "c", 51.0, "escape")
_VERDICT = (68.0, 73.0, (80, 24), 100.0, (120, 40))
CASES = {
    "run": Case(HOSTILE, (47.0, 50.2, 55.0, 62.5, 66.5, 70.1, 76.0, 85.0, 99.0), TRUE_COLOURS),
    "dialogs": Case(
        HOSTILE,
        (50.0, "t", 51.0, *"30", "down", "escape", "question_mark", "down", 52.0, "escape", "slash", *"ap", "enter"),
        TRUE_COLOURS,
    ),
    "views without colours": Case(HOSTILE, _VIEWS, {"NO_COLOR": "1"}),
    "themes and sizes": Case(
        HOSTILE, ("T", 47.0, (80, 24), 48.0, (40, 12), (120, 40), "T", 50.0, "ctrl+l", (200, 50), 52.0), TRUE_COLOURS
    ),
    "verdict": Case(changed_under_load(), _VERDICT, XTERM),
    "verdict, 16 colours": Case(changed_under_load(), ("T", *_VERDICT, "T", "enter"), XTERM, Appearance(colours="16")),
    "verdict, ASCII": Case(changed_under_load(), _VERDICT, XTERM, Appearance(ascii=True)),
}


@pytest.fixture(autouse=True)
def no_saved_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize("name", CASES)
async def test_terminal_matches_expected_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events, steps, variables, appearance = CASES[name]
    monkeypatch.delenv("COLORTERM", raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    await run_steps(events, steps, appearance)


async def test_only_changes_are_sent() -> None:
    """Each second changes numbers in most lines, and the verdict; the whole screen is about 10,000 bytes."""
    whole, *sent = await run_steps(Scenario().events(), [46.5, 47.0, 47.5, 48.0, 48.5, 49.0])
    assert whole > 3000
    assert sum(sent) < 3 * 3000
    _, _, *growing = await run_steps(changed_under_load(), [70.0, 70.5, 71.0, 71.5, 72.0, 72.5, 73.0])
    assert sum(growing) < 3 * 3000


async def test_unchanged_screen_is_sent_again_only_on_request() -> None:
    whole, opened, closed, redrawn = await run_steps(Scenario().events(), ["m", "escape", "ctrl+l"])
    assert opened + closed < 0.5 * whole
    assert redrawn > 0.5 * whole
