"""`cockpit watch`: the requests of users as the load, counted from the servers' access logs."""

from __future__ import annotations

from argparse import Namespace

from msgspec.structs import replace

from cockpit.cli.commands.run import run_profile
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.profile_argument import chosen_profile
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import AccessLog
from cockpit.setup.profile_draft import HERE, hosts_named
from cockpit.traffic.log_format import parse_format


def watch(options: Namespace) -> int:
    """Show the traffic on the screen at once; without a terminal, or with --no-tui, print its summary at the end."""
    flags = [flag for name, flag in given_flags(options).items() if name != "duration"]
    if flags:
        raise UsageError(f"{flags[0]}: users decide the load; leave it out")
    if not options.log:
        raise UsageError("no access log; name it with --log FILE")
    if options.log_format:
        parse_format(options.log_format)
    profile = chosen_profile(options)
    hosts = profile.hosts or tuple(hosts_named(HERE if name == "." else name for name in options.host))
    if not hosts:
        raise UsageError("no host to read the access log on; add --host, or name a profile with hosts")
    logs = tuple(AccessLog(host=host.name, file=options.log, format=options.log_format or "") for host in hosts)
    plan = replace(profile.plan, traffic=logs, workers=1, duration=options.duration, requests=None, stages=(), mix=())
    options.start = True
    return run_profile(replace(profile, hosts=hosts, plan=plan), options)
