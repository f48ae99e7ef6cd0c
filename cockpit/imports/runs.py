"""Converts the requests of another load generator to a run with one tick per second. Pure."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import urlsplit

from cockpit.imports.formats import ForeignFormat, ForeignRequest
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import Expect, LoadPlan, RunTotals
from cockpit.model.tick import Tick

# Maximum length (s) of a session.
LONGEST = 7 * 86_400
UNKNOWN_URL = "http://unknown.invalid/"


@dataclass
class _Second:
    """Requests that ended within a second; `sent` counts those that started within it."""

    sent: int = 0
    size: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    took: array[int] = field(default_factory=lambda: array("q"))


class ForeignRun(NamedTuple):
    """An imported run. `began` in epoch seconds; None: unknown. `seconds` is its length. Times of `ticks` are relative
    to its start. `totals`: the run is from a summary."""

    began: float | None
    seconds: float
    plan: LoadPlan
    warnings: tuple[str, ...]
    ticks: Iterable[Tick]
    totals: RunTotals | None = None


def run_of(
    requests: Iterable[ForeignRequest], form: ForeignFormat, url: str = "", concurrency: int | None = None
) -> ForeignRun:
    """Return the run of requests. `url` "": the URL in the file; `concurrency` None: from overlapping requests.

    Raises ValueError if there are no requests, or if they last more than a week.
    """
    ordered = sorted(requests, key=attrgetter("start"))
    if not ordered:
        raise ValueError("no requests")
    first = ordered[0].start
    span = max(request.start + request.seconds for request in ordered) - first
    check_span(span)
    target = target_of(url, (request.url for request in ordered))
    in_flight = concurrency or _in_flight(ordered, form, span)
    # The tool decided which responses failed; its rules are not in the file.
    expect = Expect() if any(request.passed is not None for request in ordered) else None
    plan = LoadPlan(url=target, concurrency=in_flight, requests=len(ordered), expect=expect)
    ticks = _ticks(ordered, form, span)
    return ForeignRun(first if form.since_epoch else None, ticks[-1].t, plan, _warnings(form, ordered), ticks)


def check_span(seconds: float) -> None:
    """Raise ValueError if a session is too long."""
    if seconds > LONGEST:
        raise ValueError(f"lasts {seconds / 86_400:.0f} days; the maximum is {LONGEST // 86_400}")


def target_of(url: str, urls: Iterable[str] = ()) -> str:
    """Return the URL to record: `url`, else the first valid URL of `urls`. Raises ValueError."""
    if url and not _plain_url(url):
        raise ValueError(f"--target {url}: write it as http://host/path")
    return _plain_url(url) or next(filter(None, map(_plain_url, urls)), UNKNOWN_URL)


def _ticks(requests: Sequence[ForeignRequest], form: ForeignFormat, span: float) -> list[Tick]:
    first = requests[0].start
    seconds: dict[int, _Second] = defaultdict(_Second)
    for request in requests:
        seconds[int(request.start - first)].sent += 1
        _count(seconds[int(request.start + request.seconds - first)], request)
    ends = [
        float(second + 1) if form.granular else min(float(second + 1), max(span, 1e-3))
        for second in range(int(span) + 1)
    ]
    return [_tick(seconds[second], float(second), end) for second, end in enumerate(ends)]


def _plain_url(url: str) -> str:
    """Return a URL without user, query and fragment, which may contain secrets; "" if it is not an HTTP URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        return ""
    place = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path or '/'}"


def _warnings(form: ForeignFormat, requests: Sequence[ForeignRequest]) -> tuple[str, ...]:
    missing = ["CPU and lag of the generator"]
    missing += [] if any(request.size for request in requests) else ["bytes"]
    missing += [] if any(request.status for request in requests) else ["statuses"]
    missing += [form.unlisted] if form.unlisted else []
    warnings = [f"imported from {form.tool}; not in the file, shown as 0 or none: {', '.join(missing)}"]
    if form.granular:
        warnings.append(f"{form.tool} records whole seconds only; counts per second and the rate are inexact")
    return tuple(warnings)


def _count(second: _Second, request: ForeignRequest) -> None:
    second.took.append(round(1e9 * request.seconds))
    if request.error:
        second.errors[request.error] += 1
        return
    second.completed += 1
    second.size += request.size
    if request.status:
        second.statuses[request.status] += 1
    if request.passed is False:
        second.unexpected["assertion" if request.status < 400 else "status"] += 1


def _tick(second: _Second, start: float, t: float) -> Tick:
    return Tick(
        t=t,
        run=1,
        worker=0,
        start=start,
        sent=second.sent,
        completed=second.completed,
        statuses=dict(second.statuses),
        errors=dict(second.errors),
        unexpected=dict(second.unexpected),
        service=Histogram.of(second.took),
        bytes_received=second.size,
        body_bytes=second.size,
    )


def _in_flight(requests: Sequence[ForeignRequest], form: ForeignFormat, span: float) -> int:
    """Return the maximum number of requests in flight; if times are whole seconds, the mean."""
    if form.granular:
        return max(1, round(sum(request.seconds for request in requests) / max(1.0, span)))
    changes: Counter[int] = Counter()
    for request in requests:
        changes[round(1e6 * request.start)] += 1
        changes[round(1e6 * (request.start + request.seconds))] -= 1
    return max(1, *accumulate(changes[instant] for instant in sorted(changes)))
