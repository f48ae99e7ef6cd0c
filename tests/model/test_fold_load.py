"""Load in the state: seconds and segments without loss, changes and actions, extended runs and rounds."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.words.timeline import lost_words, marker_sign, marker_text, segment_label
from cockpit.metrics.results import run_result
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.generators import GeneratorSecond, WorkerLost
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import AccessLog, LoadPlan
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
    assert segment_label(segment) == "baseline"
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
    assert segment_label(second) == "A MaxSpareServers 10 → 30"
    assert (first.end, second.start, second.run) == (0.95, 0.95, 1)
    assert [marker_sign(marker) for marker in state.markers] == ["A"]
    assert run_result(state, 1).counts.completed == 300  # type: ignore[union-attr]
    ended = ev.RunEnded(t=1.0, run=1, reason="completed")
    events = [started(), ticked(0), ended, *change("A", 2.0), started(3.0, 2), ticked(3.0, run=2)]
    state = fold_all([*events, ev.RunEnded(t=4.0, run=2, reason="completed"), started(5.0, 3)])
    assert [segment_label(segment) for segment in state.segments] == ["baseline", "A MaxSpareServers 10 → 30", "again"]
    state = fold_all([started(), ticked(0), *change("A", 0.5, "rolled back"), ticked(0.6)])
    assert len(state.segments) == 1
    assert marker_text(state.markers[0]).startswith("A MaxSpareServers 10 → 30: rolled back")


def test_saturated_generator_and_lost_worker_are_flagged() -> None:
    idle = [ticked(n / 10, cpu=0.05) for n in range(10)]
    busy = [ticked(1 + n / 10, cpu=0.099) for n in range(10)]
    state = fold_all([started(), *idle, *busy])
    assert [second.saturated for second in state.seconds] == [False, True]
    assert round(state.segments[0].saturated, 6) == 1.0
    assert round(state.seconds[1].generator, 2) == 0.99
    assert GeneratorSecond(second=1).cpu == 0
    state = fold_all([started(), ticked(0), WorkerLost(t=0.2, run=1, worker=1, detail="killed by signal 9")])
    assert "killed by signal 9" in lost_words(state.segments[0].losses)


def test_all_workers_of_all_machines_are_saturated_or_silent() -> None:
    plan = LoadPlan(url="http://a/", concurrency=3, workers=1)
    ticks = [
        replace(ticked(at / 10, completed, worker=worker, cpu=0.099 if worker == 0 else 0.0), in_flight=1)
        for at in range(20)
        for worker, completed in enumerate((0, 0, 5))
    ]
    busy = fold_all([ev.RunStarted(t=0.0, run=1, plan=plan, machines=("g1", "g2", "g3")), *ticks]).segments[0]
    assert round(busy.saturated, 3) == round(2.0 / 3, 3) and busy.stalled == 0
    silent = [replace(tick, completed=0, statuses={}, service=EMPTY, silence=tick.t, oldest=tick.t) for tick in ticks]
    assert fold_all([ev.RunStarted(t=0.0, run=1, plan=plan), *silent]).segments[0].stalled > 1


def test_load_altered_during_the_warm_up_stays() -> None:
    plan = LoadPlan(url="http://a/", concurrency=50, warmup=2.0)
    state = fold_all(
        [
            ev.RunStarted(t=0.0, run=1, plan=plan),
            replace(ticked(0.0), warmup=True),
            ev.LoadAdjusted(t=0.5, run=1, concurrency=100),
            replace(ticked(1.0), warmup=True),
            ticked(2.0),
        ]
    )
    assert [(segment.warmup, segment.plan.concurrency) for segment in state.segments] == [
        (True, 50),
        (True, 100),
        (False, 100),
    ]


def test_counts_of_a_log_that_arrive_late_keep_their_second() -> None:
    logs = tuple(AccessLog(host=host, file="/x") for host in ("web1", "web2"))
    plan = LoadPlan(url="http://a/", traffic=logs, workers=2)
    places = [(at, worker) for at in range(9) for worker in (0, 1)]
    ticks = [ev.Tick(t=at + 1.0, start=float(at), run=1, worker=worker, completed=100) for at, worker in places]
    late = [tick for tick in ticks if tick.worker == 1 and tick.start > 0]
    on_time = [tick for tick in ticks if tick not in late]
    state = fold_all([ev.RunStarted(t=0.0, run=1, plan=plan), *on_time, *late])
    assert [(second.completed, second.end - second.start) for second in state.seconds] == [(200, 1.0)] * 9


def test_rate_of_a_segment_covers_its_own_ticks() -> None:
    plan = LoadPlan(url="http://a/", traffic=(AccessLog(host="web1", file="/x"),))
    events: list[ev.AnyEvent] = [ev.RunStarted(t=0.0, run=1, plan=plan)]
    for at in range(30):
        events.append(ev.Tick(t=at + 1.0, start=float(at), run=1, worker=0, completed=100))
        if at in (9, 19):
            events += change("A" if at == 9 else "B", at + 1.1)
    rates = [segment.rate for segment in fold_all(events).segments]
    assert len(rates) == 3 and rates == [100.0] * 3


KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="t", reload="r")
SETTING = Setting(knob="K", old="10", new="30")


def unconfirmed_change(t: float) -> list[ev.AnyEvent]:
    return [
        ev.SessionStarted(t=0, wall=0, version="0", name="x", knobs=(KNOB,)),
        ev.RunStarted(t=1, run=1, plan=LoadPlan(url="http://x/", concurrency=2, duration=60.0)),
        ev.Tick(t=2, run=1, worker=0, start=1, sent=5, completed=5),
        ev.ChangeBegun(
            t=t, change="A", host="web1", settings=(SETTING,), diff="-10\n+30\n", cost="graceful", who="me@here"
        ),
        ev.ChangeStage(t=t + 1, change="A", stage="armed"),
        ev.ChangeStage(t=t + 3, change="A", stage="active", seconds=60.0),
    ]


def test_unconfirmed_change_is_active_and_confirmation_starts_no_segment() -> None:
    state = fold_all(unconfirmed_change(3.0))
    change = state.changes[0]
    assert (change.diff, change.cost, change.who) == ("-10\n+30\n", "graceful", "me@here")
    assert dict(change.stages) == {"armed": 4.0, "active": 6.0}
    assert (change.active_since, change.confirm_by, change.outcome) == (6.0, 66.0, None)
    assert state.knobs["K"].value == "30"
    assert [(segment.start, segment_label(segment)) for segment in state.segments] == [
        (1.0, "baseline"),
        (6.0, "A K 10 → 30"),
    ]
    state = fold_all([*unconfirmed_change(3.0), ev.ChangeEnded(t=9.0, change="A", outcome="applied")])
    assert (state.changes[0].outcome, state.changes[0].confirm_by, len(state.segments)) == ("applied", None, 2)
    assert [(marker.t, marker_sign(marker)) for marker in state.markers] == [(6.0, "A")]
    state = fold_all(
        [*unconfirmed_change(3.0), ev.ChangeEnded(t=9.0, change="A", outcome="rolled back", detail="not confirmed")]
    )
    assert state.knobs["K"].value == "10"
    assert [segment_label(segment) for segment in state.segments] == ["baseline", "A K 10 → 30", "A undo A: K 30 → 10"]
    assert state.segments[-1].start == 9.0
    assert marker_text(state.markers[-1]) == "A K 10 → 30: rolled back, not confirmed"


def test_written_value_is_active_after_its_action() -> None:
    knob = Knob(name="K", host="web1", kind="keyvalue", file="/f", key="K", action="restart")
    events: list[ev.AnyEvent] = [
        ev.SessionStarted(t=0, wall=0, version="0", name="x", knobs=(knob,)),
        *unconfirmed_change(3.0)[1:3],
        ev.ChangeBegun(t=3.0, change="A", host="web1", settings=(SETTING,), cost="written", inactive=("K",)),
        ev.ChangeStage(t=4.0, change="A", stage="not yet active"),
        ev.ChangeEnded(t=5.0, change="A", outcome="written"),
    ]
    state = fold_all(events)
    assert (state.knobs["K"].value, state.knobs["K"].active, state.changes[0].active_since) == ("30", False, None)
    assert [segment_label(segment) for segment in state.segments] == ["baseline"]
    assert marker_text(state.markers[-1]) == "A K 10 → 30: written"
    other = [ev.ActionBegun(t=6.0, number=1, action="empty", host="web1"), ev.ActionEnded(t=7.0, number=1, done=1)]
    assert not fold_all(other, state).knobs["K"].active
    failed = [ev.ActionBegun(t=6.0, number=1, action="restart", host="web1"), ev.ActionEnded(t=7.0, number=1, done=0)]
    assert not fold_all(failed, state).knobs["K"].active
    state = fold_all([failed[0], ev.ActionEnded(t=7.0, number=1, done=1)], state)
    assert (state.knobs["K"].active, state.changes[0].outcome, state.changes[0].active_since) == (True, "applied", 7.0)
    assert [(segment.start, segment_label(segment)) for segment in state.segments] == [
        (1.0, "baseline"),
        (7.0, "A K 10 → 30"),
    ]


def test_action_has_marker() -> None:
    events = [ev.ActionBegun(t=1, number=1, action="restart", host="web1", times=20)]
    state = fold_all([*events, ev.ActionEnded(t=5, number=1, done=19, detail="it says no")])
    assert [(marker.kind, marker_text(marker)) for marker in state.markers] == [("action", "restart 20 times on web1")]
    (run,) = state.actions
    assert (run.begun, run.ended, run.done, run.detail) == (1, 5, 19, "it says no")


def test_events_of_older_recordings_are_decoded() -> None:
    old = b'{"event":"change_begun","t":1.0,"change":"A","host":"web1","settings":[{"knob":"K","old":"1","new":"2"}]}'
    assert ev.decode(old) == ev.ChangeBegun(
        t=1.0, change="A", host="web1", settings=(Setting(knob="K", old="1", new="2"),)
    )
    for event in unconfirmed_change(3.0):
        assert ev.decode(ev.encode(event)) == event


STARTED = ev.RunStarted(t=1.0, run=1, plan=LoadPlan(url="http://web1/", duration=30.0))
BEGUN = ev.RoundsBegun(
    t=2.0,
    number=1,
    run=1,
    host="web1",
    settings=(Setting(knob="X", old="1", new="2"),),
    first=("after", "before", "before", "after"),
    seconds=15.0,
    longest=200.0,
)


def test_extension_lasts_until_replaced_released_or_end_of_run() -> None:
    extended = ev.RunExtended(t=3.0, run=1, until=40.0, awaited="baseline")
    awaited = ev.RunExtended(t=8.0, run=1, until=188.0, change="A")
    later = ev.RunExtended(t=9.0, run=1, until=189.0, change="A")
    state = fold_all((STARTED, extended))
    assert state.extension is not None and (state.extension.since, state.extension.awaited) == (3.0, "baseline")
    state = fold_all((awaited, later), state)
    assert (state.extension.change, state.extension.since, state.extension.until) == ("A", 8.0, 189.0)
    assert fold_all((ev.RunExtended(t=50.0, run=1, until=50.0, change="A"),), state).extension is None
    assert fold_all((ev.RunEnded(t=60.0, run=1, reason="stopped"),), state).extension is None
    assert fold_all((ev.RunExtended(t=60.0, run=2, until=99.0),), state).extension == state.extension


def test_round_is_complete_with_both_windows() -> None:
    first = ev.RoundWindow(t=5.0, number=1, round=1, side="after", until=23.0)
    second = ev.RoundWindow(t=30.0, number=1, round=1, side="before", until=48.0)
    first_ended = ev.RoundWindowEnded(t=23.0, number=1)
    state = fold_all((STARTED, BEGUN, first, first_ended, second))
    rounds = state.running_rounds
    assert rounds is not None and rounds.budget == 4 and rounds.complete == ()
    assert [window.end for window in rounds.windows] == [23.0, None]
    state = fold_all((ev.RoundWindowEnded(t=48.0, number=1),), state)
    assert [(before.start, after.start) for before, after in state.rounds[0].complete] == [(30.0, 5.0)]
    state = fold_all((ev.RoundsEnded(t=60.0, number=1, outcome="stopped", active="before"),), state)
    assert state.running_rounds is None and state.rounds[0].ended is not None
    assert fold_all((first,), state).rounds == state.rounds


def knob_read(t: float, value: str, since: float | None = None) -> ev.KnobRead:
    return ev.KnobRead(t=t, knob="K", host="web1", value=value, since=since)


def test_value_that_others_change_is_marked() -> None:
    read = [knob_read(1.5, "10"), knob_read(2.5, "10", 1.5)]
    state = fold_all([*unconfirmed_change(9.0)[:3], *read, knob_read(32.5, "11", 2.5)])
    (marker,) = state.markers
    assert (marker.t, marker_sign(marker), marker_text(marker)) == (32.5, "!", "web1: K 10 → 11, changed elsewhere")
    assert state.knobs["K"].value == "11"
    # The values of this session's changes, also while one is made, and as a server may write them differently.
    own = [*unconfirmed_change(3.0)[:3], *read, *unconfirmed_change(3.0)[3:5], knob_read(5.0, "30")]
    own += [unconfirmed_change(3.0)[5], knob_read(7.0, "0x1e"), ev.ChangeEnded(t=9.0, change="A", outcome="applied")]
    assert [marker.kind for marker in fold_all([*own, knob_read(39.0, "0x1e", 9.0)]).markers] == ["change"]
