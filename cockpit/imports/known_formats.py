"""Detects which load generator wrote a file with one line per request. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from cockpit.imports.formats import FORMATS, LATEST, LONGEST, ForeignFormat, ForeignRequest
from cockpit.plugins import additions, guarded

# Start of sar's text, and of its binary file as UTF-8: the magic numbers 0xd596 and 0x2175 (or another, by version).
_SYSSTAT = re.compile(r"Linux .*CPU\)|\ufffd\ufffd[a-z]!")
# Starts of summaries, each with the way to get single requests.
_SUMMARIES = {
    "This is ApacheBench": "rerun it with ab -g FILE",
    "starting benchmark": "rerun it with h2load --log-file=FILE",
    "Summary:": "rerun it with hey -o csv, or oha --output-format csv",
    "{": "rerun k6 with --out csv=FILE, or oha with --output-format json; convert results of vegeta with vegeta encode",
}


@cache
def all_formats() -> tuple[ForeignFormat, ...]:
    """Return FORMATS, then those that packages of others add by the entry point `webcockpit.imports`."""
    taken = [form.tool for form in FORMATS]
    added = additions("imports", ForeignFormat, lambda form: (form.tool,), taken)
    return (*FORMATS, *(_guarded(package, form) for package, form in added))


def _guarded(package: str, form: ForeignFormat) -> ForeignFormat:
    """Return a format of a package of others: its exceptions are those of an invalid file."""

    def read(lines: Iterator[str]) -> Iterator[ForeignRequest]:
        try:
            yield from map(_checked, form.read(lines))
        except ValueError:
            raise
        except Exception as error:
            raise ValueError(f"package {package}: cannot read it: {type(error).__name__}: {error}") from None

    matches = guarded(package, f"import format {form.tool}", form.matches)
    return form._replace(matches=lambda first: bool(matches(first)), read=read)


def _checked(request: ForeignRequest) -> ForeignRequest:
    """Return a request of a package of others. Raises ValueError for impossible times."""
    if not (0 <= request.start <= LATEST and 0 <= request.seconds <= LONGEST):
        raise ValueError(f"a request starts at {request.start} s and lasts {request.seconds} s")
    return request


def known_format(line: str) -> ForeignFormat | None:
    """Return the format of a file that begins with this line."""
    return next((form for form in all_formats() if form.matches(line)), None)


def format_of(first: str) -> ForeignFormat:
    """Return the format of a file by its first line. Raises ValueError with the supported formats."""
    if (form := known_format(first)) is not None:
        return form
    for sign, instead in _SUMMARIES.items():
        if first.lstrip().startswith(sign):
            raise ValueError(f"cannot be imported; {instead}")
    if _SYSSTAT.match(first):
        raise ValueError("a sysstat file that is not JSON; convert it with sadf -j FILE -- -A")
    known = ", ".join(form.tool for form in all_formats())
    others = "summaries of wrk and oha --output-format json; HdrHistogram logs; sadf -j FILE -- -A; text of sar"
    raise ValueError(f"unknown format; supported with one line per request: {known}; others: {others}")
