"""The share of the screen without information while load runs: `python -m tests.tui.blank_cells`.

A cell has no information if it is blank in every frame of a replay, one frame per second from the start of the first
run to the end of the last. A single blank between two printed cells of the same line separates words, so it belongs to
the text; the share that includes these blanks is also returned.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import NamedTuple

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from tests.tui.driving import main, until, wait_idle
from tests.tui.screens import RECORDINGS

SIZE = (120, 40)
NAMES = ("under-load", "spare-servers", "two-hosts")
_BLANK = " \u2800"


class BlankCells(NamedTuple):
    """Shares of all cells: without information, and blank in every frame; the lines with `#` for the former."""

    uninformative: float
    blank: float
    lines: tuple[str, ...]


async def blank_cells(name: str, every: float = 1.0, size: tuple[int, int] = SIZE) -> BlankCells:
    columns, rows = size
    printed: set[tuple[int, int]] = set()
    async for lines in _frames(name, every, size):
        printed |= {(x, y) for y, line in enumerate(lines) for x, char in enumerate(line) if char not in _BLANK}
    blank = {(x, y) for y in range(rows) for x in range(columns)} - printed
    empty = {(x, y) for x, y in blank if not {(x - 1, y), (x + 1, y)} <= printed}
    pictured = tuple("".join("#" if (x, y) in empty else " " for x in range(columns)) for y in range(rows))
    return BlankCells(len(empty) / (columns * rows), len(blank) / (columns * rows), pictured)


async def _frames(name: str, every: float, size: tuple[int, int]) -> AsyncIterator[list[str]]:
    """Yield the characters of each frame under load; a wide character has two."""
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        source = ReplaySource(recording, recording.end, playing=False)
        session = Session(source)
        async with CockpitApp(session).run_test(size=size) as pilot:
            await until(pilot, lambda: bool(session.revision))
            at = session.state.segments[0].start + every
            end = session.state.segments[-1].end or session.state.segments[-1].last
            while at <= end:
                seen = session.revision
                source.seek(at)
                await until(pilot, lambda seen=seen: session.revision > seen)  # type: ignore[misc]
                main(pilot.app).frame()
                await wait_idle(pilot)
                yield ["".join(each.text for each in line) for line in pilot.app.screen._compositor.render_strips()]
                at += every


async def report(names: list[str]) -> None:
    for name in names or NAMES:
        found = await blank_cells(name)
        print(*found.lines, sep="|\n")
        print(f"{name}: {found.uninformative:.1%} without information, {found.blank:.1%} blank in every frame")


if __name__ == "__main__":
    asyncio.run(report(sys.argv[1:]))
