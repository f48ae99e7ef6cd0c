"""The events of a live session, for the parts that emit them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent
from cockpit.model.state import State


class LiveEvents:
    """`emit` adds an event; `state` is the state after the newest folded event, within a batch too. `hide_values` hides
    the values of these knobs in later events."""

    def __init__(
        self,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        hide_values: Callable[[Iterable[str]], None] = lambda _: None,
    ) -> None:
        self.emit = emit
        self.hide_values = hide_values
        self.now = clock.now
        self.state = State()
        self._changed = asyncio.Event()

    def update(self, _number: int, state: State) -> None:
        self.state = state
        self._changed.set()

    async def until(self, holds: Callable[[State], bool]) -> State:
        while not holds(self.state):
            self._changed.clear()
            await self._changed.wait()
        return self.state
