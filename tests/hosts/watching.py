"""A host's feed that runs during a test, and its events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.ssh.prompts import Prompter
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, HostChanged, HostSample, SessionStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostState
from cockpit.model.state import State
from tests.waiting import until

Kind = TypeVar("Kind")


class Watch:
    """A running feed and its events so far."""

    def __init__(self, config: HostConfig, ssh_config: Path | None, asker: Prompter | None) -> None:
        self.config = config
        self.clock = Clock()
        self.events: list[AnyEvent] = []
        self._state = fold_all([SessionStarted(t=0.0, wall=0.0, version="", name="", hosts=(config,))])
        self._folded = 0
        self.feed = HostFeed(config, self.clock, self.events.append, ssh_config=ssh_config, asker=asker)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """The events of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def changes(self) -> list[HostChanged]:
        return self.of(HostChanged)

    @property
    def samples(self) -> list[HostSample]:
        return self.of(HostSample)

    @property
    def conditions(self) -> list[str]:
        return [change.condition for change in self.changes]

    def state(self) -> State:
        """The state after all events so far; conditions read it often."""
        self._state = fold_all(self.events[self._folded :], self._state)
        self._folded = len(self.events)
        return self._state

    @property
    def condition(self) -> str:
        """The host's current condition."""
        return self.conditions[-1] if self.changes else ""

    async def until(self, condition: str) -> HostChanged:
        """Wait until the host has this condition; return the event."""
        await self._until(lambda: self.condition == condition)
        return self.changes[-1]

    def host(self) -> HostState:
        return self.state().hosts[self.config.name]

    async def sampled(self, more: int = 1) -> None:
        """Wait for `more` further samples."""
        target = len(self.samples) + more
        await self._until(lambda: len(self.samples) >= target)

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            await until(condition)
        except TimeoutError:
            raise AssertionError(f"timed out; {len(self.samples)} samples, {self.changes[-5:]}") from None


@asynccontextmanager
async def watching(
    config: HostConfig, ssh_config: Path | None = None, asker: Prompter | None = None
) -> AsyncIterator[Watch]:
    """Run the feed of this host; fail if it ended by itself."""
    watch = Watch(config, ssh_config, asker)
    task = asyncio.ensure_future(watch.feed.run())
    try:
        yield watch
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
