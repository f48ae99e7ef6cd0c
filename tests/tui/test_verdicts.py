"""A change on the screen: its band on the chart, its verdict in the runs table, and its comparison (`c`)."""

from functools import cache

import msgspec
import pytest
from textual.containers import VerticalScroll

from cockpit.analysis.verdicts.outcome import Design, Effect, Outcome, Verdict
from cockpit.model import events as ev
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.runs.compare import CompareScreen, comparison_lines
from cockpit.tui.runs.strip import strip
from cockpit.tui.runs.strip_lines import strip_lines
from cockpit.tui.runs.table import Runs
from cockpit.tui.runs.verdict_lines import method_lines, verdict_details, verdict_lines
from tests.analysis.test_rounds import rounds_of
from tests.analysis.test_segment_verdicts import toggled
from tests.tui.driving import context_of, main, plain, press, running_app, text_of, until, wait_idle
from tests.tui.scenario import Scenario


@cache
def changed_under_load() -> tuple[ev.AnyEvent, ...]:
    """Return 120 s of one run; a change is requested at 59 s, tested at 60.5 s, active at 63 s: the rate is +30%."""
    stages = (("tested", 60.5), ("reloaded", 60.9), ("active", 63.0))
    found: list[ev.AnyEvent] = [ev.ChangeStage(t=t, change="A", stage=stage) for stage, t in stages]
    found.append(ev.ChangeEnded(t=63.2, change="A", outcome="applied", detail="AH00513: ServerLimit ignored"))
    found += [event for event in toggled((1000.0, 1300.0), 60) if not isinstance(event, ev.ChangeEnded)]
    return tuple(sorted(found, key=lambda event: event.t))


def test_change_is_band_until_activation_and_of_its_rollback() -> None:
    texts = plain(Throughput().draw(context_of(changed_under_load(), span=2.0), 90, 14))
    # 2 s per cell from column 6 on: requested at 59.6 s, reloaded from 60.5 s on, active at 63 s.
    assert texts[1][6 + 59 // 2 : 6 + 63 // 2 + 1] == "╌━A"
    assert "╌ change ━ reload" in texts[0]
    assert "╌" not in texts[2], "only the first line of the chart shows it"
    events = [event for event in changed_under_load() if event.t <= 61.0]
    signs = plain(Throughput().draw(context_of(events, span=1.0), 90, 14))[1]
    assert signs[6 + 59 : 6 + 62] == "╌━A", "pending, 1 s per cell"
    events: list[ev.AnyEvent] = []
    for event in toggled((1000.0, 1060.0, 1000.0)):
        if isinstance(event, ev.ChangeEnded | ev.ChangeBegun) and event.change != "A":
            continue
        active = isinstance(event, ev.ChangeEnded)
        events.append(ev.ChangeStage(t=event.t, change="A", stage="active") if active else event)
    events.append(ev.ChangeStage(t=77.0, change="A", stage="undoing"))
    events.append(ev.ChangeEnded(t=80.0, change="A", outcome="rolled back", detail="not confirmed"))
    events = sorted((event for event in events if event.t <= 90), key=lambda event: event.t)
    signs = plain(Throughput().draw(context_of(events, span=1.0), 120, 14))[1]
    # 1 s per cell: active at 40 s, rolled back from 77 s to 80 s.
    assert signs[6 + 39 : 6 + 41] == "╌A"
    assert signs[6 + 77 : 6 + 81] == "━━━A"


def test_runs_table_shows_verdict_and_notes_of_change_under_load() -> None:
    rows = plain(Runs().draw(context_of(changed_under_load()), 110, 16))
    assert "verdict" in rows[1]
    assert rows[2].split()[-1] == "base"
    assert "▲ +30%" in rows[3] or "▲ +29%" in rows[3] or "▲ +31%" in rows[3]
    below = plain(strip_lines(strip(context_of(changed_under_load())), 76, 9))
    assert any("A: AH00513: ServerLimit ignored" in line for line in below)
    short = plain(Runs().draw(context_of(changed_under_load()), 76, 5))
    assert [row[:3].strip("▸ ") for row in short[2:4]] == ["1", "2"] or "▸ 2" in short[2]
    titles = [plain(Runs().draw(context_of(changed_under_load()), 76, height))[0] for height in (4, 3)]
    assert "hidden" not in titles[0] and titles[1].startswith("─ runs 1 hidden ")


@pytest.mark.parametrize("width", [110, 76])
def test_verdict_details_list_metrics_and_rules(width: int) -> None:
    context = context_of(changed_under_load())
    texts = plain(verdict_lines(context, context.state.segments[1], width))
    text = " ".join(" ".join(texts).split())
    assert all(len(line) <= width for line in texts)
    assert texts[0].startswith("▲ better: rate +"), "the answer is first"
    assert "segment 2 vs segment 1, just before, same run" in text
    assert any(line.startswith("▲ rate") and "→" in line for line in texts)
    assert any(line.startswith("≈ p50") for line in texts)
    method = " ".join(" ".join(plain(method_lines(context, context.state.segments[1], width))).split())
    assert "discarded after: 3 s after a start" in method
    assert "not counted: the time from the request of a change to its effect" in method
    assert "server on A: AH00513" in text


def test_verdict_details_of_rounds_and_without_comparison() -> None:
    context = context_of(list(rounds_of(1.3, 5)))
    text = " ".join(" ".join(plain(verdict_lines(context, context.state.segments[-1], 110))).split())
    assert text.startswith("▲ better: rate +")
    assert "5 rounds of A MaxSpareServers 10 → 30 metric" in text
    method = " ".join(" ".join(plain(method_lines(context, context.state.segments[-1], 110))).split())
    assert "one value per round" in method
    context = context_of(list(toggled((1000.0,))))
    assert "no other segment" in " ".join(plain(verdict_lines(context, context.state.segments[0], 80)))
    context = context_of(Scenario().events(60.0))
    assert [context.before(row) for row in context.state.segments] == [None, context.state.segments[0]]


def comparison_text(app: object) -> str:
    screen = app.screen  # type: ignore[attr-defined]
    assert isinstance(screen, CompareScreen)
    return text_of(screen.query_one("#text"))


async def test_comparison_shows_verdict_then_both_segments() -> None:
    async with running_app(Scenario().events(60)) as (pilot, source):
        await press(pilot, "c")
        text = comparison_text(pilot.app)
        parts = (
            "segment 2 vs segment 1",
            "before  segment 1",
            "after   segment 2: A",
            "settings that differ",
            "cpu.idle",
        )
        offsets = [text.index(piece) for piece in (*parts, "service time, ms  ▀ before")]
        assert offsets == sorted(offsets) and "not counted" not in text
        await press(pilot, "m")
        assert "not counted" in comparison_text(pilot.app)
        room = pilot.app.screen.query_one(VerticalScroll)
        assert room.scroll_y > 0
        await press(pilot, "home")
        before = comparison_text(pilot.app)
        source.push(*(event for event in Scenario().events(64) if event.t > 60))
        await until(pilot, lambda: source.session.state.t > 63)
        pilot.app.screen.frame()
        await until(pilot, lambda: comparison_text(pilot.app) != before)
        assert room.scroll_y == 0, "new seconds leave the place"
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, CompareScreen)


async def test_comparison_keys_change_segment_and_baseline() -> None:
    async with running_app(Scenario().events()) as (pilot, _):
        await press(pilot, "c")
        assert "before  segment 1" in comparison_text(pilot.app)
        assert "after   segment 4" in comparison_text(pilot.app)
        await press(pilot, "end")
        assert pilot.app.screen.query("VerticalScroll").first().scroll_y > 0
        await press(pilot, "left", "left")
        assert "after   segment 2" in comparison_text(pilot.app)
        assert pilot.app.screen.query("VerticalScroll").first().scroll_y == 0
        await press(pilot, "b", "right")
        await wait_idle(pilot)
        assert "before  segment 2" in comparison_text(pilot.app)
        assert "the chosen baseline" in comparison_text(pilot.app)
        assert main(pilot.app).view.baseline == 2
        await press(pilot, *["left"] * 5)
        assert "after   segment 1: baseline" in comparison_text(pilot.app)
        await press(pilot, *["right"] * 9)
        assert "after   segment 4" in comparison_text(pilot.app)


def test_comparison_of_first_segment_and_of_same_run() -> None:
    context = context_of(Scenario().events(30))
    assert "no other segment" in "\n".join(plain(comparison_lines(context, context.state.segments[0], 114)))
    context = context_of(changed_under_load(), baseline=2)
    assert "after   segment 1: baseline" in "\n".join(plain(comparison_lines(context, context.state.segments[0], 90)))
    events = [
        msgspec.structs.replace(event, addresses=("192.0.2.7",)) if isinstance(event, ev.RunStarted) else event
        for event in changed_under_load()
    ]
    context = context_of(events)
    text = "\n".join(plain(comparison_lines(context, context.state.segments[1], 114)))
    assert "after   segment 2" in text
    assert "environment that differ" not in text


def test_different_load_is_invalid_and_fits_any_width() -> None:
    context = context_of(Scenario().events())
    for width in (34, 74, 114, 194):
        lines = plain(comparison_lines(context, context.state.segments[-1], width))
        text = "\n".join(lines)
        assert text.index("invalid: the load differs") < text.index("Independent of the load:")
        assert text.index("Independent of the load:") < text.index("before  segment 1")
        tables = [line for line in lines if line.startswith(("p99 ", "rate ", "cpu."))]
        assert tables
        assert all(len(line) <= max(width, 70) for line in tables)
        assert any("rate" in line and "cpu.user" in line for line in lines) == (width >= 100), "tables side by side"


def test_metric_columns_fit_widest_cell() -> None:
    def better(name: str, before: float, after: float, change: float, low: float, high: float, rate: bool) -> Effect:
        values = {"before": before, "after": after, "change": change, "low": low, "high": high}
        return Effect(name=name, outcome=Outcome.BETTER, headline=rate, relative=rate, **values)

    effects = (
        better("rate", 884.0, 2750.0, 2.1, 1.1, 3.9, True),
        better("web1.processes.spawned_per_s", 8.98, 1.38, -7.6, -11.4, -4.39, False),
    )
    verdict = Verdict(outcome=Outcome.BETTER, design=Design.ROUNDS, effects=effects)
    table = [line for line in plain(verdict_details(verdict, 114)) if "→" in line]
    assert [line.split()[-1] for line in table] == ["verdict", "better", "better"]
    assert len({line.index(word) for line, word in zip(table, ("verdict", "better", "better"), strict=True)}) == 1
    assert all(len(line) <= 40 for line in plain(verdict_details(verdict, 40)))
