"""The locations with `SetHandler server-status` in the configuration of Apache. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.servers.apache.grammar import ConfigBlock
from cockpit.servers.apache.sites import directives, host_of
from cockpit.servers.apache.status import STATUS
from cockpit.servers.apache.virtual_hosts import KIND
from cockpit.servers.configured_pages import TLS, ConfiguredPage


def pages(texts: Mapping[str, str], ports: Sequence[int]) -> Iterator[ConfiguredPage]:
    """Yield the pages; see ServerKind. A location outside of virtual hosts is on all `ports`."""
    for file, text in texts.items():
        names: dict[ConfigBlock | None, list[str]] = {}
        tls: set[ConfigBlock | None] = set()
        inside: list[tuple[ConfigBlock | None, ConfiguredPage]] = []
        for within, name, arguments, line in directives(text):
            site = next((block for block in within if block.name == KIND), None)
            if name == "sethandler" and arguments[0].lower() == "server-status":
                inside.append((site, _page(within, file, line)))
            elif name in ("servername", "serveralias"):
                names.setdefault(site, []).extend(map(host_of, arguments))
            elif name == "sslengine" and arguments[0].lower() == "on":
                tls.add(site)
        for site, page in inside:
            addresses = site.argument.split() if site else map(str, ports)
            listens = tuple(f"{address}{TLS if site in tls else ''}" for address in addresses)
            yield page._replace(listens=listens, names=tuple(names.get(site, ())))


def _page(within: Sequence[ConfigBlock], file: str, line: int) -> ConfiguredPage:
    page = ConfiguredPage(STATUS.name, file, line, query="?auto")
    block = next((block for block in reversed(within) if not block.name.startswith("if")), None)
    if block is None or block.name != "location" or block.argument.startswith("~"):
        return page._replace(problem="it is not in a <Location> with a plain path")
    return page._replace(path=block.argument.strip("\"'"))
