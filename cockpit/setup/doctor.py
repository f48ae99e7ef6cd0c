"""Check a profile before it is used: this machine, the target, and each host with its metrics, knobs and actions.

Nothing is changed: the target and each status page are requested once, the probe reads twice, commands that test a
configuration run, and values are read. `Scope` limits these checks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from enum import Enum, auto
from pathlib import Path

from msgspec.structs import replace

from cockpit.analysis.words.timeline import load_words
from cockpit.load import limits
from cockpit.load.file_limit import most_connections_here
from cockpit.load.http.protocol import assignments, most_connections
from cockpit.load.preflight import preflight
from cockpit.model.errors import CockpitError
from cockpit.model.load.plan import url_without_password
from cockpit.model.text import count_text
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.setup.doctor_host import diagnose_host
from cockpit.setup.finding import Finding, failed, note, passed

MACHINE, TARGET = "this machine", "target"
# CPU use (%) of this machine before the load above which it is reported.
BUSY = 25.0


class Scope(Enum):
    """The scope of the checks. `NO_COMMANDS` runs no command of the profile. `NO_HOSTS` also contacts no host, reads no
    file, and requests the target over the network only."""

    ALL = auto()
    NO_COMMANDS = auto()
    NO_HOSTS = auto()


async def diagnose(
    profile: Profile, ssh_config: Path | None = None, scope: Scope = Scope.ALL
) -> AsyncIterator[Finding]:
    """Yield the findings, hosts in the order of the profile. Hosts are checked concurrently.

    Secrets of the profile are replaced in the findings: the error of a server can quote the request."""
    secrets = Secrets(profile)
    async with aclosing(_findings(profile, ssh_config, scope)) as findings:
        async for finding in findings:
            yield replace(finding, text=secrets.text(finding.text), fix=secrets.text(finding.fix))


async def _findings(profile: Profile, ssh_config: Path | None, scope: Scope) -> AsyncGenerator[Finding, None]:
    hosts = [
        asyncio.create_task(diagnose_host(profile, host, ssh_config, execute=scope is Scope.ALL))
        for host in (() if scope is Scope.NO_HOSTS else profile.hosts)
    ]
    try:
        yield passed("profile", _summary(profile))
        for finding in await _generator(profile):
            yield finding
        uses_files = profile.plan.unix or (profile.source and profile.source.files)
        if scope is Scope.NO_HOSTS and uses_files:
            yield note(TARGET, "not requested: the profile is not trusted, and it uses a local file or socket")
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


def _summary(profile: Profile) -> str:
    parts = [load_words(profile.plan)]
    parts_of_profile = {
        "host": profile.hosts,
        "knob": profile.knobs,
        "action": profile.actions,
        "threshold": profile.thresholds,
    }
    parts += [count_text(len(parts_given), noun) for noun, parts_given in parts_of_profile.items() if parts_given]
    return f"{profile.name} is valid: {', '.join([*parts, *(['a study'] if profile.study else [])])}"


async def _generator(profile: Profile) -> list[Finding]:
    """Check this machine, if it sends the load."""
    if profile.load_elsewhere:
        return [passed(MACHINE, "sends no load; the limits of the generators apply, checked when the load starts")]
    return [*machine(profile), *await other_load()]


def machine(profile: Profile) -> list[Finding]:
    """Check whether this machine can send the requested load."""
    plan = profile.plan
    try:
        limits.check(plan)
    except CockpitError as error:
        return [failed(MACHINE, error, "change [load] in the profile, or the limits of this machine")]
    limit, ports = most_connections_here(), limits.local_ports()
    workers = len(assignments(plan, 0, ()))
    processes = f"{workers} load process{'' if workers == 1 else 'es'}"
    files = "no limit of open files" if limit is None else f"at most {limit * workers} by the limit of open files"
    needed = f"at most {plan.max_in_flight} in flight" if plan.open else f"{most_connections(plan)} connections"
    findings = [passed(MACHINE, f"{needed} from {processes}, {files}; {ports} local ports; {os.cpu_count() or 1} CPUs")]
    if workers > (os.cpu_count() or workers):
        findings.append(note(MACHINE, "more load processes than CPUs", "use fewer workers: they compete for the CPUs"))
    for line in (*limits.fit_in_flight(plan)[1], *limits.warnings(plan)):
        findings.append(note(MACHINE, line))
    return findings


async def other_load() -> list[Finding]:
    """Check whether other processes use the CPUs of this machine, over 0.5 s."""
    import psutil  # slow to import

    share = await asyncio.to_thread(psutil.cpu_percent, 0.5)
    if share < BUSY:
        return []
    text = f"CPUs are {share:.0f}% busy without load: the load generator will wait for CPU time, included in latencies"
    return [note(MACHINE, text, "stop other programs, or measure later")]


async def target(profile: Profile) -> AsyncIterator[Finding]:
    """Check whether the target answers a request of the load."""
    shown = url_without_password(profile.plan.url)
    capacity = limits.Capacity(None, 0) if profile.load_elsewhere else limits.capacity_here()
    reported = (*limits.fit_in_flight(profile.plan, capacity)[1], *limits.warnings(profile.plan, capacity))
    try:
        checked = await preflight(profile.plan, capacity)
    except CockpitError as error:
        yield failed(TARGET, error, "is the server up, is the URL correct, does a firewall block the port?")
        return
    answer = "accepts connections" if checked.status is None else f"answers {checked.status}"
    yield passed(TARGET, f"{shown} {answer} at {', '.join(checked.shown)}")
    for line in checked.warnings:
        if line not in reported:
            yield note(TARGET, line, "fix the URL, or set expect or connect_to in [target]")
