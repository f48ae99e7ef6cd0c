"""The feed of one status page, which is requested at the host's interval while the host is up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.internal_error import internal_error
from cockpit.hosts.shell import Shell
from cockpit.hosts.status.fetch import HttpPage, fetch, verifying_context
from cockpit.hosts.status.unix_socket import ask_socket
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, StatusRead
from cockpit.model.host.samples import StatusKind, StatusPage
from cockpit.model.text import sanitize
from cockpit.servers.registry import STATUS_PAGES
from cockpit.servers.status import PAGE_BYTES, PAGE_LINES, NotThePageError, PageMetrics, bounded

# Minimum interval (s) between two requests, and timeout (s) of a response.
PACE = 1.0
TIMEOUT = 5.0


class PageFeed:
    """One status page of a host; its events go to `emit`, in session time."""

    def __init__(self, feed: HostFeed, place: int, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._place = place
        self._page = feed.config.status[place]
        self._tls = verifying_context() if self._page.url.startswith("https:") else None
        self._clock = clock
        self._emit = emit

    async def run(self) -> None:
        """Request the page until cancelled; an error becomes an event."""
        interval = max(PACE, self._feed.config.interval)
        while True:
            shell = await self._feed.up()
            began = self._clock.now()
            try:
                self._report(began, await read_page(shell, self._page, self._tls))
            except HostError as error:
                self._report(began, PageMetrics({}, {}), error.problem)
            except Exception as error:
                self._report(began, PageMetrics({}, {}), internal_error(error))
            await asyncio.sleep(max(0.0, began + interval - self._clock.now()))

    def _report(self, began: float, page: PageMetrics, detail: str = "") -> None:
        t = (began + self._clock.now()) / 2
        host = self._feed.config.name
        self._emit(StatusRead(t=t, host=host, page=self._place, values=page.values, text=page.text, detail=detail))


async def read_page(shell: Shell, page: StatusPage, tls: ssl.SSLContext | None = None) -> PageMetrics:
    """Request a page and return its metrics. Raises HostError with the cause and the fix."""
    if page.url.startswith("unix:"):
        path, kind = page.url.removeprefix("unix:"), STATUS_PAGES[page.kind]
        return parse_page(page.kind, await ask_socket(shell, path, kind.command, TIMEOUT, kind.program))
    fetched = await fetch(shell, page.url, page.auth, TIMEOUT, tls)
    if fetched.status != 200:
        raise HostError(_refused(page, fetched))
    return parse_page(page.kind, fetched.body)


def parse_page(kind: StatusKind, body: bytes) -> PageMetrics:
    """Parse the metrics of a page, within limits. Raises HostError if it is not a page of that kind."""
    # Parsing is part of the event loop.
    if len(body) > PAGE_BYTES or body.count(b"\n") > PAGE_LINES:
        raise HostError(f"the page has more than {PAGE_BYTES >> 20} MiB or {PAGE_LINES} lines")
    try:
        return bounded(STATUS_PAGES[kind].parse(body.decode("utf-8", "replace")))
    except NotThePageError as error:
        raise HostError(str(error)) from None


def _refused(page: StatusPage, fetched: HttpPage) -> str:
    kind = STATUS_PAGES[page.kind]
    match fetched.status:
        case 401 if page.auth:
            return "401: wrong user or password; correct auth"
        case 401:
            return '401: login required; set auth = "user:password"'
        case 403:
            return f"403: {kind.forbidden or kind.hint}"
        case 404:
            return f"404: {kind.not_found or kind.hint}"
        case status if fetched.location:
            return f"{status}: redirected to {sanitize(fetched.location, 200)}; redirects are not followed"
        case status:
            return f"{status} instead of the page"
