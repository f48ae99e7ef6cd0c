"""The web server of `cockpit demo`. Its configuration has Apache's grammar."""

from __future__ import annotations

import shlex

from cockpit.servers.inventory import Inventory, Process
from cockpit.servers.kind import CandidateKnob, ServerKind, ServerOffer
from cockpit.servers.startup import Startup

# The process name contains the port: demo-http-41465.
_NAMES = "demo-http-*"
# The section of its settings, which always counts.
_SECTION = "IfModule prefork"
_DIRECTIVES = "MinSpareServers MaxSpareServers MaxRequestsPerChild MaxClients"


def _startup(process: Process, inventory: Inventory) -> Startup:
    if len(process.command) < 2:
        return Startup("apache", (), "", uncertainty="its command line cannot be read")
    file = process.command[-1]
    test = f"{shlex.quote(process.command[0])} -m cockpit.demo.webserver -t {shlex.quote(file)}"
    # The parent is the oldest process of that name.
    reload = f"pkill -o -USR1 -x {shlex.quote(process.name)}"
    return Startup("apache", (file,), "", test, reload, conditions=((_SECTION, True),))


def _offer(parent: Process, startup: Startup, inventory: Inventory) -> ServerOffer | None:
    config = CandidateKnob.of_file(startup, workers=parent.name)
    candidates = config.directives(_DIRECTIVES, usual=True, section=_SECTION)
    return ServerOffer("the demo's prefork server", candidates) if startup.files else None


KIND = ServerKind("demo", (_NAMES,), _startup, _offer)
