"""A session recorded on the lab, driven through the real screen by its keys."""

from pathlib import Path

from cockpit.session.loop import Session
from cockpit.session.recording.reader import Recording
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.widgets.hosts import HostPanes
from cockpit.tui.widgets.runs import Runs
from cockpit.tui.widgets.topline import TopLine
from tests.tui.driving import text_of, until

RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"


async def test_a_recorded_session_is_stepped_through() -> None:
    with Recording(RECORDING) as recording:
        session = Session(ReplaySource(recording, recording.end, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: session.state.ended)
            runs, top = (app.screen.query_one(widget) for widget in (Runs, TopLine))
            await until(pilot, lambda: "REPLAY END" in text_of(top))
            assert [segment.number for segment in session.state.segments] == [1, 2, 3, 4, 5]
            before, after = session.state.segments[1], session.state.segments[2]
            assert after.counts.service.percentile(99) < before.counts.service.percentile(99) / 10
            await pilot.press("home")
            await until(pilot, lambda: "00:00:00" in text_of(top) and "baseline" not in text_of(runs))
            for _ in range(3):
                await pilot.press("right_square_bracket")
            await until(pilot, lambda: [marker.sign for marker in session.state.markers] == ["A"])
            await until(pilot, lambda: "again" in text_of(runs))
            assert session.state.running is None
            assert " procs " in text_of(app.screen.query_one(HostPanes))
