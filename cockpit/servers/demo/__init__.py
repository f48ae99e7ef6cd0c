"""The web server of `cockpit demo`, which has Apache's grammar."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import ConfigFile, RunningServer, ServerKind

# The port is in the name of its processes: demo-http-41465.
_NAMES = "demo-http-*"
_DIRECTIVES = "MinSpareServers MaxSpareServers MaxRequestsPerChild MaxClients"


def _discover(inventory: Inventory) -> Iterator[RunningServer]:
    """Several demos may run, each with its own name."""
    ours = {process.pid: process for process in inventory.processes if process.name.startswith(_NAMES[:-1])}
    for parent in ours.values():
        if parent.parent in ours or len(parent.command) < 2:
            continue
        name, file = parent.name, parent.command[-1]
        test = f"{shlex.quote(parent.command[0])} -m cockpit.demo.webserver -t {shlex.quote(file)}"
        # The oldest process of that name is the parent.
        config = ConfigFile("apache", file, test, f"pkill -o -USR1 -x {shlex.quote(name)}", name)
        candidates = tuple(config.candidates(_DIRECTIVES, usual=True, section="IfModule prefork"))
        yield RunningServer("the demo's prefork server", name, inventory.count(name), inventory.ports(name), candidates)


KIND = ServerKind(name="demo", processes=(_NAMES,), discover=_discover)
