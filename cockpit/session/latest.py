"""The newest state of a live session, for what has to judge while the session runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.model.state import State


class Latest:
    """`state` is the state after the newest event that was folded."""

    def __init__(self) -> None:
        self.state = State()
        self._changed = asyncio.Event()

    def take(self, _number: int, state: State) -> None:
        """Take the state after an event: the `reached` of a batch."""
        self.state = state
        self._changed.set()

    async def change(self) -> State:
        """Wait for the next event, and return the state after it."""
        self._changed.clear()
        await self._changed.wait()
        return self.state

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Wait for a state for which `holds` is true."""
        while not holds(self.state):
            await self.change()
        return self.state
