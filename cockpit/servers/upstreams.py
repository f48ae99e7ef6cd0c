"""The upstream servers in a proxy's configuration, and the processes that listen on their addresses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from cockpit.servers.inventory import Inventory, safe_path
from cockpit.servers.kind import RunningServer

_SOCKET = re.compile(r"(?:^|unix[:@/])(/[^\s:|;$]+)")
_ADDRESS = re.compile(r"(?:([a-z0-9+]+)://)?(\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(\d{1,5}))?(?:/\S*)?")
_NAMED = re.compile(r"(?m)(?:^|[;{}\s])upstream\s+([^\s{]+)")
_PORTS = {"https": 443, "wss": 443, "ajp": 8009}
# Maximum characters of an address.
_MAX_CHARS = 300


class Upstream(NamedTuple):
    """An upstream address in a proxy's configuration: the `path` of a Unix socket, or host and port."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def words(self) -> str:
        return self.path or f"{self.host}:{self.port}"


class Hop(NamedTuple):
    """A step from a proxy to an upstream server. `server` is the known server on this host that listens there, `name`
    the name of the listening process, "" if unknown. `is_here`: the address is on this host."""

    front: str
    upstream: Upstream
    is_here: bool
    server: RunningServer | None = None
    name: str = ""

    @property
    def words(self) -> str:
        behind = self.server.title if self.server else self.name
        return f"{self.front} -> {f'{behind} ' if behind else ''}{self.upstream.words}"


def upstreams(text: str, pattern: re.Pattern[str]) -> tuple[Upstream, ...]:
    """Return the upstream addresses in a configuration without comments. Names of `upstream` blocks are left out: the
    addresses in the blocks match the pattern, too. So are addresses with variables."""
    blocks = {name.lower() for name in _NAMED.findall(text)}
    addresses = (_upstream(word) for word in _written(text, pattern))
    return tuple(dict.fromkeys(address for address in addresses if address is not None and address.host not in blocks))


def with_variable(text: str, pattern: re.Pattern[str]) -> str:
    """Return the first address with a variable, which only the running server can resolve; "" if there is none."""
    return next((word for word in _written(text, pattern) if "$" in word or "%{" in word), "")


def _written(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for match in pattern.finditer(text):
        yield from ":".join(filter(None, match.groups())).split()


def _upstream(written: str) -> Upstream | None:
    text = written.strip("\"'")
    if len(text) > _MAX_CHARS:
        return None
    if socket := _SOCKET.search(text):
        path = "" if "$" in text else socket_path(socket[1])
        return Upstream(path=path) if path else None
    address = _ADDRESS.fullmatch(text)
    if address is None or address[1] == "balancer":
        return None
    port = int(address[3]) if address[3] else _PORTS.get(address[1] or "", 80)
    return Upstream(address[2].strip("[]").lower(), port) if 0 < port < 1 << 16 else None


def socket_path(written: str) -> str:
    """Return the path of a Unix socket as the kernel lists it; "" if it is no printable absolute path."""
    path = safe_path(written)
    return f"/run{path[8:]}" if path.startswith("/var/run/") else path


def hop_to(front: str, upstream: Upstream, inventory: Inventory, servers: Sequence[RunningServer]) -> Hop:
    """Return the step from a proxy to an upstream server."""
    if not upstream.path and not _is_here(upstream.host, inventory):
        return Hop(front, upstream, is_here=False)
    if upstream.path:
        listening = {listener.pid: listener.name for listener in inventory.sockets if listener.path == upstream.path}
    else:
        at_port = [listener for listener in inventory.listening if listener.port == upstream.port]
        hosts = ("", "127.0.0.1", "::1") if upstream.host == "localhost" else ("", upstream.host)
        at_host = [listener for listener in at_port if listener.address in hosts]
        listening = {listener.pid: listener.name for listener in at_host or at_port}
    server = next((server for server in servers if _serves(server, upstream, listening, inventory)), None)
    return Hop(front, upstream, True, server, min(listening.values(), default=""))


def _serves(server: RunningServer, upstream: Upstream, listening: Iterable[int], inventory: Inventory) -> bool:
    if server.master is None:
        return upstream.port in server.ports
    return not inventory.tree(server.master.pid).isdisjoint(listening)


def _is_here(host: str, inventory: Inventory) -> bool:
    if host == "localhost" or host in inventory.addresses:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
