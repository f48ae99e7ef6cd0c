"""The program that follows an access log on its host and counts its lines."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from importlib.resources import files

from cockpit.hosts import tails
from cockpit.traffic.log_format import MOST_BYTES, MOST_DIGITS, SCALES, Field, FieldRole, LogFormat

# Maximum number of route groups; requests of further ones are counted together.
MOST_GROUPS = 100
# Targets whose group is remembered.
_CACHED = 10_000
# Seconds in which a renamed log is still read: processes that finish their requests write to it.
_DRAIN = 30


def program(log: str, fields: LogFormat) -> str:
    """Return the program for a log file; it ends with its channel. Path and format are user text: they are quoted."""
    # Unpredictable, so that a logged request cannot contain it.
    mark = f"\001{secrets.token_hex(8)} "
    settings = {"log": log, "mark": mark, "reader": counter(mark, fields)}
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return tails.script("\n".join([*lines, _text("follow.sh").replace("@DRAIN@", str(_DRAIN))]))


def counter(mark: str, fields: LogFormat) -> str:
    """Return the awk program that counts lines of this format between lines that start with `mark`."""
    settings = (
        *(f"mark = {_quoted(mark)}", f"start = {_quoted(fields.start)}"),
        *(f"most_bytes = {MOST_BYTES}", f"most_groups = {MOST_GROUPS}", f"most_cached = {_CACHED}"),
    )
    text = f"BEGIN {{ {'; '.join(settings)} }}\n{_text('count.awk')}"
    for name, statements in (("FIELDS", _cuts(fields.fields)), ("DURATION", _microseconds(fields.scale))):
        text = text.replace(f"  # {name}", "  " + "\n  ".join(statements))
    return text


def _cuts(fields: Sequence[Field]) -> Iterator[str]:
    """Yield the statements for all fields, and those that make a request of its parts."""
    for field in fields:
        yield from _cut(field)
    roles = {field.role for field in fields}
    if FieldRole.REQUEST not in roles:
        parts = (role if role in roles else '"-"' for role in (FieldRole.METHOD, FieldRole.TARGET))
        yield "request = " + ' " " '.join(parts) + ' " -"'


def _microseconds(scale: int | None) -> Iterator[str]:
    """Yield the statements that check a duration and convert it, as text: numbers would be formatted again."""
    if scale is None:
        yield 'us = "-"'
        return
    if scale == SCALES[FieldRole.SECONDS]:
        yield "if (length(us) > 22 || us !~ /^[0-9]+(\\.[0-9]+)?$/) { invalid++; return }"
        yield 'us = us ~ /\\./ ? sprintf("%.0f", us * 1000000) : "-"'
    else:
        yield "if (length(us) > 12 || us !~ /^[0-9]+$/) { invalid++; return }"
        yield 'if (us ~ /^0/) us = us + 0 ""'
        if scale > 1:
            yield 'if (us != "0") us = us "000"'
    yield "place = length(us) - 3"
    yield f"if (place > {MOST_DIGITS - 3}) {{ invalid++; return }}"
    yield f'if (place > 0) us = substr(us, 1, 3) substr("{"0" * MOST_DIGITS}", 1, place)'


def _cut(field: Field) -> Iterator[str]:
    """Yield the statements that cut a field off the rest of the line, and keep it if it is counted."""
    name = "us" if field.is_duration else field.role
    kept = field.role is not FieldRole.SKIP
    if not field.end:
        yield f"{name} = rest"
        return
    end = _quoted(field.end)
    yield f"place = index(rest, {end})"
    if field.end.startswith('"'):
        yield f'if (escaped && place > 1 && substr(rest, place - 1, 1) == "\\\\") place = unescaped(rest, {end}, place)'
    yield "if (!place) { invalid++; return }"
    if kept:
        yield f"{name} = substr(rest, 1, place - 1)"
    yield f"rest = substr(rest, place + {len(field.end.encode())})"


def _quoted(text: str) -> str:
    """Return a string of awk: all but letters, digits and blanks as octal numbers of its bytes."""
    return '"' + re.sub(rb"[^A-Za-z0-9 ]", lambda match: b"\\%03o" % ord(match[0]), text.encode()).decode() + '"'


def _text(name: str) -> str:
    return (files("cockpit.traffic") / name).read_text(encoding="utf-8")
