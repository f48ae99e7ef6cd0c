"""The session loop of live sessions and replays: source -> recorder -> fold -> readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cockpit.model.events import AnyEvent
from cockpit.model.fold.fold import fold
from cockpit.model.state import State
from cockpit.session.controls import Controls


@dataclass(frozen=True)
class EventBatch:
    """Events to fold in order, starting from `base`, or from the current state if it is None (no jump).

    `reached` is called after each event with the number of folded events and the state.
    """

    events: Sequence[AnyEvent]
    base: State | None = None
    reached: Callable[[int, State], None] | None = None


Listener = Callable[[Sequence[AnyEvent]], None]


class EventSource(Protocol):
    """The origin of a session's events."""

    @property
    def controls(self) -> Controls: ...

    def batches(self) -> AsyncIterator[EventBatch]:
        """Yield batches of events until the session ends."""

    async def close(self) -> None:
        """Stop the run and disconnect; `batches` then yields the last events and ends."""


class Recorder(Protocol):
    """Records events. An open recorder never raises and never waits for the disk: errors are in `trouble`.

    `gaps`: time ranges (as text) whose events were dropped because the disk was too slow.
    """

    @property
    def path(self) -> str: ...

    @property
    def trouble(self) -> str: ...

    @property
    def gaps(self) -> tuple[str, ...]: ...

    def record(self, events: Sequence[AnyEvent]) -> None: ...

    def settle(self, state: State) -> None:
        """Record the state after all events so far."""

    def close(self) -> None: ...


class PastView(Protocol):
    """The past of a live session, shown on request."""

    @property
    def past(self) -> Session | None:
        """The replay that is shown; None: the present is shown."""

    def present(self, state: State) -> State:
        """Return the present state with the notes that were made while looking back."""

    async def close(self) -> None:
        """Return to the present."""


class EndOfSession(Exception):
    """The source ended before the awaited state was reached."""


class Session:
    """A session and its newest state. Readers poll `state`; `revision` increases with every batch.

    `listen` is called with each batch of events. `look_back`: None if the past cannot be shown.
    """

    def __init__(
        self,
        source: EventSource,
        recorder: Recorder | None = None,
        listen: Listener | None = None,
    ) -> None:
        self.source = source
        self.recorder = recorder
        self._listen = listen
        self.look_back: PastView | None = None
        self.state = State()
        self.revision = 0
        self._changed = asyncio.Event()
        self._started = self._over = False

    @property
    def past(self) -> Session | None:
        """The replay of the past that is shown; None: the present is shown."""
        return self.look_back.past if self.look_back else None

    @property
    def controls(self) -> Controls:
        return (self.past or self).source.controls

    @property
    def shown(self) -> State:
        """The state to show: the present state, or the state of the replay."""
        if self.past is not None:
            return self.past.state
        return self.look_back.present(self.state) if self.look_back else self.state

    @property
    def shown_revision(self) -> tuple[int, int]:
        """A value that changes with every change of the shown state."""
        return (self.revision, 0) if self.past is None else (0, self.past.revision)

    async def run(self) -> None:
        """Run until the source ends; only once. If cancelled, close the source and fold its last events first."""
        if self._started:
            raise RuntimeError("this session was run before")
        self._started = True
        folding = asyncio.create_task(self._fold_all())
        try:
            await asyncio.shield(folding)
        except asyncio.CancelledError:
            await self.source.close()
            await folding
            raise
        except BaseException:
            await self.source.close()
            raise
        finally:
            if self.look_back:
                await self.look_back.close()
            if self.recorder:
                await asyncio.to_thread(self.recorder.close)

    async def until(self, holds: Callable[[State], bool]) -> State:
        """Wait for a state for which `holds` is true, and return it. Raises EndOfSession if the source ends before."""
        while not holds(self.state):
            if self._over:
                raise EndOfSession
            self._changed.clear()
            await self._changed.wait()
        return self.state

    async def _fold_all(self) -> None:
        try:
            async for batch in self.source.batches():
                self._fold(batch)
                self._changed.set()
        finally:
            self._over = True
            self._changed.set()

    def _fold(self, batch: EventBatch) -> None:
        if self.recorder:
            self.recorder.record(batch.events)
        if self._listen:
            self._listen(batch.events)
        state = self.state if batch.base is None else batch.base
        for folded, event in enumerate(batch.events, 1):
            state = fold(state, event)
            if batch.reached:
                batch.reached(folded, state)
        if self.recorder:
            self.recorder.settle(state)
        self.state = state
        self.revision += 1
