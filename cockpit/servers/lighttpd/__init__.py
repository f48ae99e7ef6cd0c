"""lighttpd, as Debian packages it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind, StatusAddress
from cockpit.servers.lighttpd.editor import LighttpdGrammar
from cockpit.servers.lighttpd.status import STATUS

_CONFIG = "/etc/lighttpd/lighttpd.conf"
_LOG = "/var/log/lighttpd/error.log"
_TEXTS = (_CONFIG, "/etc/lighttpd/conf-enabled/*.conf")
_STATUS_URL = re.compile(r'(?m)^[ \t]*status\.status-url[ \t]*=[ \t]*"(/[\w/.-]*)"')


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
    page = _STATUS_URL.search(inventory.text(*_TEXTS))
    url = f"http://localhost:{ports[0] if ports else 80}{page[1]}?auto" if page else ""
    status = (StatusAddress("lighttpd", url),) if url else ()
    yield RunningServer("lighttpd", "lighttpd", count, ports, candidates, inventory.tails(_LOG), status)


KIND = ServerKind(
    name="lighttpd",
    processes=("lighttpd",),
    discover=_discover,
    files=(_LOG,),
    texts=_TEXTS,
    grammar=LighttpdGrammar(),
    status=(STATUS,),
    error_logs=(_LOG,),
    correction=r"\(\w+\.c\.\d+\) .*",
    # doc/initscripts.txt, https://redmine.lighttpd.net/issues/2785: a reload (SIGUSR1) keeps the sockets and the user
    # of the start, and does not work in a chroot.
    read_at_start=frozenset({"server.port", "server.bind", "server.username", "server.groupname", "server.chroot"}),
)
