"""`make screenshots`: pictures of the screen, of a study's result and of the HTML report, from recordings.

All as SVG, and as PNG if Debian's Chromium is installed. `python -m tests.screenshots NAME ...` draws only these;
`python -m tests.screenshots sizes FOLDER` draws each situation of the screen at three sizes into the folder.
"""

import asyncio
import datetime as dt
import io
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

# Before Textual is imported: no animations, no dependence on the terminal.
os.environ |= {"TEXTUAL_ANIMATIONS": "none", "TEXTUAL_COLOR_SYSTEM": "truecolor", "TERM": "xterm-256color"}

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from cockpit.cli.study_folder import result_in, sessions_of
from cockpit.profiles import catalogue
from cockpit.recording.library import folder as library
from cockpit.recording.library import recent
from cockpit.recording.reader import Recording, last_state
from cockpit.report.session import session_page
from cockpit.report.study import study_page, study_text
from cockpit.study.collecting import collect
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import StartChoices
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.terminal.picture import self_contained, svg_at
from tests.browser import Browser, browser, chromium
from tests.data import data_of
from tests.strip import Frame, strip

DATA = data_of(__file__)

ROOT = Path(__file__).parents[1]
RECORDINGS = ROOT / "tests" / "recordings"


@dataclass(frozen=True)
class Picture:
    """A picture: size, instant (s; negative from the end), keys pressed before it, and recording."""

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
    Picture("likely-120x40", 120, 40, 80.0, recording="under-load"),
    Picture("likely-80x24", 80, 24, 80.0, recording="under-load"),
    Picture("under-load-80x24", 80, 24, -0.1, recording="under-load"),
    Picture("heat-map", 120, 40, -0.1, ("e", "left_square_bracket"), recording="under-load"),
    Picture("stall", 120, 40, 15.5, recording="failures"),
    Picture("failing-80x24", 80, 24, 32.5, recording="failures"),
    Picture("target-down", 120, 40, 38.5, recording="failures"),
    Picture("help", 120, 40, -1.0, ("question_mark",)),
    Picture("processes", 120, 40, 20.0, ("p", "s", "down")),
    Picture("two-hosts-120x40", 120, 40, 15.0, recording="two-hosts"),
    Picture("two-hosts-200x50", 200, 50, 15.0, recording="two-hosts"),
    Picture("two-hosts-80x24", 80, 24, 15.0, recording="two-hosts"),
    Picture("baseline", 120, 40, 40.0, recording="under-load"),
    Picture("change", 120, 40, 61.9, recording="under-load"),
)
# Situations of the screen, each drawn at all sizes: instant (s; negative from the end) and recording.
SIZES = ((80, 24), (120, 40), (200, 50))
SITUATIONS = DATA["situations"]
# Frames of the animation: instant, keys, caption, seconds.
SESSION = DATA["session"]
# Notes added after the session: instant, text.
NOTES = ((18.0, "first look at the process list"), (80.0, "no more processes are spawned"))
# Pictures of the HTML report: name, width, height, dark.
REPORTS = (
    ("report-desk", 1200, 1500, False),
    ("report-phone", 390, 1500, True),
    ("study-page", 1200, 1900, False),
)
# Lines of a study's result in the picture.
STUDY_LINES = 48


async def shot(recording: str, at: float, size: tuple[int, int], keys: Sequence[str]) -> str:
    """Return the screen as SVG; a negative instant counts from the end."""
    with Recording(RECORDINGS / f"{recording}.cockpit") as opened:
        return await svg_at(opened, at if at >= 0 else opened.end + at, size, keys)


async def replayed() -> str:
    """Return a replay of a session with added notes, paused in the middle."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "noted.cockpit"
        shutil.copy(RECORDINGS / "under-load.cockpit", path)
        with Recording(path) as recording:
            for t, text in NOTES:
                recording.annotate(t, text)
            return await svg_at(recording, 90.0, (120, 40))


async def animation() -> str:
    """Return a session as an animated SVG."""
    return strip(
        [
            Frame(await shot("under-load", at, (108, 30), keys), caption, seconds)
            for at, keys, caption, seconds in SESSION
        ]
    )


async def start_screen(size: tuple[int, int] = (120, 40)) -> str:
    """Return the start screen with a library of the test recordings."""
    with TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        library().mkdir(parents=True)
        for number, path in enumerate(sorted(RECORDINGS.glob("*.cockpit"))):
            shutil.copy(path, library())
            os.utime(library() / path.name, (number, number))
        recordings = recent(10)
        newest = dt.datetime.fromtimestamp(max(each.info.began + each.info.seconds for each in recordings))
        profiles = [each for each in catalogue.listed() if each.path.resolve().parent == ROOT / "profiles"]
        choices = StartChoices(profiles, recordings)
        app = StartApp(StartScreen(lambda: choices, now=lambda: newest + dt.timedelta(minutes=9)))
        async with app.run_test(size=size) as pilot:
            screen = next(screen for screen in app.screen_stack if isinstance(screen, StartScreen))
            while screen._offers is None:
                await pilot.pause()
            await pilot.pause()
            return self_contained(app.export_screenshot(title="cockpit"))


async def study() -> str:
    """Return the first lines of a study's result, as on a terminal."""
    result = collect(sessions_of(RECORDINGS / "study"), "demo")
    assert result is not None
    lines = (wrapped for line in study_text(result).splitlines() for wrapped in _wrapped(line))
    console = Console(record=True, width=120, file=io.StringIO(), force_terminal=True)
    console.print(Text("\n".join(list(lines)[:STUDY_LINES])), no_wrap=True)
    background, text = (0x15, 0x1A, 0x22), (0xD3, 0xD7, 0xDE)
    return self_contained(
        console.export_svg(title="cockpit study demo", theme=TerminalTheme(background, text, [text] * 8))
    )


def _wrapped(line: str) -> list[str]:
    """Wrap a line as a terminal with 120 columns would, with indented continuation lines."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, 118, subsequent_indent=indent, drop_whitespace=False) if len(line) > 118 else [line]


def pictures() -> dict[str, Callable[[], Awaitable[str]]]:
    """Return the function that draws each picture of a terminal as SVG, by name."""
    drawn: dict[str, Callable[[], Awaitable[str]]] = {
        picture.name: partial(shot, picture.recording, picture.at, (picture.columns, picture.rows), picture.keys)
        for picture in PICTURES
    }
    return drawn | {"replay": replayed, "start": start_screen, "study": study, "session": animation}


def at_all_sizes() -> dict[str, Callable[[], Awaitable[str]]]:
    """Return the function that draws each situation and the start screen at each size, by name."""
    drawn: dict[str, Callable[[], Awaitable[str]]] = {}
    for size in SIZES:
        columns, rows = size
        for name, (at, recording) in SITUATIONS.items():
            drawn[f"{name}-{columns}x{rows}"] = partial(shot, recording, at, size, ())
        drawn[f"start-{columns}x{rows}"] = partial(start_screen, size)
    return drawn


def as_png(driven: Browser, path: Path) -> Path:
    """Write the picture as PNG, drawn by a browser, beside the SVG; return its path."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', path.read_text())
    assert size
    result = driven.open_page(path, round(float(size[1])), round(float(size[2])), "0")
    png = path.with_suffix(".png")
    png.write_bytes(result.screenshot)
    return png


def take_reports(driven: Browser, folder: Path) -> Iterator[Path]:
    """Write `folder/NAME.png` of the reports, drawn by a browser, and yield the paths."""
    with TemporaryDirectory() as scratch:
        report_file, study_file = Path(scratch) / "report.html", Path(scratch) / "study.html"
        with Recording(RECORDINGS / "spare-servers.cockpit") as recording:
            report_file.write_text(session_page(last_state(recording)))
        result = result_in(RECORDINGS / "study")
        assert result is not None
        study_file.write_text(study_page(result))
        for name, width, height, dark in REPORTS:
            opened = driven.open_page(
                study_file if name == "study-page" else report_file, width, height, "0", dark=dark
            )
            path = folder / f"{name}.png"
            path.write_bytes(opened.screenshot)
            yield path


async def main(names: Sequence[str]) -> None:
    """Draw the named pictures (default all), or the situations at all sizes."""
    # The pictures show times of day in UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    by_size = names[:1] == ["sizes"]
    folder = Path(names[1]) if by_size else ROOT / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in (at_all_sizes() if by_size else pictures()).items():
        if by_size or not names or name in names:
            drawn.append(folder / f"{name}.svg")
            drawn[-1].write_text(await draw())
            print(drawn[-1])
    if chromium() is None:
        print("no PNG, and no pictures of the HTML report: chromium is missing")
        return
    with TemporaryDirectory() as scratch, browser(Path(scratch)) as driven:
        for path in drawn:
            if path.stem != "session":  # animated
                print(as_png(driven, path))
        for path in take_reports(driven, folder) if not names else ():
            print(path)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
