"""Pictures of fixed scenarios, without clock and animation. `pytest --snapshot-update` rewrites them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot
from textual.screen import Screen

from cockpit.model import events as ev
from cockpit.model.events import AnyEvent
from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.layouts import layout_for
from cockpit.tui.tuning.widgets import History
from tests.analysis.profiled import profiled
from tests.data import data_of
from tests.tui.driving import main, press, reset_screen, running_app, text_of, until, wait_for_events, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.screens import RECORDINGS
from tests.tui.scripted import scripted_app
from tests.tui.test_themes import strips
from tests.tui.test_verdicts import changed_under_load
from tests.tui.topology import topology

DATA = data_of(__file__)

Compare = Callable[..., bool]
Picture = tuple[Sequence[AnyEvent], tuple[int, int], tuple[str, ...]]
PICTURES: dict[str, Picture] = {
    "host_lost_and_generator_saturated": (Scenario(2, hostile=True).events(62.5), (120, 40), ()),
    "a_line_a_host": (Scenario(2, hostile=True).events(99.0), (80, 24), ()),
    "numbers_only": (Scenario(hostile=True).events(76.0), (40, 12), ()),
    "side_by_side": (topology(30.7), (200, 50), ("enter",)),
    "processes_frozen": (topology(30.7), (120, 40), ("p", "s", "f", "down")),
    "heat_map": (Scenario().events(99.0), (120, 40), ("e", *["left_square_bracket"] * 4)),
    "verdict": (changed_under_load(), (120, 40), ("c",)),
    "cpu_profile": (profiled(), (120, 40), ("H",)),
    "cpu_profile_of_a_segment": (
        profiled(),
        (80, 24),
        ("H", "b", *["down"] * 9, "right", "enter", "slash", *"sys", "enter"),
    ),
    "tuning_panel": (Scenario().events(84.0), (120, 40), ("t", *"30", "down", *"60", "enter")),
}


def is_complete(name: str, screen: Screen[Any]) -> bool:
    """Return whether a dialog shows all that it computes or reads after it has opened."""
    if name == "verdict":
        return "better" in text_of(screen.query_one("#text"))
    if name == "tuning_panel":
        return "Enter again" in text_of(screen.query_one("#status")) and screen.query_one(History).option_count == 3
    return True


@pytest.mark.parametrize("name", PICTURES)
def test_screen(snap_compare: Compare, name: str) -> None:
    events, size, keys = PICTURES[name]
    app, source = scripted_app(events)

    async def drawn(pilot: Pilot[object]) -> None:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, *keys)
        await until(pilot, lambda: is_complete(name, pilot.app.screen))
        await wait_idle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=drawn)


@pytest.mark.parametrize(("size", "t"), [((120, 40), 80.0), ((80, 24), 200.0)], ids=["wide-likely", "narrow-better"])
def test_verdict_strip(snap_compare: Compare, size: tuple[int, int], t: float) -> None:
    with Recording(RECORDINGS / "under-load.cockpit") as recording:
        session = Session(ReplaySource(recording, min(t, recording.end), playing=False))

        async def drawn(pilot: Pilot[object]) -> None:
            await until(pilot, lambda: bool(session.revision))
            main(pilot.app).frame()
            await wait_idle(pilot)

        assert snap_compare(CockpitApp(session), terminal_size=size, run_before=drawn)


SIZES = ((200, 50), (120, 40), (80, 24), (60, 15), (40, 12))
# Second of the session, keys, and the name of the picture.
STATES: tuple[tuple[float, tuple[str, ...], str], ...] = DATA["states"]
NAMES = DATA["names"]
PROFILE = "a-very-long-profile-name-of-多くの予備サーバー"
PROCESSES = ("php-fpm-pool-very-long-名前", "apache2", "nginx")


def renamed(events: Sequence[ev.AnyEvent]) -> list[ev.AnyEvent]:
    """Return the same session with other names."""
    return [_renamed(event) for event in events]


def _renamed(event: ev.AnyEvent) -> ev.AnyEvent:
    if isinstance(event, ev.SessionStarted):
        hosts = tuple(
            replace(host, name=NAMES[host.name], ssh=f"root@{NAMES[host.name]}", processes=(PROCESSES[at % 3],))
            for at, host in enumerate(event.hosts)
        )
        knobs = tuple(replace(knob, host=NAMES[knob.host]) for knob in event.knobs)
        return replace(event, name=PROFILE, hosts=hosts, knobs=knobs)
    host = getattr(event, "host", "")
    return replace(event, host=NAMES[host]) if host in NAMES else event


async def screen_lines(pilot: Pilot[object], size: tuple[int, int], keys: Sequence[str] = ()) -> list[str]:
    """Return the lines of the screen at this size; every line has the width of the screen."""
    await pilot.resize_terminal(*size)
    await reset_screen(pilot)
    await press(pilot, *keys)
    lines = [strip.text for strip in strips(pilot.app)]
    assert len(lines) == size[1]
    assert {cell_len(line) for line in lines} == {size[0]}
    return lines


def picture(lines: Sequence[str]) -> str:
    return "\n".join(f"{line}|" for line in lines)


@pytest.mark.parametrize("hosts", [1, 2, 8])
async def test_main_screen_by_size_and_host_count(hosts: int, snapshot: SnapshotAssertion) -> None:
    async with running_app(renamed(Scenario(hosts, hostile=True).events(62.5))) as (pilot, _):
        for size in SIZES:
            lines = await screen_lines(pilot, size)
            assert picture(lines) == snapshot(name=f"{size[0]}x{size[1]}, {hosts} hosts")


async def test_main_screen_by_state(snapshot: SnapshotAssertion) -> None:
    events = renamed(Scenario(2, hostile=True).events())
    async with running_app() as (pilot, source):
        for second, keys, name in STATES:
            known = len(source.recorder.events)
            due = [event for event in events[known:] if event.t <= second]
            source.push(*due)
            await wait_for_events(pilot, source, known + len(due))
            for size in SIZES[1:3]:
                lines = await screen_lines(pilot, size, keys)
                assert picture(lines) == snapshot(name=f"{size[0]}x{size[1]}, {name}")


# At 80x24, test_themes opens the screens of a busy session.
@pytest.mark.parametrize(
    ("events", "sizes"),
    [([], ((80, 24), (1, 1))), (Scenario(2, hostile=True).events(30), ((20, 6), (1, 1)))],
    ids=["empty", "busy"],
)
async def test_every_screen_opens_at_every_size(
    events: Sequence[ev.AnyEvent], sizes: Sequence[tuple[int, int]]
) -> None:
    async with running_app(events) as (pilot, _):
        for size in sizes:
            await pilot.resize_terminal(*size)
            await reset_screen(pilot)
            await press(
                pilot,
                "t",
                "escape",
                "question_mark",
                "escape",
                "m",
                "escape",
                "colon",
                "tab",
                "escape",
                *"pvsp",
                "up",
                "b",
            )


def test_layout_depends_on_terminal_size() -> None:
    assert [layout_for(*size) for size in ((120, 40), (80, 24), (79, 60), (60, 15), (40, 12), (200, 19))] == [
        *("wide", "narrow", "narrow", "tiny", "tiny", "tiny")
    ]
