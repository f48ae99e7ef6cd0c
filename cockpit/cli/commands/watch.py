"""`cockpit watch`: the requests of users as the load, counted from the servers' access logs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cockpit.cli.commands.run import run_profile
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.profile_argument import check_guard, chosen_profile
from cockpit.model.errors import UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog
from cockpit.setup.profile_draft import HERE, hosts_named
from cockpit.traffic.log_format import parse_format


def watch(options: Namespace) -> int:
    """Show the traffic on the screen at once; without a terminal, or with --no-tui, print its summary at the end."""
    flags = [flag for name, flag in given_flags(options).items() if name != "duration"]
    if flags:
        raise UsageError(f"{flags[0]}: users decide the load; leave it out")
    profile = chosen_profile(options)
    hosts = profile.hosts or tuple(hosts_named(HERE if name == "." else name for name in options.host))
    if not hosts:
        raise UsageError("no host to read the access log on; add --host, or name a profile with hosts")
    logs = tuple(_logs(hosts, options))
    plan = replace(profile.plan, traffic=logs, workers=1, duration=options.duration, requests=None, stages=(), mix=())
    options.start = True
    profile = replace(profile, hosts=hosts, plan=plan, guard=(*profile.guard, *options.guard), ask=options.ask)
    check_guard(profile)
    return run_profile(profile, options)


def _logs(hosts: Sequence[HostConfig], options: Namespace) -> Iterator[AccessLog]:
    """Yield the log of the flags on each host, else those of the profile. Raises UsageError."""
    known = [host for host in hosts if options.log or host.access_log]
    if not known:
        raise UsageError("no access log; name it with --log FILE, or access_log of a [[host]]")
    for host in known:
        style = options.log_format or host.log_format
        if style:
            parse_format(style)
        yield AccessLog(host=host.name, file=options.log or host.access_log, format=style)
