"""Screenshots of fixed scenarios, without clock and animation. `pytest --snapshot-update` rewrites them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.tuning.screen import TuningScreen
from cockpit.tui.tuning.widgets import History
from tests.tui.driving import main, press, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.tui.test_verdicts import changed_under_load
from tests.tui.topology import topology

Compare = Callable[..., bool]
RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.mark.parametrize(
    ("size", "second", "hosts"),
    [((120, 40), 62.5, 2), ((80, 24), 99.0, 2), ((40, 12), 76.0, 1)],
    ids=["host_lost_and_generator_saturated", "a_line_a_host", "numbers_only"],
)
def test_main_screen(snap_compare: Compare, size: tuple[int, int], second: float, hosts: int) -> None:
    events = Scenario(hosts, hostile=True).events(second)
    app, source = scripted_app(events)

    async def drawn(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))

    assert snap_compare(app, terminal_size=size, run_before=drawn)


@pytest.mark.parametrize(
    ("size", "keys"),
    [((120, 40), ()), ((200, 50), ("enter",)), ((120, 40), ("p", "s", "f", "down")), ((120, 40), ("p", "p", "w"))],
    ids=["stacked", "side_by_side", "processes_frozen", "averages"],
)
def test_two_hosts(snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]) -> None:
    events = topology(30.7)
    app, source = scripted_app(events)

    async def pressed(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, *keys)
        await wait_idle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=pressed)


def test_tuning_panel(snap_compare: Compare) -> None:
    events = Scenario().events(84.0)
    app, source = scripted_app(events)

    async def typing(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, "t")
        await until(pilot, lambda: isinstance(pilot.app.screen, TuningScreen))
        await until(pilot, lambda: pilot.app.screen.query_one(History).option_count == 3)
        await press(pilot, *"30", "down", *"60", "enter")
        await until(pilot, lambda: "Enter again" in text_of(pilot.app.screen.query_one("#status")))
        await wait_idle(pilot)

    assert snap_compare(app, terminal_size=(120, 40), run_before=typing)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])
def test_verdict(snap_compare: Compare, size: tuple[int, int]) -> None:
    events = changed_under_load()
    app, source = scripted_app(events)

    async def pressed(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, "c")
        await until(pilot, lambda: "better" in text_of(pilot.app.screen.query_one("#text")))
        await wait_idle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=pressed)


@pytest.mark.parametrize("t", [80.0, 200.0], ids=["likely", "better"])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])
def test_verdict_strip(snap_compare: Compare, size: tuple[int, int], t: float) -> None:
    with Recording(RECORDINGS / "under-load.cockpit") as recording:
        session = Session(ReplaySource(recording, min(t, recording.end), playing=False))

        async def drawn(pilot: Pilot[object]) -> None:
            await until(pilot, lambda: bool(session.revision))
            main(pilot.app).frame()
            await wait_idle(pilot)

        assert snap_compare(CockpitApp(session), terminal_size=size, run_before=drawn)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["wide", "narrow"])
def test_heat_map(snap_compare: Compare, size: tuple[int, int]) -> None:
    events = Scenario().events(99.0)
    app, source = scripted_app(events)

    async def pressed(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, "v", "e", *["left_square_bracket"] * 4)
        await wait_idle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=pressed)
