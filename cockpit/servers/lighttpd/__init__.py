"""lighttpd, as packaged by Debian."""

from __future__ import annotations

import posixpath
import re
from fnmatch import fnmatchcase

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.lighttpd.editor import LighttpdGrammar
from cockpit.servers.lighttpd.settings import SETTINGS
from cockpit.servers.lighttpd.status import STATUS
from cockpit.servers.startup import Startup, absolute, command, last, options, program_of, signal_command, uncertainty

_CONFIG = "/etc/lighttpd/lighttpd.conf"
_LOG = "/var/log/lighttpd/error.log"
_OPTIONAL = (
    "server.max-keep-alive-idle server.max-worker server.event-handler server.stat-cache-engine server.network-backend"
)
_DEFLATE = "deflate.min-compress-size deflate.max-compress-size deflate.work-block-size deflate.max-loadavg"
_DEFLATE_FILE = "/etc/lighttpd/conf-enabled/*-deflate.conf"
_TEXTS = (_CONFIG, "/etc/lighttpd/conf-enabled/*.conf")
_STATUS_URL = re.compile(r'(?m)^[ \t]*status\.status-url[ \t]*=[ \t]*"(/[\w/.-]*)"')
_WORKERS = re.compile(r"(?m)^[ \t]*server\.max-worker[ \t]*=[ \t]*(?:[2-9]|[1-9]\d)")
_UPSTREAM = re.compile(r'"host"\s*=>\s*"([^"]+)"\s*,\s*"port"\s*=>\s*"?(\d+)|"socket"\s*=>\s*"(/[^"]+)"')
_ERROR_LOG = re.compile(r'(?m)^[ \t]*server\.errorlog[ \t]*=[ \t]*"([^"|]+)"')


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by -f, which lighttpd requires."""
    given = options(process.command[1:], "fmi")
    file = absolute(last(given, "f") or _CONFIG, process.directory)
    reload = signal_command("USR1", process) if last(given, "f").startswith("/") else ""
    reload = "service lighttpd reload" if file == _CONFIG else reload
    if process.unit:
        reload = command("systemctl", "reload", process.unit)
    test = command(program_of(process, "lighttpd"), "-tt", "-f", file)
    reason = uncertainty(process, file, "f" not in given)
    return Startup(
        "lighttpd", (file,) if file else (), posixpath.dirname(file), test, reload, reason, process.directory
    )


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    is_packaged = startup.file == _CONFIG
    log = inventory.readable(_LOG) if is_packaged else ""
    main = CandidateKnob.of_file(startup, log=log)
    deflate = next((file for file in inventory.texts if is_packaged and fnmatchcase(file, _DEFLATE_FILE)), "")
    candidates = (
        *main.directives("server.max-connections server.max-fds server.max-keep-alive-requests", usual=True),
        *main.directives(_OPTIONAL, usual=False),
        *(main._replace(file=deflate).directives(_DEFLATE, usual=False) if deflate else ()),
    )
    port = next(iter(inventory.ports_of(master.pid)), 80)
    text = inventory.text(*_TEXTS) if is_packaged else ""
    # Each worker counts its own requests, and any of them answers.
    page = None if _WORKERS.search(text) else _STATUS_URL.search(text)
    status = (StatusAddress("lighttpd", f"http://localhost:{port}{page[1]}?auto"),) if page else ()
    return ServerOffer("lighttpd", candidates, inventory.tails(_LOG) if is_packaged else (), status)


KIND = ServerKind(
    name="lighttpd",
    processes=("lighttpd",),
    startup=_startup,
    offer=_offer,
    files=(_LOG,),
    texts=_TEXTS,
    grammar=LighttpdGrammar(),
    status=(STATUS,),
    error_logs=(_LOG,),
    upstream=_UPSTREAM,
    own_log=_ERROR_LOG,
    include=r'^\s*include\s+"([^"]+)"',
    correction=r"\(\w+\.c\.\d+\) .*",
    settings=SETTINGS,
    reloaded=re.compile(r"\(server\.c\.[0-9]+\) server started"),
)
