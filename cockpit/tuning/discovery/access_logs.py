"""Find the access log of a site in the configuration of the server that logs it. Nothing is changed on the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.hosts.target_host import port_of
from cockpit.model.errors import UsageError
from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.servers.kind import RunningServer
from cockpit.servers.registry import SITES, TIMED_LOGS, running_servers
from cockpit.servers.site_logs import SiteLog, TimedLog, logs_for
from cockpit.servers.startup import Startup
from cockpit.tuning.discovery.host_inventory import configuration, read_inventory
from cockpit.tuning.discovery.servers import servers_on_port
from cockpit.tuning.remote import Remote

NAME_IT = "name one with --log FILE, or access_log of its [[host]]"


class LogChange(NamedTuple):
    """The change that adds the durations of requests to a log: knobs with their new `values`; the `log` then."""

    values: tuple[tuple[Knob, str], ...]
    log: SiteLog


class LoggingServer(NamedTuple):
    """A server, and the access log that it writes for a site; `change`: None if the log has durations, or if the change
    is not certain."""

    title: str
    log: SiteLog
    change: LogChange | None = None


async def find_access_log(remote: Remote, host: str, url: str, here: bool) -> LoggingServer | None:
    """Return the access log of the requests for `url` on a host; None: no server of a known kind. `here`: the URL's
    port is one of this host. Raises HostError, ChangeRefused, and UsageError if the servers have no log, or several."""
    inventory = await read_inventory(remote, host)
    running = [each for each in running_servers(inventory) if each.startup and each.startup.kind in SITES]
    servers = servers_on_port(inventory, running, port_of(url)) if here else running
    if not servers:
        return None
    logs = [log for server in servers for log in await _logs_of(remote, host, server, url, here)]
    known = [log for log in logs if log.log.format or log.change]
    if not known:
        names = ", ".join(dict.fromkeys(server.title for server in servers))
        raise UsageError(f"{host}: no access log in a file ({names}); {NAME_IT}")
    if len(known) > 1:
        listed = ", ".join(dict.fromkeys(sanitize(each.log.file) for each in known))
        raise UsageError(f"{host}: several access logs for {sanitize(url)}: {listed}; {NAME_IT}")
    return known[0]


async def _logs_of(remote: Remote, host: str, server: RunningServer, url: str, here: bool) -> Sequence[LoggingServer]:
    startup = server.startup
    if startup is None or startup.uncertainty or server.master is None:
        return ()
    read = await configuration(remote, server)
    directory = startup.prefix or read.read.root or startup.root
    variables = dict(server.master.facts)
    sites = SITES[startup.kind](read.texts.values(), directory, variables)
    logs = logs_for(sites, urlsplit(url).hostname or "", port_of(url) if here else None)
    timed = TIMED_LOGS.get(startup.kind)
    changes = [timed(read.texts, directory, variables, log) if timed else None for log in logs]
    return [
        LoggingServer(server.title, log, change and _change(host, server, startup, change, log.file))
        for log, change in zip(logs, changes, strict=True)
    ]


def _change(host: str, server: RunningServer, startup: Startup, timed: TimedLog, file: str) -> LogChange | None:
    """Return the change of a server that can be tested and reloaded."""
    if not (startup.test and startup.reload) or startup.read_only_reason or server.programs:
        return None
    knobs = [
        Knob(
            name=f"{host}-{setting.directive.partition(' ')[0]}",
            host=host,
            kind=startup.kind,
            file=setting.file,
            section=setting.section,
            directive=setting.directive,
            test=startup.test,
            reload=startup.reload,
            workers=server.pattern,
        )
        for setting in timed.settings
    ]
    values = [setting.value for setting in timed.settings]
    return LogChange(tuple(zip(knobs, values, strict=True)), SiteLog(file, timed.format))
