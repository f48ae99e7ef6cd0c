"""Segments of a session compared with earlier segments, in synthetic and recorded sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Cause, Design, Outcome
from cockpit.analysis.verdicts.segments import SegmentVerdicts, segment_before, segment_verdict, settings_at, verdicts
from cockpit.analysis.windows import DiscardReason
from cockpit.analysis.words.verdicts import brief, method_lines, verdict_line
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostPoint, HostState
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State
from cockpit.recording.reader import Recording
from tests.analysis.synthetic import noise, window
from tests.session.events import small_session

RECORDING = Path(__file__).parent.parent / "recordings" / "spare-servers.cockpit"
PLAN = LoadPlan(url="http://web1/", concurrency=20, duration=160.0)


@pytest.fixture(scope="module")
def recorded() -> State:
    with Recording(RECORDING) as recording:
        return fold_all(recording.events())


def toggled(levels: tuple[float, ...], seconds: int = 40) -> Iterator[ev.AnyEvent]:
    """Yield a run in which a setting is toggled before each further rate level; one tick per second."""
    import numpy as np

    wander = noise(np.random.default_rng(7), len(levels) * seconds, 0.3, 0.02)
    yield ev.SessionStarted(t=0, wall=1.7e9, version="0", name="toggled")
    yield ev.RunStarted(t=0.0, run=1, plan=PLAN)
    for at in range(len(levels) * seconds):
        window = at // seconds
        if window and at % seconds == 0:
            values = ("30", "10") if window % 2 == 0 else ("10", "30")
            letter = "ABCDEFGH"[window - 1]
            setting = Setting(knob="MaxSpareServers", old=values[0], new=values[1])
            undoes = "" if window % 2 else "ABCDEFGH"[window - 2]
            yield ev.ChangeBegun(t=at - 0.4, change=letter, host="web1", settings=(setting,), undoes=undoes)
            yield ev.ChangeEnded(t=float(at), change=letter, outcome="applied")
        done = round(levels[window] * (1 + float(wander[at])))
        times = Histogram.of([1_000_000 + 10_000 * (step * 7 % 100) for step in range(100)])
        yield ev.Tick(t=at + 1.0, start=float(at), run=1, worker=0, sent=done, completed=done, service=times)
    yield ev.RunEnded(t=float(len(levels) * seconds), run=1, reason="completed")


def test_recorded_changes_are_better(recorded: State) -> None:
    (verdict,) = verdicts(recorded)
    assert verdict.outcome is Outcome.BETTER
    assert (verdict.before, verdict.after, verdict.design) == ((1, 2), (3, 4, 5), Design.RUNS)
    rate, p50, p99 = (verdict.effect(name) for name in ("rate", "p50", "p99"))
    assert rate is not None and rate.low is not None and rate.low > 0.5
    assert p99 is not None and p99.outcome is Outcome.BETTER
    # The published study found the same: only the tail and the total differed.
    assert p50 is not None and p50.outcome is Outcome.INCONCLUSIVE
    assert verdict_line(verdict).endswith("n = 2 vs 3")
    first, second, *_, last = recorded.segments
    assert segment_verdict(recorded, second, first).outcome is Outcome.INCONCLUSIVE
    assert segment_verdict(recorded, last, first).outcome is Outcome.BETTER
    assert segment_verdict(recorded, last, first).design is Design.SINGLE_RUNS
    # Apache's spare servers and requests per child are raised during a run (tests/lab/under_load.py).
    with Recording(RECORDING.with_name("under-load.cockpit")) as recording:
        state = fold_all(recording.events())
    first, second = state.segments
    assert segment_before(state, second) == first
    verdict = segment_verdict(state, second, first)
    assert (verdict.outcome, verdict.design) == (Outcome.BETTER, Design.SWITCH)
    spawned, tail = verdict.effect("web1.processes.spawned_per_s"), verdict.effect("p99")
    assert spawned is not None and spawned.outcome is Outcome.BETTER
    assert tail is not None and tail.outcome is Outcome.BETTER
    line = verdict_line(verdict)
    assert "web1 spawned/s −" in line and "p99 ≥ ÷" in line
    assert verdict.discarded[0][DiscardReason.CHANGING] in (2, 3)


def test_single_change_is_compared_with_previous_segment() -> None:
    (verdict,) = verdicts(fold_all(toggled((1000.0, 1300.0))))
    assert (verdict.outcome, verdict.before, verdict.after) == (Outcome.BETTER, (1,), (2,))
    # The segment before ends when the change is requested, not when it is active.
    assert verdict.discarded[0][DiscardReason.CHANGING] == 1
    state = fold_all(toggled((1000.0, 1100.0, 1000.0)))
    assert [segment_before(state, segment) for segment in state.segments] == [None, *state.segments[:2]]
    again = fold_all(small_session())
    assert [segment_before(again, segment) for segment in again.segments] == [None, again.segments[0], None]
    state = fold_all(toggled((1000.0, 1000.0, 1000.0)))
    assert settings_at(state, (10.0, 50.0, 90.0)) == {10.0: (), 50.0: (("MaxSpareServers", "30"),), 90.0: ()}
    (verdict,) = verdicts(fold_all(small_session()))
    assert verdict.label == "A MaxSpareServers 10 → 30"
    assert brief(verdict) == ("?", "")
    assert verdicts(State()) == ()


def test_toggled_setting_is_judged_as_rounds() -> None:
    (verdict,) = verdicts(fold_all(toggled((1000.0, 1300.0) * 4)))
    assert (verdict.outcome, verdict.design, verdict.values) == (Outcome.BETTER, Design.ROUNDS, (4, 4))
    assert (verdict.before, verdict.after) == ((1, 3, 5, 7), (2, 4, 6, 8))
    # A person changed them by hand.
    assert not any("random" in line for line in method_lines(verdict))
    (same,) = verdicts(fold_all(toggled((1000.0,) * 8)))
    assert same.outcome in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)
    (verdict,) = verdicts(fold_all(toggled((1000.0, 1050.0, 1000.0, 1150.0, 1100.0, 990.0, 1050.0, 1000.0))))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    state = fold_all(toggled((1000.0, 1000.0, 1000.0, 1000.0), 60))
    for before, after in ((0, 1), (0, 2), (1, 3)):
        verdict = segment_verdict(state, state.segments[after], state.segments[before])
        assert verdict.outcome in (Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)


def test_different_load_plan_is_invalid() -> None:
    state = fold_all(toggled((1000.0, 1100.0)))
    first, second = state.segments
    other = replace(second, plan=replace(PLAN, concurrency=40))
    altered = replace(state, segments=(first, other))
    assert verdicts(altered) == ()
    objection = segment_verdict(altered, other, first).objection
    assert (objection.cause, objection.detail) == (Cause.LOAD_DIFFERS, "concurrency 20 → 40")


def test_cached_verdicts_are_updated() -> None:
    kept = SegmentVerdicts()
    state = fold_all(toggled((1000.0, 1100.0)))
    first, second = state.segments
    found = kept.verdict(state, second, first)
    assert found == segment_verdict(state, second, first)
    assert kept.verdict(state, second, first) is found
    events = list(toggled((1000.0, 1100.0)))
    growing = fold_all(events[:70])
    early = kept.verdict(growing, growing.segments[1], growing.segments[0])
    assert early.growing
    one_more = fold_all(events[70:71], growing)
    assert kept.verdict(one_more, one_more.segments[1], one_more.segments[0]) is early
    much_more = fold_all(events[70:76], growing)
    assert kept.verdict(much_more, much_more.segments[1], much_more.segments[0]) is not early


def test_a_kept_verdict_follows_the_readings_without_load_after_its_run() -> None:
    """Other programs that are busy only while load runs spoil nothing; that is known some seconds after the run."""
    one, two = window(1, 60, other=5.0), window(2, 60, other=40.0, start=60)
    idle = window(3, 20, other=2.0, start=120).hosts["web1"]
    points = (*one.hosts["web1"], *two.hosts["web1"])
    segments = tuple(
        Segment(number=run, run=run, plan=PLAN, start=of.start, last=of.end, end=of.end)
        for run, of in enumerate((one, two), 1)
    )

    def at(t: float, points: tuple[HostPoint, ...]) -> State:
        host = HostState(config=HostConfig(name="web1"), points=points)
        seconds = (*one.seconds, *two.seconds)
        return State(t=t, runs=2, segments=segments, closed_seconds=seconds, hosts={"web1": host})

    kept = SegmentVerdicts()
    for state in (at(121.0, points), at(140.0, (*points, *idle))):
        assert kept.verdict(state, segments[1], segments[0]) == segment_verdict(state, segments[1], segments[0])
    assert segment_verdict(at(121.0, points), segments[1], segments[0]).other_loads[0].slowed is not None
    assert segment_verdict(at(140.0, (*points, *idle)), segments[1], segments[0]).other_loads[0].slowed is None
