"""Find the access log of a site in the configuration of the server that logs it. Nothing is changed on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.hosts.target_host import port_of
from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import SITES, running_servers
from cockpit.servers.site_logs import SiteLog, logs_for
from cockpit.tuning.discovery.host_inventory import configuration, read_inventory
from cockpit.tuning.discovery.servers import servers_on_port
from cockpit.tuning.remote import Remote

NAME_IT = "name one with --log FILE, or access_log of its [[host]]"


class LoggingServer(NamedTuple):
    """A server, and the access log that it writes for a site."""

    title: str
    log: SiteLog


async def find_access_log(remote: Remote, host: str, url: str, here: bool) -> LoggingServer | None:
    """Return the access log of the requests for `url` on a host; None: no server of a known kind. `here`: the URL's
    port is one of this host. Raises HostError, ChangeRefused, and UsageError if the servers have no log, or several."""
    inventory = await read_inventory(remote, host)
    running = [each for each in running_servers(inventory) if each.startup and each.startup.kind in SITES]
    servers = servers_on_port(inventory, running, port_of(url)) if here else running
    if not servers:
        return None
    logs = [log for server in servers for log in await _logs_of(remote, server, url, here)]
    if not logs:
        names = ", ".join(dict.fromkeys(server.title for server in servers))
        raise UsageError(f"{host}: no access log in a file ({names}); {NAME_IT}")
    if len(logs) > 1:
        listed = ", ".join(dict.fromkeys(sanitize(each.log.file) for each in logs))
        raise UsageError(f"{host}: several access logs for {sanitize(url)}: {listed}; {NAME_IT}")
    return logs[0]


async def _logs_of(remote: Remote, server: RunningServer, url: str, here: bool) -> Sequence[LoggingServer]:
    startup = server.startup
    if startup is None or startup.uncertainty or server.master is None:
        return ()
    read = await configuration(remote, server)
    directory = startup.prefix or read.read.root or startup.root
    sites = SITES[startup.kind](read.texts.values(), directory, dict(server.master.facts))
    logs = logs_for(sites, urlsplit(url).hostname or "", port_of(url) if here else None)
    return [LoggingServer(server.title, log) for log in logs]
