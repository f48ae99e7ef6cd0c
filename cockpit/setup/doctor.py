"""Examines a profile before it is used: this machine, the target, each host, what can be read and changed there.

Nothing is changed: the target and each status page are requested once, the probe reads twice, commands that test a
configuration run, and values are read. `Scope` limits this.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from enum import Enum, auto
from pathlib import Path

from msgspec.structs import replace

from cockpit.load import limits
from cockpit.load.files import most_connections_here
from cockpit.load.preflight import preflight
from cockpit.load.protocol import assignments, most_connections
from cockpit.model.errors import CockpitError
from cockpit.model.fold_load import load_words
from cockpit.model.knobs import ServerAction
from cockpit.model.load import url_without_password
from cockpit.model.text import counted
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.setup.doctor_host import examine_host
from cockpit.setup.finding import Finding, failed, good, note

MACHINE, TARGET = "this machine", "target"
# CPU use (%) of this machine before any load from which it is reported.
BUSY = 25.0


class Scope(Enum):
    """Limits of an examination. `NO_COMMANDS` runs no command of the profile; `NO_HOSTS` also contacts no host, reads
    no file, and requests the target over the network only."""

    ALL = auto()
    NO_COMMANDS = auto()
    NO_HOSTS = auto()


async def examine(profile: Profile, ssh_config: Path | None = None, scope: Scope = Scope.ALL) -> AsyncIterator[Finding]:
    """Findings as they come, hosts in the order of the profile; all hosts are examined concurrently.

    The profile's secrets are replaced in them: a server's error may quote its request."""
    secrets = Secrets(profile)
    async with aclosing(_findings(profile, ssh_config, scope)) as findings:
        async for finding in findings:
            yield replace(finding, text=secrets.text(finding.text), todo=secrets.text(finding.todo))


async def _findings(profile: Profile, ssh_config: Path | None, scope: Scope) -> AsyncGenerator[Finding, None]:
    checked = _WITHIN[scope](profile)
    hosts = [asyncio.create_task(examine_host(checked, host, ssh_config)) for host in checked.hosts]
    try:
        yield good("profile", _summary(profile))
        for finding in (*machine(profile), *await other_load()):
            yield finding
        if scope is Scope.NO_HOSTS and not _is_plain(profile):
            yield note(TARGET, "no request was sent: the profile is not trusted and names a local file or socket")
        else:
            async for finding in target(profile):
                yield finding
        for host in hosts:
            for finding in await host:
                yield finding
    finally:
        for host in hosts:
            host.cancel()
        await asyncio.gather(*hosts, return_exceptions=True)


def _is_plain(profile: Profile) -> bool:
    return not profile.plan.unix and not (profile.source and profile.source.files)


def _without_hosts(profile: Profile) -> Profile:
    return replace(profile, hosts=(), knobs=(), actions=())


def _without_commands(profile: Profile) -> Profile:
    """Leave out knobs that only a command reads; other commands become actions, so only their existence is checked."""
    tests = [(knob, command) for knob in profile.knobs for command in (knob.test, knob.reload) if command]
    commands = tuple(ServerAction(name=knob.name, host=knob.host, command=command) for knob, command in tests)
    knobs = tuple(
        replace(knob, get="", set="", test="", reload="")
        for knob in profile.knobs
        if knob.in_file or not (knob.get or knob.option)
    )
    return replace(profile, knobs=knobs, actions=(*profile.actions, *commands))


_WITHIN: dict[Scope, Callable[[Profile], Profile]] = {
    Scope.ALL: lambda profile: profile,
    Scope.NO_COMMANDS: _without_commands,
    Scope.NO_HOSTS: _without_hosts,
}


def _summary(profile: Profile) -> str:
    parts = [load_words(profile.plan)]
    parts_of_profile = {
        "host": profile.hosts,
        "knob": profile.knobs,
        "action": profile.actions,
        "threshold": profile.thresholds,
    }
    parts += [counted(len(found), noun) for noun, found in parts_of_profile.items() if found]
    return f"{profile.name} reads: {', '.join([*parts, *(['a study'] if profile.study else [])])}"


def machine(profile: Profile) -> list[Finding]:
    """Whether this machine can send the requested load."""
    plan = profile.plan
    try:
        limits.check(plan)
    except CockpitError as error:
        return [failed(MACHINE, error, "change [load] in the profile, or this machine's limits")]
    most, ports = most_connections_here(), limits.local_ports()
    workers = len(assignments(plan, 0, ()))
    processes = f"{workers} load process{'' if workers == 1 else 'es'}"
    files = "any number of open files" if most is None else f"{most * workers} connections allowed"
    wanted = f"at most {plan.max_in_flight} in flight" if plan.open else f"{most_connections(plan)} connections"
    findings = [good(MACHINE, f"{wanted} from {processes}, {files}; {ports} local ports; {os.cpu_count() or 1} CPUs")]
    if workers > (os.cpu_count() or workers):
        findings.append(note(MACHINE, "more load processes than CPUs", "fewer workers: they would wait for each other"))
    for line in (*limits.fitted(plan)[1], *limits.warnings(plan)):
        findings.append(note(MACHINE, line))
    return findings


async def other_load() -> list[Finding]:
    """Whether other processes use this machine's CPUs, over half a second."""
    import psutil  # slow to import

    share = await asyncio.to_thread(psutil.cpu_percent, 0.5)
    if share < BUSY:
        return []
    text = f"its CPUs are {share:.0f}% busy: the load generator will wait for a CPU, and latencies include that wait"
    return [note(MACHINE, text, "stop other programs, or measure later")]


async def target(profile: Profile) -> AsyncIterator[Finding]:
    """Whether the target answers a request of the load."""
    shown = url_without_password(profile.plan.url)
    own = (*limits.fitted(profile.plan)[1], *limits.warnings(profile.plan))
    try:
        found = await preflight(profile.plan)
    except CockpitError as error:
        yield failed(TARGET, error, "is the server up, is the URL right, does a firewall block it?")
        return
    answer = "takes connections" if found.status is None else f"answers {found.status}"
    yield good(TARGET, f"{shown} {answer} at {', '.join(found.addresses)}")
    for line in found.warnings:
        if line not in own:
            yield note(TARGET, line, "fix the URL, or set the good status in [target] expect")
