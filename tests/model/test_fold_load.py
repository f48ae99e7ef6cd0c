"""Ticks become seconds and segments without loss; a change splits a run when it becomes active."""

from hypothesis import given
from hypothesis import strategies as st

from cockpit.model import events as ev
from cockpit.model.fold import fold_all
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Setting
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import run_result
from cockpit.model.state import State

PLAN = LoadPlan(url="http://a/", concurrency=2, requests=100, workers=1)
MS = 1_000_000


def started(t: float = 0.0, run: int = 1) -> ev.RunStarted:
    return ev.RunStarted(t=t, run=run, plan=PLAN)


def ticked(start: float, completed: int = 10, run: int = 1, worker: int = 0, cpu: float = 0.01) -> ev.Tick:
    return ev.Tick(
        t=start + 0.1,
        start=start,
        run=run,
        worker=worker,
        sent=completed,
        completed=completed,
        statuses={200: completed},
        bytes_received=completed * 92,
        cpu=cpu,
        service=Histogram.of([MS * (n + 1) for n in range(completed)]),
    )


def change(letter: str, t: float, outcome: str = "applied") -> list[ev.AnyEvent]:
    setting = Setting(knob="MaxSpareServers", old="10", new="30")
    return [
        ev.ChangeBegun(t=t - 0.05, change=letter, host="web1", settings=(setting,)),
        ev.ChangeEnded(t=t, change=letter, outcome=outcome),  # type: ignore[arg-type]
    ]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=60))
def test_counts_over_ticks_add_up(pieces: list[tuple[int, int]]) -> None:
    ticks = [ticked(at / 10, completed, worker=worker) for at, (completed, worker) in enumerate(pieces)]
    state = fold_all([started(), *ticks])
    result = run_result(state, 1)
    total = sum(completed for completed, _ in pieces)
    assert result.counts.completed == result.counts.sent == result.counts.service.count == total
    assert sum(second.completed for second in state.seconds) == total
    assert sum(sum(second.density) for second in state.seconds) == total
    assert result.counts.bytes_received == 92 * total


def test_ticks_count_in_their_second() -> None:
    state = fold_all([started(5.0), *(ticked(5.0 + n / 10) for n in range(20))])
    segment = state.segment
    assert round(segment.rate, 6) == 100
    assert [round(second.rate) for second in state.seconds] == [100, 100]
    assert segment.label == "baseline"
    early, late = ticked(0.8, worker=0), ticked(0.85, worker=1)
    state = fold_all([started(), early, ticked(1.1), late])
    assert [second.completed for second in state.seconds] == [20, 10]
    state = fold_all([started(), ticked(1.0), ticked(0.5)])
    assert state.t == 1.1
    assert fold_all([]) == State()


def test_change_during_run_or_between_runs_starts_segment() -> None:
    before = [ticked(n / 10) for n in range(10)]
    after = [ticked(1.0 + n / 10, completed=20) for n in range(10)]
    state = fold_all([started(), *before[:-1], *change("A", 0.95), before[-1], *after])
    first, second = state.segments
    assert first.counts.completed == 100
    assert second.counts.completed == 200
    assert second.label == "A MaxSpareServers 10 → 30"
    assert (first.end, second.start, second.run) == (0.95, 0.95, 1)
    assert [marker.sign for marker in state.markers] == ["A"]
    assert run_result(state, 1).counts.completed == 300  # type: ignore[union-attr]
    ended = ev.RunEnded(t=1.0, run=1, reason="completed")
    events = [started(), ticked(0), ended, *change("A", 2.0), started(3.0, 2), ticked(3.0, run=2)]
    state = fold_all([*events, ev.RunEnded(t=4.0, run=2, reason="completed"), started(5.0, 3)])
    assert [segment.label for segment in state.segments] == ["baseline", "A MaxSpareServers 10 → 30", "again"]
    state = fold_all([started(), ticked(0), *change("A", 0.5, "rolled back"), ticked(0.6)])
    assert len(state.segments) == 1
    assert state.markers[0].text.startswith("A MaxSpareServers 10 → 30: rolled back")


def test_saturated_generator_and_lost_worker_are_flagged() -> None:
    idle = [ticked(n / 10, cpu=0.05) for n in range(10)]
    busy = [ticked(1 + n / 10, cpu=0.099) for n in range(10)]
    state = fold_all([started(), *idle, *busy])
    assert [second.saturated for second in state.seconds] == [False, True]
    assert round(state.segments[0].saturated, 6) == 1.0
    assert round(state.seconds[1].generator, 2) == 0.99
    state = fold_all([started(), ticked(0), WorkerLost(t=0.2, run=1, worker=1, detail="killed by signal 9")])
    assert "killed by signal 9" in state.segments[0].partial
