"""Events of capacity searches, with levels around a capacity."""

from collections.abc import Iterator

from cockpit.model import events as ev
from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded, CapacityOutcome
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

LIMITS = ("p99 < 50ms", "failed < 1%")
# Levels as shares of the capacity; above it, each request is slower than the limit.
_SHARES = (0.5, 1.5, 0.95, 1.05, 0.98, 1.02)
# Time of a level and after it (s).
_LEVEL, _BETWEEN = 5, 1
SECONDS = len(_SHARES) * (_LEVEL + _BETWEEN) + 2


def search_events(
    t: float, run: int, plan: LoadPlan, capacity: float, outcome: CapacityOutcome = "found"
) -> Iterator[ev.AnyEvent]:
    """Yield a search of SECONDS in a run of its own; without the levels that fail if it finds no capacity."""
    yield ev.RunStarted(t=t, run=run, plan=plan)
    yield CapacityBegun(t=t, number=run, run=run, limits=LIMITS, longest=60.0)
    start = t + 1
    for level, share in enumerate(_SHARES if outcome == "found" else _SHARES[:1], 1):
        rate = share * capacity
        yield CapacityLevel(t=start, number=run, level=level, rate=rate, until=start + _LEVEL)
        times = Histogram.of([80_000_000 if share > 1 else 5_000_000] * round(rate))
        for second in range(_LEVEL):
            yield Tick(
                t=start + second + 1,
                start=start + second,
                run=run,
                worker=0,
                sent=times.count,
                completed=times.count,
                statuses={200: times.count},
                service=times,
                response=times,
            )
        yield CapacityLevelEnded(t=start + _LEVEL, number=run)
        start += _LEVEL + _BETWEEN
    yield CapacityEnded(t=start, number=run, outcome=outcome)
    yield ev.RunEnded(t=start, run=run, reason="stopped")
