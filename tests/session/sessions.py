"""Live sessions against a small server, with knobs in files of this machine."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.model.clock import Clock
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.waiting import DEADLINE

BEFORE = "Level=5\nOther=1\n"
Live = tuple[Session, LiveSource]


@asynccontextmanager
async def running(session: Session) -> AsyncIterator[Session]:
    """Run a session; close it at the end of the block."""
    task = asyncio.create_task(session.run())
    try:
        yield session
    finally:
        await session.source.close()
        await task


@asynccontextmanager
async def live_session(url: str, folder: Path, *, files: bool = False, **values: Any) -> AsyncIterator[Live]:
    """Run a session whose knobs have been read; `values` replace fields of its load plan, 20 requests/s for 60 s.

    `files`: knobs are settings of a file, otherwise commands.

    XDG_STATE_HOME must be in `folder`.
    """
    (folder / "conf").write_text(BEFORE)
    (folder / "conf.d").write_text("Limit=1\n")
    file = str(folder / "conf")
    place: dict[str, Any] = {"host": "web1", "kind": "keyvalue", "file": file, "reload": "true"}
    knobs = [
        Knob(name=name, key=name, **place) if files else line_knob(name, folder / "conf", reload="true")
        for name in ("Level", "Other")
    ]
    knobs.append(Knob(name="Limit", host="web1", kind="keyvalue", file=f"{file}.d", key="Limit", action="again"))
    profile = Profile(
        name="x",
        plan=replace(LoadPlan(url=url, rate=20.0, duration=60.0), **values),
        hosts=(HostConfig(name="web1"),),
        knobs=tuple(knobs),
        actions=(ServerAction(name="again", host="web1", command=f"echo x >>{shlex.quote(file + '.log')}", times=3),),
    )
    source = LiveSource(profile, Clock())
    async with running(Session(source)) as session:
        await until(session, lambda state: bool(state.knobs) and all(knob.known for knob in state.knobs.values()))
        yield session, source


def line_knob(name: str, file: Path, **fields: Any) -> Knob:
    """Return the knob of a line `NAME=VALUE`, set by a command: without the inventory of servers that a file needs."""
    quoted = shlex.quote(str(file))
    get, change = (
        f"sed -n 's/^{name}=//p' {quoted}",
        f'text=$(sed "s/^{name}=.*/{name}=$1/" {quoted}) && echo "$text" >{quoted}',
    )
    return Knob(name=name, host="web1", kind="command", get=get, set=change, **fields)


async def until(session: Session, condition: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(condition), DEADLINE)


async def do(session: Session, name: str, answer: str = "") -> None:
    """Run an action by name."""
    await next(action for action in session.controls.actions if action.name == name).run(answer)


def locks(home: Path) -> list[Path]:
    """Return the lock files of changes in progress."""
    return list(home.glob("state/webcockpit/changes/*/lock"))
