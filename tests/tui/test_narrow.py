"""80x24 terminals: a host is a single line, keys for details maximize the host, essentials stay visible."""

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
from tests.tui.driving import context_of, main, plain, press, running_app, screen_text, text_of
from tests.tui.scenario import Scenario, plan, session_started
from tests.tui.test_verdicts import changed_under_load

RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"

NARROW = (80, 24)
EVENTS = Scenario(2).events(99.0)


async def test_d_maximizes_host_then_cycles_details() -> None:
    async with running_app(EVENTS, size=NARROW) as (pilot, _):
        assert "COMMAND" not in screen_text(pilot)
        await press(pilot, "d")
        assert "COMMAND" in screen_text(pilot)
        await press(pilot, "d")
        assert "COMMAND" not in screen_text(pilot)
        assert main(pilot.app).view.details, "the next detail"
        await press(pilot, "escape")
        assert main(pilot.app).view.room == "column"


async def test_w_maximizes_host_with_averages_and_d_leaves_averages() -> None:
    async with running_app(EVENTS, size=NARROW) as (pilot, _):
        await press(pilot, "d", "d")
        assert main(pilot.app).view.details, "keys in quick succession"
        await press(pilot, "escape", "w")
        assert "averages of segment 4" in screen_text(pilot)
        await press(pilot, "escape", "w")
        assert "averages of segment 4" in screen_text(pilot), "requested again, the averages are shown again"
        await press(pilot, "escape", "d")
        context = main(pilot.app).context()
        assert context.host is not None
        assert context.detail(context.host) != AVERAGES


async def test_d_and_w_keep_host_column_beside_charts() -> None:
    async with running_app(EVENTS) as (pilot, _):
        await press(pilot, "d", "w")
        assert main(pilot.app).view.room == "column"
        assert main(pilot.app).view.averages


@pytest.mark.parametrize("width", [60, 80, 100])
async def test_narrow_footer_keeps_compare_key(width: int) -> None:
    async with running_app(EVENTS, size=(width, 24)) as (pilot, _):
        text = text_of(main(pilot.app).query_one(Footer))
        assert "c compare" in text
        assert text.startswith("space start/stop")
        assert text.endswith("? help  q quit")


@pytest.mark.parametrize("width", [80, 120])
def test_footer_shows_rounds_key_after_change(width: int) -> None:
    (line,) = plain(Footer().draw(context_of(changed_under_load()), width, 1))
    assert all(key in line for key in ("t tune", "c compare", "r rounds", "? help", "q quit"))


def visible_rows(**view: object) -> list[str]:
    runs = [ev.RunStarted(t=float(run), run=run, plan=plan()) for run in range(1, 31)]
    lines = plain(Runs().draw(context_of([session_started(), *runs], **view), 78, 4))
    return ["".join(line[:3].split()) for line in lines[2:4]]


def test_selected_segment_and_baseline_are_both_visible() -> None:
    assert visible_rows() == ["1", "▸30"]
    assert visible_rows(segment=12) == ["1", "▸12"]
    assert visible_rows(segment=12, baseline=20) == ["▸12", "20"]
    assert visible_rows(segment=20, baseline=20) == ["▸20", "21"], "the baseline has no other comparison"


def test_long_text_is_cut_at_word_boundary() -> None:
    assert ends_with("rate +5%, demo spawned -4/s", "… c: all", 30) == "rate +5%, demo … c: all"
    assert ends_with("rate +5%, demo", "… c: all", 20) == "rate +5% … c: all"
    assert ends_with("short", "… c: all", 30) == "short … c: all"
    assert ends_with("oneverylongwordindeed", "…", 10) == "onevery …"


def test_warning_is_shown_once_per_segment() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99)), 118, 14))[2:6]
    assert rows[1].split()[-1] == "gen-sat+"
    assert rows[3].split()[-3:] == ["≠", "load", "short"], "the load differs from the baseline"
    with Recording(RECORDING) as recording:
        rows = plain(Runs().draw(context_of(tuple(recording.events())), 118, 14))[2:7]
    assert rows[2].split()[-1] == "short"


@pytest.mark.parametrize("width", [12, 16, 20, 27])
def test_long_url_is_shortened_in_middle(width: int) -> None:
    url = "127.0.0.1:38412/static/hello.html"
    cut = shortened(url, width)
    head, tail = cut.split("…")
    assert (len(cut), url.startswith(head), url.endswith(tail)) == (width, True, True)
    assert min(len(head), len(tail)) >= 5
    assert shortened(url, len(url)) == url


async def test_target_clock_and_load_form_fit_80_cells_under_load() -> None:
    async with running_app(Scenario().events(60), size=(80, 24)) as (pilot, source):
        assert source.controls.load is not None
        source.controls.status = LoadStatus(source.controls.load.plan, LoadPhase.RUNNING)
        main(pilot.app).frame()
        top = text_of(main(pilot.app).query_one(TopLine))
        assert "hello.html" in top and "LIVE c=20" in top
        assert re.search(r"\d:\d\d", top)
        footer = text_of(main(pilot.app).query_one(Footer))
        assert "= load" in footer and "c compare" in footer and "q quit" in footer
