"""The chain of servers behind the target's: each one's configuration, and the processes at the addresses in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import UPSTREAMS
from cockpit.servers.upstreams import Hop, hops, upstreams, with_variable
from cockpit.tuning.host_inventory import Configuration

# Steps of a chain that are followed.
_MOST = 50


class Chain(NamedTuple):
    """The steps from the target's server on, nearest first. `doubt` says why there may be others, "" if all are
    known."""

    hops: tuple[Hop, ...] = ()
    doubt: str = ""

    @property
    def servers(self) -> tuple[RunningServer, ...]:
        """The known servers behind the target's."""
        return tuple(hop.server for hop in self.hops if hop.server)


async def follow(
    configuration: Callable[[RunningServer], Awaitable[Configuration]],
    inventory: Inventory,
    servers: Sequence[RunningServer],
    target: RunningServer,
    port: int,
) -> Chain:
    """`configuration` reads that of a server. Raises HostError if it does."""
    found: list[Hop] = []
    doubts: list[str] = []
    fronts = [(target, f"{target.title} :{port}")]
    for server, front in fronts:
        pattern = UPSTREAMS.get(server.startup.kind) if server.startup else None
        if server.startup is None or pattern is None:
            continue
        if server.startup.doubt:
            # Its files are only assumed.
            doubts.append(f"{server.title}: {server.startup.doubt}")
            continue
        own = await configuration(server)
        doubts += [f"{server.title}: {gap}" for gap in own.read.gaps[:1]]
        if variable := with_variable(own.text, pattern):
            doubts.append(f"{server.title} passes requests to {variable}")
        for hop in hops(front, upstreams(own.text, pattern), inventory, servers):
            if hop.server is server:
                continue
            if len(found) >= _MOST:
                doubts.append(f"only the first {_MOST} steps were followed")
                break
            found.append(hop)
            if hop.server and all(hop.server is not known for known, _ in fronts):
                fronts.append((hop.server, f"{hop.server.title} {hop.upstream.words}"))
    return Chain(tuple(found), next(iter(doubts), ""))


def serving(servers: Sequence[RunningServer], port: int) -> RunningServer | None:
    """The server that listens on a port; the only server, if none is known to."""
    listening = [server for server in servers if port in server.ports]
    return listening[0] if listening else servers[0] if len(servers) == 1 else None
