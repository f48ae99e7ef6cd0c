"""On 80 x 24 cells a host is a line: what asks for more of it gives it the screen; what counts stays in sight."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.tui.draw_context import AVERAGES
from cockpit.tui.footer import Footer
from cockpit.tui.runs.table import Runs, ends_with
from cockpit.tui.status_lines import TopLine, shortened
from tests.tui.driving import context_of, driven, main, plain, press, shown, text_of
from tests.tui.scenario import Scenario, plan, session_started
from tests.tui.test_verdicts import changed_under_load

RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"

NARROW = (80, 24)
EVENTS = Scenario(2).events(99.0)


async def test_d_gives_the_host_the_screen_with_its_detail_then_goes_through_the_others() -> None:
    async with driven(EVENTS, size=NARROW) as (pilot, _):
        assert "COMMAND" not in shown(pilot)
        await press(pilot, "d")
        assert "COMMAND" in shown(pilot)
        await press(pilot, "d")
        assert "COMMAND" not in shown(pilot)
        assert main(pilot.app).view.details, "the next one"
        await press(pilot, "escape")
        assert main(pilot.app).view.room == "column"


async def test_w_gives_the_host_the_screen_with_its_averages_and_d_leaves_them() -> None:
    async with driven(EVENTS, size=NARROW) as (pilot, _):
        await press(pilot, "d", "d")
        assert main(pilot.app).view.details, "as fast as one types"
        await press(pilot, "escape", "w")
        assert "averages of segment 4" in shown(pilot)
        await press(pilot, "escape", "w")
        assert "averages of segment 4" in shown(pilot), "asked for again they are shown again"
        await press(pilot, "escape", "d")
        context = main(pilot.app).context()
        assert context.host is not None
        assert context.detail(context.host) != AVERAGES


async def test_beside_the_charts_both_keys_act_on_the_column() -> None:
    async with driven(EVENTS) as (pilot, _):
        await press(pilot, "d", "w")
        assert main(pilot.app).view.room == "column"
        assert main(pilot.app).view.averages


@pytest.mark.parametrize("width", [60, 80, 100])
async def test_the_footer_has_room_for_what_tells_the_verdict(width: int) -> None:
    async with driven(EVENTS, size=(width, 24)) as (pilot, _):
        text = text_of(main(pilot.app).query_one(Footer))
        assert "c compare" in text
        assert text.startswith("space start/stop")
        assert text.endswith("? help  q quit")


@pytest.mark.parametrize("width", [80, 120])
def test_once_there_is_a_change_the_footer_has_room_for_rounds(width: int) -> None:
    (line,) = plain(Footer().draw(context_of(changed_under_load()), width, 1))
    assert all(key in line for key in ("t tune", "c compare", "r rounds", "? help", "q quit"))


def rows_in_sight(**view: object) -> list[str]:
    runs = [ev.RunStarted(t=float(run), run=run, plan=plan()) for run in range(1, 31)]
    lines = plain(Runs().draw(context_of([session_started(), *runs], **view), 78, 4))
    return ["".join(line[:3].split()) for line in lines[2:4]]


def test_the_row_looked_at_and_what_it_is_compared_with_are_both_in_sight() -> None:
    assert rows_in_sight() == ["1", "▸30"]
    assert rows_in_sight(segment=12) == ["1", "▸12"]
    assert rows_in_sight(segment=12, baseline=20) == ["▸12", "20"]
    assert rows_in_sight(segment=20, baseline=20) == ["▸20", "21"], "there is nothing else it is compared with"


def test_what_is_too_long_is_cut_at_a_whole_word() -> None:
    assert ends_with("rate +5 %, demo spawned -4/s", "… c: all", 30) == "rate +5 %, demo … c: all"
    assert ends_with("rate +5 %, demo", "… c: all", 20) == "rate +5 % … c: all"
    assert ends_with("short", "… c: all", 30) == "short … c: all"
    assert ends_with("oneverylongwordindeed", "…", 10) == "onevery …"


def test_a_doubt_is_said_once() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99)), 118, 14))[2:6]
    assert rows[1].split()[-1] == "gen-sat+"
    assert rows[3].split()[-3:] == ["≠", "load", "short"], "and so does this one"
    with Recording(RECORDING) as recording:
        rows = plain(Runs().draw(context_of(tuple(recording.events())), 118, 14))[2:7]
    assert rows[2].split()[-1] == "short"


@pytest.mark.parametrize("width", [12, 16, 20, 27])
def test_a_long_url_loses_its_middle(width: int) -> None:
    url = "127.0.0.1:38412/static/hello.html"
    cut = shortened(url, width)
    head, tail = cut.split("…")
    assert (len(cut), url.startswith(head), url.endswith(tail)) == (width, True, True)
    assert min(len(head), len(tail)) >= 5
    assert shortened(url, len(url)) == url


async def test_target_clock_and_load_form_fit_80_cells_under_load() -> None:
    async with driven(Scenario().events(60), size=(80, 24)) as (pilot, source):
        assert source.controls.load is not None
        source.controls.status = LoadStatus(source.controls.load.plan, LoadPhase.RUNNING)
        main(pilot.app).frame()
        top = text_of(main(pilot.app).query_one(TopLine))
        assert "hello.html" in top and "LIVE c=20" in top
        assert re.search(r"\d:\d\d", top)
        footer = text_of(main(pilot.app).query_one(Footer))
        assert "= load" in footer and "c compare" in footer and "q quit" in footer
