"""From flags and a profile to what is to be run."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.analysis.thresholds import Threshold, parse_threshold
from cockpit.cli.trusting import require_trust
from cockpit.model.errors import NoProfile, ProfileError, UsageError
from cockpit.model.load import Expect, LoadPlan, Stage
from cockpit.model.metrics import is_host_metric
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
    make_plan,
    paths_of,
    without_credentials,
)
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.profiles.sections import LoadSection, TargetSection

# The longest name that an error shows whole.
_SHOWN = 200

# Flags by the key of the profile that they stand in for, so that an error names what the user wrote.
FLAGS = {
    "load": "-n, -z and --ladder",
    "load.auth": "-a",
    "load.body_file": "-D",
    "load.headers": "-H",
    "load.method": "-m",
    "load.requests": "-n",
    "load.stages": "--ladder",
    "load.workers": "-w",
    "target.url": "URL",
    "target.urls": "--urls",
    "tls.key": "--key",
}

# Flags that say what a request is, by what they are parsed into.
_OF_A_REQUEST = {
    "method": "-m",
    "header": "-H",
    "auth": "-a",
    "data": "-d",
    "data_file": "-D",
    "content_type": "-T",
    "expect_status": "--expect-status",
    "expect_body": "--expect-body",
}


_OF_A_LOAD = {
    **_OF_A_REQUEST,
    "concurrency": "-c",
    "rate": "-q",
    "requests": "-n",
    "duration": "-z",
    "disable_keepalive": "--disable-keepalive",
    "workers": "-w",
    "url": "--target",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in ("poisson", "max_in_flight", "ladder", "warmup", "extend", "timeout")
    },
    **{name: f"--{name.replace('_', '-')}" for name in ("cpus", "urls", "connect_to", "unix_socket", "local_address")},
    **{name: f"--{name.replace('_', '-')}" for name in ("insecure", "cacert", "cert", "key", "sni", "ssh_config")},
    **{name: f"--{name.replace('_', '-')}" for name in ("record", "hlog", "abort_on", "cap")},
}


def chosen_profile(options: Namespace) -> Profile:
    """The profile, or one made of a URL, with the flags applied. Raises UsageError, ProfileError."""
    try:
        profile = named_profile(options.target)
        thresholds_of(profile, [])
        require_trust(profile, options.target, accepted=options.trust)
        plan = with_flags(profile.plan, options)
        check_plan(plan)
    except Wrong as error:
        raise flagged(error, FLAGS) from None
    return replace(profile, plan=plan)


def flagged(error: Wrong, flags: Mapping[str, str]) -> UsageError:
    """The error with the flag in place of the profile's key."""
    return UsageError(error.problem, subject=flags.get(error.key, error.key))


def thresholds_of(profile: Profile, more: list[str]) -> tuple[Threshold, ...]:
    """The profile's thresholds and those of the command line, parsed. Raises ProfileError, UsageError."""
    hosts = [host.name for host in profile.hosts]
    return thresholds_for(f"{profile.name}: check.thresholds", profile.thresholds, more, hosts)


def thresholds_for(key: str, own: Sequence[str], more: Sequence[str], hosts: list[str]) -> tuple[Threshold, ...]:
    """`own`, which stand under `key`, and `more` of the command line, parsed. Raises ProfileError, UsageError."""
    try:
        parsed = [_threshold(text, hosts) for text in own]
    except UsageError as error:
        raise ProfileError(f"{key}: {error}") from None
    return (*parsed, *(_threshold(text, hosts) for text in more))


def _threshold(text: str, hosts: list[str]) -> Threshold:
    threshold = parse_threshold(text)
    host, _, rest = threshold.name.partition(".")
    if is_host_metric(rest) and host not in hosts:
        raise UsageError(f"{text!r}: no host {host!r} is watched; hosts of this profile: {', '.join(hosts) or 'none'}")
    return threshold


def given_load_flags(options: Namespace) -> list[str]:
    """Those flags that say what load to send, or what to do with it as it is sent."""
    return [flag for name, flag in _OF_A_LOAD.items() if getattr(options, name, None) not in (None, [], (), "", False)]


def with_flags(plan: LoadPlan, options: Namespace) -> LoadPlan:
    """The plan with every flag that was given in place of what it said. Raises Wrong, UsageError."""
    return replace(plan, **_amount(plan, options), **_request(plan, options), **_way(plan, options))


def _amount(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    names = ("concurrency", "rate", "max_in_flight", "warmup", "extend", "timeout", "workers", "cpus")
    changes = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.concurrency is not None and options.rate is not None:
        if options.max_in_flight is not None:
            raise UsageError("-c and --max-in-flight: with -q both limit the requests in flight; leave one out")
        # As in oha: the rate of all connections together, and at most so many of them.
        changes["max_in_flight"] = changes.pop("concurrency")
    elif options.concurrency is not None:
        changes["rate"] = None
    if options.poisson:
        changes |= {"arrivals": "poisson", "seed": options.seed}
    if options.ladder:
        changes |= {"stages": _ladder(options), "requests": None, "duration": None, "rate": None}
    if options.requests is not None or options.duration is not None:
        changes |= {"requests": options.requests, "duration": options.duration, "stages": ()}
    if options.ladder and (options.requests or options.duration):
        raise UsageError("--ladder has its own duration; leave -n and -z out")
    if options.ladder and options.rate:
        raise UsageError("--ladder has its own rates; leave -q out")
    if options.disable_keepalive:
        changes["keepalive"] = False
    if options.workers == "auto":
        changes["workers"] = _one_a_cpu(replace(plan, **(changes | {"workers": 1})))
    return changes


def _one_a_cpu(plan: LoadPlan) -> int:
    """As many workers as this process may use CPUs, and no more than there is load to share."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rungs = [stage.concurrency for stage in plan.stages if stage.concurrency]
    most = plan.max_in_flight if plan.open else min(rungs, default=plan.concurrency)
    return max(1, min(cpus, most))


def _ladder(options: Namespace) -> tuple[Stage, ...]:
    rungs, colon, duration = options.ladder.rpartition(":")
    try:
        if not colon:
            raise ValueError("it has no duration")
        seconds = parse_duration(duration)
        return tuple(_rung(rung, seconds) for rung in rungs.split(","))
    except ValueError as error:
        raise UsageError(f"--ladder {options.ladder!r}: {error}; write it as 1,2,4:30s or 500/s,1k/s:30s") from None


def _rung(text: str, seconds: float) -> Stage:
    if text.endswith("/s"):
        return Stage(duration=seconds, rate=parse_rate(text))
    return Stage(duration=seconds, concurrency=parse_count(text))


def _request(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    _check_mix(plan, options)
    if options.url:
        changes["url"] = checked_url(options.url)
        changes["mix"] = tuple(replace(one, url=_moved(one.url, changes["url"])) for one in plan.mix)
    if options.method:
        changes["method"] = options.method
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
    """Raises UsageError for flags that would have to be about one of several requests."""
    given = [flag for name, flag in _OF_A_REQUEST.items() if getattr(options, name) not in (None, [], ())]
    if plan.mix and given:
        raise UsageError(f"{', '.join(given)}: the [[request]] blocks of the profile say that each; change it there")


def given_headers(texts: list[str], content_type: str | None) -> list[tuple[str, str]]:
    """Every -H as name and value, and the type of -T where no -H gives one. Raises UsageError."""
    headers = [_header(text) for text in texts]
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", content_type))
    return headers


def _moved(url: str, target: str) -> str:
    """`url` at the scheme and authority of `target`."""
    to = urlsplit(target)
    return urlsplit(url)._replace(scheme=to.scheme, netloc=to.netloc).geturl()


def _way(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for flag, name in (("connect_to", "connect_to"), ("unix_socket", "unix")):
        if getattr(options, flag):
            changes[name] = getattr(options, flag)
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
    """The profile of that path or name, or one made of a URL. Raises UsageError, ProfileError, Wrong."""
    if "://" in target:
        return Profile(name="url", plan=make_plan(TargetSection(url=target), LoadSection()))
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
    raise NoProfile(f"{_short(without_credentials(target)) or repr('')}: no such profile; {_way_out(target, others)}")


def _way_out(target: str, files: list[str]) -> str:
    """What to write in place of a name that is no profile's."""
    if files:
        return f"a file needs a path: {', '.join(files)}"
    names = catalogue.names()
    near = get_close_matches(target, names, 1) if len(target) <= _SHOWN else []
    known = f"a file needs a path (./x.toml); known profiles: {', '.join(names) or 'none'}"
    return f"a URL begins with http://; {f'did you mean {near[0]}?' if near else known}"


def _path_given(path: Path) -> str:
    """A path as a command takes it: with a slash."""
    return neutral(str(path) if path.is_absolute() else f"./{path}")


def _short(text: str) -> str:
    """As much of a name as a line of an error can show."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def is_there(path: Path) -> bool:
    """Whether there is such a file; a name that cannot be one (too long, with a NUL) is of none."""
    return os.path.exists(path)  # noqa: PTH110


def _body(options: Namespace) -> dict[str, Any]:
    if options.data is not None and options.data_file is not None:
        raise UsageError("-d and -D: one of the two")
    return body_of("load", options.data, None if options.data_file is None else str(options.data_file), NAMED)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"-H {text!r}: write it as 'Name: value'")
    return name.strip(), value.strip(" \t")
