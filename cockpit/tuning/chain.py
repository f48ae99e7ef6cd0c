"""The chain of servers behind the target's: each one's configuration, and the processes at the addresses in it."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import UPSTREAMS
from cockpit.servers.upstreams import Hop, Upstream, hops, upstreams
from cockpit.tuning.host_inventory import configuration_text
from cockpit.tuning.remote import Remote

# Steps of a chain that are followed.
_MOST = 50


async def follow(
    remote: Remote, inventory: Inventory, servers: Sequence[RunningServer], target: RunningServer, port: int
) -> tuple[Hop, ...]:
    """The steps from the target's server on, nearest first. Raises HostError."""
    found: list[Hop] = []
    fronts = [(target, f"{target.title} :{port}")]
    for server, front in fronts:
        for hop in hops(front, await _upstreams(remote, server), inventory, servers):
            if hop.server is server or len(found) >= _MOST:
                continue
            found.append(hop)
            if hop.server and all(hop.server is not known for known, _ in fronts):
                fronts.append((hop.server, f"{hop.server.title} {hop.upstream.words}"))
    return tuple(found)


async def _upstreams(remote: Remote, server: RunningServer) -> tuple[Upstream, ...]:
    """The addresses in a server's configuration; none if its files are only assumed."""
    startup = server.startup
    pattern = UPSTREAMS.get(startup.kind) if startup and not startup.doubt else None
    return upstreams((await configuration_text(remote, server))[0], pattern) if pattern else ()
