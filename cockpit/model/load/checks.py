"""Checks of a load plan from any source: a profile, flags, the screen, a study or another machine. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import msgspec

from cockpit.model.errors import UsageError
from cockpit.model.load.options import LOAD_OPTIONS, LONGEST, METHOD, POSITIVE
from cockpit.model.load.plan import Expect, Extraction, LoadPlan, Request, Stage

# A header name (token of RFC 9110).
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_EXPECTED = re.compile(r"^Expected |(, got | - at `).*$")
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


class Invalid(UsageError):
    """An invalid value: its `key` in the profile, or its flag, and the `problem`."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(problem, key)

    @property
    def key(self) -> str:
        return self.subject


def conflict(conflicting: str, fix: str = "use one of the two") -> str:
    """Return the problem of an option that contradicts `other`."""
    return f"conflicts with {conflicting}; {fix}"


_CLOSED = conflict("a rate or a log", "use closed load: concurrency instead of a rate")


def allowed_values(problem: str) -> str:
    """Return the allowed values as text, from msgspec's message about an invalid value."""
    if repr(METHOD) in problem:
        return "a word in capitals, e.g. GET or M-SEARCH"
    words = _EXPECTED.sub("", problem).replace(f"<= {LONGEST}", "of seconds, at most 7 days")
    for name, meaning in _TYPES.items():
        words = words.replace(f"`{name}`", meaning)
    return words.replace(" | ", " or ").replace("matching regex", "matching")


def check_unique(key: str, names: Sequence[str]) -> None:
    """Raises Invalid for a duplicate name."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise Invalid(key, f"found {twice[0]!r} twice; choose unique names")


def check_plan(plan: LoadPlan) -> None:
    """Raises Invalid for a value outside its limits, and for options that conflict."""
    for option in LOAD_OPTIONS.values():
        _check_value(f"load.{option.name}", getattr(plan, option.name), option.limits)
    _check_ramp("load", plan)
    for stage in plan.stages:
        _check_stage(stage)
    _check_headers("load.headers", plan.headers)
    _check_expect("target.expect", plan.expect)
    check_unique("request.name", [request.name for request in plan.mix])
    for request in plan.mix:
        key = f"request {request.name}"
        _check_value(f"{key}.method", request.method, LOAD_OPTIONS["method"].limits)
        _check_value(f"{key}.weight", request.weight, POSITIVE.limits)
        _check_headers(f"{key}.headers", request.headers)
        _check_expect(f"{key}.expect", request.expect)
        for extraction in request.extract:
            _check_extraction(f"{key}.extract", extraction)
    for key, problem in (*_conflicts(plan), *_variant_conflicts(plan)):
        raise Invalid(key, problem)


def _check_value(key: str, value: Any, limits: Any) -> None:
    try:
        msgspec.convert(value, limits)
    except msgspec.ValidationError as error:
        raise Invalid(key, f"found {value!r}; allowed: {allowed_values(str(error))}") from None
    if isinstance(value, float) and not isfinite(value):
        raise Invalid(key, f"found {value}; allowed: a finite number")


def _check_headers(key: str, headers: Sequence[tuple[str, str]]) -> None:
    for name, value in headers:
        if not _TOKEN.fullmatch(name) or any(char in value for char in "\r\n\0"):
            raise Invalid(key, f"found {name!r}; allowed: a header name and a value on one line")
        if name.lower() == "transfer-encoding":
            raise Invalid(key, f"found {name!r}: bodies are sent with a length, never in chunks; remove the header")
        try:
            value.encode("latin-1")
        except UnicodeError:
            raise Invalid(key, f"found {name!r} with a value that is not Latin-1 text") from None


def _check_expect(key: str, expect: Expect | None) -> None:
    if expect is None:
        return
    if expect.matches is not None:
        _check_pattern(f"{key}.matches", expect.matches)
    if expect.sha256 and not _SHA256.fullmatch(expect.sha256):
        raise Invalid(f"{key}.sha256", f"found {expect.sha256!r}; allowed: 64 hexadecimal digits")
    for status in expect.statuses:
        if not 200 <= status <= 999:
            raise Invalid(f"{key}.status", f"found {status}; allowed: a final status such as 200 or 404")


def _check_extraction(key: str, extraction: Extraction) -> None:
    if not _IDENTIFIER.fullmatch(extraction.name):
        raise Invalid(key, f"found the name {extraction.name!r}; allowed: letters, digits and _")
    if extraction.source == "regex":
        _check_pattern(key, extraction.expression)


def _check_pattern(key: str, pattern: str) -> None:
    try:
        re.compile(pattern.encode())
    except re.error as error:
        raise Invalid(key, f"found {pattern!r} ({error}); allowed: a regular expression") from None


def _check_stage(stage: Stage) -> None:
    if (stage.concurrency is None) == (stage.rate is None):
        raise Invalid(
            "load.stages", "found a load level without exactly one of concurrency and rate; allowed: one of the two"
        )
    for name in ("concurrency", "rate", "duration"):
        if getattr(stage, name) is not None:
            _check_value(f"load.stages.{name}", getattr(stage, name), LOAD_OPTIONS[name].limits)
    _check_ramp("load.stages", stage)


def _check_ramp(key: str, load: LoadPlan | Stage) -> None:
    """Raise Invalid for a ramp to an invalid load."""
    name = "concurrency" if load.rate is None else "rate"
    if load.ramp_to is not None:
        whole = name == "concurrency" and float(load.ramp_to).is_integer()
        _check_value(f"{key}.{name}", int(load.ramp_to) if whole else load.ramp_to, LOAD_OPTIONS[name].limits)


def _conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    """Yield the key and the problem of each option that conflicts with another."""
    yield from _schedule_conflicts(plan)
    if plan.requests is not None and not plan.open and plan.requests < plan.concurrency:
        yield "load.requests", f"found {plan.requests}; allowed: at least the concurrency, {plan.concurrency}"
    least = plan.max_in_flight if plan.open else plan.concurrency
    variable = plan.stages or (plan.ramp_to is not None and plan.requests is None)
    if plan.workers > least and not variable:
        yield "load.workers", f"found {plan.workers}; allowed: at most the concurrency, {least}"
    if plan.mix and plan.paths:
        yield "target.urls", conflict("[[request]] blocks")
    if plan.paths is not None and plan.paths.order == "once" and plan.warmup:
        yield "load.warmup", conflict("paths that are used once")
    if plan.tls.key and not plan.tls.cert:
        yield "tls.key", "requires cert; set both, or a cert file that contains the key"
    if plan.unix and (plan.connect_to or plan.local_addresses):
        addresses = "connect_to or local_addresses, since a Unix socket has no addresses"
        yield "target.unix", conflict(addresses, "remove them")
    if plan.streams > 1 and plan.http == "1.1":
        yield (
            "load.streams",
            "requires HTTP/2, since HTTP/1.1 has no streams; set http to 2 or auto",
        )
    if plan.streams > 1 and not plan.keepalive:
        yield "load.streams", conflict("disabled keep-alive, which sends one request per connection")
    if plan.requests_per_connection and not plan.keepalive:
        yield "load.requests_per_connection", conflict("disabled keep-alive")
    if plan.replay is not None:
        yield from _log_conflicts(plan)
    if plan.open:
        closed = {"load.think_time": plan.think_time, "load.cookies": plan.cookies, "request.extract": plan.chained}
        yield from ((key, _CLOSED) for key, given in closed.items() if given)
    yield from _user_conflicts(plan)


def _schedule_conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    end_keys = [name for name in ("requests", "duration") if getattr(plan, name) is not None]
    if plan.stages and end_keys:
        yield "load.stages", conflict(" and ".join(end_keys), "use stages alone")
    if len({stage.rate is None for stage in plan.stages}) > 1:
        yield "load.stages", "found load levels with concurrency and with rate; allowed: all of one kind"
    if plan.ramp_to is not None and plan.duration is None:
        yield f"load.{'concurrency' if plan.rate is None else 'rate'}", "requires a duration for the ramp; set one"
    if plan.burst > 1 and (not plan.open or plan.replay is not None):
        yield "load.burst", "requires a rate, since bursts arrive on a schedule; set load.rate, or remove burst"


def _variant_conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    if not plan.variants:
        return
    if len(plan.variants) != 2 or len({variant.name for variant in plan.variants}) != 2:
        yield "variant", "found other than two variants with names of their own; allowed: exactly two"
    once = plan.paths is not None and plan.paths.order == "once"
    fixed = {"requests": plan.requests is not None, "paths that are used once": once}
    addressed = {"connect_to": plan.connect_to, "unix": plan.unix, "stages": plan.stages, "a ramp": plan.ramp_to}
    given_names = ", ".join(name for name, given in (fixed | addressed).items() if given)
    if given_names:
        yield (
            "variant",
            conflict(given_names, "remove it: two variants get the same load until a verdict or for a time"),
        )


def _log_conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    given_keys = {
        "rate": plan.rate is not None,
        "ramp": plan.ramp_to is not None,
        "stages": plan.stages,
        "warmup": plan.warmup,
        "urls": plan.paths,
        "[[request]]": plan.mix,
        "method": plan.method != "GET",
        "body": plan.content,
    }
    given_names = ", ".join(name for name, given in given_keys.items() if given)
    if given_names:
        yield "load.replay_log", conflict(f"{given_names}, since requests and times are in the log", "remove it")


def _user_conflicts(plan: LoadPlan) -> Iterator[tuple[str, str]]:
    headers = (*plan.headers, *(header for request in plan.mix for header in request.headers))
    if plan.cookies and any(name.lower() == "cookie" for name, _ in headers):
        yield "load.cookies", conflict("a Cookie header")
    if plan.connections_per_user > 1 and (plan.chained or not plan.cookies):
        yield (
            "load.connections_per_user",
            "requires cookies, and requests without extract; enable cookies, or remove it",
        )
    if plan.chained:
        yield from _chain_conflicts(plan.mix)


def _chain_conflicts(chain: tuple[Request, ...]) -> Iterator[tuple[str, str]]:
    missing = {extraction.name for request in chain for extraction in request.extract}
    for request in chain:
        if request.weight != 1:
            yield f"request {request.name}.weight", conflict("a chain, which is sent in order", "remove it")
        for name in sorted(missing):
            if _uses(request, f"{{{name}}}"):
                yield f"request {request.name}", f"{{{name}}} is used before it is taken; reorder the requests"
        missing -= {extraction.name for extraction in request.extract}


def _uses(request: Request, text: str) -> bool:
    texts = (request.url, *(value for _, value in request.headers))
    return any(text in part for part in texts) or text.encode() in request.content
