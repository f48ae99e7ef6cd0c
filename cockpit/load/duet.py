"""A duet: two variants under the same load at the same moments, in one process and one event loop.

Whatever disturbs the generator or the machine disturbs both. Each variant has an engine of its own with the same plan
and the same draws, so that open load arrives at both at the same instants, and closed load has the same number of
connections. The engines take turns in random order. All connections are renewed after each slot: which worker of a
server accepts which connection is a matter of luck, and must not last for the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from time import monotonic
from typing import Any, Literal

from msgspec.structs import replace

from cockpit.load.engine import Engine
from cockpit.load.file_limit import raise_file_limit
from cockpit.load.http.load_socket import Handler
from cockpit.load.http.protocol import Assignment
from cockpit.load.poller import Poller
from cockpit.load.ramp import Ramp
from cockpit.model.counts import Group, LoadCounts, sums
from cockpit.model.tick import Tick

# Seconds between renewals of all connections.
SLOT = 5.0
MakeEngine = Callable[[Assignment, Poller, Callable[[], None], Callable[[], None]], Engine]


class DuetLoad:
    """Runs one worker's share of a duet; the interface is that of Engine. Ticks have the counts of each variant in
    `groups`, and CPU and CPU wait of the process once."""

    def __init__(
        self,
        assignment: Assignment,
        poller: Poller,
        on_tick: Callable[[], None],
        on_cut: Callable[[], None] | None,
        make: MakeEngine,
    ) -> None:
        self.assignment = assignment
        self.handlers: dict[int, Handler] = {}
        self._names = tuple(variant.name for variant in assignment.plan.variants)
        self._on_tick, self._on_cut = on_tick, on_cut or on_tick
        self._draw = Random(f"{assignment.plan.seed} {assignment.worker}")
        self._ticked = self._cut = 0
        self._taken: dict[int, Tick] = {}
        self._since = 0.0
        addresses = (assignment.address, assignment.opposite)
        self._engines: list[Engine] = []
        for number, (plan, address) in enumerate(zip(assignment.plan.parts, addresses, strict=True)):
            own = replace(assignment, plan=plan, address=address, opposite=())
            engine = make(own, poller, self._count_tick, self._cut_of(number))
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
                self._on_tick()
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

    def take(self, start: float, now: float) -> Tick:
        """Return the counts since the last take, as a tick from `start` to `now`."""
        self._since = now
        taken, self._taken = self._taken, {}
        return merged(
            [taken.get(at) or engine.take(start, now) for at, engine in enumerate(self._engines)], self._names
        )

    def _count_tick(self) -> None:
        self._ticked += 1

    def _cut_of(self, number: int) -> Callable[[], None]:
        """Return the function that ends a phase of one engine; both end at the same time, one after the other."""

        def cut() -> None:
            self._taken[number] = self._engines[number].take(self._since, monotonic())
            if len(self._taken) == len(self._engines):
                self._on_cut()

        return cut


def merged(ticks: Sequence[Tick], names: Sequence[str]) -> Tick:
    """Return the tick of a process from those of its two variants."""
    one, two = ticks
    both: dict[str, Any] = {name: getattr(one, name) for name in LoadCounts.__struct_fields__}
    both |= sums(_counts(one), _counts(two))
    both |= {
        "cpu": one.cpu,
        "groups": {name: _group(tick) for name, tick in zip(names, ticks, strict=True)},
        "connections": one.connections + two.connections,
        "in_flight": one.in_flight + two.in_flight,
        "oldest": max(one.oldest, two.oldest),
        "silence": min(one.silence, two.silence),
        "pause": max(one.pause, two.pause),
    }
    return replace(one, **both)


def _counts(tick: Tick) -> LoadCounts:
    return LoadCounts(**{name: getattr(tick, name) for name in LoadCounts.__struct_fields__})


def _group(tick: Tick) -> Group:
    return Group(**{name: getattr(tick, name) for name in Group.__struct_fields__})
