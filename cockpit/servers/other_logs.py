"""Access logs of programs that are no kind of server here, as requests to replay: load balancers, IIS, JSON. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from cockpit.servers.access_log import LoggedRequest, PartialLog, instant, without_prefix

_ISO = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"
# AWS ALB: type, time, balancer, client, target, 3 durations, 2 statuses, 2 sizes, "request", "user agent".
_ALB = re.compile(rb"(?:https?|h2|grpcs?|wss?) " + _ISO + rb" (?:\S+ ){10}\"(\S+ \S+) [^\"]*\" \"")
# Envoy's default: [time] "method path protocol" status.
_ENVOY = re.compile(rb"\[" + _ISO + rb"\] \"(\S+ \S+) HTTP/[\d.]+\" \d+ ")
# Names of the fields of JSON logs (nginx, Envoy, Traefik, Istio, Kong), in the order of preference.
_TIMES = ("time_iso8601", "time_local", "msec", "start_time", "StartUTC", "@timestamp", "timestamp", "time", "ts")
_METHODS = ("request_method", "RequestMethod", "method")
_TARGETS = ("request_uri", "RequestPath", "path", "uri", "url")
_decode = msgspec.json.decode


def by_pattern(pattern: re.Pattern[bytes]) -> Callable[[bytes], LoggedRequest | None]:
    """Return a parser of lines whose groups are a time in ISO 8601 and a request."""

    def parse(line: bytes) -> LoggedRequest | None:
        match = pattern.match(without_prefix(line))
        at = _instant(match[1].decode()) if match else None
        return LoggedRequest(at, *match[2].split(b" ", 1)) if match and at is not None else None

    return parse


def json_request(line: bytes) -> LoggedRequest | None:
    """Return the request of a JSON object with a time, and a request line or a method and a path; None: another."""
    start = line.find(b"{")
    try:
        fields: Any = _decode(line[start:]) if start >= 0 else None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if not isinstance(fields, dict):
        return None
    at = next((at for name in _TIMES if (at := _instant(fields.get(name))) is not None), None)
    words = _first(fields, ("request",)).split(" ")
    method, target = words[:2] if len(words) == 3 else (_first(fields, _METHODS), _first(fields, _TARGETS))
    return LoggedRequest(at, method.encode(), target.encode()) if at is not None and method and target else None


def w3c(directive: bytes) -> Callable[[bytes], LoggedRequest | None] | None:
    """Return a parser for the lines after a `#Fields:` line (IIS, CloudFront); None: it lacks a necessary field."""
    names = directive.split()[1:]
    at = {name: place for place, name in enumerate(names)}
    if not {b"date", b"time", b"cs-method", b"cs-uri-stem"} <= at.keys():
        return None

    def parse(line: bytes) -> LoggedRequest | None:
        words = line.split()
        if len(words) != len(names):
            return None
        began = _instant(f"{words[at[b'date']].decode('latin-1')}T{words[at[b'time']].decode('latin-1')}Z")
        query = words[at[b"cs-uri-query"]] if b"cs-uri-query" in at else b"-"
        target = words[at[b"cs-uri-stem"]] + (b"" if query == b"-" else b"?" + query)
        return None if began is None else LoggedRequest(began, words[at[b"cs-method"]], target)

    return parse


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str)), "")


def _instant(value: Any) -> float | None:
    """Return the seconds since the epoch of a time in ISO 8601, in common log format, or in seconds as a number."""
    try:
        if isinstance(value, str) and "/" in value:
            return instant(value.encode())
        if isinstance(value, str) and "T" in value:
            # Python 3.11 reads at most microseconds.
            moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < 1e11 else None


NO_FIELDS = PartialLog(
    re.compile(b"#Fields:"), "its #Fields lack date, time, cs-method or cs-uri-stem", "log these fields, too"
)
JSON_WITHOUT_REQUEST = PartialLog(
    re.compile(rb"[^{]{0,200}\{\s*\""),
    "JSON without a known time and request",
    'log "time_iso8601" and "request", as in nginx\'s variables',
)
OTHER_LOGS = (by_pattern(_ALB), by_pattern(_ENVOY), json_request)
