"""A change on the screen: its band on the chart, its verdict in the runs table and in detail."""

from __future__ import annotations

from functools import cache

import pytest

from cockpit.model import events as ev
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.main_screen import MainScreen
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.runs.table import Runs
from cockpit.tui.runs.verdict_lines import verdict_lines
from tests.analysis.test_rounds import rounds_of
from tests.analysis.test_segment_verdicts import toggled
from tests.tui.driving import context_of, plain, press, running_app, text_of, until
from tests.tui.scenario import Scenario


@cache
def changed_under_load() -> tuple[ev.AnyEvent, ...]:
    """Return 120 s of one run; a change is requested at 59 s, tested at 60.5 s, active at 63 s: the rate is +30%."""
    stages = (("tested", 60.5), ("reloaded", 60.9), ("active", 63.0))
    found: list[ev.AnyEvent] = [ev.ChangeStage(t=t, change="A", stage=stage) for stage, t in stages]
    found.append(ev.ChangeEnded(t=63.2, change="A", outcome="applied", detail="AH00513: ServerLimit ignored"))
    found += [event for event in toggled((1000.0, 1300.0), 60) if not isinstance(event, ev.ChangeEnded)]
    return tuple(sorted(found, key=lambda event: event.t))


def test_change_is_band_from_request_to_activation() -> None:
    lines = Throughput().draw(context_of(changed_under_load()), 90, 14)
    texts = plain(lines)
    # 2 s per cell from column 7 on: requested at 59.6 s, reloaded from 60.5 s on, active at 63 s.
    assert texts[1][7 + 59 // 2 : 7 + 63 // 2 + 1] == "░▓A"
    assert "░ change ▓ reload" in texts[0]
    assert [text for line in lines[2:-2] for text, role in line if role == "band"], "the band has a background"
    assert texts[2][7 + 59 // 2] == "░", "cells above the chart are shaded"
    events = [event for event in changed_under_load() if event.t <= 61.0]
    signs = plain(Throughput().draw(context_of(events), 90, 14))[1]
    assert signs[7 + 59 :] == "░▓A", "pending, 1 s per cell"


def test_rolled_back_change_has_two_bands() -> None:
    events: list[ev.AnyEvent] = []
    for event in toggled((1000.0, 1060.0, 1000.0)):
        if isinstance(event, ev.ChangeEnded | ev.ChangeBegun) and event.change != "A":
            continue
        active = isinstance(event, ev.ChangeEnded)
        events.append(ev.ChangeStage(t=event.t, change="A", stage="active") if active else event)
    events.append(ev.ChangeStage(t=77.0, change="A", stage="undoing"))
    events.append(ev.ChangeEnded(t=80.0, change="A", outcome="rolled back", detail="not confirmed"))
    events = sorted((event for event in events if event.t <= 90), key=lambda event: event.t)
    signs = plain(Throughput().draw(context_of(events), 120, 14))[1]
    # 1 s per cell: active at 40 s, rolled back from 77 s to 80 s.
    assert signs[7 + 39 : 7 + 41] == "░A"
    assert signs[7 + 77 : 7 + 81] == "▓▓▓A"


def test_runs_table_shows_verdict_and_notes_of_change_under_load() -> None:
    rows = plain(Runs().draw(context_of(changed_under_load()), 110, 16))
    assert "verdict" in rows[1]
    assert rows[2].split()[-1] == "base"
    assert "▲ +30%" in rows[3] or "▲ +29%" in rows[3] or "▲ +31%" in rows[3]
    below = " ".join(row.strip() for row in rows[4:])
    assert "A: AH00513: ServerLimit ignored" in below
    assert "better" not in below, "the strip shows the outcome"
    short = plain(Runs().draw(context_of(changed_under_load()), 76, 5))
    assert [row[:3].strip("▸ ") for row in short[2:4]] == ["1", "2"] or "▸ 2" in short[2]
    assert "A: AH00513: ServerLimit ignored" in short[-1]


@pytest.mark.parametrize("width", [110, 76])
def test_verdict_details_list_metrics_and_rules(width: int) -> None:
    context = context_of(changed_under_load())
    texts = plain(verdict_lines(context, context.state.segments[1], width))
    text = " ".join(" ".join(texts).split())
    assert all(len(line) <= width for line in texts)
    assert "vs segment 1, just before, same run: baseline" in text
    assert "▲ better: rate +" in text
    assert any(line.startswith("▲ rate") and "→" in line for line in texts)
    assert any(line.startswith("≈ p50") for line in texts)
    assert "discarded after: 3 s after a start" in text
    assert "not counted: the time from the request of a change to its effect" in text
    assert "server on A: AH00513" in text


def test_verdict_details_of_rounds_and_without_comparison() -> None:
    context = context_of(list(rounds_of(1.3, 5)))
    text = " ".join(" ".join(plain(verdict_lines(context, context.state.segments[-1], 110))).split())
    assert "5 rounds of A MaxSpareServers 10 → 30 ▲ better: rate +" in text
    assert "one value per round" in text
    context = context_of(list(toggled((1000.0,))))
    assert "no other segment" in " ".join(plain(verdict_lines(context, context.state.segments[0], 80)))
    context = context_of(Scenario().events(60.0))
    assert [context.before(row) for row in context.state.segments] == [None, context.state.segments[0]]


async def test_c_opens_verdict_of_selected_segment() -> None:
    async with running_app(changed_under_load(), size=(80, 24)) as (pilot, source):
        await press(pilot, "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen))
        await until(pilot, lambda: "better" in text_of(pilot.app.screen.query_one("#text")))
        assert "2  A MaxSpareServers 10 → 30" in text_of(pilot.app.screen.query_one("#text"))
        source.push(ev.Note(t=121.0, text="more"))
        await press(pilot, "down", "pagedown", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, MainScreen))
        await press(pilot, "up", "b", "down", "c")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen))
        await until(pilot, lambda: "the chosen baseline" in text_of(pilot.app.screen.query_one("#text")))
        await press(pilot, "escape")
