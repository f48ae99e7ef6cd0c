"""Caddy with a Caddyfile: its running servers, by the file and the admin endpoint of each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from cockpit.servers.caddy.commands import comparison, in_its_environment
from cockpit.servers.caddy.editor import CaddyGrammar, header_of
from cockpit.servers.caddy.logs import parse as parse_access
from cockpit.servers.caddy.logs import parse_request
from cockpit.servers.caddy.settings import SETTINGS
from cockpit.servers.caddy.status import STATUS
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind, StatusAddress, running
from cockpit.servers.startup import Startup, absolute, command, doubt
from cockpit.servers.upstreams import socket_path

_CONFIG = "/etc/caddy/Caddyfile"
_TEXTS = (_CONFIG, "/etc/caddy/*/Caddyfile")
_GRAMMAR = CaddyGrammar()
_PROGRAM = "/usr/bin/caddy"
_DEFAULT_ADMIN, _OFF = "localhost:2019", "off"
# Commands that serve without a file.
_WITHOUT_FILE = ("file-server", "reverse-proxy", "respond")
_TAKING = ("config", "adapter", "envfile", "pidfile", "pingback")
_SHORT = {"c": "config", "a": "adapter"}
_ADDRESS = re.compile(r"(?:tcp/)?([\w.-]*|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
# Newer versions take the socket's mode behind a bar.
_SOCKET = re.compile(r"unix/(/[^\s|{}]+)(?:\|\d{1,5})?")
_EVERYWHERE = ("", "0.0.0.0", "[::]")
_VARIABLE = "{$"
_SERVERS, _TIMEOUTS = "{ servers {", "{ servers { timeouts {"
# The first address of each proxy, behind a matcher.
_UPSTREAM = re.compile(
    r"(?m)^[ \t]*(?:reverse_proxy|php_fastcgi|to)[ \t]+(?:(?:\*|/\S*|@\S+)[ \t]+)?(?![*/@])([^\n{}#]+)"
)


class _Given(NamedTuple):
    """A command line: its command, and its options by their long names, "" for those without a value."""

    command: str
    options: dict[str, str]


def _given(process: Process) -> _Given:
    words = list(process.command[1:])
    verb = words.pop(0) if words else ""
    found: dict[str, str] = {}
    while words:
        name, sign, value = words.pop(0).lstrip("-").partition("=")
        name = _SHORT.get(name, name)
        found[name] = value if sign or name not in _TAKING or not words else words.pop(0)
    return _Given(verb, found)


def _startup(process: Process, inventory: Inventory) -> Startup | None:
    """The file of `caddy run`, by default the Caddyfile in its working directory."""
    verb, given = _given(process)
    if verb in _WITHOUT_FILE:
        return Startup("caddy", (), "", doubt="its options are on its command line, not in a file")
    if verb != "run":
        return None
    named = given.get("config", "")
    file = absolute(named or "Caddyfile", process.directory) if named != "-" else ""
    files = (file,) if file else ()
    why, root = doubt(process, file, not named), posixpath.dirname(file)
    text = inventory.texts.get(file)
    admin = _DEFAULT_ADMIN if text is None else _admin(text)
    # {$NAME} may be in it, or in a file that it imports.
    varies = text is None or _VARIABLE in text or "import" in text
    foreign = _foreign(process, given) if varies else ""
    if fixed := _fixed(given, file, admin) or ("" if process.unit else foreign):
        return Startup("caddy", files, root, doubt=why, fixed=fixed)
    adapt, test, reload = _commands(process, file, admin, varies and not foreign)
    compare = "" if foreign else comparison(adapt, file)
    return Startup("caddy", files, root, test, reload, why, compare=compare)


def _commands(process: Process, file: str, admin: str, varies: bool) -> tuple[str, str, str]:
    """The commands that print the file as JSON, test it and reload it; `varies`: in the environment of the server."""
    program = process.program if process.program not in ("", _PROGRAM) else "caddy"
    own = ("--config", file, "--adapter", "caddyfile")
    address = ("--address", admin) if admin != _DEFAULT_ADMIN and _VARIABLE not in admin else ()
    spell = partial(in_its_environment, process) if varies else command
    adapt, test = (spell(program, verb, *own) for verb in ("adapt", "validate"))
    if process.unit:
        return adapt, test, command("systemctl", "reload", process.unit)
    return adapt, test, spell(program, "reload", *own, *address)


def _fixed(given: dict[str, str], file: str, admin: str) -> str:
    """Why no setting can be changed, "" if they can."""
    is_caddyfile = given.get("adapter", "") == "caddyfile" or posixpath.basename(file).startswith("Caddyfile")
    if given.get("adapter", "caddyfile") != "caddyfile" or not (is_caddyfile or file.endswith(".caddyfile")):
        return "its configuration is no Caddyfile"
    if "resume" in given:
        return "it was started with --resume: its saved configuration counts, not the file"
    return "its admin endpoint is off, so that it cannot be reloaded" if admin == _OFF else ""


def _foreign(process: Process, given: dict[str, str]) -> str:
    """Why a command cannot have the environment of the server, "" if it can. Another user's may name libraries."""
    if process.origin != "host":
        return "another user started it, and its environment may be part of its configuration: log in as that user"
    if "envfile" in given:
        return "its --envfile may be part of its configuration, which caddy reload does not read"
    return ""


def _admin(text: str) -> str:
    """The address of the admin endpoint by the global options."""
    try:
        return _GRAMMAR.read(text.encode(), "admin", "{").value or _DEFAULT_ADMIN
    except ConfigError:
        return _DEFAULT_ADMIN


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    for master in inventory.masters("caddy"):
        startup = _startup(master, inventory)
        ports = inventory.ports_of(master.pid)
        if startup is None or not ports:
            continue
        main = ConfigFile("caddy", startup.file, startup.test, startup.reload)
        candidates = (
            *main.candidates("protocols max_header_size keepalive_interval", usual=False, section=_SERVERS),
            *main.candidates("idle", usual=True, section=_TIMEOUTS, label="timeouts"),
            *main.candidates("read_header", usual=False, section=_TIMEOUTS, label="timeouts"),
        )
        admin = _admin(inventory.texts.get(startup.file, ""))
        sockets = {one.path for one in inventory.sockets if one.pid == master.pid}
        status = tuple(_status(admin, ports, sockets)) if startup.file else ()
        yield running("Caddy", "caddy", inventory, master, startup, candidates, (), status)


def _status(admin: str, ports: Collection[int], sockets: Collection[str]) -> Iterator[StatusAddress]:
    """The metrics of the admin endpoint, if this server listens there."""
    address, socket = _ADDRESS.fullmatch(admin), _SOCKET.fullmatch(admin)
    if address and int(address[2]) in ports:
        host = "localhost" if address[1] in _EVERYWHERE else address[1]
        yield StatusAddress("caddy", f"http://{host}:{address[2]}/metrics")
    elif socket and (path := socket_path(socket[1])) in sockets:
        yield StatusAddress("caddy", f"unix:{path}")


KIND = ServerKind(
    name="caddy",
    processes=("caddy",),
    discover=_discover,
    texts=_TEXTS,
    grammar=_GRAMMAR,
    status=(STATUS,),
    chatter=r'^\{"level":"(?:debug|info|warn)"',
    access_log=parse_access,
    logged_request=parse_request,
    startup=_startup,
    upstream=_UPSTREAM,
    include=r'^\s*import\s+("[^"\n]+"|[^\s"]+)',
    settings=SETTINGS,
    header=header_of,
    in_sections={
        "site": ("encode",),
        "transport http": ("keepalive", "keepalive_idle_conns", "keepalive_idle_conns_per_host"),
    },
)
