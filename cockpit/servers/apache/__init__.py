"""Apache's httpd, as Debian and Red Hat package it."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.servers.apache.editor import ApacheGrammar
from cockpit.servers.apache.logs import parse as parse_access
from cockpit.servers.apache.status import STATUS
from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind, StatusAddress

MODULES = "/etc/apache2/mods-enabled"
_MPMS = ("prefork", "worker", "event")
_DEBIAN_LOG, _RED_HAT_LOG = "/var/log/apache2/error.log", "/var/log/httpd/error_log"
_COMMANDS = ("apachectl -t", "apachectl graceful")
_PREFORK = "MinSpareServers MaxSpareServers MaxRequestWorkers MaxConnectionsPerChild"
_THREADS = "MinSpareThreads MaxSpareThreads MaxRequestWorkers MaxConnectionsPerChild"


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    if inventory.count("apache2"):
        yield _debian(inventory)
    if inventory.count("httpd"):
        yield _red_hat(inventory)


def _debian(inventory: Inventory) -> RunningServer:
    mpm = next((mpm for mpm in _MPMS if f"{MODULES}/mpm_{mpm}.load" in inventory.files), "event")
    own = ConfigFile("apache", f"/etc/apache2/mods-available/mpm_{mpm}.conf", *_COMMANDS)
    main = ConfigFile("apache", "/etc/apache2/apache2.conf", *_COMMANDS)
    more = "StartServers" if mpm == "prefork" else "StartServers ThreadsPerChild"
    candidates = (
        *own.candidates(_PREFORK if mpm == "prefork" else _THREADS, usual=True),
        *own.candidates(more, usual=False),
        *main.candidates("KeepAlive", usual=False, values="On Off"),
        *main.candidates("KeepAliveTimeout MaxKeepAliveRequests", usual=False),
    )
    ports = inventory.ports("apache2")
    has_page = f"{MODULES}/status.load" in inventory.files and 80 in (ports or (80,))
    status = (StatusAddress("apache", f"http://localhost{STATUS.url}"),) if has_page else ()
    tails = inventory.tails(_DEBIAN_LOG)
    return RunningServer(f"Apache ({mpm})", "apache2", inventory.count("apache2"), ports, candidates, tails, status)


def _red_hat(inventory: Inventory) -> RunningServer:
    main = ConfigFile("apache", "/etc/httpd/conf/httpd.conf", *_COMMANDS)
    candidates = (
        *main.candidates("MaxRequestWorkers MaxConnectionsPerChild", usual=True),
        *main.candidates("KeepAlive", usual=True, values="On Off"),
        *main.candidates("KeepAliveTimeout MaxKeepAliveRequests", usual=False),
    )
    count, ports = inventory.count("httpd"), inventory.ports("httpd")
    return RunningServer("Apache (httpd)", "httpd", count, ports, candidates, inventory.tails(_RED_HAT_LOG))


KIND = ServerKind(
    name="apache",
    processes=("apache2", "httpd"),
    discover=_discover,
    files=(
        *(f"{MODULES}/mpm_{mpm}.load" for mpm in _MPMS),
        f"{MODULES}/status.load",
        "/etc/httpd/conf/httpd.conf",
        _DEBIAN_LOG,
        _RED_HAT_LOG,
    ),
    grammar=ApacheGrammar(),
    status=(STATUS,),
    error_logs=(_DEBIAN_LOG, _RED_HAT_LOG),
    failure=r"\[\w*:(?:emerg|alert|crit)\]\s*(?:\[[^\]]*\]\s*)*(.*)",
    correction=r"AH\d{5}: .*",
    chatter=r"AH00558|AH00112|fully qualified domain name|Action '.*' failed|The Apache error log may",
    reload_replaces=("apache", "httpd"),
    # https://httpd.apache.org/docs/2.4/mod/mpm_common.html: changes of both limits are ignored during a restart.
    # https://httpd.apache.org/docs/2.4/bind.html: changed Listen directives can need a stop and a start.
    read_at_start=frozenset({"serverlimit", "threadlimit", "listen"}),
    access_log=parse_access,
)
