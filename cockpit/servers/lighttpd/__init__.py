"""lighttpd, as Debian packages it."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind
from cockpit.servers.lighttpd.editor import LighttpdGrammar
from cockpit.servers.lighttpd.status import STATUS

_CONFIG = "/etc/lighttpd/lighttpd.conf"
_LOG = "/var/log/lighttpd/error.log"


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    count = inventory.count("lighttpd")
    if not count:
        return
    log = inventory.readable(_LOG)
    main = ConfigFile("lighttpd", _CONFIG, f"lighttpd -tt -f {_CONFIG}", "service lighttpd reload", log=log)
    candidates = (
        *main.candidates("server.max-connections server.max-fds server.max-keep-alive-requests", usual=True),
        *main.candidates("server.max-keep-alive-idle server.max-worker", usual=False),
        *main.candidates("server.stat-cache-engine", usual=False, values="simple inotify disable"),
        *main.candidates("server.network-backend", usual=False, values="writev sendfile"),
    )
    ports = inventory.ports("lighttpd")
    yield RunningServer("lighttpd", "lighttpd", count, ports, candidates, inventory.tails(_LOG))


KIND = ServerKind(
    name="lighttpd",
    processes=("lighttpd",),
    discover=_discover,
    files=(_LOG,),
    grammar=LighttpdGrammar(),
    status=(STATUS,),
    error_logs=(_LOG,),
    correction=r"\(\w+\.c\.\d+\) .*",
)
