"""Words for changes: requester, stages, outcome, markers."""

import os
import pwd

import pytest

from cockpit.analysis.timeline import all_markers
from cockpit.analysis.words.timeline import marker_text
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.knobs import Knob, Setting
from cockpit.recording.library import ChangeSummary, Recent, RecordingInfo
from cockpit.tui.start.choices import Choice, StartChoice, about
from cockpit.tui.tuning.changes import active_value, change_lines, change_status_words, details
from cockpit.tuning.change_options import whoami
from tests.tui.driving import plain


def test_changes_are_described_with_requester_value_and_rollback() -> None:
    for who, text in (("ann@desk", "by ann@desk"), ("0@desk", "by uid 0@desk"), ("0xen@desk", "by 0xen@desk")):
        state = fold_all([ev.ChangeBegun(t=1.0, change="A", host="web1", settings=(), diff="", who=who)])
        assert text in " ".join(plain(change_lines(state.changes[0], state)))
    limit = Knob(name="Limit", host="web1", kind="keyvalue", file="/f", key="Limit", action="restart")
    settings = (Setting(knob="Limit", old="1", new="2"),)
    state = fold_all(
        [
            ev.SessionStarted(t=0, wall=0, version="0", name="x", knobs=(limit,)),
            ev.ChangeBegun(t=1.0, change="A", host="web1", settings=settings, inactive=("Limit",)),
            ev.ChangeStage(t=2.0, change="A", stage="not yet active", seconds=60.0),
        ]
    )
    assert change_status_words(state.changes[0], state) == "not yet active, rolled back in 60 s unless kept"
    state = fold_all([ev.ChangeEnded(t=3.0, change="A", outcome="written")], state)
    assert change_status_words(state.changes[0], state) == "written, not yet active: Limit (run action restart)"
    assert active_value(state.knobs["Limit"]) == "2 (not yet active)"
    assert "a change is only written: run action restart" in details(state.knobs["Limit"])
    info = RecordingInfo(name="one", path="/state/one.cockpit", size=1, began=0.0, session="one")
    change = ChangeSummary(letter="A", label="A MaxSpareServers 10 → 40", outcome="applied")
    choice = StartChoice(Choice("recording", info.path), recent=Recent(info=info, changes=(change,)))
    assert "A MaxSpareServers 10 → 40  applied" in [text for text, _ in about(choice, 120)]
    events = [
        ev.KnobRead(t=1.0, knob="K", host="web1", value="1"),
        ev.ChangeBegun(t=10.0, change="A", host="web1", settings=(Setting(knob="K", old="1", new="2"),)),
        ev.ChangeStage(t=12.0, change="A", stage="active"),
    ]
    ended = ev.ChangeEnded(t=70.0, change="A", outcome="rolled back", detail="not confirmed")
    before, after = (all_markers(fold_all(script)) for script in (events, [*events, ended]))
    assert [(marker.t, marker_text(marker)) for marker in before] == [(12.0, "A K 1 → 2: under way")]
    assert sorted((marker.t, marker_text(marker)) for marker in after) == [
        (12.0, "A K 1 → 2: rolled back at 00:01:10"),
        (70.0, "A K 1 → 2: rolled back, not confirmed"),
    ]


def test_whoami_falls_back_to_login_name(monkeypatch: pytest.MonkeyPatch) -> None:
    login = pwd.getpwuid(os.getuid()).pw_name
    for value, name in (("ann", "ann"), ("", login), ("0", login)):
        monkeypatch.setenv("USER", value)
        assert whoami().startswith(f"{name}@")
