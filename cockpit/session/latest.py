"""The newest state of a live session, for its own parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.model.state import State


class LatestState:
    """The `state` after the newest folded event, within a batch too."""

    def __init__(self) -> None:
        self.state = State()
        self._changed = asyncio.Event()

    def update(self, _number: int, state: State) -> None:
        self.state = state
        self._changed.set()

    async def change(self) -> State:
        """Wait for the next event, and return the state after it."""
        self._changed.clear()
        await self._changed.wait()
        return self.state

    async def until(self, holds: Callable[[State], bool]) -> State:
        while not holds(self.state):
            await self.change()
        return self.state
