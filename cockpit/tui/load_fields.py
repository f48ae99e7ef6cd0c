"""The fields of the load form: texts from a plan, and flags of `cockpit run` from changed texts. Pure."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.analysis.words.timeline import load_words
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import OPEN_HEADERS, REDACTED, LoadPlan, amount_words, at_target, url_without_password
from cockpit.profiles.plan import LONGEST_RUN

# Applies flags of `cockpit run` to a plan. Raises UsageError with the flag as its subject.
LoadParser = Callable[[LoadPlan, Sequence[str]], LoadPlan]

KEEPALIVE, NO_KEEPALIVE = "yes", "no"
# A semicolon separates headers only before `NAME: `: `Accept: text/html; q=0.9; X-Id: 7` is two headers.
_NEXT_HEADER = re.compile(r";\s*(?=[!#$%&'*+.^_`|~0-9A-Za-z-]+:\s)")
# Characters. Longer bodies, and bodies of several lines, are not shown.
_LONGEST_BODY = 500


class FormField(NamedTuple):
    """A field of the form; `flags` are the subjects of its errors, `hint` is shown while the field is empty."""

    name: str
    flags: tuple[str, ...]
    hint: str = ""


FIELDS = (
    FormField("URL", ("--target", "URL")),
    FormField("method", ("-m",)),
    FormField("headers", ("-H",), "Accept: text/html; X-Id: 7"),
    FormField("body", ("-d",), "none"),
    FormField("load", ("-c", "-q"), "20 connections, or 2000/s; 20:200 or 200:2000/s: a ramp to the end of the run"),
    FormField("duration", ("-z",), "60s, 5m20s"),
    FormField("requests", ("-n",), "no limit"),
    FormField("load steps", ("--levels",), "1,2,4:30s or 500/s,1k/s:30s instead of load and duration"),
    FormField("think time", ("--think-time",), "none; 0.5s, 0.2s to 2s or 1s exponential"),
    FormField("HTTP", ("--http",), "1.1; 2, or auto: chosen by the server over TLS"),
    FormField("streams", ("-p",), "1; with HTTP/2, requests in flight per connection"),
    FormField("keep-alive", ("--disable-keepalive",)),
)
_LONG = {
    "URL": "--target",
    "method": "--method",
    "body": "--data",
    "duration": "--duration",
    "requests": "--requests",
    "load steps": "--levels",
    "think time": "--think-time",
    "HTTP": "--http",
    "streams": "--streams",
}


def texts_of(plan: LoadPlan) -> dict[str, str]:
    """Return the text of each field, without the values of secret headers and without a body that does not fit."""
    body = plan.body or ""
    return {
        "URL": url_without_password(plan.url),
        "method": plan.method,
        "headers": "; ".join(f"{name}: {_shown(name, value)}" for name, value in plan.headers),
        "body": body if len(body) <= _LONGEST_BODY and body.isprintable() else "",
        "load": load_words(replace(plan, http="1.1")) if plan.replay else amount_words(plan, ":", ".10g"),
        "duration": "" if plan.duration is None else _duration(plan.duration),
        "requests": str(plan.requests) if plan.requests is not None else "",
        "load steps": _steps(plan),
        "think time": plan.think_time.words if plan.think_time else "",
        "HTTP": plan.http,
        "streams": str(plan.streams),
        "keep-alive": KEEPALIVE if plan.keepalive else NO_KEEPALIVE,
    }


def field_of(flag: str) -> str:
    """Return the field that an error's flag belongs to; "" if the error concerns several fields."""
    return next((field.name for field in FIELDS if flag in field.flags), "")


def plan_from(plan: LoadPlan, texts: Mapping[str, str], parse: LoadParser) -> LoadPlan:
    """Apply the changed texts to the plan. Raises UsageError."""
    before = texts_of(plan)
    changed = {name for name, text in texts.items() if text.strip() != before[name]}
    _check_steps(plan, changed, texts)
    if not texts["URL"].strip():
        raise UsageError("missing; write http://host[:port]/path", subject="URL")
    if changed & {"duration", "requests"}:
        changed |= {"duration", "requests"}
    flags = [flag for name in texts if name in changed for flag in _flags(name, texts[name].strip(), plan)]
    return _with_login(parse(replace(plan, **_without(plan, changed, texts)), flags), plan.url)


def _check_steps(plan: LoadPlan, changed: set[str], texts: Mapping[str, str]) -> None:
    """Raise UsageError if a changed field conflicts with load steps, also with steps that the form does not show."""
    kept = bool(plan.stages) and "load steps" not in changed
    shown = texts["load steps"].strip()
    if not shown and not kept:
        return
    for name, flag in (("load", "-c"), ("duration", "-z"), ("requests", "-n")):
        if name in changed and (name == "load" or texts[name].strip()):
            way_out = "clear them first" if shown else "type other load steps in their place"
            raise UsageError(f"the load steps set the {name}; {way_out}", subject=flag)


def _without(plan: LoadPlan, changed: set[str], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return defaults for the changed attributes that flags can set but not remove."""
    changes: dict[str, Any] = {}
    if "headers" in changed:
        changes["headers"] = ()
    if "body" in changed:
        changes |= {"body": None, "binary": None}
    if "keep-alive" in changed:
        changes["keepalive"] = True
    if "HTTP" in changed:
        changes["http"] = "1.1"
    if "streams" in changed:
        changes["streams"] = 1
    if "think time" in changed:
        changes["think_time"] = None
    if "load" in changed:
        changes["replay"] = None
    if "load steps" in changed:
        changes["stages"] = ()
    if {"duration", "requests"} & changed:
        changes |= {"duration": None, "requests": None}
    ends = any(texts[name].strip() for name in ("duration", "requests", "load steps"))
    ends |= bool(plan.stages) and "load steps" not in changed
    listed = plan.replay is not None and "load" not in changed
    if not ends and not listed and not (plan.paths is not None and plan.paths.order == "once"):
        changes["duration"] = LONGEST_RUN
    return changes


def _flags(name: str, text: str, plan: LoadPlan) -> list[str]:
    if name == "headers":
        headers = [header for header in _NEXT_HEADER.split(text) if header.strip()]
        return [f"--header={header}" for header in _unredacted(headers, plan)]
    if name == "load":
        return [f"--rate={text.removesuffix('/s')}" if text.endswith("/s") else f"--concurrency={text}"]
    if name == "keep-alive":
        return ["--disable-keepalive"] if text == NO_KEEPALIVE else []
    return [f"{_LONG[name]}={text}"] if text or name in ("URL", "method") else []


def _shown(name: str, value: str) -> str:
    return value if name.lower() in OPEN_HEADERS else REDACTED


def _unredacted(headers: Sequence[str], plan: LoadPlan) -> Iterator[str]:
    """Yield the headers with the plan's values in place of redacted ones: the n-th value of a name for its n-th
    header, or for its n-th redacted header if the number of headers changed. Raises UsageError."""
    values: dict[str, deque[str]] = {}
    for known, secret in plan.headers:
        values.setdefault(known.lower(), deque()).append(secret)
    count = Counter(map(_name_of, headers))
    replaced = {name for name, own in values.items() if count[name] == len(own)}
    for header in headers:
        own = values.get(name := _name_of(header), deque())
        redacted = header.partition(":")[2].strip() == REDACTED
        if redacted and not own:
            raise UsageError(f"{name}: no value to keep for {REDACTED}; type the value", subject="-H")
        kept = own.popleft() if own and (redacted or name in replaced) else ""
        yield f"{header.partition(':')[0]}: {kept}" if redacted else header


def _name_of(header: str) -> str:
    return header.partition(":")[0].strip().lower()


def _with_login(plan: LoadPlan, before: str) -> LoadPlan:
    """Return the plan with the login of the URL `before` if its own URL names the same server, without a login."""
    login, at, _ = urlsplit(before).netloc.rpartition("@")
    parts = urlsplit(plan.url)
    if not at or "@" in parts.netloc or _server(plan.url) != _server(before):
        return plan
    return at_target(plan, parts._replace(netloc=f"{login}@{parts.netloc}").geturl())


def _server(url: str) -> tuple[object, ...]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _steps(plan: LoadPlan) -> str:
    """Return load steps in the syntax of --levels; "" if their durations differ."""
    if not plan.stages or len({stage.duration for stage in plan.stages}) > 1:
        return ""
    return f"{','.join(amount_words(stage, ':', '.10g') for stage in plan.stages)}:{_duration(plan.stages[0].duration)}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f}m" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:.10g}s"
