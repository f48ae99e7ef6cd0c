"""Small deterministic sessions as events."""

from collections.abc import Iterator
from functools import cache

from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotTrial, SearchedKnob, SearchPlan
from cockpit.model.events import (
    AnyEvent,
    ChangeBegun,
    ChangeEnded,
    HostChanged,
    HostSample,
    KnobRead,
    Note,
    RoundsBegun,
    RoundsEnded,
    RoundWindow,
    RoundWindowEnded,
    RunEnded,
    RunExtended,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import (
    CpuCounters,
    HostConfig,
    HostFacts,
    HostReading,
    IoCounters,
    MemCounters,
    ProcessCounters,
)
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick

KNOB = Knob(name="MaxSpareServers", host="web1", file="/f", directive="MaxSpareServers", test="true", reload="true")
PLAN = LoadPlan(url="http://web1/", concurrency=20, duration=10.0)


def reading(t: float) -> HostReading:
    generation = int(t // 3)
    return HostReading(
        uptime=1000 + t,
        wall=5000 + t,
        cpu=CpuCounters(int(30 * t), 0, int(20 * t), int(50 * t), 0, 0, 0, 0),
        memory=MemCounters(2000, 400, 1200, 50, 600, 100, 30, 0, 0),
        io=IoCounters(0, int(t), 0, 0, int(8 * t)),
        load=(0.1, 0.2, 0.3),
        forks=100 + generation,
        processes=tuple(
            ProcessCounters(generation * 10 + n, 1, 100, "S", "apache2", n, n, 1, 1 << 20, 1 << 19, 1 << 18, "apache2")
            for n in range(5)
        ),
    )


def small_session() -> Iterator[AnyEvent]:
    """60 s: a run, a change in its middle, a note, a second run."""
    return iter(_small_session())


@cache
def _small_session() -> tuple[AnyEvent, ...]:
    return tuple(_events())


def _events() -> Iterator[AnyEvent]:
    yield SessionStarted(
        t=0, wall=1_700_000_000.0, version="0", name="small", hosts=(HostConfig(name="web1"),), knobs=(KNOB,)
    )
    facts = HostFacts(hostname="web1", kernel="6.1", cpus=1, hz=100, page=4096)
    yield HostChanged(t=0.1, host="web1", condition="up", facts=facts)
    yield KnobRead(t=0.2, knob="MaxSpareServers", host="web1", value="10")
    for run, begin in ((1, 5.0), (2, 35.0)):
        yield RunStarted(t=begin, run=run, plan=PLAN)
        for n in range(200):
            if run == 1 and n == 100:
                setting = Setting(knob="MaxSpareServers", old="10", new="30")
                yield ChangeBegun(t=begin + 9.9, change="A", host="web1", settings=(setting,))
                yield ChangeEnded(t=begin + 10, change="A", outcome="applied")
            start = begin + n / 10
            latencies = Histogram.of([(1 + (n * k) % 97) * 1_000_000 for k in range(20)])
            yield Tick(
                t=start + 0.1,
                start=start,
                run=run,
                worker=0,
                sent=20,
                completed=20,
                statuses={200: 20},
                service=latencies,
            )
            if n % 10 == 0:
                # A sample has the time at which it was taken, before its arrival.
                yield HostSample(t=start + 0.05, host="web1", round_trip=0.1, reading=reading(start))
        yield RunEnded(t=begin + 20, run=run, reason="completed")
        yield Note(t=begin + 22, text="looked at it")
    yield SessionEnded(t=60.0)


def session_with_a_round() -> Iterator[AnyEvent]:
    """The small session; its first run is extended for a change, its second for rounds."""
    setting = Setting(knob="MaxSpareServers", old="10", new="30")
    more: list[AnyEvent] = [
        RunExtended(t=15.0, run=1, until=195.0, change="A"),
        RunExtended(t=35.0, run=2, until=95.0, awaited="rounds"),
        RoundsBegun(
            t=35.0, number=1, run=2, host="web1", settings=(setting,), first=("after",) * 4, seconds=5.0, longest=60.0
        ),
        RoundWindow(t=40.0, number=1, round=1, side="after", until=45.0),
        RoundWindowEnded(t=45.0, number=1),
        RoundWindow(t=45.0, number=1, round=1, side="before", until=50.0),
        RoundWindowEnded(t=50.0, number=1),
        RoundsEnded(t=50.0, number=1, outcome="stopped", active="before", detail="stopped"),
    ]
    return iter(sorted((*small_session(), *more), key=lambda event: event.t))


def session_with_a_generator() -> Iterator[AnyEvent]:
    """The small session with load from another machine, which is lost near the end."""
    more: list[AnyEvent] = [
        *(GeneratorClock(t=t, machine="gen1", offset=1.0, uncertainty=0.001, drift=0.0) for t in (6.0, 12.0, 40.0)),
        GeneratorLost(t=58.0, machine="gen1", detail="no answer for 1.2 s"),
    ]
    load = (replace(event, machines=("gen1",)) if isinstance(event, RunStarted) else event for event in small_session())
    return iter(sorted((*load, *more), key=lambda event: event.t))


def session_with_a_search() -> Iterator[AnyEvent]:
    """The small session, with its runs as the evaluations of a search."""
    original = {"MaxSpareServers": "10"}
    knob = SearchedKnob("MaxSpareServers", ("10", "30"), 2)
    plan = SearchPlan(metric="rate", maximize=True, knobs=(knob,), budget=60)
    more: list[AnyEvent] = [
        AutopilotBegun(t=1.0, plan=plan, original=original),
        *(
            AutopilotTrial(
                t=end,
                number=run,
                purpose="original",
                values=original,
                outcome="measured",
                run=run,
                metric=200.0,
            )
            for run, end in ((1, 25.5), (2, 55.5))
        ),
        AutopilotEnded(t=58.0, outcome="nothing", seconds=57.0, detail="nothing was found"),
    ]
    return iter(sorted((*small_session(), *more), key=lambda event: event.t))
