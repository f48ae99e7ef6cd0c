"""A change under load extends the current run until its verdict, and no longer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.errors import ChangeRolledBack
from cockpit.model.state import State
from cockpit.session import live_load
from tests.session.sessions import Live, do, live_session, until

# Long enough for a change on a busy machine.
PLANNED = 5.0


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    """A session whose load has just started; `awaits_verdict` is always true."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(live_load, "JUDGE_EVERY", 0.2)
    monkeypatch.setattr(live_load, "awaits_verdict", lambda state, change: True)
    async with live_session(url, tmp_path, duration=PLANNED) as live:
        await live[1].load.start()
        yield live


async def extended(live: Live, awaited: str, change: str = "") -> State:
    """Wait until the run is extended for this reason."""

    def is_extended(state: State) -> bool:
        return state.extension is not None and (state.extension.awaited, state.extension.change) == (awaited, change)

    return await until(live[0], is_extended)


async def change(live: Live) -> State:
    """Make a change; return the first state in which its verdict extends the run."""
    state, _ = await asyncio.gather(extended(live, "verdict", "A"), live[1].tuning.apply({"Level": "7"}))
    return state


async def end_reason(live: Live) -> str:
    """Wait for the end of the run and return its reason."""
    state = await until(live[0], lambda state: state.running is None)
    assert state.extension is None
    return state.segments[-1].reason


async def test_change_extends_run_until_verdict(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = live
    state = await change(live)
    assert state.extension is not None
    assert state.extension.until - state.extension.since == pytest.approx(180.0, abs=0.5)
    start = state.segments[0].start
    state = await until(session, lambda state: state.t > start + PLANNED + 1)
    assert state.running == 1
    monkeypatch.setattr(live_load, "awaits_verdict", lambda state, change: False)
    assert await end_reason(live) == "completed"


@pytest.mark.parametrize("extend", [0.0, 15.0])
async def test_extension_ends_at_limit_of_plan(live: Live, extend: float) -> None:
    session, source = live
    source.load.plan = replace(source.load.plan, extend=extend)
    if extend:
        extension = (await change(live)).extension
        assert await end_reason(live) == "completed"
        end = session.state.segments[-1].end
        assert extension is not None and end is not None and end >= extension.until
    else:
        await source.tuning.apply({"Level": "7"})
        assert session.state.extension is None and await end_reason(live) == "completed"


@pytest.mark.parametrize(("ending", "reason"), [("undo", "completed"), ("space", "stopped")])
async def test_undo_and_space_end_extension(live: Live, ending: str, reason: str) -> None:
    session, source = live
    await change(live)
    await (source.tuning.undo() if ending == "undo" else do(session, "toggle"))
    assert await end_reason(live) == reason


async def test_change_undone_before_confirmation_extends_no_run(live: Live) -> None:
    session, source = live
    with pytest.raises(ChangeRolledBack):
        applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
        await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
        await source.tuning.undo()
        await applying
    await end_reason(live)


async def test_wait_for_baseline_extends_run(live: Live) -> None:
    session, source = live
    source.tuning.await_baseline(600.0)
    await extended(live, "baseline")
    state = await until(session, lambda state: state.t > state.segments[0].start + PLANNED + 0.5)
    assert state.running == 1
    source.tuning.release()
    assert await end_reason(live) == "completed"
