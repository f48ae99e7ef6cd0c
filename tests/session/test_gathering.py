"""What a session keeps of ticks folds to the same as the ticks: every count at any time, every histogram at a row's
end, each second's latencies by their buckets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load import LoadPlan
from cockpit.model.state import Counts, Segment, State
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.gathering import Gathering

WORKERS = 2
KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="true", reload="true")


def histogram(drawn: random.Random, count: int) -> Histogram:
    return Histogram.of([int(drawn.lognormvariate(14, 1)) for _ in range(count)])


def raw(seed: int, seconds: float, *, response: bool) -> Iterator[ev.AnyEvent]:
    """A run of two workers with a warm-up, a rung and a change in its middle, its ticks of any length."""
    drawn = random.Random(seed)
    plan = LoadPlan(url="http://web1/", concurrency=2, duration=seconds, workers=WORKERS, warmup=3.0)
    yield ev.SessionStarted(t=0.0, wall=0.0, version="0", name="x", knobs=(KNOB,))
    yield ev.RunStarted(t=0.5, run=1, plan=plan)
    told = []
    for worker in range(WORKERS):
        t = 0.5
        while t < seconds:
            start, t = t, round(t + drawn.uniform(0.05, 0.3), 6)
            told.append(tick(drawn, worker, start, t, response=response))
    setting = Setting(knob="K", old="1", new="2")
    told.append(ev.ChangeBegun(t=seconds / 2 - 1, change="A", host="web1", settings=(setting,)))
    told.append(ev.ChangeStage(t=seconds / 2, change="A", stage="in force"))
    told.append(ev.ChangeEnded(t=seconds / 2 + 1, change="A", outcome="applied"))
    yield from sorted(told, key=lambda event: event.t)
    yield ev.RunEnded(t=seconds + 1, run=1, reason="completed")


def tick(drawn: random.Random, worker: int, start: float, t: float, *, response: bool) -> ev.Tick:
    done = drawn.randrange(0, 30)
    group = ev.Group(sent=done, completed=done, statuses={200: done} if done else {}, service=histogram(drawn, done))
    return ev.Tick(
        t=t,
        start=start,
        run=1,
        worker=worker,
        sent=done,
        completed=done,
        statuses={200: done} if done else {},
        errors={"timeout": 1} if drawn.random() < 0.1 else {},
        cpu=0.01,
        cpu_wait=0.001,
        pause=drawn.randrange(1000) / 1e5,
        connections=drawn.randrange(1, 4),
        warmup=start < 3.0,
        groups={"a": group},
        service=histogram(drawn, done),
        response=histogram(drawn, done) if response else Histogram.of([]),
        first_byte=histogram(drawn, done),
        lag=Histogram.of([drawn.choice((1000, 20_000_000)) for _ in range(3)]),
    )


def gathered(events: Iterator[ev.AnyEvent]) -> list[ev.AnyEvent]:
    gathering = Gathering()
    return [*(out for event in events for out in gathering.take(event)), *gathering.rest()]


def counted(row: Segment) -> Segment:
    """The row without sums of floats, which depend on their order in the last digit, and without its instants: it
    begins with the tick of whichever worker comes first."""
    counts = replace(row.counts, cpu=round(row.counts.cpu, 3))
    return replace(row, counts=counts, worker_cpu={}, worker_wait={}, saturated=0.0, start=0.0, end=None)


def both(seed: int, seconds: float, *, response: bool) -> tuple[State, State, list[ev.AnyEvent]]:
    kept = gathered(raw(seed, seconds, response=response))
    return fold_all(raw(seed, seconds, response=response)), fold_all(kept), kept


def test_rows_and_seconds_are_the_same() -> None:
    for seed, response in enumerate((False, True)):
        live, kept, events = both(seed, 20.0, response=response)
        assert [row.label for row in live.segments] == [row.label for row in kept.segments] and len(live.segments) == 3
        assert [counted(row) for row in live.segments] == [counted(row) for row in kept.segments]
        assert [second.latency for second in live.seconds] == [second.latency for second in kept.seconds]
        for name in ("second", "completed", "failed", "errors", "pause"):
            assert [getattr(one, name) for one in live.seconds] == [getattr(one, name) for one in kept.seconds]
        ticks = [event for event in events if isinstance(event, ev.Tick)]
        assert len(ticks) <= WORKERS * (2 * 20 + 6)


def test_what_was_late_is_counted_before_its_histogram_comes() -> None:
    live, kept, events = both(9, 10.0, response=False)
    assert any(second.saturated for second in live.seconds)
    ticks = [event for event in events if isinstance(event, ev.Tick)]
    assert sum(one.due for one in ticks) == sum(row.counts.lag.count for row in live.segments)
    assert sum(one.late for one in ticks) > 0
    assert all(second.saturated for second in kept.seconds[1:-1])


def test_every_counter_of_a_tick_is_recorded_and_folded(tmp_path: Path) -> None:
    """Also those that are added later: each number and table of a tick is in the counts of its row."""
    names = [name for name in Counts.__struct_fields__ if name in ev.Tick.__struct_fields__]
    counters = [name for name in names if isinstance(getattr(Counts(), name), int)]
    assert {"dropped", "retries", "reconnects", "unclosed"} < set(counters)
    ticks = [
        ev.Tick(t=at + 0.1, start=at, run=1, worker=0, redirect="/a", **dict.fromkeys(counters, 1))  # type: ignore[arg-type]
        for at in (0.0, 0.1, 0.2, 1.0, 2.0)
    ]
    started = ev.RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/", requests=5))
    events = gathered(iter([started, *ticks, ev.RunEnded(t=3.0, run=1, reason="stopped")]))
    writer = RecordingWriter(tmp_path / "a.cockpit")
    writer.record(events)
    writer.close()
    with Recording(tmp_path / "a.cockpit") as recording:
        counts = fold_all(recording.events()).segments[0].counts
    assert {name: getattr(counts, name) for name in counters} == dict.fromkeys(counters, 5)
    assert counts.redirect == "/a"
