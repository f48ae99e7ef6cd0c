"""`make screenshots`: pictures of the screen and of the HTML report, from recordings of sessions on the lab."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

# Before Textual is imported: no movement, no dependence on the terminal this runs in.
os.environ |= {"TEXTUAL_ANIMATIONS": "none", "TEXTUAL_COLOR_SYSTEM": "truecolor", "TERM": "xterm-256color"}

from cockpit.report.page import page
from cockpit.report.sources import last_state
from cockpit.session.recording.reader import Recording
from cockpit.tui.picture import svg_at
from tests.browser import browser, chromium

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
    Picture("tuning", 120, 40, -1.0, ("t", "tab", "down"), recording="under-load"),
    Picture("verdict", 120, 40, -0.1, ("c",), recording="under-load"),
    Picture("under-load", 120, 40, -0.1, recording="under-load"),
    Picture("heat-map", 120, 40, -0.1, ("v", "e", "left_square_bracket"), recording="under-load"),
    Picture("help", 120, 40, -1.0, ("question_mark",)),
    Picture("compare", 120, 40, -1.0, ("c", "end")),
    Picture("processes", 120, 40, 20.0, ("p", "s", "down")),
    Picture("two-hosts-120x40", 120, 40, 15.0, recording="two-hosts"),
    Picture("two-hosts-200x50", 200, 50, 15.0, recording="two-hosts"),
    Picture("two-hosts-80x24", 80, 24, 15.0, recording="two-hosts"),
    Picture("two-hosts-averages", 120, 40, -1.0, ("p", "p", "w"), recording="two-hosts"),
)


# Pictures of the HTML report: name, width, height, whether dark.
REPORTS = (("report-desk", 1200, 1500, False), ("report-phone", 390, 1500, True))


async def take(picture: Picture, folder: Path) -> Path:
    """Writes `folder/NAME.svg` and returns its path."""
    with Recording(RECORDINGS / f"{picture.recording}.cockpit") as recording:
        at = picture.at if picture.at >= 0 else recording.end + picture.at
        path = folder / f"{picture.name}.svg"
        path.write_text(await svg_at(recording, at, (picture.columns, picture.rows), picture.keys))
    return path


def take_reports(folder: Path) -> Iterator[Path]:
    """Writes `folder/NAME.png` of the report, as a browser shows it, and yields their paths."""
    with TemporaryDirectory() as scratch, browser(Path(scratch) / "chromium") as driven:
        page_of = Path(scratch) / "report.html"
        with Recording(RECORDINGS / "spare-servers.cockpit") as recording:
            page_of.write_text(page(last_state(recording)))
        for name, width, height, dark in REPORTS:
            look = driven.look(page_of, width, height, "0", dark=dark)
            path = folder / f"{name}.png"
            path.write_bytes(look.picture)
            yield path


async def main() -> None:
    for picture in PICTURES:
        print(await take(picture, ROOT / "screenshots"))
    if chromium() is None:
        print("no pictures of the HTML report: chromium is missing")
        return
    for path in take_reports(ROOT / "screenshots"):
        print(path)


if __name__ == "__main__":
    asyncio.run(main())
