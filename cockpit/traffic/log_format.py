"""Formats of access logs, as fields between literal texts. Pure.

A format is that of the server's configuration (LogFormat of Apache, log_format of nginx, access_log_format of
gunicorn), or the name of one of PRESETS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from cockpit.model.errors import UsageError
from cockpit.model.load.plan import AccessLog
from cockpit.model.text import sanitize

# Maximum bytes of a line; longer lines are not counted.
MOST_BYTES = 16384
# Maximum digits of a duration (µs); lines with a longer one are not counted.
MOST_DIGITS = 13
# Maximum characters of a format, and of fields in it.
_LONGEST, _MOST_FIELDS = 4096, 100


class FieldRole(StrEnum):
    """The content of a field; SKIP: none that is counted. Durations by their unit."""

    SKIP = "skip"
    STATUS = "status"
    REQUEST = "request"
    METHOD = "method"
    TARGET = "target"
    SECONDS = "s"
    MILLISECONDS = "ms"
    MICROSECONDS = "us"


# Microseconds per unit of a duration.
SCALES = {FieldRole.SECONDS: 1_000_000, FieldRole.MILLISECONDS: 1000, FieldRole.MICROSECONDS: 1}


class Field(NamedTuple):
    """A field, and the text that ends it; "": the end of the line."""

    role: FieldRole
    end: str

    @property
    def is_duration(self) -> bool:
        return self.role in SCALES


class LogFormat(NamedTuple):
    """The text before the first field, and the fields up to the last one that is counted."""

    start: str
    fields: tuple[Field, ...]

    @property
    def scale(self) -> int | None:
        """Microseconds per unit of the duration; None: no duration is logged."""
        return next((SCALES[field.role] for field in self.fields if field.role in SCALES), None)


class LoggedLine(NamedTuple):
    """A request in a log: its status, method, target (with its query), and duration (µs; None: not logged, or in whole
    seconds, as by Apache's %T: a request that takes 10 ms would have 0)."""

    status: int
    method: str
    target: str
    us: int | None


# https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats, and varnishncsa(1).
_APACHE = re.compile(r"%(?:[!\d,]*[<>]?)?(?:\{([^{}%]{0,100})\})?([A-Za-z%]|\^[a-z]{2})")
_APACHE_ROLES = {
    ("", "s"): FieldRole.STATUS,
    ("", "r"): FieldRole.REQUEST,
    ("", "m"): FieldRole.METHOD,
    ("", "U"): FieldRole.TARGET,
    ("", "D"): FieldRole.MICROSECONDS,
    ("", "T"): FieldRole.SECONDS,
    ("s", "T"): FieldRole.SECONDS,
    ("ms", "T"): FieldRole.MILLISECONDS,
    ("us", "T"): FieldRole.MICROSECONDS,
}
# https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format
_NGINX = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_NGINX_ROLES = {
    "status": FieldRole.STATUS,
    "request": FieldRole.REQUEST,
    "request_method": FieldRole.METHOD,
    "request_uri": FieldRole.TARGET,
    "uri": FieldRole.TARGET,
    "request_time": FieldRole.SECONDS,
}
# https://docs.gunicorn.org/en/stable/settings.html#access-log-format
_GUNICORN = re.compile(r"%\(([^()%]{1,60})\)s")
_GUNICORN_ROLES = {
    "s": FieldRole.STATUS,
    "r": FieldRole.REQUEST,
    "m": FieldRole.METHOD,
    "U": FieldRole.TARGET,
    "L": FieldRole.SECONDS,
    "M": FieldRole.MILLISECONDS,
    "D": FieldRole.MICROSECONDS,
}
# Whole numbers at the ends of lines that are all at most this are seconds (Apache's %T), else microseconds (%D).
_LONGEST_SECONDS = 60
# Only seconds have decimals.
_WHOLE, _SECONDS = re.compile(r"\d{1,12}"), re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_COMBINED = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'


def _skip_to(*pairs: tuple[FieldRole, str]) -> LogFormat:
    return LogFormat("", tuple(Field(*pair) for pair in pairs))


# Caddy's JSON, and HAProxy's `option httplog`: their fields have a fixed order.
_CADDY = _skip_to(
    (FieldRole.SKIP, '"method":"'),
    (FieldRole.METHOD, '"'),
    (FieldRole.SKIP, '"uri":"'),
    (FieldRole.TARGET, '"'),
    (FieldRole.SKIP, '"duration":'),
    (FieldRole.SECONDS, ","),
    (FieldRole.SKIP, '"status":'),
    (FieldRole.STATUS, ","),
)
_HAPROXY = _skip_to(
    (FieldRole.SKIP, "] "),
    (FieldRole.SKIP, " "),
    *((FieldRole.SKIP, "/"),) * 5,
    (FieldRole.MILLISECONDS, " "),
    (FieldRole.STATUS, " "),
    (FieldRole.SKIP, '"'),
    (FieldRole.REQUEST, '"'),
)


def parse_format(text: str) -> LogFormat:
    """Return the format of a text, or of the name of a preset. Raises UsageError."""
    return PRESETS.get(text) or _parsed(text)


def _parsed(text: str) -> LogFormat:
    # Both servers write \t as a tab.
    text = text.replace("\\t", "\t")
    if len(text) > _LONGEST or not text.replace("\t", " ").isprintable():
        raise UsageError("log format: too long, or with control characters")
    if _GUNICORN.search(text):
        parsed = _split(text, _GUNICORN, lambda match: _GUNICORN_ROLES.get(match[1]))
    elif _NGINX.search(text):
        parsed = _split(text, _NGINX, lambda match: _NGINX_ROLES.get(match[1] or match[2]))
    else:
        # A configuration file writes a quote as \".
        apache = text.replace('\\"', '"')
        parsed = _split(apache, _APACHE, lambda match: _APACHE_ROLES.get((match[1] or "", match[2])))
    if FieldRole.STATUS not in {field.role for field in parsed.fields}:
        shown = sanitize(text, 60)
        raise UsageError(f"log format {shown!r}: it has no status; give the server's format, or {', '.join(PRESETS)}")
    return parsed


def _split(text: str, pattern: re.Pattern[str], role_of: Callable[[re.Match[str]], FieldRole | None]) -> LogFormat:
    """Return the fields of a format up to the last one that is counted. Raises UsageError."""
    matches = list(pattern.finditer(text))
    if len(matches) > _MOST_FIELDS:
        raise UsageError(f"log format: more than {_MOST_FIELDS} fields")
    starts = [match.start() for match in matches] + [len(text)]
    roles = [role_of(match) or FieldRole.SKIP for match in matches]
    finest = min((role for role in roles if role in SCALES), key=lambda role: SCALES[role], default=None)
    fields = [
        Field(FieldRole.SKIP if role in SCALES and role is not finest else role, text[match.end() : end])
        for role, match, end in zip(roles, matches, starts[1:], strict=True)
    ]
    last = max((at for at, field in enumerate(fields) if field.role is not FieldRole.SKIP), default=-1)
    if any(not field.end for field in fields[: min(last + 1, len(fields) - 1)]):
        raise UsageError("log format: two fields without a text between them")
    return LogFormat(text[: starts[0]], tuple(fields[: last + 1]))


PRESETS: Mapping[str, LogFormat] = {
    "apache": _parsed(f"{_COMBINED} %D"),
    "nginx": _parsed(f"{_COMBINED} %T"),
    "combined": _parsed(_COMBINED),
    "common": _parsed('%h %l %u %t "%r" %>s %b'),
    "caddy": _CADDY,
    "haproxy": _HAPROXY,
}


def is_extendable(log: LogFormat) -> bool:
    """Return whether lines with a further field at their end still have this format."""
    return bool(log.fields[-1].end)


def timed_directives(log: AccessLog) -> str:
    """Return the lines for the server's configuration that add the duration to a log without one."""
    if "$" in log.format:
        line = log.format.replace("\\", "\\\\").replace("'", "\\'")
        return f"log_format timed '{line} $request_time'; access_log {log.file} timed;"
    if "%(" in log.format:
        return f"access_log_format = '{log.format} %(D)s'"
    if "%" not in log.format:
        return "%D at the end of Apache's LogFormat, $request_time at the end of nginx's log_format"
    line = log.format.replace("\\", "\\\\").replace('"', '\\"')
    return f'LogFormat "{line} %D" timed, and CustomLog {log.file} timed in place of the present line'


def match_line(log: LogFormat, line: str) -> LoggedLine | None:
    """Return the request of a line; None: the line has another format."""
    if len(line) > MOST_BYTES or not line.startswith(log.start):
        return None
    at, values = len(log.start), dict[FieldRole, str]()
    for field in log.fields:
        end = _end_of(line, field.end, at)
        if end < 0:
            return None
        if field.role is not FieldRole.SKIP:
            values[field.role] = line[at:end]
        at = end + len(field.end)
    return _request(log, values)


def _end_of(line: str, end: str, at: int) -> int:
    """Return the place of the text that ends a field; servers write a quote within a quoted field as \\"."""
    if not end:
        return len(line)
    place = line.find(end, at)
    while place > at and end[0] == '"' and _is_escaped(line, place, at):
        place = line.find(end, place + 1)
    return place


def _is_escaped(line: str, place: int, at: int) -> bool:
    backslashes = place - at - len(line[at:place].rstrip("\\"))
    return backslashes % 2 == 1


def _request(log: LogFormat, values: Mapping[FieldRole, str]) -> LoggedLine | None:
    status = values[FieldRole.STATUS]
    if not re.fullmatch(r"[1-5]\d\d", status):
        return None
    us, scale = None, log.scale
    if scale is not None:
        duration = next(value for role, value in values.items() if role in SCALES)
        if not (_SECONDS if scale == SCALES[FieldRole.SECONDS] else _WHOLE).fullmatch(duration):
            return None
        us = int(float(duration) * scale + 0.5)
        if us >= 10**MOST_DIGITS:
            return None
        if scale == SCALES[FieldRole.SECONDS] and "." not in duration:
            us = None
    method, _, rest = values.get(FieldRole.REQUEST, "").partition(" ")
    target = rest.rpartition(" ")[0] or rest
    return LoggedLine(int(status), values.get(FieldRole.METHOD, method), values.get(FieldRole.TARGET, target), us)


def likely_format(lines: Sequence[str]) -> str | None:
    """Return the name of the preset that matches most of the lines, one with a duration first; None: no preset matches
    at least half of them."""
    matches = {name: [request for line in lines if (request := match_line(log, line))] for name, log in PRESETS.items()}
    best = max(matches, key=lambda name: len(matches[name]))
    if not lines or 2 * len(matches[best]) < len(lines):
        return None
    whole_seconds = best == "apache" and all((request.us or 0) <= _LONGEST_SECONDS for request in matches[best])
    return "combined" if whole_seconds else best
