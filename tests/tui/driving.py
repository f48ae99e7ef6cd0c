"""Run the app in tests: press keys, wait for conditions, and read the text on the screen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from cockpit.model import events as ev
from cockpit.session.controls import Mode
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line
from tests import waiting
from tests.tui.scripted import ScriptedSource, scripted_app, state_after


@asynccontextmanager
async def running_app(
    events: Sequence[ev.AnyEvent] = (), size: tuple[int, int] = (120, 40), autostart: str = ""
) -> AsyncIterator[tuple[Pilot[object], ScriptedSource]]:
    """Run the app; yields after all `events` are received and drawn."""
    app, source = scripted_app(events, autostart)
    async with app.run_test(size=size) as pilot:
        await wait_for_events(pilot, source, len(events))
        yield pilot, source


async def wait_for_events(pilot: Pilot[object], source: ScriptedSource, events: int = 0) -> None:
    """Wait until the session has received that many events and the screen shows them."""
    await until(pilot, lambda: len(source.recorder.events) >= events)
    main(pilot.app).frame()
    await wait_idle(pilot)


async def press(pilot: Pilot[object], *keys: str) -> None:
    """Press the keys, and wait until their effects are drawn."""
    await pilot.press(*keys)
    await wait_idle(pilot)


async def reset_screen(pilot: Pilot[Any]) -> None:
    """Close all dialogs and notices, and reset the view of the main screen."""
    app = pilot.app
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    if isinstance(app.screen, MainScreen):
        app.screen.view = View()
        app.screen.frame()
    app.forget_notices(app.notices())
    await wait_idle(pilot)


async def wait_idle(pilot: Pilot[object]) -> None:
    """Wait until the layout is current and all message queues have been empty for 30 rounds of the event loop.

    Pilot mistakes a process without CPU time for an idle process; this function checks the queues instead.
    """
    idle_rounds = 0
    async with asyncio.timeout(waiting.DEADLINE):
        while idle_rounds < 30:
            # A new layout is computed by a timer of the screen.
            pending = pilot.app.is_running and any(screen._layout_required for screen in pilot.app.screen_stack[-1:])
            await asyncio.sleep(0.002 if pending else 0)
            busy = any(pump.message_queue_size for pump in (pilot.app, *pilot.app._registry))
            idle_rounds = 0 if busy or pending else idle_rounds + 1


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    """Wait until `condition()` is true and the screen is drawn. Raises TimeoutError."""
    await waiting.until(condition)
    if pilot.app.is_running:
        await wait_idle(pilot)


def main(app: object) -> MainScreen:
    """Return the main screen, even if a dialog is on top."""
    return next(screen for screen in app.screen_stack if isinstance(screen, MainScreen))


def text_of(widget: Widget) -> str:
    """Return the text of a widget, line by line."""
    return "\n".join(widget.render_line(y).text.rstrip() for y in range(widget.size.height))


def screen_text(pilot: Pilot[object]) -> str:
    """Return the text of all visible panes of the main screen."""
    return "\n".join(text_of(lines) for lines in main(pilot.app).query(Lines) if lines.size.area)


def plain(lines: Sequence[Line]) -> list[str]:
    """Return the text of drawn lines, without roles."""
    return ["".join(text for text, _ in line) for line in lines]


def context_of(events: Sequence[ev.AnyEvent], **view: object) -> DrawContext:
    """Return the draw context after `events`."""
    return DrawContext(state=state_after(events), view=View(**view), mode=Mode.LIVE)  # type: ignore[arg-type]
