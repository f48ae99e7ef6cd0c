"""A host's feed with its tails and status pages, and what fold makes of their events."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from cockpit.hosts.tails import pane_feeds
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.host.state import StatusPane
from tests.hosts import watching as feeds
from tests.waiting import until


class Watch(feeds.Watch):
    """A running feed, its tails and its status pages."""

    @property
    def page(self) -> StatusPane:
        return self.host().pages[0]

    async def shows(self, condition: Callable[[], object]) -> None:
        try:
            await until(condition)
        except TimeoutError as error:
            raise AssertionError((error, self.changes[-5:], self.host().pages)) from None


@asynccontextmanager
async def watching(
    name: str, ssh_config: Path, *pages: StatusPage, processes: tuple[str, ...] = (), tail: tuple[str, ...] = ()
) -> AsyncIterator[Watch]:
    """Watch a host of the lab over SSH during the block."""
    config = HostConfig(name=name, ssh=name, interval=0.3, processes=processes, status=pages, tail=tail)
    watch = Watch(config, ssh_config, None)
    work = (watch.feed.run(), *pane_feeds(watch.feed, watch.clock, watch.events.append))
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield watch
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
