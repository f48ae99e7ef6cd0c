"""Text and notices of the top screen, and the app on a recording."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.terminal.appearance import Appearance
from tests.tui.driving import main, until, wait_idle

RECORDINGS = Path(__file__).parents[1] / "recordings"


def rendered_text(app: App[Any]) -> str:
    """Return the text of the whole screen."""
    return "\n".join("".join(segment.text for segment in line) for line in app.screen._compositor.render_strips())


def notices(pilot: Pilot[Any]) -> list[str]:
    return [notice.message for notice in pilot.app.notices()]


async def until_notice(pilot: Pilot[Any], words: str) -> None:
    """Wait for a notice with these words."""
    await until(pilot, lambda: any(words in notice for notice in notices(pilot)))


@asynccontextmanager
async def replayed_app(
    path: Path, t: float = math.inf, size: tuple[int, int] = (120, 40), appearance: Appearance | None = None
) -> AsyncIterator[tuple[Pilot[object], Session]]:
    """Run the app on a recording, paused at second `t`, by default at its end."""
    with Recording(path) as recording:
        session = Session(ReplaySource(recording, min(t, recording.end), playing=False))
        async with CockpitApp(session, appearance=appearance).run_test(size=size) as pilot:
            await until(pilot, lambda: bool(session.revision))
            main(pilot.app).frame()
            await wait_idle(pilot)
            yield pilot, session
