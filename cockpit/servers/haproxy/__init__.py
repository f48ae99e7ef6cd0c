"""HAProxy, as packaged by Debian."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from cockpit.servers.haproxy.editor import FLAGS, SECTIONS, HaproxyGrammar
from cockpit.servers.haproxy.live import live
from cockpit.servers.haproxy.logs import parse as parse_access
from cockpit.servers.haproxy.logs import parse_request
from cockpit.servers.haproxy.settings import SETTINGS
from cockpit.servers.haproxy.status import STATUS
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.site_logs import LogSetting, Site, SiteLog, TimedLog, only_timed
from cockpit.servers.startup import Startup, absolute, command, program_of, signal_command, uncertainty

_CONFIG = "/etc/haproxy/haproxy.cfg"
# The file to which Debian's rsyslog writes HAProxy's messages.
_LOG = "/var/log/haproxy.log"
_DEFAULTS = ", ".join(
    ("timeout http-keep-alive, timeout http-request, timeout queue, retries, balance, http-reuse", *FLAGS[:3])
)
_HTTP2 = " ".join(
    f"tune.h2.{name}"
    for name in ("max-concurrent-streams", "initial-window-size", "max-frame-size", "header-table-size")
)
# Sections as lists of lines, lines as lists of words; the header is the first line.
_Sections = list[list[list[str]]]
_BIND = re.compile(r"(\*|\[?::\]?|[0-9.]*):(\d{1,5})")
_URI = re.compile(r"/[\w/.?&=-]*")
_SOCKET = re.compile(r"/[\w/.-]+")
_HTTP_LOG = re.compile(r"(?m)^[ \t]*option[ \t]+httplog\b")
_LOGS = re.compile(r"(?m)^[ \t]*log[ \t]+\S")
_OWN_FORMAT = re.compile(r"(?m)^[ \t]*(?:log-format|option[ \t]+tcplog)\b")
_UPSTREAM = re.compile(r"(?m)^[ \t]*server[ \t]+\S+[ \t]+(\S+)")


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by each -f and the files after --. Relative paths start at -C or the working directory."""
    words = process.command[1:]
    files, directory, pid_file = [], process.directory, ""
    for index, word in enumerate(words):
        value = words[index + 1] if index + 1 < len(words) else ""
        if word == "--":
            files += [absolute(name, directory) for name in words[index + 1 :]]
            break
        if word == "-C":
            directory = absolute(value, directory)
        elif word == "-f":
            files.append(absolute(value, directory))
        elif word == "-p":
            pid_file = absolute(value, directory)
    known = tuple(file for file in files if file)
    chosen = known or (_CONFIG,)
    test = command(program_of(process, "haproxy"), "-c", *(part for file in chosen for part in ("-f", file)))
    why = uncertainty(process, "" if "" in files else chosen[0], not files)
    return Startup("haproxy", chosen, directory, test, _reload(process, chosen, pid_file), why)


def _reload(process: Process, files: tuple[str, ...], pid_file: str) -> str:
    """Return the reload command: of its unit, else a signal to the master. "": without a master it cannot reload."""
    if process.unit:
        return command("systemctl", "reload", process.unit)
    if files[0] == _CONFIG:
        return "service haproxy reload"
    if not any(word in ("-W", "-Ws") for word in process.command):
        return ""
    # The file of another user could contain any PID.
    if pid_file and process.origin != "user":
        return f'kill -USR2 "$(cat {shlex.quote(pid_file)})"'
    return signal_command("USR2", process)


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    is_packaged = startup.file == _CONFIG
    sections = _sections(inventory.text(_CONFIG)) if is_packaged else []
    main = CandidateKnob.of_file(startup)
    candidates = (
        # -n overrides maxconn.
        *(main.directives("maxconn", usual=True, section="global") if "-n" not in master.command else ()),
        *main.directives("nbthread", usual=True, section="global"),
        *main.directives(_HTTP2, usual=False, section="global"),
        *main.directives("timeout connect, timeout client, timeout server", usual=True, section="defaults"),
        *main.directives(_DEFAULTS, usual=False, section="defaults"),
    )
    tails = inventory.tails(_LOG) if is_packaged else ()
    return ServerOffer("HAProxy", candidates, tails, _statistics(sections, inventory.user == "root"))


def _sections(config: str) -> _Sections:
    sections: _Sections = []
    for line in config.splitlines():
        words = line.partition("#")[0].split()
        if words and words[0].encode() in SECTIONS:
            sections.append([words])
        elif words and sections:
            sections[-1].append(words)
    return sections


def _statistics(sections: _Sections, is_root: bool) -> tuple[StatusAddress, ...]:
    """Return the address of a statistics page without a password, in a section with a bind address; else, for root,
    the stats socket."""
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


def _sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the file to which syslog writes the requests; in an unknown format, it has no duration or no status."""
    texts = list(texts)
    logged = any(_HTTP_LOG.search(text) for text in texts)
    known = logged or any(map(_LOGS.search, texts))
    return [Site(logs=(SiteLog(_LOG, "haproxy" if logged else ""),))] if known else []


def _timed(texts: Mapping[str, str], directory: str, variables: Mapping[str, str], log: SiteLog) -> TimedLog | None:
    """Return `option httplog` in the only section `defaults`, unless another format is set; see ServerKind."""
    if log.format or any(map(_OWN_FORMAT.search, texts.values())):
        return None
    grammar = HaproxyGrammar()
    places = [
        LogSetting(file, section, "option httplog", "on")
        for file, text in texts.items()
        for section in grammar.sections_of(text.encode(), ("mode",))
        if section.split()[0] == "defaults"
    ]
    return only_timed([TimedLog((place,), "haproxy") for place in places])


KIND = ServerKind(
    name="haproxy",
    processes=("haproxy",),
    startup=_startup,
    offer=_offer,
    files=(_LOG,),
    texts=(_CONFIG,),
    grammar=HaproxyGrammar(),
    status=(STATUS,),
    failure=r"\[ALERT\]\s*\(\d+\)\s*: (.*)",
    correction=r"\[WARNING\].*",
    reload_replaces=("haproxy",),
    access_log=parse_access,
    logged_request=parse_request,
    sites=_sites,
    timed=_timed,
    upstream=_UPSTREAM,
    settings=SETTINGS,
    live=live,
    in_sections={"frontend": ("maxconn",), "listen": ("maxconn", "balance"), "backend": ("balance",)},
)
