"""Changes and actions of a live session, told as events: previewed, confirmed, undone, and on the timeline."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeUndone
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session import flipping
from cockpit.session.controls import Flipped
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.servers import http_server

BEFORE = "Level=5\nOther=1\n"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Session, LiveSource]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "conf").write_text(BEFORE)
    (tmp_path / "conf.d").write_text("Limit=1\n")
    file = str(tmp_path / "conf")
    knobs = [
        Knob(name=name, host="web1", kind="keyvalue", file=file, key=name, reload="true") for name in ("Level", "Other")
    ]
    knobs.append(Knob(name="Limit", host="web1", kind="keyvalue", file=f"{file}.d", key="Limit", action="again"))
    profile = Profile(
        name="x",
        plan=LoadPlan(url=url, concurrency=1, duration=60.0),
        hosts=(HostConfig(name="web1"),),
        knobs=tuple(knobs),
        actions=(ServerAction(name="again", host="web1", command=f"echo x >>{shlex.quote(file + '.log')}", times=3),),
    )
    source = LiveSource(profile, Clock())
    session = Session(source)
    running = asyncio.create_task(session.run())
    await until(session, lambda state: bool(state.knobs) and all(knob.known for knob in state.knobs.values()))
    yield session, source
    await source.close()
    await running


async def until(session: Session, holds: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(holds), 60)


async def test_a_value_that_no_reload_reads_is_written_until_its_action_ran(live: tuple[Session, LiveSource]) -> None:
    session, source = live
    await source.tuning.apply({"Limit": "2"})
    state = await until(session, lambda state: bool(state.changes) and bool(state.changes[-1].outcome))
    (change,) = state.changes
    assert list(change.stages) == ["armed", "written", "not yet active", "confirmed"]
    assert (change.outcome, change.inactive, change.in_force, change.cost) == ("written", ("Limit",), None, "written")
    assert (state.knobs["Limit"].value, state.knobs["Limit"].active) == ("2", False)
    with pytest.raises(ChangeRefused, match="Limit: only written, never active"):
        await source.tuning.flip({"Limit": "3"}, 2, 15.0)
    await source.tuning.act("again")
    state = await until(session, lambda state: state.knobs["Limit"].active)
    assert (state.changes[0].outcome, state.changes[0].inactive) == ("applied", ())
    await source.tuning.undo()
    state = await until(session, lambda state: len(state.changes) == 2 and bool(state.changes[1].outcome))
    assert state.changes[1].outcome == "written" and state.knobs["Limit"].value == "1"


async def test_previewed_applied_and_undone(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    (preview,) = await source.tuning.preview({"Level": "7"})
    assert (preview.host, preview.cost) == ("web1", "graceful") and preview.diff.endswith("-Level=5\n+Level=7\n")
    assert (tmp_path / "conf").read_text() == BEFORE
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.changes[-1].outcome == "applied")
    change = state.changes[0]
    assert list(change.stages) == ["armed", "written", "reloaded", "in force", "confirmed"]
    assert change.diff == preview.diff and "@" in change.who
    await source.tuning.undo()
    state = await until(session, lambda state: len(state.changes) == 2 and bool(state.changes[1].outcome))
    assert state.changes[1].undoes == "A" and state.knobs["Level"].value == "5"
    assert (tmp_path / "conf").read_text() == BEFORE
    with pytest.raises(ChangeRefused, match="nothing to undo"):
        await source.tuning.undo()


@pytest.mark.parametrize("kept", [True, False])
async def test_a_change_that_waits_for_a_person(live: tuple[Session, LiveSource], tmp_path: Path, kept: bool) -> None:
    session, source = live
    with pytest.raises(ChangeRefused, match="no change waits"):
        source.tuning.confirm()
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
    (keep,) = (action for action in source.controls.actions if action.keys == ("y",))
    if kept:
        await keep.run("")
        await applying
    else:
        await source.tuning.undo()
        with pytest.raises(ChangeUndone, match="it was not confirmed; put back and reloaded"):
            await applying
    await until(session, lambda state: bool(state.changes[0].outcome))
    assert session.state.knobs["Level"].value == ("7" if kept else "5")
    assert (tmp_path / "conf").read_text() == (BEFORE.replace("5", "7") if kept else BEFORE)


async def test_closing_undoes_what_nobody_confirmed(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
    await source.close()
    with pytest.raises(ChangeUndone):
        await applying
    assert (tmp_path / "conf").read_text() == BEFORE


async def test_a_change_that_is_refused_is_told_too(live: tuple[Session, LiveSource]) -> None:
    session, source = live
    with pytest.raises(ChangeRefused):
        await source.tuning.apply({"Level": "7\n8"})
    state = await until(session, lambda state: bool(state.changes and state.changes[0].outcome))
    assert state.changes[0].outcome == "restored" and "one line of text" in state.changes[0].detail
    with pytest.raises(ChangeRefused, match="unknown knob 'x'; the profile has: Level, Other"):
        await source.tuning.apply({"x": "1"})


async def test_actions(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    await source.tuning.act("again")
    state = await until(session, lambda state: bool(state.actions and state.actions[0].ended))
    assert (state.actions[0].done, state.actions[0].detail) == (3, "")
    assert (tmp_path / "conf.log").read_text() == "x\nx\nx\n"
    assert [marker.kind for marker in state.markers] == ["action"]
    with pytest.raises(ChangeRefused, match="unknown action 'x'; the profile has: again"):
        await source.tuning.act("x")


async def test_a_chosen_change_is_undone_unless_a_later_one_stands_on_it(
    live: tuple[Session, LiveSource], tmp_path: Path
) -> None:
    session, source = live
    for values in ({"Level": "7"}, {"Other": "2"}, {"Level": "8"}):
        await source.tuning.apply(values)
    with pytest.raises(ChangeRefused, match="C changed Level since: take that back first"):
        await source.tuning.undo("A")
    with pytest.raises(ChangeRefused, match="X is not in force; what can be taken back: A, B, C"):
        await source.tuning.undo("X")
    await source.tuning.undo("B")
    assert (tmp_path / "conf").read_text() == "Level=8\nOther=1\n"
    await source.tuning.undo("C")
    await source.tuning.undo("A")
    assert (tmp_path / "conf").read_text() == BEFORE
    state = await until(session, lambda state: len(state.changes) == 6 and bool(state.changes[-1].outcome))
    assert [change.undoes for change in state.changes] == ["", "", "", "B", "C", "A"]


def flipped_levels(state: State) -> list[str]:
    """What the rows of the last run are called."""
    return [row.label for row in state.segments if row.run == state.runs]


def locks(home: Path) -> list[Path]:
    """The locks of changes that are under way."""
    return list(home.glob("state/cockpit/changes/*/lock"))


async def test_back_and_forth_under_a_run_of_its_own(
    live: tuple[Session, LiveSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flipping, "UNCOUNTED", 0.0)
    session, source = live
    flip = asyncio.ensure_future(source.tuning.flip({"Level": "7"}, 2, 0.5))
    await until(session, lambda state: state.knobs["Level"].value == "7")
    assert "window 2 of 4 (changed)" in source.tuning.flipping and "A-B-A-B" in source.controls.condition
    assert session.state.changes[0].confirm_by is None and not source.tuning.awaited
    assert locks(tmp_path), "the host waits to take it back by itself"
    with pytest.raises(ChangeRefused, match="A-B-A-B is under way: stop it first"):
        await source.tuning.undo()
    assert await flip == Flipped(1, 2)
    state = await until(session, lambda state: state.running is None and bool(state.changes[-1].outcome))
    assert (tmp_path / "conf").read_text() == BEFORE
    there, back = "Level 5 → 7", "Level 7 → 5"
    assert flipped_levels(state) == ["baseline", f"A {there}", f"A undo A: {back}", f"B {there}"]
    assert {(change.outcome, change.detail) for change in state.changes} == {("restored", "taken back as planned")}
    assert all("undoing" in change.stages for change in state.changes)
    assert source.tuning.flipping == "" and not source.load.running


async def test_stopped_back_and_forth_leaves_the_values_of_before(
    live: tuple[Session, LiveSource], tmp_path: Path
) -> None:
    session, source = live
    flip = asyncio.ensure_future(source.tuning.flip({"Level": "7"}, 3, 600))
    await until(session, lambda state: state.running == 1)
    await until(session, lambda _: "window 1 of 6" in source.tuning.flipping)
    source.tuning.stop_flipping()
    assert await flip == Flipped(1, 0, "it was stopped")
    assert not session.state.changes


@pytest.mark.parametrize("how", ["stopped", "no load", "closed", "cancelled"])
async def test_whatever_ends_back_and_forth_the_values_of_before_come_back(
    live: tuple[Session, LiveSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(flipping, "UNCOUNTED", 0.0)
    session, source = live
    hold = flipping.Flips._hold

    async def for_long(self: flipping.Flips, window: str, seconds: float) -> bool:
        return await hold(self, window, 600.0 if "changed" in window else seconds)

    monkeypatch.setattr(flipping.Flips, "_hold", for_long)
    flip = asyncio.ensure_future(source.tuning.flip({"Level": "7"}, 2, 0.1))
    await until(session, lambda state: state.knobs["Level"].value == "7" and bool(source.tuning.flipping))
    assert (tmp_path / "conf").read_text() != BEFORE
    if how == "cancelled":
        flip.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flip
    else:
        ends = {"stopped": _stop_flipping, "no load": source.load.stop, "closed": source.close}
        await (ends[how](source) if how == "stopped" else ends[how]())  # type: ignore[operator]
        found = await flip
        assert (found.pairs, found.why) == (0, "the load ended before" if how == "no load" else "it was stopped")
    assert (tmp_path / "conf").read_text() == BEFORE
    assert not source.load.running


async def _stop_flipping(source: LiveSource) -> None:
    source.tuning.stop_flipping()


async def test_what_cannot_be_flipped(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    with pytest.raises(ChangeRefused, match="the host has these values already"):
        await source.tuning.flip({"Level": "5"}, 2, 20)
    (tmp_path / "conf").write_text("")
    with pytest.raises(ChangeRefused, match="one line of text"):
        await source.tuning.flip({"Level": "7\n8"}, 2, 20)
    await source.load.start()
    with pytest.raises(ChangeRefused, match="stop the load first"):
        await source.tuning.flip({"Level": "7"}, 2, 20)
    assert session.state.runs <= 1


async def test_a_change_that_is_refused_ends_back_and_forth(live: tuple[Session, LiveSource], tmp_path: Path) -> None:
    session, source = live
    source.tuning._knobs["Level"] = replace(source.tuning._knobs["Level"], test="echo no way >&2; exit 1")
    flip = asyncio.ensure_future(source.tuning.flip({"Level": "7"}, 2, 0.1))
    with pytest.raises(ChangeUndone, match="no way; put back"):
        await flip
    assert (tmp_path / "conf").read_text() == BEFORE and not source.load.running
    await until(session, lambda state: state.changes[0].outcome == "restored")
    assert "no way" in session.state.changes[0].detail
