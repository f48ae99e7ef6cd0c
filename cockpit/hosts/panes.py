"""What is shown of a host beside its probe: its tails and its status pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.tails import HostTail
from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent


def pane_feeds(feed: HostFeed, clock: Clock, emit: Callable[[AnyEvent], None]) -> list[Coroutine[Any, Any, None]]:
    """One for each tail and page of the host, to be run beside its feed until cancelled."""
    feeds = [HostTail(feed, place, clock, emit).run() for place in range(len(feed.config.tail))]
    if feed.config.status:
        # httpx takes long to load, and most sessions ask for no page.
        from cockpit.hosts.status.feed import PageFeed

        feeds += [PageFeed(feed, place, clock, emit).run() for place in range(len(feed.config.status))]
    return feeds
