"""A study on the screen: how far it is, its newest runs, and nothing that could spoil it."""

from __future__ import annotations

from cockpit.session.loop import Session
from cockpit.study.controls import StudyControls
from cockpit.tui.study.screen import StudyApp, StudyLine
from tests.study.conftest import Studied, until


def steps_done(session: Session) -> int:
    return len(session.state.study.done) if session.state.study else 0


async def test_a_study_on_the_screen(studied: Studied) -> None:
    studied.write(short='variants = ["more"]\nrounds = 1\nrequests = 40\nconcurrency = 2')
    live, runner = studied.in_process()
    live.source.controls = StudyControls(live.source.controls)
    session = live.session
    app = StudyApp(session, runner)
    async with app.run_test(size=(120, 40)) as pilot:
        line = app.screen.query_one(StudyLine)
        assert "round 1 of 1 · connecting" in str(line.render())
        await pilot.resize_terminal(80, 24)
        await pilot.press("space", "t", "plus")
        await until(lambda: app.failure is not None or steps_done(session) > 0, "the step")
        assert app.failure is None
        line.refresh_words()
        assert "✓ round 1 more" in str(line.render())
        await until(lambda: app.failure is not None or runner.journal.finished, "the end")
    assert app.failure is None and not app.interrupted
    assert session.state.runs == 1 and len(session.state.changes) == 2
    assert studied.as_it_was() and not studied.journal().touched
