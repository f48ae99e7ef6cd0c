"""squid, as Debian packages it."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind, StatusAddress
from cockpit.servers.squid.editor import SquidGrammar
from cockpit.servers.squid.logs import parse as parse_access
from cockpit.servers.squid.status import COUNTERS, INFO

_LOG = "/var/log/squid/cache.log"
_NAMES = ("squid", "squid-*", "(squid*")


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    count = inventory.count(*_NAMES)
    if not count:
        return
    main = ConfigFile("squid", "/etc/squid/squid.conf", "squid -k parse", "squid -k reconfigure")
    candidates = (
        *main.candidates("cache_mem maximum_object_size_in_memory", usual=True),
        *main.candidates("maximum_object_size cache_replacement_policy memory_replacement_policy", usual=False),
    )
    ports = inventory.ports(*_NAMES)
    page = StatusAddress("squid", f"http://localhost:{ports[0] if ports else 3128}{COUNTERS.url}")
    yield RunningServer("squid", "squid*", count, ports, candidates, inventory.tails(_LOG), (page,))


KIND = ServerKind(
    name="squid",
    processes=_NAMES,
    discover=_discover,
    files=(_LOG,),
    grammar=SquidGrammar(),
    status=(COUNTERS, INFO),
    correction=r"WARNING: .*",
    # Squid's warning on a reconfigure: changing the workers requires a restart of the proxy.
    read_at_start=frozenset({"workers"}),
    access_log=parse_access,
)
