"""`cockpit watch`: the requests of users as the load, counted from the servers' access logs."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from cockpit.cli.commands.run import run_profile
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.profile_argument import chosen_profile
from cockpit.hosts.target_host import is_on_host
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.servers.site_logs import SiteLog
from cockpit.setup.profile_draft import HERE, hosts_named
from cockpit.traffic.log_format import parse_format
from cockpit.tuning.discovery.access_logs import find_access_log
from cockpit.tuning.remote import privileged


def watch(options: Namespace) -> int:
    """Show the traffic on the screen at once; without a terminal, or with --no-tui, print its summary at the end."""
    flags = [flag for name, flag in given_flags(options).items() if name != "duration"]
    if flags:
        raise UsageError(f"{flags[0]}: users decide the load; leave it out")
    profile = chosen_profile(options)
    hosts = hosts_of(profile, options)
    logs = tuple(traffic_logs(hosts, profile.plan.url, options))
    plan = replace(profile.plan, traffic=logs, workers=1, duration=options.duration, requests=None, stages=(), mix=())
    options.start = True
    return run_profile(replace(profile, hosts=hosts, plan=plan), options)


def hosts_of(profile: Profile, options: Namespace) -> tuple[HostConfig, ...]:
    """Return the hosts of the profile, else those of the flags. Raises UsageError."""
    hosts = profile.hosts or tuple(hosts_named(HERE if name == "." else name for name in options.host))
    if not hosts:
        raise UsageError("no host to read the access log on; add --host, or name a profile with hosts")
    return hosts


def traffic_logs(hosts: Sequence[HostConfig], url: str, options: Namespace) -> Iterator[AccessLog]:
    """Yield the log of the flags on each host, else those of the profile; without any, those in the configurations of
    the servers. Raises UsageError, HostError."""
    known = [host for host in hosts if options.log or host.access_log] or hosts
    for host in known:
        file, style = options.log or host.access_log, options.log_format or host.log_format
        if not file:
            file, configured = asyncio.run(_configured(host, url, options.ssh_config))
            style = style or configured
        try:
            parse_format(style or "combined")
        except UsageError as error:
            raise UsageError(f"{host.name}: {file}: {error}; set it with --log-format") from None
        yield AccessLog(host=host.name, file=file, format=style)


async def _configured(host: HostConfig, url: str, ssh_config: Path | None) -> SiteLog:
    """Return the log in the configuration of the host's server, and print it. Raises HostError, UsageError."""
    shell = await open_shell(host, ssh_config)
    try:
        here = is_on_host(url, host, ssh_config)
        server = await find_access_log(privileged(host, shell), host.name, url, here)
    finally:
        await shell.close()
    words = f"{host.name}: {server.title} logs to {server.log.file}: {server.log.format}"
    print(f"cockpit: {sanitize(words)}", file=sys.stderr)
    return server.log
