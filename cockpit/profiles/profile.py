"""A valid profile, as the rest of the program uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from cockpit.model.errors import UsageError
from cockpit.model.host.samples import GeneratorConfig, HostConfig
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load.checks import Invalid, check_unique
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.study import Study
from cockpit.model.via import command_of
from cockpit.profiles.files import NamedFiles
from cockpit.profiles.knobs import to_knob
from cockpit.profiles.plan import LONGEST_DUET, LONGEST_RUN, NAMED, make_plan, seconds_of, with_variants
from cockpit.profiles.sections import Host, ProfileFile, StatusSection
from cockpit.profiles.study import to_study
from cockpit.servers.registry import STATUS_PAGES


class ProfileSource(msgspec.Struct, frozen=True):
    """The file of a profile. `digest` is the hash of its content and of `files`, the local files named in it."""

    path: str
    digest: str
    files: tuple[str, ...] = ()


class LogTiming(NamedTuple):
    """Values of knobs with which a server logs the durations of requests, and its access log then."""

    values: Mapping[str, str]
    log: AccessLog


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile. `name` is the file name without suffix, or as from `of_url`. `thresholds` and `abort_on` are
    expressions, not parsed yet; the other keys of [check] are as in the file, `max_duration` in seconds.
    `guard`: limits that roll a change back; `ask`: each switch of rounds needs the user's permission. `timings`:
    changes that add durations to the logs of users' traffic.

    `short_study` is the study with the values of [study.short], if there are any. Both are None without [study]. The
    load generators are the `generators`, or the workers of the Dask scheduler at `cluster`, or this machine.
    `source` is None if the profile was not read from a file.
    """

    name: str
    question: str = ""
    plan: LoadPlan
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    actions: tuple[ServerAction, ...] = ()
    thresholds: tuple[str, ...] = ()
    abort_on: tuple[str, ...] = ()
    guard: tuple[str, ...] = ()
    ask: bool = False
    timings: tuple[LogTiming, ...] = ()
    baseline: str = ""
    check_runs: int = 1
    stable: bool = False
    max_duration: float | None = None
    generators: tuple[GeneratorConfig, ...] = ()
    cluster: str = ""
    study: Study | None = None
    short_study: Study | None = None
    source: ProfileSource | None = None

    @property
    def load_elsewhere(self) -> bool:
        """Whether other machines send the load."""
        return bool(self.generators or self.cluster)

    @classmethod
    def of_url(cls, plan: LoadPlan) -> Profile:
        """Return the profile of a load without a file. Its name is the host and path of the URL."""
        parts = urlsplit(plan.without_secrets().url)
        return cls(name=f"{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/"), plan=plan)


def to_profile(name: str, file: ProfileFile, files: NamedFiles = NAMED) -> Profile:
    """Return the profile of the sections. `files` reads the files named in them. Raises Invalid."""
    if file.variant and not file.target.url:
        file = replace(file, target=replace(file.target, url=file.variant[0].url))
    if not file.target.url:
        raise Invalid("target.url", "found nothing; allowed: the URL to load, or two [[variant]] blocks")
    check_unique("generator.name", [generator.name for generator in file.generator])
    generators = tuple(msgspec.convert(machine, GeneratorConfig, from_attributes=True) for machine in file.generator)
    machines = tuple(HostConfig.of_generator(machine) for machine in generators if machine.watch)
    check_unique("host.name", [host.name for host in (*file.host, *machines)])
    check_unique("knob.name", [knob.name for knob in file.knob])
    check_unique("action.name", [action.name for action in file.action])
    hosts = {host.name: host for host in file.host}
    for host in file.host:
        _check_panes(host)
        _check_via(host)
    placed = [(f"knob {knob.name}", knob.host) for knob in file.knob]
    placed += [(f"action {action.name}", action.host) for action in file.action]
    for key, place in placed:
        if place not in hosts:
            allowed = ", ".join(sorted(hosts)) or "none is defined"
            raise Invalid(f"{key}.host", f"found {place!r}; allowed: a [[host]] of this file ({allowed})")
    knobs = tuple(to_knob(knob, hosts[knob.host]) for knob in file.knob)
    _check_actions(knobs, file)
    study = to_study(file, knobs, files) if file.study else None
    return Profile(
        name=name,
        question=file.question.strip(),
        guard=file.guard,
        plan=_plan(file, files),
        hosts=(*(host.config for host in file.host), *machines),
        knobs=knobs,
        actions=tuple(msgspec.convert(action, ServerAction, from_attributes=True) for action in file.action),
        thresholds=file.check.thresholds,
        abort_on=file.check.abort_on,
        baseline=file.check.baseline,
        check_runs=file.check.runs,
        stable=file.check.stable,
        max_duration=seconds_of("check.max_duration", file.check.max_duration),
        generators=generators,
        study=study,
        short_study=to_study(file, knobs, files, short=True) if file.study else None,
    )


def _plan(file: ProfileFile, files: NamedFiles) -> LoadPlan:
    """Return the plan of a run, or of a duet of two variants. Raises Invalid."""
    longest = LONGEST_DUET if file.variant else LONGEST_RUN
    plan = make_plan(file.target, file.load, file.tls, file.request, files, longest)
    return with_variants(plan, file.variant, [host.name for host in file.host])


def _check_actions(knobs: Sequence[Knob], file: ProfileFile) -> None:
    """Check the actions of knobs: each must be on the host of its knob, which a change only writes. Raises Invalid."""
    for knob in knobs:
        known = [action.name for action in file.action if action.host == knob.host]
        if knob.action and knob.action not in known:
            allowed = f"an [[action]] of its host ({', '.join(known) or 'none is defined'})"
            raise Invalid(f"knob {knob.name}.action", f"found {knob.action!r}; allowed: {allowed}")
        if knob.action and not knob.written_only:
            raise Invalid(
                f"knob {knob.name}.action", "not needed: a reload or a command activates the knob; leave it out"
            )


def _check_panes(host: Host) -> None:
    """Check the tails and status pages of a host. Raises Invalid."""
    for command in host.tail:
        if not command.strip() or "\0" in command:
            raise Invalid(f"host {host.name}.tail", f"found {command!r}; allowed: a shell command")
    for page in host.status:
        key = f"host {host.name}.status"
        if page.auth and ":" not in page.auth:
            raise Invalid(f"{key}.auth", "found no colon; allowed: user:password")
        if "@" in page.url.partition("://")[2].partition("/")[0]:
            raise Invalid(f"{key}.url", 'contains a user; use auth = "user:password", which is not recorded')
        if not _is_valid_url(page):
            socket = " or unix:/path" if STATUS_PAGES[page.kind].has_socket else ""
            raise Invalid(f"{key}.url", f"found {page.url!r}; allowed: http://host[:port]/path{socket}")


def _is_valid_url(page: StatusSection) -> bool:
    try:
        parts = urlsplit(page.url)
        served = STATUS_PAGES[page.kind].has_socket if parts.scheme == "unix" else bool(parts.hostname)
        return served and parts.port != 0 and page.url.isprintable() and " " not in page.url
    except ValueError:
        return False


def _check_via(host: Host) -> None:
    if host.changes_outside and not host.via:
        raise Invalid(
            f"host {host.name}.changes_outside",
            "found without via; allowed: together with via, e.g. via = 'podman:web1'",
        )
    try:
        if host.via:
            command_of(host.via)
    except UsageError:
        allowed = "a command, e.g. 'docker exec -i web1', or a name, e.g. docker:web1"
        raise Invalid(f"host {host.name}.via", f"found {host.via!r}; allowed: {allowed}") from None
