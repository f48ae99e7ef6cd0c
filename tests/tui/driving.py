"""Waiting for what a test expects, and reading what stands on the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.app import CockpitApp
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.terminal.base_app import CockpitBase
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line
from tests.tui.scripted import ScriptedSource, scripted_app, state_after

PATIENCE = 120.0


@asynccontextmanager
async def driven(
    events: Sequence[ev.AnyEvent] = (), size: tuple[int, int] = (120, 40), autostart: str = ""
) -> AsyncIterator[tuple[Pilot[object], ScriptedSource]]:
    """The app on those events, all of them taken in and drawn."""
    app, source = scripted_app(events, autostart)
    async with app.run_test(size=size) as pilot:
        await settled(pilot, source, len(events))
        yield pilot, source


async def settled(pilot: Pilot[object], source: ScriptedSource, events: int = 0) -> None:
    """Until the session has taken in that many events and the screen shows them."""
    await until(pilot, lambda: len(source.recorder.events) >= events)
    main(pilot.app).frame()
    await at_rest(pilot)


async def press(pilot: Pilot[object], *keys: str) -> None:
    """Presses the keys, and returns when what they do has been done and drawn."""
    await pilot.press(*keys)
    await at_rest(pilot)


async def first_screen(pilot: Pilot[Any]) -> None:
    """Takes away what keys have opened and chosen."""
    app = pilot.app
    assert isinstance(app, CockpitBase)
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    if isinstance(app.screen, MainScreen):
        app.screen.view = View()
        app.screen.frame()
    app.forget_notices(app.notices())
    await at_rest(pilot)


async def at_rest(pilot: Pilot[object]) -> None:
    """Until nobody has a message left for many rounds of the event loop.

    Pilot takes a process that gets no CPU for one that has nothing to do; this asks the queues instead.
    """
    calm = 0
    async with asyncio.timeout(PATIENCE):
        while calm < 30:
            await asyncio.sleep(0)
            pumps = [pilot.app, *(node for screen in pilot.app.screen_stack for node in screen.walk_children())]
            busy = any(pump.message_queue_size for pump in (*pumps, *pilot.app.screen_stack))
            calm = 0 if busy else calm + 1


async def until(pilot: Pilot[object], holds: Callable[[], bool]) -> None:
    """Waits for a condition; fails loudly when it does not come about."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await pilot.pause()
            await asyncio.sleep(0.01)


def main(app: object) -> MainScreen:
    """The main screen, whatever lies on top of it."""
    assert isinstance(app, CockpitApp)
    return next(screen for screen in app.screen_stack if isinstance(screen, MainScreen))


def text_of(widget: Widget) -> str:
    """What a widget shows, as lines of text."""
    return "\n".join(widget.render_line(y).text.rstrip() for y in range(widget.size.height))


def shown(pilot: Pilot[object]) -> str:
    """All figures that are in sight on the main screen."""
    return "\n".join(text_of(lines) for lines in main(pilot.app).query(Lines) if lines.size.area)


def plain(lines: Sequence[Line]) -> list[str]:
    """Drawn lines without their roles."""
    return ["".join(text for text, _ in line) for line in lines]


def context_of(events: Sequence[ev.AnyEvent], **view: object) -> DrawContext:
    """What a widget is given after those events."""
    return DrawContext(state=state_after(events), view=View(**view), mode=Mode.LIVE)  # type: ignore[arg-type]
