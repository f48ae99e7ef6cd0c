"""`c`: the row looked at against what it is compared with."""

from __future__ import annotations

import msgspec

from cockpit.analysis.outcome import Design, Effect, Outcome, Verdict
from cockpit.model import events as ev
from cockpit.tui.runs.compare import CompareScreen, comparison_lines
from cockpit.tui.runs.verdict_lines import judged
from tests.tui.driving import at_rest, context_of, driven, main, plain, press, text_of
from tests.tui.scenario import Scenario
from tests.tui.test_verdicts import changed_under_load


def told(app: object) -> str:
    screen = app.screen  # type: ignore[attr-defined]
    assert isinstance(screen, CompareScreen)
    return text_of(screen.query_one("#text"))


async def test_c_tells_the_verdict_then_puts_both_rows_beside_each_other() -> None:
    async with driven(Scenario().events(60)) as (pilot, _):
        await press(pilot, "c")
        text = told(pilot.app)
        pieces = ("2  A ", "vs segment 1", "never counted", "before  segment 1", "settings that differ", "cpu.idle")
        places = [text.index(piece) for piece in (*pieces, "service time, ms  ▀ before")]
        assert places == sorted(places)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, CompareScreen)


async def test_left_and_right_go_to_other_rows_and_b_makes_one_the_baseline() -> None:
    async with driven(Scenario().events()) as (pilot, _):
        await press(pilot, "c")
        assert "before  segment 1" in told(pilot.app)
        assert "after   segment 4" in told(pilot.app)
        await press(pilot, "end")
        assert pilot.app.screen.query("VerticalScroll").first().scroll_y > 0
        await press(pilot, "left", "left")
        assert "after   segment 2" in told(pilot.app)
        assert pilot.app.screen.query("VerticalScroll").first().scroll_y == 0
        await press(pilot, "b", "right")
        await at_rest(pilot)
        assert "before  segment 2" in told(pilot.app)
        assert "the chosen baseline" in told(pilot.app)
        assert main(pilot.app).view.baseline == 2
        await press(pilot, *["left"] * 5)
        assert "1  baseline" in told(pilot.app)
        await press(pilot, *["right"] * 9)
        assert "after   segment 4" in told(pilot.app)


async def test_the_first_row_has_nothing_beside_it() -> None:
    async with driven(Scenario().events(30)) as (pilot, _):
        await press(pilot, "c")
        assert "no other segment" in told(pilot.app)


def test_under_another_load_the_verdict_says_so_and_what_it_would_be() -> None:
    context = context_of(Scenario().events())
    text = "\n".join(plain(comparison_lines(context, context.state.segments[-1], 114)))
    assert (
        text.index("invalid: the load differs")
        < text.index("Independent of the load:")
        < text.index("before  segment 1")
    )


def test_it_fits_narrow_and_wide() -> None:
    context = context_of(Scenario().events())
    for width in (34, 74, 114, 194):
        lines = plain(comparison_lines(context, context.state.segments[-1], width))
        tables = [line for line in lines if line.startswith(("p99 ", "rate ", "cpu."))]
        assert tables
        assert all(len(line) <= max(width, 70) for line in tables)
    wide = plain(comparison_lines(context, context.state.segments[-1], 114))
    assert any("rate" in line and "cpu.user" in line for line in wide)


def test_what_cannot_be_put_side_by_side_keeps_its_verdict() -> None:
    context = context_of(changed_under_load(), baseline=2)
    assert plain(comparison_lines(context, context.state.segments[0], 90))[0] == "1  baseline"


def test_the_columns_of_figures_are_as_wide_as_their_widest_cell() -> None:
    verdict = Verdict(
        outcome=Outcome.BETTER,
        design=Design.ROUNDS,
        effects=(
            Effect(
                name="rate",
                outcome=Outcome.BETTER,
                headline=True,
                before=884.0,
                after=2750.0,
                change=2.1,
                low=1.1,
                high=3.9,
            ),
            Effect(
                name="web1.processes.spawned_per_s",
                before=8.98,
                after=1.38,
                change=-7.6,
                low=-11.4,
                high=-4.39,
                relative=False,
                outcome=Outcome.BETTER,
            ),
        ),
    )
    lines = plain(judged(verdict, 114))
    table = [line for line in lines if "→" in line]
    assert [line.split()[-1] for line in table] == ["verdict", "better", "better"]
    assert len({line.index(word) for line, word in zip(table, ("verdict", "better", "better"), strict=True)}) == 1
    assert all(len(line) <= 40 for line in plain(judged(verdict, 40)))


def test_rows_of_one_run_reached_the_same_target() -> None:
    events = [
        msgspec.structs.replace(event, addresses=("192.0.2.7",)) if isinstance(event, ev.RunStarted) else event
        for event in changed_under_load()
    ]
    context = context_of(events)
    text = "\n".join(plain(comparison_lines(context, context.state.segments[1], 114)))
    assert "after   segment 2" in text
    assert "environment that differ" not in text
