"""`make screenshots`: pictures of the screen, each from a recording of a session on the lab."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from pathlib import Path

# Before Textual is imported: no movement, no dependence on the terminal this runs in.
os.environ |= {"TEXTUAL_ANIMATIONS": "none", "TEXTUAL_COLOR_SYSTEM": "truecolor", "TERM": "xterm-256color"}

from cockpit.session.loop import Session
from cockpit.session.recording.reader import Recording
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "tests" / "recordings"


@dataclass(frozen=True)
class Picture:
    """One picture: its size, the instant (s; below 0 counts from the end), the keys pressed before it is taken, and the
    recording that it is of."""

    name: str
    columns: int
    rows: int
    at: float
    keys: tuple[str, ...] = ()
    recording: str = "spare-servers"


PICTURES = (
    Picture("main-120x40", 120, 40, -1.0),
    Picture("main-80x24", 80, 24, -1.0),
    Picture("main-40x12", 40, 12, -1.0),
    Picture("tuning", 120, 40, -1.0, ("t",)),
    Picture("help", 120, 40, -1.0, ("question_mark",)),
    Picture("processes", 120, 40, 20.0, ("p", "s", "down")),
    Picture("two-hosts-120x40", 120, 40, 15.0, recording="two-hosts"),
    Picture("two-hosts-200x50", 200, 50, 15.0, recording="two-hosts"),
    Picture("two-hosts-80x24", 80, 24, 15.0, recording="two-hosts"),
    Picture("two-hosts-averages", 120, 40, -1.0, ("p", "p", "w"), recording="two-hosts"),
)


async def take(picture: Picture, folder: Path) -> Path:
    """Writes `folder/NAME.svg` and returns its path."""
    with Recording(RECORDINGS / f"{picture.recording}.cockpit") as recording:
        at = picture.at if picture.at >= 0 else recording.end + picture.at
        session = Session(ReplaySource(recording, at, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(picture.columns, picture.rows)) as pilot:
            await session.until(lambda state: state.started is not None)
            await pilot.press(*picture.keys)
            await pilot.pause()
            path = folder / f"{picture.name}.svg"
            path.write_text(_self_contained(app.export_screenshot(title="cockpit")))
    return path


def _self_contained(svg: str) -> str:
    """Without the fonts that Textual would have a viewer fetch; spaces kept for renderers that drop them."""
    without_fonts = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return without_fonts.replace("<text ", '<text xml:space="preserve" ')


async def main() -> None:
    for picture in PICTURES:
        print(await take(picture, ROOT / "screenshots"))


if __name__ == "__main__":
    asyncio.run(main())
