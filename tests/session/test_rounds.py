"""Rounds of a live session: active values during rounds, interruptions, and active values afterwards."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.analysis.rounds import Order, RoundsPlan
from cockpit.analysis.verdicts.outcome import Design, Outcome, Verdict
from cockpit.analysis.words.timeline import segment_label
from cockpit.model import events as ev
from cockpit.model.errors import ChangeRefused, ChangeRolledBack, HostError, TargetError
from cockpit.model.load.plan import Stage
from cockpit.model.state import State
from cockpit.session import rounds as session_rounds
from cockpit.session.controls import LoadPhase
from cockpit.session.host_changes import HostChanges
from cockpit.session.live import LiveSource
from cockpit.session.tuning import FinalSide, RoundsResult
from tests.session.sessions import BEFORE, Live, live_session, locks, until


def concluded(verdict: Verdict) -> bool:
    return verdict.outcome is not Outcome.INCONCLUSIVE


# Two rounds; far too short for a verdict.
SHORT = RoundsPlan(2, 0.3, Order.MIRRORED, concluded=concluded)
ENDLESS = RoundsPlan(3, 600.0, Order.MIRRORED)
AFTER = BEFORE.replace("5", "7")


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(session_rounds, "UNCOUNTED", 0.0)
    monkeypatch.setattr(session_rounds, "_METRICS_DELAY", 0.0)
    async with live_session(url, tmp_path) as live:
        yield live


def concluding(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, after: int = 1) -> None:
    """Judge rounds after each round, and conclude from the given round on: windows are too short for a real verdict."""

    def verdict(state: State, rounds: object) -> Verdict:
        return Verdict(outcome=outcome, design=Design.ROUNDS, values=(len(state.rounds[-1].complete),) * 2)

    monkeypatch.setattr(session_rounds, "rounds_verdict", verdict)
    monkeypatch.setattr(session_rounds, "FIRST_TEST", after)


def sides(state: State) -> list[tuple[int, str]]:
    """Return the complete windows of the last rounds."""
    return [(window.round, window.side) for window in state.rounds[-1].windows if window.end is not None]


async def ended(live: Live) -> State:
    return await until(live[0], lambda state: bool(state.rounds) and state.rounds[-1].ended is not None)


async def test_each_round_measures_both_settings_after_own_set_up(live: Live, tmp_path: Path) -> None:
    session, source = live
    running_rounds = asyncio.ensure_future(source.tuning.compare_in_rounds({"Level": "7"}, SHORT, FinalSide.RESTORED))
    await until(session, lambda state: state.knobs["Level"].value == "7")
    assert not source.tuning.awaited and source.tuning.running_rounds
    assert source.controls.status.phase is LoadPhase.ROUNDS
    assert locks(tmp_path), "the host can roll back by itself"
    with pytest.raises(ChangeRefused, match="rounds are running; stop them first"):
        await source.tuning.undo()
    proven = await running_rounds
    assert (proven.number, proven.outcome, proven.active, proven.letter) == (1, "budget", "before", "")
    state = await ended(live)
    assert sides(state) == [(1, "before"), (1, "after"), (2, "after"), (2, "before")]
    # The first window of the active side has its own set-up; "before" at the end follows the rollback.
    assert [change.letter for change in state.changes] == ["r1", "r2", "r3"]
    assert {(change.outcome, change.detail, change.trial) for change in state.changes} == {
        ("rolled back", "undone as planned", True)
    }
    segments = [(segment_label(segment), segment.round) for segment in state.segments if segment.round]
    assert segments == [("round 1 before", 1), ("round 1 after", 1), ("round 2 after", 2), ("round 2 before", 2)]
    assert [marker.kind for marker in state.markers] == ["round"] * 4
    assert (tmp_path / "conf").read_text() == BEFORE and not source.load.running


async def test_rounds_extend_current_run_and_leave_it_running(live: Live) -> None:
    session, source = live
    await source.load.start(replace(source.load.plan, duration=10.0))
    await source.tuning.compare_in_rounds({"Level": "7"}, SHORT._replace(seconds=3.0), FinalSide.RESTORED)
    state = await ended(live)
    assert state.runs == 1 and state.rounds[0].begun.run == 1
    # The planned end of the run takes effect after the rounds.
    state = await until(session, lambda state: state.running is None)
    assert state.segments[-1].reason == "completed" and state.extension is None


@pytest.mark.parametrize("active", ["before", "after"])
def test_side_active_afterwards_depends_on_outcome(active: ev.RoundSide) -> None:
    def chosen(outcome: Outcome, ended: ev.RoundsOutcome = "verdict") -> str:
        verdict = Verdict(outcome=outcome, design=Design.ROUNDS)
        return FinalSide.CHOSEN.side(active, ended, verdict)

    assert [chosen(outcome) for outcome in (Outcome.BETTER, Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)] == ["after"] * 3
    assert chosen(Outcome.INCONCLUSIVE, "budget") == "after" and chosen(Outcome.WORSE) == "before"
    assert chosen(Outcome.INVALID) == active
    assert {chosen(Outcome.BETTER, ended) for ended in ("stopped", "load ended", "failed")} == {active}
    assert FinalSide.CHOSEN.side(active, "budget", None) == active
    better = Verdict(outcome=Outcome.BETTER, design=Design.ROUNDS)
    assert FinalSide.RESTORED.side(active, "verdict", better) == active
    undecided = Verdict(outcome=Outcome.INCONCLUSIVE, design=Design.ROUNDS)
    assert FinalSide.PROVEN.side(active, "budget", undecided) == active
    assert FinalSide.PROVEN.side(active, "verdict", better) == "after"


async def test_better_values_stay_active_and_can_be_undone(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, source = live
    concluding(monkeypatch, Outcome.BETTER)
    proven = await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    state = await ended(live)
    last = state.rounds[0].ended
    assert last is not None and last.active == proven.active == "after"
    assert proven.outcome == last.outcome == "verdict" and proven.letter == "A"
    assert len(state.rounds[0].complete) == 1, "rounds stop at the verdict"
    assert (tmp_path / "conf").read_text() == AFTER
    await source.tuning.undo()
    assert (tmp_path / "conf").read_text() == BEFORE


@pytest.mark.parametrize("outcome", [Outcome.BETTER, Outcome.WORSE])
async def test_last_change_is_compared_if_no_values_are_given(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    _session, source = live
    with pytest.raises(ChangeRefused, match="no change to prove"):
        await source.tuning.compare_in_rounds({}, SHORT)
    concluding(monkeypatch, outcome)
    await source.tuning.apply({"Level": "7"})
    proven = await source.tuning.compare_in_rounds({}, SHORT)
    state = await ended(live)
    begun = state.rounds[0].begun
    assert (begun.change, begun.active, begun.settings[0].old, begun.settings[0].new) == ("A", "after", "5", "7")
    better = outcome is Outcome.BETTER
    assert (tmp_path / "conf").read_text() == (AFTER if better else BEFORE)
    assert (proven.active, proven.letter) == (("after", "") if better else ("before", "B"))
    # Undo works in either case.
    await source.tuning.undo()
    assert (tmp_path / "conf").read_text() == (BEFORE if better else AFTER)


@pytest.mark.parametrize(
    ("interruption", "base"),
    [("stopped", "after"), ("no load", "before"), ("closed", "after"), ("cancelled", "before"), ("cancelled", "after")],
)
async def test_interrupted_rounds_leave_initial_values_active(
    live: Live, tmp_path: Path, interruption: str, base: str
) -> None:
    session, source = live
    if base == "after":
        await source.tuning.apply({"Level": "7"})
    initial = AFTER if base == "after" else BEFORE
    plan = ENDLESS._replace(seconds=600.0)
    running_rounds = asyncio.ensure_future(
        source.tuning.compare_in_rounds({} if base == "after" else {"Level": "7"}, plan)
    )
    # A-B-B-A starts with the old values: if the new values are active, with the other side.
    if base == "before":
        await until(session, lambda state: bool(state.rounds) and bool(state.rounds[0].windows))
    else:
        await until(session, lambda state: state.knobs["Level"].value == "5" and bool(state.rounds[0].windows))
        assert (tmp_path / "conf").read_text() == BEFORE
    if interruption == "cancelled":
        running_rounds.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running_rounds
    else:
        if interruption == "stopped":
            source.tuning.stop_rounds()
        elif interruption == "no load":
            await source.load.stop()
        else:
            await source.close()
        found = await running_rounds
        assert found == RoundsResult(1, "load ended" if interruption == "no load" else "stopped", None, base)
    assert (tmp_path / "conf").read_text() == initial
    if interruption != "closed":
        last = (await ended(live)).rounds[0].ended
        assert last is not None and last.active == base
    assert not source.load.running


def refusing(source: LiveSource) -> None:
    """Let the server's test refuse all further values."""
    knobs = source.tuning._knobs
    knobs["Level"] = replace(knobs["Level"], test="echo no way >&2; exit 1")


async def test_rejected_change_ends_rounds_with_its_reason(live: Live, tmp_path: Path) -> None:
    _, source = live
    refusing(source)
    with pytest.raises(ChangeRolledBack, match="no way; rolled back"):
        await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    state = await ended(live)
    last = state.rounds[0].ended
    assert last is not None and (last.outcome, last.active) == ("failed", "before") and "no way" in last.detail
    assert (tmp_path / "conf").read_text() == BEFORE and not source.load.running and not source.tuning.running_rounds
    assert state.changes[0].outcome == "rolled back" and "no way" in state.changes[0].detail


async def test_loss_of_host_ends_rounds(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    _, source = live

    async def lost(*_: object) -> None:
        raise HostError("web1: connection lost")

    monkeypatch.setattr(HostChanges, "_while_active", lost)
    with pytest.raises(HostError, match="connection lost"):
        await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    last = (await ended(live)).rounds[0].ended
    assert last is not None and (last.outcome, last.active) == ("failed", "before")
    assert last.detail == "web1: connection lost" and not source.load.running


async def test_loss_that_is_not_in_the_state_yet_ends_no_rounds(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    real, seen = HostChanges.apply, session.state.hosts["web1"].seen

    async def lost(*arguments: Any) -> Any:
        if session.state.hosts["web1"].seen == seen:
            raise HostError("web1: connection lost")
        return await real(*arguments)

    monkeypatch.setattr(HostChanges, "apply", lost)
    await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    last = (await ended(live)).rounds[0].ended
    assert last is not None and last.outcome == "budget"


async def test_change_does_not_wait_for_rounds_that_are_planned(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    _, source = live
    real, planning, planned = source.tuning._changes.plan, asyncio.Event(), asyncio.Event()

    async def plan(*arguments: Any) -> Any:
        planning.set()
        await planned.wait()
        return await real(*arguments)

    monkeypatch.setattr(source.tuning._changes, "plan", plan)
    running_rounds = asyncio.ensure_future(source.tuning.compare_in_rounds({"Level": "7"}, SHORT))
    await planning.wait()
    with pytest.raises(ChangeRefused, match="rounds are running"):
        await source.tuning.apply({"Other": "2"})
    source.tuning.stop_rounds()
    planned.set()
    assert (await running_rounds).outcome == "stopped" and not source.tuning.running_rounds


@pytest.mark.parametrize("calls", [{1}, {2}, {1, 2}])
async def test_window_of_lost_host_is_repeated(live: Live, monkeypatch: pytest.MonkeyPatch, calls: set[int]) -> None:
    _, source = live
    real, numbers = HostChanges.apply, count(1)

    async def lost(*arguments: Any) -> Any:
        if next(numbers) in calls:
            raise ChangeRolledBack("Level: connection lost") from HostError("no response within 2 s")
        return await real(*arguments)

    monkeypatch.setattr(HostChanges, "apply", lost)
    await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    rounds = (await ended(live)).rounds[0]
    assert rounds.ended is not None and rounds.ended.outcome == "budget"
    assert len(rounds.windows) == 2 * SHORT.rounds == 2 * len(rounds.complete)


async def test_impossible_rounds_are_refused(live: Live, tmp_path: Path) -> None:
    session, source = live
    with pytest.raises(ChangeRefused, match="these values are already active"):
        await source.tuning.compare_in_rounds({"Level": "5"}, SHORT)
    with pytest.raises(ChangeRefused, match="one line of text"):
        await source.tuning.compare_in_rounds({"Level": "7\n8"}, SHORT)
    levels = (Stage(duration=9.0, concurrency=1),)
    for varying in ({"ramp_to": 9.0}, {"ramp_to": None, "duration": None, "stages": levels}):
        source.load.plan = replace(source.load.plan, **varying)
        with pytest.raises(ChangeRefused, match="remove the load levels or the ramp"):
            await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    assert session.state.runs == 0 and session.state.rounds == ()
    # The load of the current run must stay, whatever the next run has.
    levels = tuple(Stage(duration=60.0, rate=rate) for rate in (20.0, 30.0))
    source.load.plan = replace(source.load.plan, duration=60.0, stages=())
    await source.load.start(replace(source.load.plan, duration=None, stages=levels))
    assert source.load.active is not None and not source.load.plan.stages
    with pytest.raises(ChangeRefused, match="load levels"):
        await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)


async def test_failed_final_change_leaves_initial_values_active(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, source = live
    concluding(monkeypatch, Outcome.BETTER)

    def conclude(verdict: Verdict) -> bool:
        refusing(source)
        return True

    proven = await source.tuning.compare_in_rounds({"Level": "7"}, SHORT._replace(concluded=conclude))
    last = (await ended(live)).rounds[0].ended
    assert last is not None and last.active == proven.active == "before" and "no way" in last.detail
    assert proven.why == last.detail and proven.letter == ""
    assert (tmp_path / "conf").read_text() == BEFORE


async def test_rounds_whose_load_cannot_start_are_not_recorded(live: Live) -> None:
    session, source = live
    source.load.plan = replace(source.load.plan, url="http://127.0.0.1:1/")
    with pytest.raises(TargetError):
        await source.tuning.compare_in_rounds({"Level": "7"}, SHORT)
    assert not source.tuning.running_rounds and session.state.rounds == ()
    assert all(not change.trial for change in session.state.changes)


async def test_rounds_end_if_others_change_the_old_value(live: Live, tmp_path: Path) -> None:
    session, source = live
    running_rounds = asyncio.ensure_future(source.tuning.compare_in_rounds({"Level": "7"}, SHORT._replace(seconds=1.0)))
    await until(session, lambda state: bool(state.rounds and state.rounds[-1].windows))
    (tmp_path / "conf").write_text(BEFORE.replace("5", "6"))
    with pytest.raises(ChangeRefused, match="Level: modified elsewhere"):
        await running_rounds
    state = await ended(live)
    assert state.rounds[-1].ended is not None and state.rounds[-1].ended.outcome == "failed"
    assert (tmp_path / "conf").read_text() == BEFORE.replace("5", "6")
