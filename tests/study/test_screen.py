"""A study on the screen: progress, newest runs, and no keys that could disturb it."""

from __future__ import annotations

from cockpit.session.loop import Session
from cockpit.study.controls import StudyControls
from cockpit.tui.study.screen import StudyApp, StudyLine
from tests.study.conftest import DemoStudy, until


def steps_done(session: Session) -> int:
    return len(session.state.study.done) if session.state.study else 0


async def test_study_runs_on_screen_and_ignores_load_keys(demo_study: DemoStudy) -> None:
    demo_study.write(short='variants = ["more"]\nrounds = 1\nrequests = 40\nconcurrency = 2')
    live, runner = demo_study.in_process()
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
    assert demo_study.is_original() and not demo_study.journal().touched
