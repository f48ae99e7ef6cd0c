"""`c`: the selected segment vs the segment that it is compared with."""

from __future__ import annotations

import msgspec

from cockpit.analysis.outcome import Design, Effect, Outcome, Verdict
from cockpit.model import events as ev
from cockpit.tui.runs.compare import CompareScreen, comparison_lines
from cockpit.tui.runs.verdict_lines import verdict_details
from tests.tui.driving import context_of, main, plain, press, running_app, text_of, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.test_verdicts import changed_under_load


def comparison_text(app: object) -> str:
    screen = app.screen  # type: ignore[attr-defined]
    assert isinstance(screen, CompareScreen)
    return text_of(screen.query_one("#text"))


async def test_comparison_shows_verdict_then_both_segments() -> None:
    async with running_app(Scenario().events(60)) as (pilot, _):
        await press(pilot, "c")
        text = comparison_text(pilot.app)
        parts = ("2  A ", "vs segment 1", "not counted", "before  segment 1", "settings that differ", "cpu.idle")
        offsets = [text.index(piece) for piece in (*parts, "service time, ms  ▀ before")]
        assert offsets == sorted(offsets)
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
        assert "1  baseline" in comparison_text(pilot.app)
        await press(pilot, *["right"] * 9)
        assert "after   segment 4" in comparison_text(pilot.app)


def test_first_segment_has_no_comparison() -> None:
    context = context_of(Scenario().events(30))
    assert "no other segment" in "\n".join(plain(comparison_lines(context, context.state.segments[0], 114)))
    context = context_of(changed_under_load(), baseline=2)
    assert plain(comparison_lines(context, context.state.segments[0], 90))[0] == "1  baseline"


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


def test_segments_of_same_run_have_same_environment() -> None:
    events = [
        msgspec.structs.replace(event, addresses=("192.0.2.7",)) if isinstance(event, ev.RunStarted) else event
        for event in changed_under_load()
    ]
    context = context_of(events)
    text = "\n".join(plain(comparison_lines(context, context.state.segments[1], 114)))
    assert "after   segment 2" in text
    assert "environment that differ" not in text
