"""squid, as packaged by Debian."""

from __future__ import annotations

import re

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer, StatusAddress
from cockpit.servers.squid.editor import SquidGrammar
from cockpit.servers.squid.logs import parse as parse_access
from cockpit.servers.squid.logs import parse_request
from cockpit.servers.squid.settings import SETTINGS
from cockpit.servers.squid.status import COUNTERS, INFO
from cockpit.servers.startup import Startup, absolute, command, last, options, program_of, uncertainty

_LOG = "/var/log/squid/cache.log"
_CONFIG = "/etc/squid/squid.conf"
_BUILD_OPTION = re.compile(r"--sysconfdir=([^'\s]+)")
_OPTIONAL = "maximum_object_size cache_replacement_policy memory_replacement_policy cache_dir workers"
_NAMES = ("squid", "squid-*", "(squid*")
_UPSTREAM = re.compile(r"(?m)^[ \t]*cache_peer[ \t]+(\S+)[ \t]+\S+[ \t]+(\d+)")
_ERROR_LOG = re.compile(r"(?m)^[ \t]*cache_log[ \t]+(\S+)")


def _startup(process: Process, inventory: Inventory) -> Startup:
    """Find the configuration by -f, else in the directory that `squid -v` prints. -n names the service."""
    given = options(process.command[1:], "adfhkmnuz")
    build = inventory.builds.get(process.program)
    directory = next(reversed(_BUILD_OPTION.findall(build or "")), "/etc/squid")
    file = absolute(last(given, "f") or f"{directory}/squid.conf", process.directory)
    flags = [*(["-n", last(given, "n")] if "n" in given else []), *(["-f", file] if "f" in given else [])]
    program = program_of(process, "squid")
    return Startup(
        kind="squid",
        files=(file,) if file else (),
        root=process.directory,
        test=command(program, *flags, "-k", "parse"),
        reload=command(program, *flags, "-k", "reconfigure"),
        uncertainty=uncertainty(process, file, not last(given, "f").startswith("/"), built=build is not None),
    )


def _offer(master: Process, startup: Startup, inventory: Inventory) -> ServerOffer:
    main = CandidateKnob.of_file(startup)
    candidates = (
        *main.directives("cache_mem maximum_object_size_in_memory", usual=True),
        *main.directives(_OPTIONAL, usual=False),
    )
    port = next(iter(inventory.ports_of(master.pid)), 3128)
    page = StatusAddress("squid", f"http://localhost:{port}{COUNTERS.url}")
    return ServerOffer("squid", candidates, inventory.tails(_LOG) if startup.file == _CONFIG else (), (page,))


KIND = ServerKind(
    name="squid",
    processes=_NAMES,
    startup=_startup,
    offer=_offer,
    pattern="squid*",
    files=(_LOG,),
    grammar=SquidGrammar(),
    status=(COUNTERS, INFO),
    correction=r"WARNING: .*",
    settings=SETTINGS,
    error_logs=(_LOG,),
    reloaded=re.compile(r"Accepting HTTPS? Socket connections"),
    access_log=parse_access,
    logged_request=parse_request,
    version="-v",
    upstream=_UPSTREAM,
    own_log=_ERROR_LOG,
    include=r"^\s*include\s+(.+?)\s*$",
)
