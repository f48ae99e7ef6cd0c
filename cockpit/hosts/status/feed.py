"""The feed of one status page: asked for at the host's pace while the host is up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from httpcore import default_ssl_context

from cockpit.hosts.fault import fault
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.fetch import HttpPage, fetch
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead
from cockpit.model.hosts import StatusKind, StatusPage
from cockpit.model.text import neutral
from cockpit.servers.registry import STATUS_PAGES
from cockpit.servers.status import NotThePageError, PageMetrics, bounded

# Seconds between two readings, or the host's interval where that is longer; and for one answer.
PACE = 1.0
PATIENCE = 5.0


class PageFeed:
    """One status page of a host; its events go to `emit`, on the cockpit's clock."""

    def __init__(self, feed: HostFeed, place: int, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._place = place
        self._page = feed.config.status[place]
        self._tls = default_ssl_context() if self._page.url.startswith("https:") else None
        self._clock = clock
        self._emit = emit

    async def run(self) -> None:
        """Ask at its pace until cancelled. Whatever goes wrong is an event, and the page is asked for again."""
        interval = max(PACE, self._feed.config.interval)
        while True:
            shell = await self._feed.up()
            began = self._clock.now()
            try:
                said = await read_page(shell, self._page, self._tls)
            except HostError as error:
                self._say(began, PageMetrics({}, {}), error.problem)
            except Exception as error:
                self._say(began, PageMetrics({}, {}), fault(error))
            else:
                self._say(began, said)
            await asyncio.sleep(max(0.0, began + interval - self._clock.now()))

    def _say(self, began: float, said: PageMetrics, detail: str = "") -> None:
        """Placed between question and answer."""
        t = (began + self._clock.now()) / 2
        host = self._feed.config.name
        self._emit(StatusRead(t=t, host=host, page=self._place, values=said.values, text=said.text, detail=detail))


async def read_page(shell: Shell, page: StatusPage, tls: ssl.SSLContext | None = None) -> PageMetrics:
    """What the page says. Raises HostError naming the cause and the way out."""
    fetched = await fetch(shell, page.url, page.auth, PATIENCE, tls)
    if fetched.status != 200:
        raise HostError(_refused(page, fetched))
    return parse_page(page.kind, fetched.body)


def parse_page(kind: StatusKind, body: bytes) -> PageMetrics:
    """What a page says, as much of it as is kept. Raises HostError if it is not a page of that kind."""
    try:
        return bounded(STATUS_PAGES[kind].parse(body.decode("utf-8", "replace")))
    except NotThePageError as error:
        raise HostError(str(error)) from None


def _refused(page: StatusPage, fetched: HttpPage) -> str:
    match fetched.status:
        case 401 if page.auth:
            return "401: the server does not take this user and password"
        case 401:
            return '401: the server wants a user; give auth = "user:password"'
        case 403:
            return f"403: {STATUS_PAGES[page.kind].forbidden}"
        case 404:
            return f"404: {STATUS_PAGES[page.kind].not_found}"
        case status if fetched.location:
            return f"{status}: redirected to {neutral(fetched.location, 200)}; redirects are not followed"
        case status:
            return f"{status} instead of the page"
