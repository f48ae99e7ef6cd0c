"""Send the newest state of a running session to its streams."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from cockpit.model.state import State
from cockpit.session.loop import Session

# Polling interval of the session (s).
_INTERVAL = 0.5


class Stream(Protocol):
    async def send_new(self, state: State) -> None:
        """Send new data. Errors of the other tool must not stop the session: report them in `trouble`."""

    async def close(self, state: State) -> None:
        """Send the remaining data at the end of the session."""

    @property
    def trouble(self) -> str:
        """Reason why data is missing, in one line; "" if all was sent."""


@contextlib.asynccontextmanager
async def streaming(session: Session, streams: Sequence[Stream]) -> AsyncIterator[None]:
    """Send the session's states to the streams until the end of the block."""
    if not streams:
        yield
        return
    ended = asyncio.Event()
    tasks = [asyncio.create_task(_follow(session, stream, ended)) for stream in streams]
    try:
        yield
    finally:
        # Cancelling the tasks would lose the data that is being sent.
        ended.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for stream in streams:
            await stream.close(session.state)
        for result in results:
            if isinstance(result, Exception):
                raise result


async def _follow(session: Session, stream: Stream, ended: asyncio.Event) -> None:
    seen = -1
    while not ended.is_set():
        if session.revision != seen:
            seen = session.revision
            await stream.send_new(session.state)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_INTERVAL):
                await ended.wait()
