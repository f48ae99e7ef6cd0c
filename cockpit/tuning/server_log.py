"""The error log of a server that does not use its package's path, from its own configuration."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable

from cockpit.servers.inventory import safe_path
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import OWN_LOGS
from cockpit.servers.startup import absolute
from cockpit.tuning import files
from cockpit.tuning.discovery.host_inventory import Configuration
from cockpit.tuning.remote import Remote

_READABLE = '[ -f "$1" ] && [ -r "$1" ]'


async def with_own_log(
    remote: Remote, server: RunningServer, configuration: Callable[[RunningServer], Awaitable[Configuration]]
) -> RunningServer:
    """Return the server with its error log as a tail and in its candidates, if its log is not known yet.

    Servers in containers are skipped, because their paths are not paths of the host. `configuration` reads a server's
    configuration. Raises HostError.
    """
    startup = server.startup
    if startup is None or startup.uncertainty or server.tail or any(candidate.log for candidate in server.candidates):
        return server
    if server.master is None or server.master.origin == "container":
        return server
    log = startup.log
    if not log and startup.kind in OWN_LOGS:
        log = _configured(server, await configuration(server))
    if not log or (await files.run(remote, _READABLE, log)).exit_status != 0:
        return server
    candidates = tuple(candidate._replace(log=log) for candidate in server.candidates)
    return server._replace(candidates=candidates, tail=(f"tail -n 3 -F {shlex.quote(log)}",))


def _configured(server: RunningServer, configuration: Configuration) -> str:
    """Return the first log in the configuration; "" if there is none, or it is not a file (syslog:, stderr, a pipe)."""
    startup = server.startup
    pattern = OWN_LOGS.get(startup.kind) if startup else None
    if pattern is None or startup is None:
        return ""
    match = pattern.search(configuration.text)
    if match is None or ":" in match[1] or "$" in match[1] or match[1] in ("stderr", "none"):
        return ""
    return safe_path(absolute(match[1], startup.prefix or configuration.read.root))
