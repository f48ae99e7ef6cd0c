"""Limits of changes on users' traffic: real requests, a real access log, a host over SSH."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.analysis.rounds import RoundsPlan, balanced
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.words.timeline import marker_text
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.report.session import session_markdown
from cockpit.session import guard, live_tuning, rounds
from cockpit.session.controls import LoadPhase
from cockpit.session.guard import SessionGuard
from cockpit.session.live_session import LiveSession
from cockpit.tuning.change_options import LEASE
from tests.hosts.sshd import Sshd
from tests.session.guarded_site import GuardedSite, set_lease
from tests.session.sessions import BEFORE, line_knob
from tests.session.test_rounds import SHORT, concluding
from tests.waiting import until

LIMITS = ("errors < 2%, p99 < 500ms",)
# The first window is one of the new values.
ROUNDS = RoundsPlan(4, 600.0, seed=next(n for n in range(20) if balanced(4, n)[0] == "after"))


class Guarded(NamedTuple):
    live: LiveSession
    site: GuardedSite
    sshd: Sshd
    conf: Path


@asynccontextmanager
async def guarded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *limits: str, ask: bool = False
) -> AsyncIterator[Guarded]:
    """Watch the traffic of a site whose knob Level is at 5."""
    set_lease(monkeypatch)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    conf, log = folder / "conf", folder / "access.log"
    conf.write_text(BEFORE)
    profile = Profile(
        name="x",
        plan=LoadPlan(url="http://127.0.0.1:9/", traffic=(AccessLog(host="web1", file=str(log)),)),
        hosts=(HostConfig(name="web1", ssh="web"),),
        knobs=(line_knob("Level", conf),),
        guard=limits,
        ask=ask,
    )
    sshd = await Sshd(folder).start()
    site = GuardedSite(conf, log)
    try:
        async with site.serving(), LiveSession(profile, ssh_config=sshd.ssh_config) as live:
            await live.hosts_read()
            await live.knobs_read()
            await live.load.start()
            await live.session.until(lambda state: bool(state.segment and state.segment.counts.completed > 50))
            yield Guarded(live, site, sshd, conf)
    finally:
        await sshd.stop()


@pytest.mark.parametrize("cut", [False, True], ids=["connected", "cut"])
async def test_bad_candidate_is_rolled_back(cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch, *LIMITS) as (live, site, sshd, conf):
        if cut:
            set_lease(monkeypatch, LEASE)
        change = asyncio.ensure_future(live.tuning.apply({"Level": "7"}))
        await until(lambda: site.failed or change.done())
        if cut:
            await sshd.stop()
        await until(lambda: conf.read_text() == BEFORE)
        if cut:
            await sshd.start()
        with pytest.raises(ChangeRolledBack) as failed:
            await change
        reason = "connection lost during the change" if cut else "limit errors < 2%: found"
        assert reason in str(failed.value)
        state = await live.session.until(lambda state: state.changes[-1].outcome is not None)
        assert (state.changes[-1].outcome, reason in state.changes[-1].detail) == ("rolled back", True)
        assert reason in marker_text(state.markers[-1])


async def test_nothing_is_changed_without_a_limit_that_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch) as (live, _, _, conf):
        with pytest.raises(ChangeRefused, match="without a limit; add --guard 'errors < 2%, p99 < 500ms'"):
            await live.tuning.apply({"Level": "7"})
        with pytest.raises(ChangeRefused, match="without a limit"):
            await live.tuning.compare_in_rounds({"Level": "7"}, ROUNDS)
        live.tuning._changes._guard = SessionGuard(("p99 < 1ms",), True, live.source._live_events)
        with pytest.raises(ChangeRefused, match=r"limit p99 < 1ms: found .* before any change"):
            await live.tuning.apply({"Level": "7"})
        await live.load.stop()
        with pytest.raises(ChangeRefused, match="the traffic is not counted"):
            await live.tuning.apply({"Level": "7"})
        assert conf.read_text() == BEFORE and not live.state.changes


async def test_kept_change_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = 6 * LEASE
    async with guarded(tmp_path, monkeypatch, *LIMITS) as (live, _, _, conf):
        set_lease(monkeypatch, lease)
        change = asyncio.ensure_future(live.tuning.apply({"Level": "6"}))
        await live.session.until(lambda state: bool(state.changes and state.changes[-1].confirm_by))
        # The host keeps the change for longer than its lease.
        ends = live.state.t + 1.1 * lease
        await live.session.until(lambda state: state.t > ends)
        live.tuning.confirm()
        (applied,) = await change
        assert applied.outcome == "applied" and "Level=6" in conf.read_text()


async def test_change_without_counts_is_rolled_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run is no reason yet: the next one may be about to start."""
    async with guarded(tmp_path, monkeypatch, *LIMITS) as (live, _, _, conf):
        change = asyncio.ensure_future(live.tuning.apply({"Level": "6"}))
        await live.session.until(lambda state: bool(state.changes and state.changes[-1].confirm_by))
        monkeypatch.setattr(guard, "BLIND", 600.0)
        await live.load.stop()
        ends = live.state.t + 2.0
        await live.session.until(lambda state: state.t > ends)
        assert not change.done() and "Level=6" in conf.read_text()
        monkeypatch.setattr(guard, "BLIND", 0.5)
        with pytest.raises(ChangeRolledBack, match="requests are no longer counted"):
            await change
        assert conf.read_text() == BEFORE


async def test_undo_by_hand_is_no_loss_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch, *LIMITS) as (live, _, _, conf):
        change = asyncio.ensure_future(live.tuning.apply({"Level": "6"}))
        await live.session.until(lambda state: bool(state.changes and state.changes[-1].confirm_by))
        (undo,) = (tmp_path / "state").rglob("undo")
        await (await asyncio.create_subprocess_exec("sh", undo)).wait()
        with pytest.raises(ChangeRolledBack, match="Level: undone on the host by hand") as failed:
            await change
        assert not failed.value.is_loss and conf.read_text() == BEFORE


async def test_rounds_end_when_a_limit_is_exceeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch, *LIMITS, ask=True) as (live, _, _, conf):
        rounds = asyncio.ensure_future(live.tuning.compare_in_rounds({"Level": "7"}, ROUNDS))
        await until(lambda: live.tuning.awaited)
        assert conf.read_text() == BEFORE
        assert live.source.controls.status.phase is LoadPhase.ASKING
        assert [action.label for action in live.source.controls.actions if action.name == "keep"] == ["switch now"]
        live.tuning.confirm()
        with pytest.raises(ChangeRolledBack, match="limit errors < 2%: found"):
            await rounds
        state = await live.session.until(lambda state: state.rounds[-1].ended is not None)
        assert conf.read_text() == BEFORE
    ended, change = state.rounds[-1].ended, state.changes[-1]
    assert ended is not None and ended.outcome == "failed" and change.trial
    assert any(change.exceeded in marker_text(marker) for marker in state.markers)
    assert "rolled back: Level: limit errors" in session_markdown(state)


async def test_refused_switch_stops_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded(tmp_path, monkeypatch, *LIMITS, ask=True) as (live, _, _, conf):
        rounds = asyncio.ensure_future(live.tuning.compare_in_rounds({"Level": "7"}, ROUNDS))
        await until(lambda: live.tuning.awaited)
        live.tuning.stop_rounds()
        assert (await rounds).outcome == "stopped" and conf.read_text() == BEFORE


async def test_rounds_count_the_traffic_until_the_chosen_side_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((rounds, "UNCOUNTED"), (rounds, "ENDS"), (live_tuning, "WASHOUT"), (live_tuning, "_CHECKED")):
        monkeypatch.setattr(module, name, 0.1)
    concluding(monkeypatch, Outcome.BETTER)
    async with guarded(tmp_path, monkeypatch, *LIMITS) as (live, _, _, conf):
        await live.load.stop()
        result = await live.tuning.compare_in_rounds({"Level": "6"}, SHORT)
        assert (result.active, result.why) == ("after", "") and "Level=6" in conf.read_text()
        assert not live.load.running
