"""The chain of servers behind the target's: each one's configuration, and the processes at the addresses in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import UPSTREAMS
from cockpit.servers.upstreams import Hop, Upstream, hops, upstreams
from cockpit.tuning.host_inventory import Configuration

# Steps of a chain that are followed.
_MOST = 50


def follow(
    configurations: Mapping[Process | None, Configuration],
    inventory: Inventory,
    servers: Sequence[RunningServer],
    target: RunningServer,
    port: int,
) -> tuple[Hop, ...]:
    """The steps from the target's server on, nearest first. `configurations` are those of the master processes."""
    found: list[Hop] = []
    fronts = [(target, f"{target.title} :{port}")]
    for server, front in fronts:
        for hop in hops(front, _upstreams(server, configurations[server.master]), inventory, servers):
            if hop.server is server or len(found) >= _MOST:
                continue
            found.append(hop)
            if hop.server and all(hop.server is not known for known, _ in fronts):
                fronts.append((hop.server, f"{hop.server.title} {hop.upstream.words}"))
    return tuple(found)


def _upstreams(server: RunningServer, configuration: Configuration) -> tuple[Upstream, ...]:
    """The addresses in a server's configuration; none if its files are only assumed."""
    startup = server.startup
    pattern = UPSTREAMS.get(startup.kind) if startup and not startup.doubt else None
    return upstreams(configuration.text, pattern) if pattern else ()
