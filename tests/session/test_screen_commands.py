"""Commands typed on the screen of a real session change its load and its settings."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from cockpit.cli.typed_load import plan_with
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.tui.app import CockpitApp
from cockpit.tui.tuning.screen import TuningScreen
from tests.session.test_live_replay import session_of
from tests.tui.driving import text_of, until


async def type_line(pilot: Pilot[object], text: str) -> None:
    await pilot.press("colon", *("space" if letter == " " else letter for letter in text), "enter")


async def test_settings_load_and_notes_by_commands(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    file = tmp_path / "conf"
    file.write_text("Level=5\n")
    knob = Knob(name="Level", host="web1", kind="keyvalue", file=str(file), key="Level", reload="true")
    session = session_of(url, tmp_path / "s.cockpit", hosts=(HostConfig(name="web1"),), knobs=(knob,))
    app = CockpitApp(session, load_parser=plan_with)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "Level" in session.state.knobs and session.state.knobs["Level"].known)
        await type_line(pilot, "set Level 7")
        await until(pilot, lambda: isinstance(app.screen, TuningScreen))
        await until(pilot, lambda: "Enter again: apply" in text_of(app.screen.query_one("#status")))
        assert file.read_text() == "Level=5\n", "nothing is changed before it is confirmed"
        await pilot.press("enter")
        await until(pilot, lambda: session.state.knobs["Level"].value == "7")
        assert file.read_text() == "Level=7\n"
        await until(pilot, lambda: not isinstance(app.screen, TuningScreen))
        await type_line(pilot, "start")
        await until(pilot, lambda: session.state.running == 1)
        await type_line(pilot, "rate 80")
        await until(pilot, lambda: session.state.segment is not None and session.state.segment.plan.rate == 80)
        await type_line(pilot, "note by hand")
        await until(pilot, lambda: "by hand" in [getattr(marker, "text", "") for marker in session.state.markers])
