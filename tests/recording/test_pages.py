"""A recording in pages reproduces the session: the same states, and the same events except for compacted ticks."""

import random
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.analysis.words.timeline import segment_label
from cockpit.analysis.words.verdicts import headline_words
from cockpit.model import events as ev
from cockpit.model.counts import Counts, Group
from cockpit.model.events import AnyEvent
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State
from cockpit.model.tick import Tick
from cockpit.recording import writer
from cockpit.recording.checkpoints import PART_FIELDS, StateCheckpoint
from cockpit.recording.compaction import _spread, compacted, expanded
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from tests.session.events import session_with_a_generator, session_with_a_round, session_with_a_search, small_session

RECORDINGS = Path(__file__).parents[1] / "recordings"
PAGE = 5.0


def record_pages(path: Path, events: list[AnyEvent], monkeypatch: pytest.MonkeyPatch) -> list[State]:
    """Record the events as a session does, in short pages; return the states after each event."""
    monkeypatch.setattr(writer, "PAGE_SECONDS", PAGE)
    recorder = RecordingWriter(path)
    states = [State()]
    for at in range(0, len(events), 3):
        recorder.record(events[at : at + 3])
        for event in events[at : at + 3]:
            states.append(fold(states[-1], event))
        recorder.settle(states[-1])
    recorder.close()
    assert recorder.trouble == ""
    return states


def lab_events(name: str) -> list[AnyEvent]:
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        return list(recording.events())


def same_events(found: Iterable[AnyEvent], expected: Iterable[AnyEvent]) -> bool:
    """Return whether both have the same events except for compacted ticks, and the same counts."""
    found, expected = list(found), list(expected)
    others, expected_others = (
        [event for event in events if not isinstance(event, Tick)] for events in (found, expected)
    )
    return others == expected_others and fold_all(found).segments == fold_all(expected).segments


def test_checkpoint_has_all_fields_of_state() -> None:
    """Except for the seconds, which are series, and a study, whose events are read again."""
    stored = {*StateCheckpoint.__struct_fields__} - {"parts"} | PART_FIELDS.keys()
    assert {*stored, "closed_seconds", "study"} == set(State.__struct_fields__)


SESSIONS = {
    "small": lambda: list(small_session()),
    "rounds": lambda: list(session_with_a_round()),
    "generators": lambda: list(session_with_a_generator()),
    "search": lambda: list(session_with_a_search()),
    "two-hosts": lambda: lab_events("two-hosts"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_pages_reproduce_events_and_states(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = SESSIONS[name]()
    states = record_pages(tmp_path / "s.cockpit", events, monkeypatch)
    with Recording(tmp_path / "s.cockpit") as recording:
        assert same_events(recording.events(), events)
        assert recording.damage == "" and last_state(recording) == states[-1]
        anchors = {
            anchor.number: anchor for t in range(int(recording.end)) for anchor in (recording.latest_checkpoint(t),)
        }
        assert len(anchors) > recording.end / PAGE / 2
        for number, anchor in anchors.items():
            assert anchor.state == states[number], number
        # The state at a time is the same from the preceding page and from the beginning.
        for t in range(0, int(recording.end), 7):
            anchor = recording.latest_checkpoint(t)
            following = recording.following(anchor.number, anchor.instant, t)
            near = fold_all([record.event for record in following], anchor.state)
            far = fold_all(record.event for record in recording.following(0, -1.0, t))
            for field in ("segments", "hosts", "changes", "rounds", "markers", "knobs"):
                assert getattr(near, field) == getattr(far, field), field


def test_sqlite_tables_can_be_queried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = list(small_session())
    final = record_pages(tmp_path / "s.cockpit", events, monkeypatch)[-1]
    database = sqlite3.connect(tmp_path / "s.cockpit")
    ask = database.execute
    assert ask("SELECT count(*), sum(completed) FROM seconds").fetchone() == (
        len(final.seconds),
        sum(second.completed for second in final.seconds),
    )
    rows = ask("SELECT number, label, completed, p99_ms FROM runs ORDER BY number").fetchall()
    assert [row[:3] for row in rows] == [
        (segment.number, segment_label(segment), segment.counts.completed) for segment in final.segments
    ]
    assert rows[0][3] == 1000 * final.segments[0].counts.latency.percentile(99)
    (verdict,) = verdicts(final)
    assert ask("SELECT letter, outcome, verdict, effect FROM changes").fetchall() == [
        ("A", "applied", verdict.outcome, headline_words(verdict))
    ]
    assert ask("SELECT count(*) FROM markers").fetchone() == (len(final.markers),)
    assert ask("SELECT kind FROM events WHERE kind IN ('tick', 'host_sample')").fetchall() == []
    database.close()


WORKERS = 2
KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="true", reload="true")


def histogram(drawn: random.Random, count: int) -> Histogram:
    return Histogram.of([int(drawn.lognormvariate(14, 1)) for _ in range(count)])


def raw(seed: int, seconds: float, *, response: bool) -> Iterator[ev.AnyEvent]:
    """A run of two workers with a warm-up, a change in the middle, and ticks of random length."""
    drawn = random.Random(seed)
    plan = LoadPlan(url="http://web1/", concurrency=2, duration=seconds, workers=WORKERS, warmup=3.0)
    yield ev.SessionStarted(t=0.0, wall=0.0, version="0", name="x", knobs=(KNOB,))
    yield ev.RunStarted(t=0.5, run=1, plan=plan)
    events = []
    for worker in range(WORKERS):
        t = 0.5
        while t < seconds:
            start, t = t, round(t + drawn.uniform(0.05, 0.3), 6)
            events.append(tick(drawn, worker, start, t, response=response))
    setting = Setting(knob="K", old="1", new="2")
    events.append(ev.ChangeBegun(t=seconds / 2 - 1, change="A", host="web1", settings=(setting,)))
    events.append(ev.ChangeStage(t=seconds / 2, change="A", stage="active"))
    events.append(ev.ChangeEnded(t=seconds / 2 + 1, change="A", outcome="applied"))
    yield from sorted(events, key=lambda event: event.t)
    yield ev.RunEnded(t=seconds + 1, run=1, reason="completed")


def tick(drawn: random.Random, worker: int, start: float, t: float, *, response: bool) -> ev.Tick:
    done = drawn.randrange(0, 30)
    counts: dict[str, Any] = {"sent": done, "completed": done, "statuses": {200: done} if done else {}}
    return ev.Tick(
        t=t,
        start=start,
        run=1,
        worker=worker,
        errors={"timeout": 1} if drawn.random() < 0.1 else {},
        cpu=0.01,
        cpu_wait=0.001,
        pause=drawn.randrange(1000) / 1e5,
        connections=drawn.randrange(1, 4),
        warmup=start < 3.0,
        groups={"a": Group(**counts, service=histogram(drawn, done))},
        service=histogram(drawn, done),
        response=histogram(drawn, done) if response else Histogram.of([]),
        first_byte=histogram(drawn, done),
        lag=Histogram.of([drawn.choice((1000, 20_000_000)) for _ in range(3)]),
        **counts,
    )


def compacted_and_expanded(events: Iterable[ev.AnyEvent]) -> list[ev.AnyEvent]:
    """Compact the ticks of the events as a single page, and expand them again."""
    numbered = list(enumerate(events))
    ticks = [(number, event) for number, event in numbered if isinstance(event, ev.Tick)]
    others: list[tuple[int, ev.AnyEvent]] = [item for item in numbered if not isinstance(item[1], ev.Tick)]
    found = compacted(ticks, fold_all(event for _, event in numbered))
    again = [item for segment, totals in found for item in expanded(segment, totals)]
    return [event for _, event in sorted([*others, *again], key=lambda item: item[0])]


def without_times(segment: Segment) -> Segment:
    """Drop the times of a segment: it starts with the tick of whichever worker is first."""
    return replace(segment, start=0.0, end=None)


@pytest.mark.parametrize("response", [False, True])
def test_compaction_keeps_segments_and_seconds(response: bool) -> None:
    events = list(raw(1, 20.0, response=response))
    live, replayed = fold_all(events), fold_all(compacted_and_expanded(events))
    assert len(live.segments) == 3
    assert [*map(without_times, live.segments)] == [*map(without_times, replayed.segments)]
    for name in ("second", "completed", "failed", "errors", "pause", "latency", "saturated", "lag_p99"):
        one, other = ([getattr(second, name) for second in state.seconds] for state in (live, replayed))
        assert one == other, name
    assert any(second.saturated for second in live.seconds)


def test_ticks_are_compacted_per_worker_second_and_segment() -> None:
    without_lag = [
        replace(event, lag=Histogram.of([])) if isinstance(event, ev.Tick) else event
        for event in raw(2, 20.0, response=True)
    ]
    ticks = [event for event in compacted_and_expanded(without_lag) if isinstance(event, ev.Tick)]
    assert len(ticks) <= WORKERS * (20 + 2 * 3)


def test_compacted_ticks_have_the_histograms_of_their_own_requests() -> None:
    """A time range may end within a page."""
    ticks = [event for event in compacted_and_expanded(raw(4, 20.0, response=True)) if isinstance(event, ev.Tick)]
    for tick in ticks:
        group = tick.groups["a"]
        counts = [each.count for each in (tick.service, tick.response, tick.first_byte, group.service)]
        assert counts == [tick.completed] * 3 + [group.completed]


def test_spread_histogram_keeps_totals_and_buckets() -> None:
    drawn = random.Random(3)
    parts = [histogram(drawn, count) for count in (1000, 0, 7, 300)]
    total = Histogram.merged(parts)
    spread = _spread(total, [part.coarse() for part in parts])
    assert Histogram.merged(spread) == total
    assert [part.coarse() for part in spread] == [part.coarse() for part in parts]
    with pytest.raises(ValueError, match="do not add up"):
        _spread(total, [part.coarse() for part in parts[1:]])


def test_all_counters_of_a_tick_are_recorded_and_folded(tmp_path: Path) -> None:
    """Counters that are added later are included: each number of a tick is in the counts of its segment."""
    names = [name for name in Counts.__struct_fields__ if name in ev.Tick.__struct_fields__]
    counters = [name for name in names if isinstance(getattr(Counts(), name), int)]
    assert {"dropped", "retries", "reconnects", "unclosed"} < set(counters)
    ticks = [
        ev.Tick(t=at + 0.1, start=at, run=1, worker=0, redirect="/a", **dict.fromkeys(counters, 1))  # type: ignore[arg-type]
        for at in (0.0, 0.1, 0.2, 1.0, 2.0)
    ]
    started = ev.RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/", requests=5))
    events = [started, *ticks, ev.RunEnded(t=3.0, run=1, reason="stopped")]
    writer, state = RecordingWriter(tmp_path / "a.cockpit"), fold_all(events)
    writer.record(events)
    writer.settle(state)
    writer.close()
    with Recording(tmp_path / "a.cockpit") as recording:
        assert last_state(recording) == state
        found = list(recording.events())
        assert sum(isinstance(event, ev.Tick) for event in found) == 4
        counts = fold_all(found).segments[0].counts
    assert {name: getattr(counts, name) for name in counters} == dict.fromkeys(counters, 5)
    assert counts.redirect == "/a"
