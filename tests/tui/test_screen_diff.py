"""Differential output: the terminal shows the expected screen, and only changes are sent."""

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
from tests.tui.driving import main, press, until, wait_idle
from tests.tui.emulator import Emulator, attach_emulator
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedSource
from tests.tui.test_verdicts import changed_under_load


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


async def wait_drawn(pilot: Pilot[object]) -> None:
    """Wait until all changes are drawn."""
    await wait_idle(pilot)
    await asyncio.sleep(0.05)
    await wait_idle(pilot)


def _received(source: ScriptedSource, events: int) -> bool:
    return len(source.recorder.events) >= events


def _matches(emulator: Emulator, app: CockpitApp, size: tuple[int, int]) -> bool:
    return emulator.picture(size) == expected_screen(app).picture(size)


async def run_steps(
    events: Sequence[ev.AnyEvent],
    size: tuple[int, int],
    steps: Sequence[str | float | tuple[int, int]],
    appearance: Appearance,
) -> Emulator:
    """Perform steps (keys, times, sizes); after each the terminal must show the expected screen."""
    first = [event for event in events if event.t <= 46]
    source = ScriptedSource(first)
    app = CockpitApp(source.session, appearance=appearance)
    emulator = attach_emulator(app, size)

    async def drive(pilot: Pilot[object]) -> None:
        nonlocal size
        await until(pilot, lambda: len(source.recorder.events) >= len(first))
        main(app).frame()
        await wait_drawn(pilot)
        for step in steps:
            if isinstance(step, tuple):
                app._driver.width, app._driver.height = size = step  # type: ignore[union-attr]
                app.post_message(Resize(Size(*step), Size(*step)))
            elif isinstance(step, float):
                known = len(source.recorder.events)
                due = [event for event in events[known:] if event.t <= step]
                source.push(*due)
                await until(pilot, partial(_received, source, known + len(due)))
                main(app).frame()
            else:
                await press(pilot, step)
            await wait_drawn(pilot)
            if not _matches(emulator, app, size):
                # A notice may disappear in between; then the expected screen follows soon.
                with contextlib.suppress(TimeoutError):
                    await until(pilot, partial(_matches, emulator, app, size))
                found, expected_lines = emulator.picture(size), expected_screen(app).picture(size)
                for line, (actual, expected) in enumerate(zip(found, expected_lines, strict=True), 1):
                    assert actual == expected, f"line {line} after {step}"
        app.exit()

    await app.run_async(auto_pilot=drive)
    return emulator


_DIALOGS = [50.0, "t", 51.0, *"30", "down", "escape", "question_mark", "down", 52.0, "escape", "slash", *"ap", "enter"]
_VIEWS = ["v", 47.0, "p", 48.0, "p", 49.0, "p", "enter", "down", "s", "d", "d", 50.0, "escape", "c", 51.0, "escape"]
_VERDICT = [62.0, 68.0, 73.0, 79.0, (80, 24), 100.0, 125.0, (120, 40)]
STEPS: dict[str, list[Any]] = {
    "run continues": [47.0, 47.5, 50.2, 55.0, 62.5, 66.5, 70.1, 76.0, 85.0, 99.0],
    "dialogs": _DIALOGS,
    "views": _VIEWS,
    "themes and sizes": ["T", 47.0, (80, 24), 48.0, (40, 12), (120, 40), "T", 50.0, "ctrl+l", 51.0, (200, 50), 52.0],
}


@pytest.fixture(autouse=True)
def no_saved_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
async def test_terminal_matches_expected_screen(steps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    await run_steps(Scenario(2, hostile=True).events(), (120, 40), steps, Appearance())


@pytest.mark.parametrize(
    "appearance", [Appearance(), Appearance(colours="16"), Appearance(ascii=True)], ids=["all", "sixteen", "ascii"]
)
async def test_terminal_matches_screen_with_growing_verdict(
    appearance: Appearance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    await run_steps(changed_under_load(), (120, 40), _VERDICT, appearance)


async def test_terminal_matches_screen_in_sixteen_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLORTERM", raising=False)
    steps = ["T", 47.0, "T", 50.0, "enter", 51.0]
    await run_steps(Scenario(2, hostile=True).events(), (120, 40), steps, Appearance(colours="16"))


async def test_terminal_matches_screen_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await run_steps(Scenario(2, hostile=True).events(), (120, 40), STEPS["views"], Appearance())


async def test_only_changes_are_sent() -> None:
    """Each second of a run changes numbers in most lines; the whole screen is about 10,000 bytes."""
    events = Scenario().events()
    steps = [46 + 0.5 * at for at in range(1, 41)]
    whole = (await run_steps(events, (120, 40), [], Appearance())).sent
    sent = (await run_steps(events, (120, 40), steps, Appearance())).sent - whole
    assert sent < 20 * 3000
    assert whole > 3000


async def test_only_changes_of_growing_verdict_are_sent() -> None:
    """After a change: one estimate per block, and a bar and a number per second, in addition to the run."""
    events = changed_under_load()
    before = [46.0, 70.0]
    steps = [70 + 0.5 * at for at in range(1, 21)]
    whole = (await run_steps(events, (120, 40), before, Appearance())).sent
    sent = (await run_steps(events, (120, 40), [*before, *steps], Appearance())).sent - whole
    assert sent < 10 * 3000


async def test_unchanged_screen_is_not_sent_again() -> None:
    initial = (await run_steps(Scenario().events(), (120, 40), [], Appearance())).sent
    reopened = (await run_steps(Scenario().events(), (120, 40), ["m", "escape"], Appearance())).sent
    redrawn = (await run_steps(Scenario().events(), (120, 40), ["ctrl+l"], Appearance())).sent
    assert redrawn > 1.5 * initial
    assert reopened - initial < 0.5 * initial
