"""All kinds of servers, with their kinds of knobs, status pages, process names and files. Pure.

To add a kind, add a package with a `KIND` to this folder, and its name to FOLDERS. Packages of others add kinds by the
entry point `webcockpit.servers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from cockpit.plugins import additions
from cockpit.servers import keyvalue, systemd
from cockpit.servers.access_log import AccessLine
from cockpit.servers.editing import Grammar
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import RunningServer, ServerKind, StartSetting, StatusPageKind
from cockpit.servers.settings import KnownSetting
from cockpit.servers.startup import Instance

# In the order of the lists of running servers and of the help.
FOLDERS = (
    "apache",
    "nginx",
    "squid",
    "tomcat",
    "lighttpd",
    "haproxy",
    "varnish",
    "caddy",
    "php_fpm",
    "mariadb",
    "gunicorn",
    "uvicorn",
    "node",
    "demo",
)
# Kinds of knobs that are not directives of a server.
OTHER_KNOBS = ("keyvalue", "systemd", "sysctl", "choice", "mount", "command")
_BUILT_IN: tuple[ServerKind, ...] = tuple(import_module(f"cockpit.servers.{folder}").KIND for folder in FOLDERS)
_TAKEN = (*OTHER_KNOBS, *(name for kind in _BUILT_IN for name in kind.names))
_ADDED = additions("servers", ServerKind, lambda kind: kind.names, _TAKEN, ServerKind.check)
# Kinds of others follow the built-in ones, which recognize their processes and logs first.
KINDS = (*_BUILT_IN, *(kind.guarded(package) for package, kind in _ADDED))

# Grammars of the kinds of knobs that are directives; and of all kinds that are in files.
DIRECTIVES: dict[str, Grammar] = {kind.name: kind.grammar for kind in KINDS if kind.grammar}
GRAMMARS: dict[str, Grammar] = {**DIRECTIVES, "keyvalue": keyvalue.GRAMMAR, systemd.KIND: systemd.GRAMMAR}
STATUS_PAGES: dict[str, StatusPageKind] = {page.name: page for kind in KINDS for page in kind.status}
# Shell patterns of process names, and files, for discovery.
PROCESSES: tuple[str, ...] = tuple(dict.fromkeys(name for kind in KINDS for name in kind.processes))
FILES: tuple[str, ...] = tuple(dict.fromkeys(file for kind in KINDS for file in kind.files))
TEXTS: tuple[str, ...] = tuple(dict.fromkeys(file for kind in KINDS for file in kind.texts))
ERROR_LOGS: dict[str, tuple[str, ...]] = {kind.name: kind.error_logs for kind in KINDS if kind.error_logs}
# Known settings by kind of knob, then by name in lower case.
SETTINGS: dict[str, dict[str, KnownSetting]] = {kind: {} for kind in GRAMMARS}
for _kind in KINDS:
    SETTINGS[_kind.name if _kind.grammar else "keyvalue"] |= {n.lower(): s for n, s in _kind.settings.items()}
    SETTINGS["keyvalue"] |= {n.lower(): s for n, s in _kind.keys.items()}
AT_START: dict[str, tuple[StartSetting, ...]] = {kind.name: kind.at_start for kind in KINDS}
for _start in (start for settings in AT_START.values() for start in settings):
    SETTINGS[systemd.KIND] |= {name.lower(): _start.setting for name in (*_start.options, _start.variable) if name}
    # Variables in an EnvironmentFile.
    SETTINGS["keyvalue"] |= {name.lower(): _start.setting for name in (_start.variable, _start.fallback) if name}
SETTINGS[systemd.KIND] |= {n.lower(): s for n, s in systemd.SETTINGS.items()}
RELOAD_REPLACES: dict[str, tuple[str, ...]] = {kind.name: kind.reload_replaces for kind in KINDS}
RELOADED: dict[str, re.Pattern[str]] = {kind.name: kind.reloaded for kind in KINDS if kind.reloaded}
ACCESS_LOGS = tuple(kind.access_log for kind in KINDS if kind.access_log)
LOGGED_REQUESTS = tuple(dict.fromkeys(kind.logged_request for kind in KINDS if kind.logged_request))
PARTIAL_LOGS = tuple(kind.partial_log for kind in KINDS if kind.partial_log)
# Regular expressions for lines of logs and commands; see ServerKind.
FAILURE = "|".join(kind.failure for kind in KINDS if kind.failure)
CORRECTION = "|".join(kind.correction for kind in KINDS if kind.correction)
CHATTER = "|".join(kind.chatter for kind in KINDS if kind.chatter)


# By program name: the option that prints the compiled defaults.
VERSIONS: dict[str, str] = {name: kind.version for kind in KINDS if kind.version for name in kind.processes}
# By program name: the environment variables that contain settings, and the library pattern.
VARIABLES: dict[str, tuple[str, ...]] = {name: kind.variables for kind in KINDS for name in kind.processes}
LIBRARIES: dict[str, str] = {name: kind.library for kind in KINDS if kind.library for name in kind.processes}
UPSTREAMS: dict[str, re.Pattern[str]] = {kind.name: kind.upstream for kind in KINDS if kind.upstream}
OWN_LOGS: dict[str, re.Pattern[str]] = {kind.name: kind.own_log for kind in KINDS if kind.own_log}
PAGES = {kind.name: kind.pages for kind in KINDS if kind.pages}
SITES = {kind.name: kind.sites for kind in KINDS if kind.sites}
TIMED_LOGS = {kind.name: kind.timed for kind in KINDS if kind.timed}
INCLUDES: dict[str, re.Pattern[str]] = {kind.name: re.compile(kind.include) for kind in KINDS if kind.include}


def _masters(inventory: Inventory) -> Iterator[tuple[ServerKind, Process]]:
    return ((kind, master) for kind in KINDS for master in inventory.masters(*kind.processes))


def instances(inventory: Inventory) -> list[Instance]:
    """Return the running servers whose configuration can be found."""
    return [
        Instance(kind.name, master, inventory.ports_of(master.pid), startup, inventory.workers(master.pid))
        for kind, master in _masters(inventory)
        if (startup := kind.startup(master, inventory))
    ]


def running_servers(inventory: Inventory) -> list[RunningServer]:
    servers = (kind.running(master, inventory) for kind, master in _masters(inventory))
    return [server for server in servers if server]


def parse_access(line: bytes) -> AccessLine | None:
    """Parse a line of an access log by the first kind of server that recognises it; None: not an access log."""
    return next((access for parse in ACCESS_LOGS if (access := parse(line)) is not None), None)
