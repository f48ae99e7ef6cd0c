"""nginx: running masters, each with the configuration with which it was started."""

from __future__ import annotations

import posixpath
import re

from cockpit.servers.access_log import combined_request
from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer
from cockpit.servers.nginx.editor import NginxGrammar
from cockpit.servers.nginx.logs import parse as parse_access
from cockpit.servers.nginx.pages import pages
from cockpit.servers.nginx.settings import SETTINGS
from cockpit.servers.nginx.sites import sites, timed
from cockpit.servers.nginx.status import STATUS
from cockpit.servers.startup import Startup, absolute, command, program_of, uncertainty

_ZONE = re.compile(r"\bproxy_cache_path\s[^;]{1,400}?\bkeys_zone=([\w.-]{1,100})")
_LOG = "/var/log/nginx/error.log"
_CONFIG = "/etc/nginx/nginx.conf"
_HTTP = (
    "keepalive_requests sendfile tcp_nopush tcp_nodelay gzip gzip_comp_level open_file_cache access_log "
    "http2_max_concurrent_streams"
)
_TITLE = "nginx: master process "
# The title of the master contains the arguments, joined with spaces: a value ends before the next option.
_OPTION = re.compile(r"(?:^|(?<= ))-([cpgetTqsVvh?])\s*(.*?)(?= -[a-zA-Z?]|$)")
_BUILD_OPTION = re.compile(r"--(prefix|conf-path)=(\S+)")
_VERSION = re.compile(r"nginx/(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
# Directives on the command line that do not distinguish servers.
_DAEMON = ("daemon", "master_process")
_UPSTREAM = re.compile(r"(?m)(?:^|[;{}\s])(?:(?:proxy|fastcgi|uwsgi|scgi|grpc)_pass|server)\s+([^\s;{}]+)")
_ERROR_LOG = re.compile(r"(?:^|[;{}\s])error_log\s+([^\s;]+)")


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by -c and -p, else by the defaults that `nginx -V` prints."""
    title = " ".join(process.command).removeprefix(_TITLE)
    given = {letter: value.strip() for letter, value in _OPTION.findall(title)}
    build = inventory.builds.get(process.program)
    built = {"prefix": "/usr/local/nginx", "conf-path": "conf/nginx.conf"} | dict(_BUILD_OPTION.findall(build or ""))
    if build is None:
        built["conf-path"] = _CONFIG
    prefix = absolute(given.get("p") or built["prefix"], process.directory)
    file = absolute(given.get("c") or built["conf-path"], prefix)
    flags = ["-p", prefix] if "p" in given else []
    flags += ["-c", file] if "c" in given else []
    directives = given.get("g", "")
    names = [name for directive in directives.split(";") for name in directive.split()[:1]]
    if set(names).difference(_DAEMON):
        if process.origin == "user":
            why = "another user started it, with directives on its command line: log in as that user"
            return Startup("nginx", (), "", uncertainty=why)
        flags += ["-g", directives]
    program = program_of(process, "nginx")
    needs_build = not given.get("c", "").startswith("/")
    return Startup(
        kind="nginx",
        files=(file,) if file else (),
        root=posixpath.dirname(file),
        test=command(program, "-t", *flags),
        reload=command(program, "-s", "reload", *flags),
        uncertainty=uncertainty(process, file, needs_build, built=build is not None),
        prefix=prefix,
    )


def _has_http2(master: Process, inventory: Inventory) -> bool:
    version = _VERSION.search(inventory.builds.get(master.program, ""))
    return version is not None and tuple(map(int, version.groups())) >= (1, 25, 1)


def _choices(text: str) -> dict[str, tuple[str, ...]]:
    """Return the cache zones of the configuration, the valid values of proxy_cache."""
    zones = tuple(dict.fromkeys(_ZONE.findall(text)))
    return {"proxy_cache": ("off", *zones) if zones else ()}


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    logs = (_LOG,) if startup.file == _CONFIG else ()
    main = CandidateKnob.of_file(startup, log=inventory.readable(*logs))
    candidates = (
        *main.directives("worker_processes", usual=True),
        *main.directives("worker_rlimit_nofile", usual=False),
        *main.directives("worker_connections", usual=True, section="events {"),
        *main.directives("keepalive_timeout", usual=True, section="http {"),
        *main.directives(_HTTP, usual=False, section="http {"),
        *(main.directives("http2", usual=False, section="http {") if _has_http2(master, inventory) else ()),
    )
    return ServerOffer("nginx", candidates, inventory.tails(*logs))


KIND = ServerKind(
    name="nginx",
    processes=("nginx",),
    startup=_startup,
    offer=_offer,
    files=(_LOG,),
    grammar=NginxGrammar(),
    status=(STATUS,),
    pages=pages,
    error_logs=(_LOG,),
    failure=r"\[(?:emerg|alert|crit)\]\s*(?:\d+#\d+:\s*)?(.*)",
    correction=r"\[(?:warn|notice|emerg)\].*",
    chatter=r"protocol options redefined",
    reload_replaces=("nginx",),
    access_log=parse_access,
    logged_request=combined_request,
    sites=sites,
    timed=timed,
    version="-V",
    upstream=_UPSTREAM,
    own_log=_ERROR_LOG,
    in_sections={"upstream": ("keepalive",), "http": ("proxy_cache",)},
    choices=_choices,
    include=r"(?:^|[;{}\s])include\s+([^;{}]+?)\s*;",
    settings=SETTINGS,
)
