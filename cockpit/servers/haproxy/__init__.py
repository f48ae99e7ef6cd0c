"""HAProxy, as Debian packages it."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.haproxy.editor import HaproxyGrammar
from cockpit.servers.haproxy.status import STATUS
from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind

_CONFIG = "/etc/haproxy/haproxy.cfg"
# Debian's rsyslog writes HAProxy's messages there.
_LOG = "/var/log/haproxy.log"


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    count = inventory.count("haproxy")
    if not count:
        return
    main = ConfigFile("haproxy", _CONFIG, f"haproxy -c -f {_CONFIG}", "service haproxy reload")
    candidates = (
        *main.candidates("maxconn nbthread", usual=True, section="global"),
        *main.candidates("timeout connect, timeout client, timeout server", usual=True, section="defaults"),
        *main.candidates("timeout http-keep-alive, timeout http-request, retries", usual=False, section="defaults"),
    )
    yield RunningServer("HAProxy", "haproxy", count, inventory.ports("haproxy"), candidates, inventory.tails(_LOG))


KIND = ServerKind(
    name="haproxy",
    processes=("haproxy",),
    discover=_discover,
    files=(_LOG,),
    grammar=HaproxyGrammar(),
    status=(STATUS,),
    failure=r"\[ALERT\]\s*\(\d+\)\s*: (.*)",
    correction=r"\[WARNING\].*",
    reload_replaces=("haproxy",),
)
