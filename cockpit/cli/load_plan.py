"""Load plan of a profile with flags applied."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.cli.load_arguments import given_flags
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import Invalid, conflict
from cockpit.model.load.options import LOAD_OPTIONS
from cockpit.model.load.plan import Expect, LoadPlan, Stage, at_target
from cockpit.model.units import parse_count, parse_duration, parse_ramp, parse_rate
from cockpit.profiles.plan import NAMED, NO_BODY, body_of, checked_url, headers_of, paths_of, replay_of, think_time_of

# Flags by profile key, for errors.
FLAGS = {
    "load": "-n, -z and --levels",
    "load.auth": "-a",
    "load.body_file": "-D",
    "load.headers": "-H",
    "load.http": "--http",
    "load.method": "-m",
    "load.replay_log": "--replay-log",
    "load.replay_speed": "--speed",
    "load.stages": "--levels",
    "load.think_time": "--think-time",
    "load.workers": "-w",
    "target.expect.status": "--expect-status",
    "target.url": "URL",
    "target.urls": "--urls",
    "target.unix": "--unix-socket",
    "tls.key": "--key",
} | {f"load.{option.name}": option.flags.partition(" ")[0] for option in LOAD_OPTIONS.values() if option.flags}

# Flags of a single request, which do not apply to a mix of requests.
_REQUEST_FLAGS = ("method", "header", "auth", "data", "data_file", "content_type", "expect_status", "expect_body")


@contextmanager
def errors_name_flags(flags: Mapping[str, str] = FLAGS) -> Iterator[None]:
    """Raise Invalid as a UsageError that names the flag in place of the profile's key."""
    try:
        yield
    except Invalid as error:
        raise UsageError(error.problem, subject=flags.get(error.key, error.key)) from None


def with_flags(plan: LoadPlan, options: Namespace) -> LoadPlan:
    """Return the plan with the given flags applied; a flag named like a field of the plan replaces this field.

    Raises Invalid, UsageError."""
    same = {name: getattr(options, name) for name in given_flags(options) if name in plan.__struct_fields__}
    if options.workers == "auto":
        same["workers"] = 1
    changed = replace(plan, **(same | _amount(plan, options) | _request(plan, options) | _connection(plan, options)))
    return replace(changed, workers=_worker_per_cpu(changed)) if options.workers == "auto" else changed


def _amount(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes = _load(plan, options)
    if options.poisson:
        changes |= {"arrivals": "poisson", "seed": options.seed}
    if options.replay_log is not None or options.replay_speed is not None:
        changes |= _replay(plan, options)
    if options.think_time is not None:
        changes["think_time"] = think_time_of(options.think_time)
    if options.levels:
        changes |= {"stages": _levels(options), "requests": None, "duration": None, "rate": None}
        changes["ramp_to"] = None
    if options.requests is not None or options.duration is not None:
        changes |= {"requests": options.requests, "duration": options.duration, "stages": ()}
    if options.levels and (options.requests or options.duration):
        raise UsageError(conflict("-n and -z, since it sets the duration of each load level"), "--levels")
    if options.levels and options.rate:
        raise UsageError(conflict("-q, since it sets the rate of each load level"), "--levels")
    return changes


def _load(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name in ("concurrency", "rate"):
        if (given := getattr(options, name)) is not None:
            changes |= dict(zip((name, "ramp_to"), given, strict=True))
    if options.concurrency is not None and (options.rate or options.replay_log or plan.replay):
        most, ramp_to = options.concurrency
        if ramp_to is not None:
            raise UsageError("with -q it is the maximum in flight, which cannot be a ramp", "-c")
        if options.max_in_flight is not None:
            raise UsageError(conflict("--max-in-flight, since both limit the requests in flight with -q"), "-c")
        # As in oha: -q is the rate of all connections together, and -c limits the requests in flight.
        changes |= {"max_in_flight": most, "concurrency": plan.concurrency}
    elif options.concurrency is not None:
        changes["rate"] = None
    return changes


def _replay(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    """Return the replay of a log, to its end unless -n or -z is given."""
    if options.replay_log is None and plan.replay is not None:
        return {"replay": replace(plan.replay, speed=options.replay_speed)}
    replay = replay_of(options.replay_log, options.replay_speed, NAMED)
    return {
        "replay": replay,
        "rate": options.rate and options.rate[0],
        "ramp_to": None,
        "stages": (),
        "requests": None,
        "duration": None,
    }


def _worker_per_cpu(plan: LoadPlan) -> int:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    levels = [stage.concurrency for stage in plan.stages if stage.concurrency]
    most = plan.max_in_flight if plan.open else min(levels, default=plan.concurrency)
    return max(1, min(cpus, most))


def _levels(options: Namespace) -> tuple[Stage, ...]:
    levels, colon, duration = options.levels.rpartition(":")
    try:
        if not colon:
            raise ValueError("has no duration")
        seconds = parse_duration(duration)
        return tuple(_load_level(level, seconds) for level in levels.split(","))
    except ValueError as error:
        raise UsageError(
            f"{options.levels!r}: {error}; write it as 1,2,4:30s, 500/s,1k/s:30s or 10:200:60s (a ramp)",
            subject="--levels",
        ) from None


def _load_level(text: str, seconds: float) -> Stage:
    if text.endswith("/s"):
        rate, ramp_to = parse_ramp(text, parse_rate)
        return Stage(duration=seconds, rate=rate, ramp_to=ramp_to)
    concurrency, ramp_to = parse_ramp(text, parse_count)
    return Stage(duration=seconds, concurrency=concurrency, ramp_to=ramp_to)


def _request(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    _check_mix(plan, options)
    if options.url is not None:
        retargeted = at_target(plan, checked_url(options.url))
        changes |= {"url": retargeted.url, "mix": retargeted.mix}
    body = _body(options)
    if body != NO_BODY:
        changes |= body | {"method": options.method or "POST"}
    given = headers_of("load", given_headers(options.header, options.content_type), options.auth)
    if given:
        names = {name.lower() for name, _ in given}
        changes["headers"] = (*(own for own in plan.headers if own[0].lower() not in names), *given)
    if options.urls:
        changes["paths"] = paths_of(options.urls, options.order, options.seed, NAMED, changes.get("url", plan.url))
        if options.order == "once" and options.requests is None and options.duration is None:
            changes |= {"requests": None, "duration": None}
    if options.expect_status or options.expect_body is not None:
        changes["expect"] = Expect(statuses=options.expect_status or (), contains=options.expect_body)
    return changes


def _check_mix(plan: LoadPlan, options: Namespace) -> None:
    """Raise UsageError for flags of a single request if the profile has several."""
    given = [flag for name, flag in given_flags(options).items() if name in _REQUEST_FLAGS]
    if plan.mix and given:
        raise UsageError(f"{', '.join(given)}: the profile has several [[request]] blocks; change it there")


def given_headers(texts: list[str], content_type: str | None) -> list[tuple[str, str]]:
    """Return every -H as name and value, and -T unless a -H has the type. Raises UsageError."""
    headers = [_header(text) for text in texts]
    if content_type and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("Content-Type", content_type))
    return headers


def _connection(plan: LoadPlan, options: Namespace) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if options.local_address:
        changes["local_addresses"] = tuple(options.local_address)
    tls = {"ca": options.cacert, "cert": options.cert, "key": options.key, "sni": options.sni}
    for name in ("ca", "cert", "key"):
        if tls[name] and not is_there(tls[name]):
            raise UsageError(f"{tls[name]}: no such file")
    given = {name: str(value) for name, value in tls.items() if value}
    if given or options.insecure or options.no_resumption:
        verify, resumption = plan.tls.verify and not options.insecure, plan.tls.resumption and not options.no_resumption
        changes["tls"] = replace(plan.tls, verify=verify, resumption=resumption, **given)
    return changes


def is_there(path: Path) -> bool:
    """Return whether the path exists; False for an impossible name (too long, with a NUL)."""
    return os.path.exists(path)  # noqa: PTH110


# The habit of wrk and hey.
_DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|h)")


def _body(options: Namespace) -> dict[str, Any]:
    if options.data is not None and options.data_file is not None:
        raise UsageError(conflict("-D"), "-d")
    if options.data and _DURATION.fullmatch(options.data) and not (options.method or options.content_type):
        raise UsageError(
            f"{options.data} would be sent as the body; did you mean -z {options.data}? Else add -m POST", "-d"
        )
    return body_of("load", options.data, None if options.data_file is None else str(options.data_file), NAMED)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"{text!r}: write it as 'Name: value'", subject="-H")
    return name.strip(), value.strip(" \t")
