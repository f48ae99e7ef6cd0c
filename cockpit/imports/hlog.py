"""Imports an HdrHistogram log (1.0 to 1.3) as a run: one tick per interval, with its histogram. Pure.

A log has only one value per request: no statuses, no errors, no bytes. It does not state the unit of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cockpit.imports.formats import LATEST, bounded, duration
from cockpit.imports.hdr import SUM, decode
from cockpit.imports.runs import ForeignRun, check_span, target_of
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

TOOL = "HdrHistogram log"
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
# Tag of service time in cockpit's own logs; response time has no tag.
_SERVICE = "service"
_TIME = re.compile(r"#\[(StartTime|BaseTime): *([0-9.]{1,24}) ")
# A line of a log without a head; all compressed histograms begin with HIST.
_ROW = re.compile(r"(?:Tag=[^,]*,)?[0-9.]+,[0-9.]+,[0-9.]+,HIST")
# Times that are this much (s) before the log's start are relative to it.
_YEAR = 365 * 86_400.0
# The standard writer divides Interval_Max by this.
_SCALE = 1e6


class _Interval(NamedTuple):
    """An interval of the log; `start` and `length` in seconds, `start` as in the file."""

    start: float
    length: float
    tag: str
    latency: Histogram


class _Log(NamedTuple):
    intervals: list[_Interval]
    times: dict[str, float]


def is_hlog(first: str) -> bool:
    return first.startswith(("#[", '"StartTimestamp"')) or _ROW.match(first) is not None


def hlog_run(
    lines: Iterable[str], unit: str = "ns", tag: str | None = None, url: str = "", concurrency: int | None = None
) -> ForeignRun:
    """Return the run of a log. `tag` None: the lines without a tag, or the log's only tag. Raises ValueError."""
    log = _read(lines, UNITS[unit])
    chosen = _chosen(log.intervals, tag)
    first = chosen[0].start
    span = max(interval.start + interval.length for interval in chosen) - first
    check_span(span)
    service = {each.start: each.latency for each in log.intervals if each.tag == _SERVICE} if not chosen[0].tag else {}
    ticks = sorted((_tick(interval, first, service) for interval in chosen), key=lambda tick: tick.t)
    values = sum(interval.latency.count for interval in chosen)
    if not values:
        raise ValueError("no values")
    if sum(interval.latency.total_ns for interval in log.intervals) >= SUM:
        raise ValueError("values add up to decades; choose their unit with --unit ns, us or ms")
    # Little's law: the mean number of requests in flight.
    in_flight = sum(tick.service.total_ns for tick in ticks) / 1e9 / max(span, 1e-3)
    plan = LoadPlan(url=target_of(url), concurrency=concurrency or max(1, round(in_flight)), requests=values)
    return ForeignRun(_began(log.times, first), ticks[-1].t, plan, _warnings(unit, chosen[0].tag), ticks)


def _warnings(unit: str, tag: str) -> tuple[str, ...]:
    lines = f"lines with Tag={tag} of an {TOOL}" if tag else f"an {TOOL}"
    missing = "statuses, errors, bytes, connections, CPU and lag of the generator"
    return (f"imported from {lines}, values in {unit}; not in the file, shown as 0 or none: {missing}",)


def _read(lines: Iterable[str], unit: int) -> _Log:
    intervals: list[_Interval] = []
    times: dict[str, float] = {}
    for number, line in enumerate(lines, 1):
        try:
            if match := _TIME.match(line):
                times[match[1]] = bounded(match[2], LATEST)
            elif line.strip() and not line.startswith(("#", '"')):
                intervals.append(_interval(line.strip(), unit))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not intervals:
        raise ValueError("no intervals")
    return _Log(sorted(intervals, key=lambda interval: interval.start), times)


def _interval(line: str, unit: int) -> _Interval:
    tag = ""
    if line.startswith("Tag="):
        tag, _, line = line.removeprefix("Tag=").partition(",")
    cells = line.split(",")
    if len(cells) != 4:
        raise ValueError(f"{len(cells)} columns instead of 4")
    start, length, longest = bounded(cells[0], LATEST), duration(cells[1]), bounded(cells[2], 1e12)
    return _Interval(start, length, tag, decode(cells[3], unit, longest * _SCALE * unit))


def _chosen(intervals: list[_Interval], tag: str | None) -> list[_Interval]:
    tags = list(dict.fromkeys(interval.tag for interval in intervals))
    if tag is None and "" not in tags and len(tags) > 1:
        raise ValueError(f"several tags; choose one with --tag: {', '.join(each[:40] for each in tags[:10])}")
    chosen = tag if tag is not None else "" if "" in tags else tags[0]
    if chosen not in tags:
        raise ValueError(f"--tag {chosen}: unknown tag; choose one of: {', '.join(each[:40] for each in tags[:10])}")
    return [interval for interval in intervals if interval.tag == chosen]


def _began(times: dict[str, float], first: float) -> float | None:
    """Return the start of the first interval (epoch s); None: the log does not state it."""
    began: float | None = first if first > _YEAR else None
    if "BaseTime" in times:
        began = times["BaseTime"] + first
    elif "StartTime" in times and first < times["StartTime"] - _YEAR:
        began = times["StartTime"] + first
    return None if began is None else bounded(began, LATEST)


def _tick(interval: _Interval, first: float, service: dict[float, Histogram]) -> Tick:
    """Return an interval's tick. Its latency is response time if the log has the interval's service time, too."""
    start = interval.start - first
    service_time = service.get(interval.start)
    return Tick(
        t=start + max(interval.length, 1e-3),
        run=1,
        worker=0,
        start=start,
        sent=interval.latency.count,
        completed=interval.latency.count,
        service=interval.latency if service_time is None else service_time,
        response=EMPTY if service_time is None else interval.latency,
    )
