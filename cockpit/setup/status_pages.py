"""The status pages in the configurations of a host's servers: each is requested on the host before a draft uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.hosts.shell import Shell
from cockpit.hosts.status.feed import read_page
from cockpit.model.errors import HostError
from cockpit.model.host.samples import StatusPage
from cockpit.model.text import sanitize
from cockpit.servers.configured_pages import ConfiguredPage
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import PAGES, SITES, UPSTREAMS
from cockpit.servers.site_logs import port_of_address
from cockpit.servers.upstreams import socket_path, upstreams
from cockpit.tuning.discovery.servers import DiscoveredHost

# Maximum number of pages per server, and of URLs that are requested for a page.
_PAGES, _URLS = 10, 4
# Maximum characters of a note.
_CHARS = 600


class CheckedPage(NamedTuple):
    """A status page in the configuration of a `server`. `page`: None if it cannot be read, as `note` says."""

    server: RunningServer
    page: StatusPage | None
    note: str = ""


async def checked_pages(
    shell: Shell, servers: Iterable[RunningServer], host: DiscoveredHost, url: str
) -> list[CheckedPage]:
    """Request the configured status pages of servers; errors are in the notes."""
    pages = [(server, page) for server in servers for page in islice(_configured(server, host), _PAGES)]
    return [await _checked(shell, server, page, host, url) for server, page in pages]


def _configured(server: RunningServer, host: DiscoveredHost) -> Iterator[ConfiguredPage]:
    """Yield the pages of a server; a server in a container has a network of its own."""
    pages = PAGES.get(server.startup.kind) if server.startup else None
    read = host.configurations.get(server.master) if server.master and server.master.origin != "container" else None
    yield from pages(read.texts, server.ports) if pages and read else ()


async def _checked(
    shell: Shell, server: RunningServer, page: ConfiguredPage, host: DiscoveredHost, target: str
) -> CheckedPage:
    name = (urlsplit(target).hostname or "").lower()
    sites = _passing(page, host) if page.fastcgi else [(page, server.ports)]
    urls = dict.fromkeys(url for site, ports in sites for url in site.urls(name, ports, host.addresses))
    reasons = [] if urls else [page.obstacle or _unreachable(page)]
    for url in islice(urls, _URLS):
        status = StatusPage(kind=page.kind, url=url)
        try:
            read = await read_page(shell, status)
        except HostError as error:
            reasons.append(f"{url}: {error.problem}")
            continue
        if not page.pool or read.text.get("pool") == page.pool:
            return CheckedPage(server, status)
        reasons.append(f"{url}: the page of another pool")
    if urls and page.names and not page.has_name(name):
        reasons.append(f"its site has the name {page.names[0]}, not {name}")
    via = f"pool {page.pool} serves it by FastCGI, cockpit reads it through a web server; " if page.pool else ""
    place = f"status page of {server.title} in {page.file}:{page.line}"
    return CheckedPage(server, None, sanitize(f"{place} is not used: {via}{'; '.join(reasons)}", _CHARS))


def _unreachable(page: ConfiguredPage) -> str:
    if page.pool:
        return f"no web server on this host passes requests to {page.fastcgi or 'an unknown address'}"
    return f"it cannot be requested on this host at {', '.join(page.listens) or 'an unknown address'}"


def _passing(page: ConfiguredPage, host: DiscoveredHost) -> Iterator[tuple[ConfiguredPage, Sequence[int]]]:
    """Yield the page at each site of the servers that pass requests to its FastCGI address, and their ports."""
    path, port = socket_path(page.fastcgi), port_of_address(page.fastcgi, 0)
    for server in host.servers:
        kind, read = server.startup.kind if server.startup else "", host.configurations.get(server.master)
        if read is None or kind not in SITES or kind not in UPSTREAMS:
            continue
        passed = upstreams(read.text, UPSTREAMS[kind])
        if any(each.path == path if path else each.port == port for each in passed):
            for site in SITES[kind](read.texts.values(), "", {}):
                listens = tuple(f"*:{port}" for port in site.ports or server.ports)
                yield page._replace(listens=listens, names=site.names), server.ports
