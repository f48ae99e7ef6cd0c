"""Makes a session of imported results: a run, samples of hosts, or both on one clock. Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from cockpit import __version__
from cockpit.imports.host_samples import config_of, host_events, intervals_around
from cockpit.imports.runs import ForeignRun, check_span
from cockpit.imports.sysstat import Statistics, SysstatHost
from cockpit.model.events import AnyEvent, RunEnded, RunStarted, SessionEnded, SessionStarted


class ForeignHost(NamedTuple):
    """An imported host: its name in the session, the name of its file, and assumptions about values that the file does
    not state."""

    name: str
    host: SysstatHost
    file: str
    assumed: tuple[str, ...] = ()


def session_of(name: str, wall: float, run: ForeignRun | None, hosts: Sequence[ForeignHost] = ()) -> Iterator[AnyEvent]:
    """Yield the events of a session. `wall` is the start of the run (epoch s), if its file does not state it.

    Samples of hosts have their own times, which place them beside the run. Raises ValueError.
    """
    began = wall if run is None or run.began is None else run.began
    ends = began + run.seconds if run else 0.0
    placed = [(each, _intervals(each, run, began)) for each in hosts]
    configs = tuple(config_of(each.name, each.host, each.file) for each in hosts)
    if placed:
        first = min(intervals[0].epoch for _, intervals in placed)
        last = max(intervals[-1].epoch for _, intervals in placed)
        # The run starts at a whole second of the session.
        wall = began - max(0, math.ceil(began - first)) if run else first
        check_span(max(ends, last) - wall)
    else:
        wall = began
    target = run.plan.url if run else ""
    yield SessionStarted(t=0.0, wall=wall, version=__version__, name=name, target=target, hosts=configs)
    streams = [
        host_events(config, each.host, intervals, wall, ends - wall, each.assumed)
        for config, (each, intervals) in zip(configs, placed, strict=True)
    ]
    streams += [_run_events(run, began - wall)] if run else []
    t = 0.0
    for event in heapq.merge(*streams, key=attrgetter("t")):
        t = event.t
        yield event
    yield SessionEnded(t=t)


def _intervals(each: ForeignHost, run: ForeignRun | None, began: float) -> Sequence[Statistics]:
    if run is None:
        return each.host.statistics
    try:
        return intervals_around(each.host, began, began + run.seconds)
    except ValueError as error:
        raise ValueError(f"{each.name}: {each.file}: {error}") from None


def _run_events(run: ForeignRun, at: float) -> Iterator[AnyEvent]:
    yield RunStarted(t=at, run=1, plan=run.plan, warnings=run.warnings, totals=run.totals)
    for tick in run.ticks:
        yield replace(tick, start=at + tick.start, t=at + tick.t)
    yield RunEnded(t=at + run.seconds, run=1, reason="completed")
