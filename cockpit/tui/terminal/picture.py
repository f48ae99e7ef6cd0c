"""Pictures of the screen, drawn without a terminal: SVG of an instant, or an asciinema cast of a time range.

Format of casts: https://docs.asciinema.org/manual/asciicast/v2/
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rich.console import Console
from textual.drivers.headless_driver import HeadlessDriver

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.main_screen import MainScreen

# Hide the cursor, clear the screen; show the cursor.
_FIRST, _END = "\x1b[?25l\x1b[2J", "\x1b[?25h"
# Seconds for which a cast shows its last picture.
_LAST = 2.0
# Iterations of the event loop without a message after which the screen counts as drawn.
_IDLE_LOOPS = 30
_TIMEOUT = 30.0  # s


async def svg_at(recording: Recording, at: float, size: tuple[int, int], keys: Sequence[str] = ()) -> str:
    """Return the screen of `size` (columns, rows) at an instant of the recording, after `keys`."""
    async with _screen(recording, at, size, keys) as (app, _):
        return self_contained(app.export_screenshot(title="cockpit"))


async def cast(
    recording: Recording,
    span: tuple[float, float],
    every: float,
    size: tuple[int, int],
    keys: Sequence[str] = (),
) -> AsyncIterator[str]:
    """Yield lines of the cast: every `every` seconds of `span`, the output for the terminal."""
    start, end = span
    columns, rows = size
    head = {
        "version": 2,
        "width": columns,
        "height": rows,
        "timestamp": int(recording.started.wall + start),
        "env": {"TERM": "xterm-256color"},
    }
    yield f"{json.dumps(head)}\n"
    output = [_FIRST]
    async with _screen(recording, start, size, keys, output) as (app, source):
        at = start
        while True:
            yield _event(at - start, "".join(output))
            output.clear()
            if at >= end:
                break
            at = min(end, at + every)
            seen = app.session.revision
            source.seek(at)
            await _drawn(app, seen)
        yield _event(end - start + _LAST, _END)


def self_contained(svg: str) -> str:
    """Remove fonts that a viewer would download; preserve spaces in renderers that collapse them."""
    without_fonts = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return without_fonts.replace("<text ", '<text xml:space="preserve" ')


@asynccontextmanager
async def _screen(
    recording: Recording, at: float, size: tuple[int, int], keys: Sequence[str], output: list[str] | None = None
) -> AsyncIterator[tuple[CockpitApp, ReplaySource]]:
    """Run the app on the recording; the output for a terminal is added to `output`."""

    class Driver(HeadlessDriver):
        @property
        def is_headless(self) -> bool:
            return False

        def write(self, data: str) -> None:
            # Without the shape of the mouse pointer.
            if output is not None and not data.startswith("\x1b]"):
                output.append(data)

    source = ReplaySource(recording, at, playing=False)
    session = Session(source)
    app = CockpitApp(session)
    app.driver_class = Driver
    app.console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)
    async with app.run_test(headless=output is None, size=size) as pilot:
        await _drawn(app, 0)
        if keys:
            await pilot.press(*keys)
            await _drawn(app, 0)
        yield app, source


async def _drawn(app: CockpitApp, seen: int) -> None:
    """Wait until the session is past revision `seen` and everything is drawn."""
    async with asyncio.timeout(_TIMEOUT):
        await app.session.until(lambda _: app.session.revision > seen)
        for screen in app.screen_stack:
            if isinstance(screen, MainScreen):
                screen.frame()
        idle = 0
        while idle < _IDLE_LOOPS:
            await asyncio.sleep(0)
            pumps = [app, *app.screen_stack, *(node for screen in app.screen_stack for node in screen.walk_children())]
            idle = 0 if any(pump.message_queue_size for pump in pumps) else idle + 1
        refreshed = asyncio.Event()
        app.screen.call_after_refresh(refreshed.set)
        await refreshed.wait()


def _event(at: float, text: str) -> str:
    return f"{json.dumps([round(at, 3), 'o', text])}\n"
