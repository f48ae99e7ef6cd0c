"""What a terminal is sent comes to the picture that is meant, and is no more than it takes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import LayoutUpdate
from textual.events import Resize
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip

from cockpit.model import events as ev
from cockpit.tui.app import CockpitApp
from cockpit.tui.terminal.appearance import Appearance
from tests.tui.driving import at_rest, main, press, until
from tests.tui.emulator import Emulator, emulated
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.test_verdicts import changed_under_load


def meant(app: CockpitApp) -> Emulator:
    """A terminal that was sent the whole of the present picture, each piece of it for itself."""
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


async def drawn(pilot: Pilot[object]) -> None:
    """Until what is to be drawn is drawn."""
    await at_rest(pilot)
    await asyncio.sleep(0.05)
    await at_rest(pilot)


def _taken_in(source: ScriptedSource, events: int) -> bool:
    return len(source.recorder.events) >= events


def _as_meant(emulator: Emulator, app: CockpitApp, size: tuple[int, int]) -> bool:
    return emulator.picture(size) == meant(app).picture(size)


async def on_emulator(
    events: Sequence[ev.AnyEvent],
    size: tuple[int, int],
    steps: Sequence[str | float | tuple[int, int]],
    appearance: Appearance,
) -> Emulator:
    """Keys, instants and sizes in turn; after each the terminal shows what is meant."""
    first = [event for event in events if event.t <= 46]
    source = ScriptedSource(first)
    app = CockpitApp(source.session, appearance=appearance)
    emulator = emulated(app, size)

    async def drive(pilot: Pilot[object]) -> None:
        nonlocal size
        await until(pilot, lambda: len(source.recorder.events) >= len(first))
        main(app).frame()
        await drawn(pilot)
        for step in steps:
            if isinstance(step, tuple):
                app._driver.width, app._driver.height = size = step  # type: ignore[union-attr]
                app.post_message(Resize(Size(*step), Size(*step)))
            elif isinstance(step, float):
                known = len(source.recorder.events)
                coming = [event for event in events[known:] if event.t <= step]
                source.push(*coming)
                await until(pilot, partial(_taken_in, source, known + len(coming)))
                main(app).frame()
            else:
                await press(pilot, step)
            await drawn(pilot)
            if not _as_meant(emulator, app, size):
                # A notice may go in between: then what is meant is soon shown.
                with contextlib.suppress(TimeoutError):
                    await until(pilot, partial(_as_meant, emulator, app, size))
                found, wanted = emulator.picture(size), meant(app).picture(size)
                for line, (shown, right) in enumerate(zip(found, wanted, strict=True), 1):
                    assert shown == right, f"line {line} after {step}"
        app.exit()

    await app.run_async(auto_pilot=drive)
    return emulator


_DIALOGS = [50.0, "t", 51.0, *"30", "down", "escape", "question_mark", "down", 52.0, "escape", "slash", *"ap", "enter"]
_VIEWS = ["v", 47.0, "p", 48.0, "p", 49.0, "p", "enter", "down", "s", "d", "d", 50.0, "escape", "c", 51.0, "escape"]
_VERDICT = [62.0, 68.0, 73.0, 79.0, (80, 24), 100.0, 125.0, (120, 40)]
STEPS: dict[str, list[Any]] = {
    "a run goes on": [47.0, 47.5, 50.2, 55.0, 62.5, 66.5, 70.1, 76.0, 85.0, 99.0],
    "dialogs": _DIALOGS,
    "views": _VIEWS,
    "themes and sizes": ["T", 47.0, (80, 24), 48.0, (40, 12), (120, 40), "T", 50.0, "ctrl+l", 51.0, (200, 50), 52.0],
}


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
async def test_the_terminal_shows_what_is_meant(steps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    await on_emulator(Scenario(2, hostile=True).events(), (120, 40), steps, Appearance())


@pytest.mark.parametrize(
    "appearance", [Appearance(), Appearance(colours="16"), Appearance(ascii=True)], ids=["all", "sixteen", "ascii"]
)
async def test_the_terminal_shows_a_verdict_that_grows(appearance: Appearance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    await on_emulator(changed_under_load(), (120, 40), _VERDICT, appearance)


async def test_in_sixteen_colours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    steps = ["T", 47.0, "T", 50.0, "enter", 51.0]
    await on_emulator(Scenario(2, hostile=True).events(), (120, 40), steps, Appearance(colours="16"))


async def test_without_colours_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await on_emulator(Scenario(2, hostile=True).events(), (120, 40), STEPS["views"], Appearance())


async def test_only_what_changed_is_sent() -> None:
    """A second of a run moves figures in most lines; the whole picture is some ten thousand bytes."""
    events = Scenario().events()
    steps = [46 + 0.5 * at for at in range(1, 41)]
    whole = (await on_emulator(events, (120, 40), [], Appearance())).sent
    sent = (await on_emulator(events, (120, 40), steps, Appearance())).sent - whole
    assert sent < 20 * 3000
    assert whole > 3000


async def test_a_growing_verdict_sends_as_little() -> None:
    """After a change: an estimate per block, a bar and a number per second, beside all that moves."""
    events = changed_under_load()
    before = [46.0, 70.0]
    steps = [70 + 0.5 * at for at in range(1, 21)]
    whole = (await on_emulator(events, (120, 40), before, Appearance())).sent
    sent = (await on_emulator(events, (120, 40), [*before, *steps], Appearance())).sent - whole
    assert sent < 10 * 3000


async def test_a_picture_that_is_there_already_is_not_sent_again() -> None:
    once = (await on_emulator(Scenario().events(), (120, 40), [], Appearance())).sent
    again = (await on_emulator(Scenario().events(), (120, 40), ["m", "escape"], Appearance())).sent
    anew = (await on_emulator(Scenario().events(), (120, 40), ["ctrl+l"], Appearance())).sent
    assert anew > 1.5 * once
    assert again - once < 0.5 * once
