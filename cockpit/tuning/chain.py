"""The chain of servers behind the target's server, followed by the upstream addresses in their configurations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import UPSTREAMS
from cockpit.servers.upstreams import Hop, hop_to, upstreams, with_variable
from cockpit.tuning.discovery.host_inventory import Configuration

# Maximum number of steps of a chain.
_MAX_HOPS = 50


class Chain(NamedTuple):
    """The steps from the target's server to the servers behind it, nearest first.

    `uncertainty` is the reason why the chain may be incomplete, "" if it is complete.
    """

    hops: tuple[Hop, ...] = ()
    uncertainty: str = ""

    @property
    def servers(self) -> tuple[RunningServer, ...]:
        """The known servers behind the target's server."""
        return tuple(hop.server for hop in self.hops if hop.server)


async def follow(
    configuration: Callable[[RunningServer], Awaitable[Configuration]],
    inventory: Inventory,
    servers: Sequence[RunningServer],
    target: RunningServer,
    port: int,
) -> Chain:
    """Follow the chain from the server `target` on `port`; `configuration` reads a server's configuration.

    Raises HostError.
    """
    steps: list[Hop] = []
    gaps: list[str] = []
    fronts = [(target, f"{target.title} :{port}")]
    for server, front in fronts:
        pattern = UPSTREAMS.get(server.startup.kind) if server.startup else None
        if server.startup is None or pattern is None:
            continue
        if server.startup.uncertainty:
            # The paths of its files are only assumed.
            gaps.append(f"{server.title}: {server.startup.uncertainty}")
            continue
        read = await configuration(server)
        gaps += [f"{server.title}: {gap}" for gap in read.read.gaps[:1]]
        if variable := with_variable(read.text, pattern):
            gaps.append(f"{server.title} passes requests to {variable}")
        for hop in (hop_to(front, each, inventory, servers) for each in upstreams(read.text, pattern)):
            if hop.server is server:
                continue
            if len(steps) >= _MAX_HOPS:
                gaps.append(f"only the first {_MAX_HOPS} steps were followed")
                break
            steps.append(hop)
            if hop.server and all(hop.server is not known for known, _ in fronts):
                fronts.append((hop.server, f"{hop.server.title} {hop.upstream.words}"))
    return Chain(tuple(steps), next(iter(gaps), ""))


def server_on_port(servers: Sequence[RunningServer], port: int) -> RunningServer | None:
    """Return the server that listens on a port; if no listener is known, the only server; None: unknown."""
    listening = [server for server in servers if port in server.ports]
    return listening[0] if listening else servers[0] if len(servers) == 1 else None
