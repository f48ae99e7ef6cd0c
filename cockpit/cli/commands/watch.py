"""`cockpit watch`: the requests of users as the load, counted from the servers' access logs."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cockpit.cli.commands.run import run_profile
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.log_durations import with_durations
from cockpit.cli.profile_argument import chosen_profile
from cockpit.cli.terminal import is_headless
from cockpit.cli.thresholds import check_guard
from cockpit.hosts.target_host import is_on_host
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.checks import conflict
from cockpit.model.load.plan import AccessLog, LoadPlan, url_without_password
from cockpit.model.text import sanitize
from cockpit.profiles.profile import LogTiming, Profile
from cockpit.setup.profile_draft import hosts_named
from cockpit.traffic.log_format import is_extendable, parse_format
from cockpit.tuning.discovery.access_logs import NAME_IT, LogChange, LoggingServer, find_access_log
from cockpit.tuning.remote import privileged


def watch(options: Namespace) -> int:
    """Show the traffic on the screen at once; without a terminal, or with --no-tui, print its summary at the end."""
    flags = [flag for name, flag in given_flags(options).items() if name != "duration"]
    if flags:
        raise UsageError(f"{flags[0]}: users decide the load; leave it out")
    profile = chosen_profile(options)
    hosts = hosts_of(profile, options)
    logs = _logs(hosts, profile.plan.url, options, offer=True)
    # The profile's headers and socket tell its secrets and the port of its servers; its load is not sent.
    plan = LoadPlan(
        url=profile.plan.url,
        headers=profile.plan.headers,
        unix=profile.plan.unix,
        traffic=tuple(log for log, _ in logs),
        duration=options.duration,
        extend=profile.plan.extend,
    )
    options.start = True
    profile = with_timings(profile, logs)
    profile = replace(profile, hosts=hosts, plan=plan, guard=(*profile.guard, *options.guard), ask=options.ask)
    check_guard(profile)
    return run_profile(profile, options)


def with_timings(profile: Profile, logs: Sequence[tuple[AccessLog, LogChange | None]]) -> Profile:
    """Return the profile with the changes that add durations to its logs, except to logs that could not be counted
    during the change."""
    timings, knobs = list(profile.timings), list(profile.knobs)
    for log, change in logs:
        if change is not None and log.format and is_extendable(parse_format(log.format)):
            knobs += [knob for knob, _ in change.values]
            values = {knob.name: value for knob, value in change.values}
            timings.append(LogTiming(values, replace(log, format=change.log.format)))
    return replace(profile, timings=tuple(timings), knobs=tuple(knobs))


def hosts_of(profile: Profile, options: Namespace) -> tuple[HostConfig, ...]:
    """Return the hosts of the profile, else those of the flags. Raises UsageError."""
    if profile.hosts and options.host:
        raise UsageError(conflict("the hosts of the profile", "leave it out, or name a URL"), "--host")
    hosts = profile.hosts or tuple(hosts_named(options.host))
    if not hosts:
        raise UsageError("no host to read the access log on; add --host, or name a profile with hosts")
    return hosts


def traffic_logs(hosts: Sequence[HostConfig], url: str, options: Namespace) -> list[AccessLog]:
    """Return the log of the flags on each host, else those of the profile; without any, those in the configurations of
    the servers. Raises UsageError, HostError."""
    return [log for log, _ in _logs(hosts, url, options, offer=False)]


def _logs(
    hosts: Sequence[HostConfig], url: str, options: Namespace, offer: bool
) -> list[tuple[AccessLog, LogChange | None]]:
    """Return each log with the change that adds durations to it, which is offered first."""
    named = [
        AccessLog(host=host.name, file=file, format=host.log_format)
        for host in hosts
        if (file := options.log or host.access_log)
    ]
    if named:
        return [(_checked(replace(log, format=options.log_format or log.format)), None) for log in named]
    logs, changeable = [], offer and not is_headless(options)
    for host, server in asyncio.run(
        _configured_logs(hosts, url, options.ssh_config, _undo_command(options) if offer else "")
    ):
        log = counted_log(host, server, changeable)
        log = replace(log, format=options.log_format or log.format)
        logs.append((_checked(log), server.change if changeable and not options.log_format else None))
    return logs


def counted_log(host: str, server: LoggingServer, changeable: bool) -> AccessLog:
    """Return the log of a server as it is counted. `changeable`: the change that adds durations is offered later. A log
    whose lines show no requests has the format of the change, so that they are counted from then on."""
    change = server.change if changeable else None
    return AccessLog(host=host, file=server.log.file, format=server.log.format or (change.log.format if change else ""))


def _checked(log: AccessLog) -> AccessLog:
    """Return the log. Raises UsageError for an invalid format."""
    try:
        parse_format(log.format or "combined")
    except UsageError as error:
        raise UsageError(f"{log.host}: {log.file}: {error}; set it with --log-format") from None
    return log


def _undo_command(options: Namespace) -> str:
    """Return the command that undoes a change on the hosts of the target, without the name of the change."""
    ssh_config = ("--ssh-config", str(options.ssh_config)) if options.ssh_config else ()
    hosts = (word for host in options.host for word in ("--host", host))
    return shlex.join(("cockpit", "tune", *ssh_config, url_without_password(options.target), "undo", *hosts))


async def _configured_logs(
    hosts: Sequence[HostConfig], url: str, ssh_config: Path | None, undo: str
) -> list[tuple[str, LoggingServer]]:
    """Return the logs in the configurations of the hosts' servers, and print them. `undo`: the command that undoes a
    change; "": none is offered. Raises HostError, UsageError."""
    logs = []
    for host in hosts:
        shell = await open_shell(host, ssh_config)
        try:
            here = is_on_host(url, host, ssh_config)
            remote = privileged(host, shell)
            server = await find_access_log(remote, host.name, url, here)
            if server is not None and host.changes_outside:
                # The files outside are other ones.
                server = server._replace(change=None)
            if server is not None and undo:
                server = await with_durations(remote, host.name, server, undo)
        finally:
            await shell.close()
        if server is not None:
            written = server.log.format or "neither status nor duration of requests"
            words = f"{host.name}: {server.title} logs to {server.log.file}: {written}"
            print(f"cockpit: {sanitize(words)}", file=sys.stderr)
            logs.append((host.name, server))
    if not logs:
        names = ", ".join(host.name for host in hosts)
        raise UsageError(f"no server with a known access log runs on {names}; {NAME_IT}")
    return logs
