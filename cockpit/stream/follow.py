"""Follow a session beside the screen or the run: each stream gets the newest state about once a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from cockpit.model.state import State
from cockpit.session.loop import Session

# Seconds between two looks at the session.
_PACE = 0.5


class Stream(Protocol):
    async def take(self, state: State) -> None:
        """Send what is new. The session continues whatever the other tool does: errors become `trouble`."""

    async def close(self, state: State) -> None:
        """Send the rest; the session is over."""

    @property
    def trouble(self) -> str:
        """Why something is missing, in one line; "": nothing is."""


@contextlib.asynccontextmanager
async def followed(session: Session, streams: Sequence[Stream]) -> AsyncIterator[None]:
    """Follow the session until the end of the block."""
    if not streams:
        yield
        return
    over = asyncio.Event()
    following = [asyncio.create_task(_follow(session, stream, over)) for stream in streams]
    try:
        yield
    finally:
        # Not cancelled: what is being sent would be lost.
        over.set()
        ended = await asyncio.gather(*following, return_exceptions=True)
        for stream in streams:
            await stream.close(session.state)
        for failure in ended:
            if isinstance(failure, Exception):
                raise failure


async def _follow(session: Session, stream: Stream, over: asyncio.Event) -> None:
    seen = -1
    while not over.is_set():
        if session.revision != seen:
            seen = session.revision
            await stream.take(session.state)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _PACE)
