"""A duet: two variants under the same load at the same moments, in one process and one event loop.

Whatever disturbs the generator or the machine disturbs both. Each variant has an engine of its own with the same plan
and the same draws, so that open load arrives at both at the same instants, and closed load has the same number of
connections. The engines take turns in random order. All connections are renewed after each slot: which worker of a
server accepts which connection is a matter of luck, and must not last for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from time import monotonic
from typing import Any, Literal

from msgspec import convert
from msgspec.structs import replace

from cockpit.load.engine import Engine, Hooks
from cockpit.load.file_limit import raise_file_limit
from cockpit.load.http.load_socket import Handler
from cockpit.load.http.protocol import Assignment
from cockpit.load.poller import Poller
from cockpit.load.ramp import Ramp
from cockpit.model.counts import Group, LoadCounts, sums
from cockpit.model.tick import Tick

# Seconds between renewals of all connections.
SLOT = 5.0


class DuetLoad:
    """Runs one worker's share of a duet; the interface is that of Engine. Ticks have the counts of each variant in
    `groups`, and CPU and CPU wait of the process once."""

    def __init__(
        self,
        assignment: Assignment,
        poller: Poller,
        hooks: Hooks,
        make: Callable[[Assignment, Poller, Hooks], Engine],
    ) -> None:
        self.assignment = assignment
        self.handlers: dict[int, Handler] = {}
        self._names = tuple(variant.name for variant in assignment.plan.variants)
        self._hooks = hooks
        self._draw = Random(f"{assignment.plan.seed} {assignment.worker}")
        self._ticked = 0
        # The ticks of the engines whose phase has ended, by number.
        self._ended: dict[int, Tick] = {}
        self._since = 0.0
        addresses = (assignment.address, assignment.opposite)
        self._engines: list[Engine] = []
        for number, (plan, address) in enumerate(zip(assignment.plan.parts, addresses, strict=True)):
            own = replace(assignment, plan=plan, address=address, opposite=())
            engine = make(own, poller, Hooks(self._count_tick, partial(self._end_phase, number)))
            engine.handlers = self.handlers
            self._engines.append(engine)

    @property
    def reason(self) -> Literal["completed", "stopped"]:
        return self._engines[0].reason

    def run(self, at: float) -> None:
        """Run the load from `at` (s of time.monotonic()) until the end of the plan of either variant."""
        self._since = at
        for engine in self._engines:
            engine.begin(at)
        now, renewal = monotonic(), at + SLOT
        poll, tally = self._engines[0].waits(), self._engines[0].tally
        turns = list(self._engines)
        while not any(engine.over for engine in turns):
            wait = max(0.0, min(renewal, *(engine.due for engine in turns)) - now)
            events = poll(wait)
            before, now = now, monotonic()
            tally.pause = max(tally.pause, now - before - wait)
            for fd, mask in events:
                self.handlers[fd](mask, now)
            if self._draw.random() < 0.5:
                turns.reverse()
            for engine in turns:
                if now >= engine.due:
                    engine.housekeep(now)
            if self._ticked == len(turns):
                self._ticked = 0
                self._hooks.on_tick()
            if now >= renewal:
                renewal += SLOT
                for engine in turns:
                    engine.renew()
        for engine in self._engines:
            engine.finish()

    def stop(self) -> None:
        for engine in self._engines:
            engine.stop()

    def adjust(self, load: Ramp) -> None:
        if not self.assignment.plan.open:
            raise_file_limit(sum(engine.own(int(max(load.first, load.last))) for engine in self._engines))
        for engine in self._engines:
            engine.adjust(load)

    def reassign(self, place: int, workers: int, more: int) -> None:
        for engine in self._engines:
            engine.reassign(place, workers, more)

    def extend(self, until: float) -> None:
        for engine in self._engines:
            engine.extend(until)

    def make_tick(self, start: float, now: float) -> Tick:
        """Return the counts since the last tick, as a tick from `start` to `now`."""
        self._since = now
        ended, self._ended = self._ended, {}
        ticks = [ended.get(at) or engine.make_tick(start, now) for at, engine in enumerate(self._engines)]
        return merged(ticks, self._names)

    def _count_tick(self) -> None:
        self._ticked += 1

    def _end_phase(self, number: int) -> None:
        """End a phase of one engine; both end at the same time, one after the other."""
        self._ended[number] = self._engines[number].make_tick(self._since, monotonic())
        if len(self._ended) == len(self._engines):
            self._hooks.on_cut()


def merged(ticks: Sequence[Tick], names: Sequence[str]) -> Tick:
    """Return the tick of a process from those of its two variants."""
    first, second = ticks
    both: dict[str, Any] = sums(*(convert(tick, LoadCounts, from_attributes=True) for tick in ticks))
    both |= {
        "cpu": first.cpu,
        "groups": {name: convert(tick, Group, from_attributes=True) for name, tick in zip(names, ticks, strict=True)},
        "connections": first.connections + second.connections,
        "in_flight": first.in_flight + second.in_flight,
        "oldest": max(first.oldest, second.oldest),
        "silence": min(first.silence, second.silence),
        "pause": max(first.pause, second.pause),
    }
    return replace(first, **both)
