"""The locations with `stub_status` in the configuration of nginx. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.servers.blocks import BlockPath
from cockpit.servers.configured_pages import TLS, ConfiguredPage
from cockpit.servers.nginx.sites import directives, unquoted
from cockpit.servers.nginx.status import STATUS


def pages(texts: Mapping[str, str], ports: Sequence[int]) -> Iterator[ConfiguredPage]:
    """Yield the pages; see ServerKind."""
    for file, text in texts.items():
        inside, names, listens = list[ConfiguredPage](), list[str](), list[str]()
        for within, name, arguments, line in directives(text):
            if name == "stub_status":
                inside.append(_page(within, file, line))
            elif name == "server_name":
                names += arguments
            elif name == "listen" and arguments:
                listens.append(f"{arguments[0]}{TLS if 'ssl' in arguments else ''}")
            elif name == "}" and within[-1:] == ("server",):
                site = (tuple(listens or ["80"]), tuple(names))
                yield from (page._replace(listens=site[0], names=site[1]) for page in inside)
                inside, names, listens = [], [], []
        yield from (page._replace(problem="its server block is in another file") for page in inside)


def _page(within: BlockPath, file: str, line: int) -> ConfiguredPage:
    """Return the page of a location; of a `server` block without one, of any path."""
    words = next((header.split() for header in reversed(within) if header.startswith("location ")), ["location", "/"])
    page = ConfiguredPage(STATUS.name, file, line, unquoted(words[-1]))
    return page._replace(problem="its location is a regular expression") if words[1] in ("~", "~*") else page
