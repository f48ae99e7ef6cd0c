"""Caddy with a Caddyfile: running servers, each with its file and its admin endpoint."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.site_logs import Site, SiteLog, log_file
from cockpit.servers.startup import Startup, absolute, command, uncertainty
from cockpit.servers.upstreams import socket_path

_CONFIG = "/etc/caddy/Caddyfile"
_TEXTS = (_CONFIG, "/etc/caddy/*/Caddyfile")
_GRAMMAR = CaddyGrammar()
_PROGRAM = "/usr/bin/caddy"
_DEFAULT_ADMIN, _OFF = "localhost:2019", "off"
# Subcommands that serve without a configuration file.
_WITHOUT_FILE = ("file-server", "reverse-proxy", "respond")
_VALUE_OPTIONS = ("config", "adapter", "envfile", "pidfile", "pingback")
_LONG_NAMES = {"c": "config", "a": "adapter"}
_ADDRESS = re.compile(r"(?:tcp/)?([\w.-]*|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
# Newer versions accept `|MODE` after the socket's path.
_SOCKET = re.compile(r"unix/(/[^\s|{}]+)(?:\|\d{1,5})?")
_ALL_ADDRESSES = ("", "0.0.0.0", "[::]")
_VARIABLE = "{$"
_LOG = re.compile(r"(?m)^[ \t]*output[ \t]+file[ \t]+\"?([^\s\"{]+)")
_SERVERS, _TIMEOUTS = "{ servers {", "{ servers { timeouts {"
# The upstreams of each proxy, after an optional matcher.
_UPSTREAM = re.compile(
    r"(?m)^[ \t]*(?:reverse_proxy|php_fastcgi|to)[ \t]+(?:(?:\*|/\S*|@\S+)[ \t]+)?(?![*/@])([^\n{}#]+)"
)


class _CommandLine(NamedTuple):
    """A command line: its subcommand, and its options by their long names ("": without a value)."""

    command: str
    options: dict[str, str]


def _parsed(process: Process) -> _CommandLine:
    words = list(process.command[1:])
    verb = words.pop(0) if words else ""
    options: dict[str, str] = {}
    while words:
        name, sign, value = words.pop(0).lstrip("-").partition("=")
        name = _LONG_NAMES.get(name, name)
        options[name] = value if sign or name not in _VALUE_OPTIONS or not words else words.pop(0)
    return _CommandLine(verb, options)


def _startup(process: Process, inventory: Inventory) -> Startup | None:
    """Find the file of `caddy run`, by default the Caddyfile in its working directory."""
    verb, given = _parsed(process)
    if verb in _WITHOUT_FILE:
        return Startup("caddy", (), "", uncertainty="its options are on its command line, not in a file")
    if verb != "run":
        return None
    named = given.get("config", "")
    file = absolute(named or "Caddyfile", process.directory) if named != "-" else ""
    files = (file,) if file else ()
    why, root = uncertainty(process, file, not named), posixpath.dirname(file)
    text = inventory.texts.get(file)
    admin = _DEFAULT_ADMIN if text is None else _admin(text)
    # The file, or a file that it imports, can contain {$NAME}.
    needs_environment = text is None or _VARIABLE in text or "import" in text
    obstacle = _environment_obstacle(process, given) if needs_environment else ""
    if fixed := _fixed(given, file, admin) or ("" if process.unit else obstacle):
        return Startup("caddy", files, root, uncertainty=why, read_only_reason=fixed)
    adapt, test, reload = _commands(process, file, admin, needs_environment and not obstacle)
    compare = "" if obstacle else comparison(adapt, file)
    return Startup("caddy", files, root, test, reload, why, compare=compare)


def _commands(process: Process, file: str, admin: str, needs_environment: bool) -> tuple[str, str, str]:
    """Return the commands that print the file as JSON, test it and reload it. If the configuration contains variables,
    they run in the environment of the server (`needs_environment`)."""
    program = process.program if process.program not in ("", _PROGRAM) else "caddy"
    flags = ("--config", file, "--adapter", "caddyfile")
    address = ("--address", admin) if admin != _DEFAULT_ADMIN and _VARIABLE not in admin else ()
    shell = partial(in_its_environment, process) if needs_environment else command
    adapt, test = (shell(program, verb, *flags) for verb in ("adapt", "validate"))
    if process.unit:
        return adapt, test, command("systemctl", "reload", process.unit)
    return adapt, test, shell(program, "reload", *flags, *address)


def _fixed(given: dict[str, str], file: str, admin: str) -> str:
    """Return why settings cannot be changed, "" if they can."""
    is_caddyfile = given.get("adapter", "") == "caddyfile" or posixpath.basename(file).startswith("Caddyfile")
    if given.get("adapter", "caddyfile") != "caddyfile" or not (is_caddyfile or file.endswith(".caddyfile")):
        return "its configuration is not a Caddyfile"
    if "resume" in given:
        return "it was started with --resume: it uses its saved configuration instead of the file"
    return "it cannot be reloaded: its admin endpoint is off" if admin == _OFF else ""


def _environment_obstacle(process: Process, given: dict[str, str]) -> str:
    """Return why a command must not or cannot use the environment of the server, "" if it can. The environment of
    another user could make the command load that user's libraries."""
    if process.origin != "host":
        return "another user started it, and its environment may be part of its configuration: log in as that user"
    if "envfile" in given:
        return "its --envfile may be part of its configuration, but caddy reload does not read it"
    return ""


def _admin(text: str) -> str:
    """Return the address of the admin endpoint in the global options."""
    try:
        return _GRAMMAR.read(text.encode(), "admin", "{").value or _DEFAULT_ADMIN
    except ConfigError:
        return _DEFAULT_ADMIN


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer | None:
    ports = inventory.ports_of(master.pid)
    if not ports:
        return None
    main = CandidateKnob.of_file(startup)
    candidates = (
        *main.directives("protocols max_header_size keepalive_interval", usual=False, section=_SERVERS),
        *main.directives("idle", usual=True, section=_TIMEOUTS, label="timeouts"),
        *main.directives("read_header", usual=False, section=_TIMEOUTS, label="timeouts"),
    )
    admin = _admin(inventory.texts.get(startup.file, ""))
    sockets = {listener.path for listener in inventory.sockets if listener.pid == master.pid}
    return ServerOffer("Caddy", candidates, (), tuple(_status(admin, ports, sockets)) if startup.file else ())


def _status(admin: str, ports: Collection[int], sockets: Collection[str]) -> Iterator[StatusAddress]:
    """Yield the address of the admin endpoint's metrics, if this server listens there."""
    address, socket = _ADDRESS.fullmatch(admin), _SOCKET.fullmatch(admin)
    if address and int(address[2]) in ports:
        host = "localhost" if address[1] in _ALL_ADDRESSES else address[1]
        yield StatusAddress("caddy", f"http://{host}:{address[2]}/metrics")
    elif socket and (path := socket_path(socket[1])) in sockets:
        yield StatusAddress("caddy", f"unix:{path}")


def _sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the files of all access logs as those of one site."""
    written = (log_file(match[1], directory) for text in texts for match in _LOG.finditer(text))
    return [Site(logs=tuple(SiteLog(file, "caddy") for file in written if file))]


KIND = ServerKind(
    name="caddy",
    processes=("caddy",),
    startup=_startup,
    offer=_offer,
    texts=_TEXTS,
    grammar=_GRAMMAR,
    status=(STATUS,),
    chatter=r'^\{"level":"(?:debug|info|warn)"',
    access_log=parse_access,
    logged_request=parse_request,
    sites=_sites,
    upstream=_UPSTREAM,
    include=r'^\s*import\s+("[^"\n]+"|[^\s"]+)',
    settings=SETTINGS,
    header=header_of,
    in_sections={
        "site": ("encode",),
        "transport http": ("keepalive", "keepalive_idle_conns", "keepalive_idle_conns_per_host"),
    },
)
