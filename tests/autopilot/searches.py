"""Searches on a real server whose rate depends on a knob."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cockpit.autopilot.knobs import searched_knob
from cockpit.autopilot.runner import Autopilot, SearchResult
from cockpit.model.autopilot import AutopilotEnded, AutopilotState, SearchPlan
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.load.servers import SMALL, ClientConnection, serving
from tests.session.sessions import line_knob

BEFORE = "Level=5\nOther=1\n"
LEVELS = "1..8"


def knob(folder: Path, **values: Any) -> Knob:
    file = folder / "conf"
    # The server's test refuses levels 8 and 9.
    return line_knob("Level", file, **{"test": f"! grep -q 'Level=[89]' {file}", "reload": "true", **values})


@asynccontextmanager
async def live(folder: Path, url: str = "", step: float = 0.002) -> AsyncIterator[LiveSession]:
    """Run a session with the server of `unstarted`, or with `url`."""
    async with unstarted(folder, url, step) as session, session:
        await session.knobs_read()
        yield session


@asynccontextmanager
async def unstarted(folder: Path, url: str = "", step: float = 0.002) -> AsyncIterator[LiveSession]:
    """Yield an unstarted session; the server responds after `step` * (1 + (Level - 2)²) seconds."""
    conf = folder / "conf"
    conf.write_text(BEFORE)

    async def behave(client: ClientConnection) -> None:
        while True:
            await client.request()
            level = int((await asyncio.to_thread(conf.read_text)).split()[0].partition("=")[2])
            await asyncio.sleep(step + step * (level - 2) ** 2)
            await client.send(SMALL)

    async with serving(behave) as server:
        profile = Profile(
            name="x",
            plan=LoadPlan(url=url or server.url, concurrency=2, duration=300.0),
            hosts=(HostConfig(name="web1"),),
            knobs=(knob(folder),),
        )
        yield LiveSession(profile, check_target=False)


def plan(folder: Path, *constraints: str, levels: str = LEVELS, **values: float) -> SearchPlan:
    fields = {"budget": 300.0, "seconds": 0.5, **values}
    knobs = (searched_knob(knob(folder), levels, "5"),)
    return SearchPlan(metric="rate", maximize=True, knobs=knobs, constraints=constraints, **fields)  # type: ignore[arg-type]


async def run_search(session: LiveSession, plan: SearchPlan) -> tuple[SearchResult, AutopilotState]:
    found = await Autopilot(session, plan, {"Level": "5"}).run()
    await ended(session)
    assert session.state.autopilot is not None
    return found, session.state.autopilot


async def ended(session: LiveSession) -> AutopilotEnded:
    """Wait for the end of the search in the session."""
    state = await session.session.until(lambda state: state.autopilot is not None and state.autopilot.ended is not None)
    assert state.autopilot is not None and state.autopilot.ended is not None
    return state.autopilot.ended
