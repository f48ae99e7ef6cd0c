"""HAProxy, as Debian packages it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.servers.haproxy.editor import SECTIONS, HaproxyGrammar
from cockpit.servers.haproxy.logs import parse as parse_access
from cockpit.servers.haproxy.status import STATUS
from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind, StatusAddress

_CONFIG = "/etc/haproxy/haproxy.cfg"
# Debian's rsyslog writes HAProxy's messages there.
_LOG = "/var/log/haproxy.log"
_BIND = re.compile(r"(\*|\[?::\]?|[0-9.]*):(\d{1,5})")
_URI = re.compile(r"/[\w/.?&=-]*")
_SOCKET = re.compile(r"/[\w/.-]+")


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
    ports, tails = inventory.ports("haproxy"), inventory.tails(_LOG)
    status = _statistics(inventory.text(_CONFIG), inventory.user == "root")
    yield RunningServer("HAProxy", "haproxy", count, ports, candidates, tails, status)


def _statistics(config: str, is_root: bool) -> tuple[StatusAddress, ...]:
    """The statistics page without a password, if a section with its own address has it, else root's stats socket."""
    sections: list[list[list[str]]] = []
    for line in config.splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].encode() in SECTIONS:
            sections.append([words])
        elif words and sections:
            sections[-1].append(words)
    sockets = []
    for (kind, *_), *lines in sections:
        stats = {words[1]: (words[2:] or [""])[0] for words in lines if words[0] == "stats" and len(words) > 1}
        uri = stats.get("uri", "/haproxy?stats")
        if kind == "global" and is_root and _SOCKET.fullmatch(stats.get("socket", "")):
            sockets.append(f"unix:{stats['socket']}")
        if kind not in ("frontend", "listen") or not {"enable", "uri"} & stats.keys() or "auth" in stats:
            continue
        for bind in (words for words in lines if words[0] == "bind" and len(words) > 1):
            address = _BIND.fullmatch(bind[1])
            if address and _URI.fullmatch(uri):
                host = address[1] if address[1].strip("0.*:[]") else "localhost"
                scheme = "https" if "ssl" in bind else "http"
                return (StatusAddress("haproxy", f"{scheme}://{host}:{address[2]}{uri};csv"),)
    return tuple(StatusAddress("haproxy", socket) for socket in sockets[:1])


KIND = ServerKind(
    name="haproxy",
    processes=("haproxy",),
    discover=_discover,
    files=(_LOG,),
    texts=(_CONFIG,),
    grammar=HaproxyGrammar(),
    status=(STATUS,),
    failure=r"\[ALERT\]\s*\(\d+\)\s*: (.*)",
    correction=r"\[WARNING\].*",
    reload_replaces=("haproxy",),
    access_log=parse_access,
)
