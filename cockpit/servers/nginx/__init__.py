"""nginx, as Debian packages it."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind
from cockpit.servers.nginx.editor import NginxGrammar
from cockpit.servers.nginx.logs import parse as parse_access
from cockpit.servers.nginx.status import STATUS

_LOG = "/var/log/nginx/error.log"


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    count = inventory.count("nginx")
    if not count:
        return
    log = inventory.readable(_LOG)
    main = ConfigFile("nginx", "/etc/nginx/nginx.conf", "nginx -t", "nginx -s reload", log=log)
    candidates = (
        *main.candidates("worker_processes", usual=True),
        *main.candidates("worker_connections", usual=True, section="events {"),
        *main.candidates("keepalive_timeout", usual=True, section="http {"),
        *main.candidates("keepalive_requests", usual=False, section="http {"),
        *main.candidates("sendfile gzip", usual=False, section="http {", values="on off"),
    )
    yield RunningServer("nginx", "nginx", count, inventory.ports("nginx"), candidates, inventory.tails(_LOG))


KIND = ServerKind(
    name="nginx",
    processes=("nginx",),
    discover=_discover,
    files=(_LOG,),
    grammar=NginxGrammar(),
    status=(STATUS,),
    error_logs=(_LOG,),
    failure=r"\[(?:emerg|alert|crit)\]\s*(?:\d+#\d+:\s*)?(.*)",
    correction=r"\[(?:warn|notice|emerg)\].*",
    chatter=r"protocol options redefined",
    reload_replaces=("nginx",),
    access_log=parse_access,
)
