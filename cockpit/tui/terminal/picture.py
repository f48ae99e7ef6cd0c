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
from textual._compositor import LayoutUpdate
from textual.strip import Strip

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.main_screen import MainScreen

_CLEAR = "\x1b[2J"
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
    """Yield lines of the cast: every `every` seconds of `span`, the changed lines of the screen."""
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
    async with _screen(recording, start, size, keys) as (app, source):
        known: list[str] = []
        at = start
        while True:
            lines = _lines(app)
            yield _event(at - start, _changes(known, lines))
            known = lines
            if at >= end:
                break
            at = min(end, at + every)
            seen = app.session.revision
            source.seek(at)
            await _drawn(app, seen)
        yield _event(end - start + _LAST, "")


def self_contained(svg: str) -> str:
    """Remove fonts that a viewer would download; preserve spaces in renderers that collapse them."""
    without_fonts = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return without_fonts.replace("<text ", '<text xml:space="preserve" ')


@asynccontextmanager
async def _screen(
    recording: Recording, at: float, size: tuple[int, int], keys: Sequence[str]
) -> AsyncIterator[tuple[CockpitApp, ReplaySource]]:
    source = ReplaySource(recording, at, playing=False)
    session = Session(source)
    app = CockpitApp(session)
    async with app.run_test(size=size) as pilot:
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


def _lines(app: CockpitApp) -> list[str]:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)
    # As in App.export_screenshot.
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return [Strip.join(strips).render(console) for strips in update.strips]


def _changes(before: Sequence[str], after: Sequence[str]) -> str:
    if len(before) != len(after):
        return _CLEAR + "".join(_line(row, line) for row, line in enumerate(after, 1))
    rows = enumerate(zip(before, after, strict=True), 1)
    return "".join(_line(row, line) for row, (old, line) in rows if old != line)


def _line(row: int, line: str) -> str:
    return f"\x1b[{row};1H{line}\x1b[0m"


def _event(at: float, text: str) -> str:
    return f"{json.dumps([round(at, 3), 'o', text])}\n"
