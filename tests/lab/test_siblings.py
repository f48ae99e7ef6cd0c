"""A setting of one of two nginx behind HAProxy, compared with the other one while users are served."""

from pathlib import Path

import pytest

from cockpit.analysis.rounds import RoundsPlan
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.analysis.words.verdicts import verdict_line
from cockpit.session.live_session import LiveSession
from tests.lab.balanced import HOSTS, KNOBS, PATHS, RATE, balanced
from tests.lab.users import users
from tests.session.guarded_site import set_lease


async def test_setting_is_compared_with_the_sibling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    set_lease(monkeypatch)
    with balanced(slower=1.2) as site:
        before = [file.read_text() for file in site.files]
        async with users(site.port, 30, PATHS), LiveSession(site.profile) as live:
            await live.hosts_read()
            await live.knobs_read()
            await live.load.start()
            await live.session.until(lambda state: bool(state.segment and len(state.segment.logs) == 2))
            proven = await live.tuning.compare_in_rounds({KNOBS[0]: str(RATE // 2)}, RoundsPlan(4, 5.0))
            state = live.state
        assert [file.read_text() for file in site.files] == before
    verdict = proven.verdict
    assert verdict is not None and verdict.headline is not None and verdict.headline.change is not None
    assert verdict.outcome is Outcome.WORSE and verdict.headline.change > 0.3, verdict_line(verdict)
    assert verdict.values == (4, 4) and proven.active == "before"
    assert {effect.name for effect in verdict.effects} >= {"p50", "p99", "server.memory.used"}
    assert {change.host for change in state.changes} == {*HOSTS}
    assert {change.outcome for change in state.changes} == {"rolled back"}
