"""Rounds on two servers with users: one has the new value while the other has the old one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.rounds import Order, RoundsPlan
from cockpit.analysis.verdicts.outcome import Design, Outcome, Verdict
from cockpit.analysis.words.rounds import ended_words, title_words, window_words
from cockpit.analysis.words.timeline import marker_text, segment_label
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session import live_tuning, siblings
from cockpit.session import rounds as session_rounds
from cockpit.session.live_session import LiveSession
from cockpit.session.tuning import parse_rounds
from tests.session.guarded_site import GuardedSite, set_lease
from tests.session.sessions import BEFORE

# Two rounds; far too short for a verdict.
SHORT = RoundsPlan(2, 0.3, Order.MIRRORED)
HOSTS = ("web1", "web2")


def knob(name: str, host: str, file: str) -> Knob:
    return Knob(name=name, host=host, kind="keyvalue", file=file, key=name.partition("-")[0], reload="true")


@pytest.fixture
async def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LiveSession]:
    """Watch the traffic of two servers on this machine."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    set_lease(monkeypatch)
    monkeypatch.setattr(session_rounds, "UNCOUNTED", 0.0)
    monkeypatch.setattr(live_tuning, "WASHOUT", 0.0)
    profile = Profile(
        name="x",
        plan=LoadPlan(
            url="http://127.0.0.1:9/",
            traffic=tuple(AccessLog(host=host, file=str(tmp_path / f"{host}.log")) for host in HOSTS),
        ),
        hosts=tuple(HostConfig(name=host) for host in HOSTS),
        knobs=tuple(knob(f"Level-{host}", host, str(tmp_path / host)) for host in HOSTS),
        guard=("errors < 50%",),
    )
    async with AsyncExitStack() as stack:
        for host in HOSTS:
            (tmp_path / host).write_text(BEFORE)
            site = GuardedSite(tmp_path / host, tmp_path / f"{host}.log")
            await stack.enter_async_context(site.serving())
        live = await stack.enter_async_context(LiveSession(profile))
        await live.hosts_read()
        await live.knobs_read()
        await live.load.start()
        await live.session.until(lambda state: len(state.segment.logs) == 2 if state.segment else False)
        yield live


async def test_roles_are_exchanged_in_each_round(live: LiveSession, tmp_path: Path) -> None:
    assert [knob.name for knob in live.tuning.siblings({"Level-web1": "6"}).values()] == ["Level-web2"]
    proven = await live.tuning.compare_in_rounds({"Level-web1": "6"}, SHORT)
    assert (proven.outcome, proven.active) == ("budget", "before")
    state = await live.session.until(lambda state: state.rounds[-1].ended is not None)
    (rounds,) = state.rounds
    # The server that keeps the old value is set up as well: by a rollback, or by a change that is made and undone.
    changed = [(change.host, change.settings[0].new) for change in state.changes]
    assert changed == [(host, "6") for host in ("web1", "web2", "web1", "web2", "web1", "web2")]
    assert [(window.round, window.side) for window in rounds.windows] == [
        (1, "before"), (1, "after"), (2, "after"), (2, "before")
    ]  # fmt: skip
    for window in rounds.windows:
        (active,) = (change for change in state.changes if change.begun < window.start < (change.ended or 0.0))
        assert active.host == rounds.begun.new_on(window.side)
    assert [segment_label(segment) for segment in state.segments if segment.round][:2] == [
        "round 1 web2",
        "round 1 web1",
    ]
    assert marker_text(state.markers[0]) == window_words(rounds, rounds.windows[0])
    assert window_words(rounds, rounds.windows[0]) == "round 1 of 2: new values on web2"
    assert title_words(rounds.begun) == "Level-web1 5 → 6 on web1 or web2, in turn"
    assert rounds.ended is not None
    assert ended_words(rounds, rounds.ended, None).endswith("the old values are active on web1, as at the start")
    assert {(tmp_path / host).read_text() for host in HOSTS} == {BEFORE}


async def test_better_values_become_active_on_both_servers(
    live: LiveSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = Verdict(outcome=Outcome.BETTER, design=Design.ROUNDS)
    monkeypatch.setattr(session_rounds, "rounds_verdict", lambda state, rounds: better)
    monkeypatch.setattr(live_tuning, "_CHECKED", 0.1)
    proven = await live.tuning.compare_in_rounds({"Level-web1": "6"}, SHORT)
    assert proven.active == "after" and not proven.why
    state = await live.session.until(lambda state: state.rounds[-1].ended is not None)
    (rounds,) = state.rounds
    assert rounds.ended is not None
    assert "the new values are active on web1 and web2" in ended_words(rounds, rounds.ended, better)
    assert {(tmp_path / host).read_text() for host in HOSTS} == {BEFORE.replace("5", "6")}


async def test_siblings_need_the_same_old_value(live: LiveSession, tmp_path: Path) -> None:
    (tmp_path / "web2").write_text(BEFORE.replace("5", "7"))
    with pytest.raises(ChangeRefused, match="web2: Level-web2 is 7, Level-web1 on web1 5; give both the same value"):
        await live.tuning.compare_in_rounds({"Level-web1": "6"}, SHORT)
    rounds = asyncio.ensure_future(live.tuning.compare_in_rounds({"Level-web1": "6"}, SHORT._replace(alone=True)))
    state = await live.session.until(lambda state: bool(state.rounds))
    assert not state.rounds[-1].begun.sibling
    live.tuning.stop_rounds()
    assert (await rounds).outcome == "stopped"


def test_knobs_of_the_same_setting() -> None:
    """Of two knobs for a setting, the one in the file of the same name; without a certain one, there is no sibling."""
    own, twin, other = (knob(name, host, "/a") for name, host in (("L", "web1"), ("L-2", "web2"), ("M-2", "web2")))
    known = {each.name: each for each in (own, twin, other)}
    assert siblings.sibling_knobs(["L"], known, HOSTS) == {"L": twin}
    assert siblings.sibling_knobs(["L-2"], known, HOSTS) == {"L-2": own}
    second = replace(twin, name="L-3", file="/b")
    assert siblings.sibling_knobs(["L"], {**known, "L-3": second}, HOSTS) == {"L": twin}
    assert not siblings.sibling_knobs(["L"], {**known, "L-3": replace(second, file="/a")}, HOSTS)
    assert not siblings.sibling_knobs(["M-2"], known, HOSTS)
    assert not siblings.sibling_knobs(["L"], known, ["web1"])
    assert not siblings.sibling_knobs(["L", "L-2"], known, HOSTS)


def test_answer_to_the_offer() -> None:
    assert parse_rounds("") == RoundsPlan() and parse_rounds("alone").alone
    assert parse_rounds("alone 8 x 20s") == RoundsPlan(8, 20.0, alone=True)
