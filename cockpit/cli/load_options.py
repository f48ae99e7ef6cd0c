"""The load plan of a profile and flags."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.analysis.thresholds import Threshold, distinct, parse_threshold
from cockpit.cli.addresses import addresses_of
from cockpit.cli.load_arguments import given_flags
from cockpit.cli.trusting import require_trust
from cockpit.model.errors import NoProfile, ProfileError, UsageError
from cockpit.model.hosts import GeneratorConfig
from cockpit.model.load import Expect, LoadPlan, Stage
from cockpit.model.metrics import is_host_metric
from cockpit.model.study import located
from cockpit.model.text import neutral
from cockpit.model.units import parse_count, parse_duration, parse_rate
from cockpit.profiles import catalogue
from cockpit.profiles.plan import (
    NAMED,
    NO_BODY,
    Wrong,
    body_of,
    check_plan,
    checked_url,
    headers_of,
    is_address,
    make_plan,
    paths_of,
    replay_of,
    think_time_of,
    without_credentials,
)
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.profiles.sections import LoadSection, TargetSection

# Maximum characters of a name in an error.
_SHOWN = 200

# Flags by the profile's key, for errors.
FLAGS = {
    "load": "-n, -z and --ladder",
    "load.auth": "-a",
    "load.body_file": "-D",
    "load.cookies": "--cookies",
    "load.headers": "-H",
    "load.method": "-m",
    "load.replay_log": "--replay-log",
    "load.replay_speed": "--speed",
    "load.requests": "-n",
    "load.requests_per_connection": "--requests-per-connection",
    "load.sockets_per_user": "--sockets-per-user",
    "load.stages": "--ladder",
    "load.think_time": "--think-time",
    "load.workers": "-w",
    "target.url": "URL",
    "target.urls": "--urls",
    "tls.key": "--key",
}

# Flags that would apply to only one of several requests.
_OF_A_REQUEST = ("method", "header", "auth", "data", "data_file", "content_type", "expect_status", "expect_body")


def chosen_profile(options: Namespace) -> Profile:
    """Return the profile, or one made of a URL, with the flags applied. Raises UsageError, ProfileError."""
    profile = named_profile(options.target)
    thresholds_of(profile, [])
    require_trust(profile, options.target, accepted=options.trust)
    with errors_name_flags():
        plan = with_flags(profile.plan, options)
        check_plan(plan)
    if plan.replay is not None:
        _announce(plan)
    return _from_machines(at_address(replace(profile, plan=plan), options.ssh_config), options)


def at_address(profile: Profile, ssh_config: Path | None) -> Profile:
    """Return the profile with the address of a target whose name only ssh_config has."""
    name = urlsplit(profile.plan.url).hostname
    if not profile.hosts or not name:
        return profile
    return replace(profile, plan=located(profile.plan, addresses_of([name], ssh_config)))


def _from_machines(profile: Profile, options: Namespace) -> Profile:
    """Return the profile with the generators or the cluster that the flags name. Raises UsageError for both."""
    if options.generators and options.cluster:
        raise UsageError("--generators and --cluster: load comes from one of them; leave one out")
    if options.cluster:
        return replace(profile, cluster=options.cluster, generators=())
    if options.generators:
        return replace(profile, generators=tuple(GeneratorConfig(name=name, ssh=name) for name in options.generators))
    return profile


def _announce(plan: LoadPlan) -> None:
    """Print the number of requests that are replayed, and those that are not. Raises UsageError."""
    from cockpit.load.log_reader import read_log

    log = read_log(plan)
    for line in (log.summary, *log.warnings):
        print(f"cockpit: {line}", file=sys.stderr)


@contextmanager
def errors_name_flags(flags: Mapping[str, str] = FLAGS) -> Iterator[None]:
    """Raise Wrong as a UsageError that names the flag in place of the profile's key."""
    try:
        yield
    except Wrong as error:
        raise UsageError(error.problem, subject=flags.get(error.key, error.key)) from None


def thresholds_of(profile: Profile, more: list[str]) -> tuple[Threshold, ...]:
    """Return the thresholds of the profile and the command line. Raises ProfileError, UsageError."""
    hosts = [host.name for host in profile.hosts]
    return thresholds_for(f"{profile.name}: check.thresholds", profile.thresholds, more, hosts)


def thresholds_for(key: str, own: Sequence[str], more: Sequence[str], hosts: list[str]) -> tuple[Threshold, ...]:
    """Parse `own` (of the profile's `key`) and `more` (of the command line). Raises ProfileError, UsageError."""
    try:
        parsed = [_threshold(text, hosts) for text in own]
    except UsageError as error:
        raise ProfileError(f"{key}: {error}") from None
    return distinct((*parsed, *(_threshold(text, hosts) for text in more)))


def _threshold(text: str, hosts: list[str]) -> Threshold:
    threshold = parse_threshold(text)
    host, _, rest = threshold.name.partition(".")
    if is_host_metric(rest) and host not in hosts:
        raise UsageError(f"{text!r}: no host {host!r} is watched; hosts of this profile: {', '.join(hosts) or 'none'}")
    return threshold


def with_flags(plan: LoadPlan, options: Namespace) -> LoadPlan:
    """Return the plan with the given flags applied; a flag with the name of a field of the plan replaces that field.

    Raises Wrong, UsageError."""
    same = {name: getattr(options, name) for name in given_flags(options) if name in plan.__struct_fields__}
    if options.workers == "auto":
        same["workers"] = 1
    changed = replace(plan, **(same | _amount(plan, options) | _request(plan, options) | _way(plan, options)))
    return replace(changed, workers=_worker_per_cpu(changed)) if options.workers == "auto" else changed


def _amount(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if options.concurrency is not None and (options.rate or options.replay_log or plan.replay):
        if options.max_in_flight is not None:
            raise UsageError("-c and --max-in-flight: with -q both limit the requests in flight; leave one out")
        # As in oha: the rate of all connections together; -c limits the requests in flight.
        changes |= {"max_in_flight": options.concurrency, "concurrency": plan.concurrency}
    elif options.concurrency is not None:
        changes["rate"] = None
    if options.poisson:
        changes |= {"arrivals": "poisson", "seed": options.seed}
    if options.replay_log is not None or options.replay_speed is not None:
        changes |= _replay(plan, options)
    if options.think_time is not None:
        changes["think_time"] = think_time_of(options.think_time)
    if options.ladder:
        changes |= {"stages": _ladder(options), "requests": None, "duration": None, "rate": None}
    if options.requests is not None or options.duration is not None:
        changes |= {"requests": options.requests, "duration": options.duration, "stages": ()}
    if options.ladder and (options.requests or options.duration):
        raise UsageError("--ladder has its own duration; leave -n and -z out")
    if options.ladder and options.rate:
        raise UsageError("--ladder has its own rates; leave -q out")
    return changes


def _replay(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    """Return the replay of a log, which lasts until its end unless -n or -z is given."""
    if options.replay_log is None and plan.replay is not None:
        return {"replay": replace(plan.replay, speed=options.replay_speed)}
    replay = replay_of(options.replay_log, options.replay_speed, NAMED)
    return {"replay": replay, "rate": options.rate, "stages": (), "requests": None, "duration": None}


def _worker_per_cpu(plan: LoadPlan) -> int:
    """Return one worker per available CPU, at most one per connection."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    levels = [stage.concurrency for stage in plan.stages if stage.concurrency]
    most = plan.max_in_flight if plan.open else min(levels, default=plan.concurrency)
    return max(1, min(cpus, most))


def _ladder(options: Namespace) -> tuple[Stage, ...]:
    levels, colon, duration = options.ladder.rpartition(":")
    try:
        if not colon:
            raise ValueError("it has no duration")
        seconds = parse_duration(duration)
        return tuple(_load_level(level, seconds) for level in levels.split(","))
    except ValueError as error:
        raise UsageError(
            f"{options.ladder!r}: {error}; write it as 1,2,4:30s or 500/s,1k/s:30s", subject="--ladder"
        ) from None


def _load_level(text: str, seconds: float) -> Stage:
    if text.endswith("/s"):
        return Stage(duration=seconds, rate=parse_rate(text))
    return Stage(duration=seconds, concurrency=parse_count(text))


def _request(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    _check_mix(plan, options)
    if options.url is not None:
        changes["url"] = checked_url(options.url)
        scheme, authority, *_ = urlsplit(changes["url"])
        mix = ((each, urlsplit(each.url)._replace(scheme=scheme, netloc=authority)) for each in plan.mix)
        changes["mix"] = tuple(replace(each, url=url.geturl()) for each, url in mix)
    body = _body(options)
    if body != NO_BODY:
        changes |= body | {"method": options.method or "POST"}
    given = headers_of("load", given_headers(options.header, options.content_type), options.auth)
    if given:
        names = {name.lower() for name, _ in given}
        changes["headers"] = (*(own for own in plan.headers if own[0].lower() not in names), *given)
    if options.urls:
        changes["paths"] = paths_of(options.urls, options.order, options.seed, NAMED)
        if options.order == "once" and options.requests is None and options.duration is None:
            changes |= {"requests": None, "duration": None}
    if options.expect_status or options.expect_body is not None:
        changes["expect"] = Expect(statuses=options.expect_status or (), contains=options.expect_body)
    return changes


def _check_mix(plan: LoadPlan, options: Namespace) -> None:
    """Raise UsageError for flags that would apply to only one of several requests."""
    given = [flag for name, flag in given_flags(options).items() if name in _OF_A_REQUEST]
    if plan.mix and given:
        raise UsageError(f"{', '.join(given)}: the profile has several [[request]] blocks; change it there")


def given_headers(texts: list[str], content_type: str | None) -> list[tuple[str, str]]:
    """Return every -H as name and value, and -T unless a -H has the type. Raises UsageError."""
    headers = [_header(text) for text in texts]
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", content_type))
    return headers


def _way(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if options.local_address:
        changes["local_addresses"] = tuple(options.local_address)
    tls = {"ca": options.cacert, "cert": options.cert, "key": options.key, "sni": options.sni}
    for name in ("ca", "cert", "key"):
        if tls[name] and not is_there(tls[name]):
            raise UsageError(f"{tls[name]}: no such file")
    given = {name: str(value) for name, value in tls.items() if value}
    if given or options.insecure:
        changes["tls"] = replace(plan.tls, verify=plan.tls.verify and not options.insecure, **given)
    return changes


def named_profile(target: str) -> Profile:
    """Return the profile of that path or name, or one made of a URL. Raises UsageError, ProfileError."""
    if "://" in target:
        return _of_url(target)
    path = Path(target)
    if "/" in target and is_there(path):
        return read_profile(path)
    known = catalogue.find(target)
    others = [_path_given(path) for path in catalogue.passed_over(target)]
    if known is not None:
        if others:
            print(
                f"cockpit: {target}: using {known}; other files need their path: {', '.join(others)}", file=sys.stderr
            )
        return read_profile(known)
    if is_address(target):
        return _of_url(target)
    name = without_credentials(target)
    name = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    raise NoProfile(f"{name or repr('')}: no such profile; {_way_out(target, others)}")


def _of_url(url: str) -> Profile:
    with errors_name_flags():
        return Profile(name="url", plan=make_plan(TargetSection(url=url), LoadSection()))


def _way_out(target: str, files: list[str]) -> str:
    """Return the next step after an unknown profile name."""
    if files:
        return f"a file needs a path: {', '.join(files)}"
    names = catalogue.names()
    near = get_close_matches(target, names, 1) if len(target) <= _SHOWN else []
    known = f"a file needs a path (./x.toml); known profiles: {', '.join(names) or 'none'}"
    return f"a URL is http://host or host:port; {f'did you mean {near[0]}?' if near else known}"


def _path_given(path: Path) -> str:
    return neutral(str(path) if path.is_absolute() else f"./{path}")


def is_there(path: Path) -> bool:
    """Return whether the path exists; False for an impossible name (too long, with a NUL)."""
    return os.path.exists(path)  # noqa: PTH110


def _body(options: Namespace) -> dict[str, Any]:
    if options.data is not None and options.data_file is not None:
        raise UsageError("-d and -D: leave one out")
    return body_of("load", options.data, None if options.data_file is None else str(options.data_file), NAMED)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"{text!r}: write it as 'Name: value'", subject="-H")
    return name.strip(), value.strip(" \t")
