"""A host's feed with its tails and status pages, and what fold makes of their events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.tails import pane_feeds
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, SessionStarted
from cockpit.model.fold import fold_all
from cockpit.model.host_state import HostState, StatusPane
from cockpit.model.hosts import HostConfig, StatusPage
from cockpit.model.state import State
from tests.waiting import until


class Watch:
    def __init__(self, config: HostConfig) -> None:
        self.name = config.name
        self.events: list[AnyEvent] = [SessionStarted(t=0, wall=0, version="", name="", hosts=(config,))]

    @property
    def state(self) -> State:
        return fold_all(self.events)

    @property
    def host(self) -> HostState:
        return self.state.hosts[self.name]

    @property
    def page(self) -> StatusPane:
        return self.host.pages[0]

    async def until(self, condition: Callable[[], object]) -> None:
        try:
            await until(condition)
        except TimeoutError as error:
            raise AssertionError((error, self.host.condition, self.host.detail, self.host.pages)) from None


@asynccontextmanager
async def watching(
    name: str, ssh_config: Path, *pages: StatusPage, processes: tuple[str, ...] = (), tail: tuple[str, ...] = ()
) -> AsyncIterator[Watch]:
    """Watch a host of the lab over SSH during the block."""
    config = HostConfig(name=name, ssh=name, interval=0.3, processes=processes, status=pages, tail=tail)
    watch, clock = Watch(config), Clock()
    feed = HostFeed(config, clock, watch.events.append, ssh_config=ssh_config)
    tasks = [asyncio.ensure_future(work) for work in (feed.run(), *pane_feeds(feed, clock, watch.events.append))]
    try:
        yield watch
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
