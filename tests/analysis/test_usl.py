"""The Universal Scalability Law: coverage on known laws, bad fits in words, and the levels of a session."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from cockpit.analysis.capacity.scaling import usl_fits
from cockpit.analysis.capacity.usl import LevelExclusion, UslFit, UslProblem, fit_usl
from cockpit.analysis.words.usl import usl_details, usl_line
from cockpit.metrics.results import all_results
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan, Stage
from cockpit.model.state import State
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from cockpit.report.session import session_markdown, session_page
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.runs.details import detail_lines
from cockpit.tui.runs.scaling import scaling_lines
from tests.statistics.scaling import LAWS, LEVELS, Law, coverage, fits, levels_of

PEAKED = LAWS["peak at c=31"]


@pytest.mark.parametrize("name", LAWS)
def test_intervals_cover_the_truth(name: str) -> None:
    """A short form of `make statistics`. A bound at 0 makes intervals wider than needed, never narrower."""
    law, repetitions = LAWS[name], 200
    columns = zip(*(coverage(law, fit) for fit in fits(law, repetitions, seed=5)), strict=True)
    *shares, claimed = (sum(column) / repetitions for column in columns)
    assert all(share >= 0.9 for share in shares)
    if law.contention and law.coherency:
        assert all(share <= 0.99 for share in shares)
    assert claimed == 1.0 if law.peak < 32 else claimed <= 0.5 if law.coherency else claimed <= 0.05


def test_exact_levels_have_the_law() -> None:
    [fit] = fits(PEAKED, 1, seed=1, noise=0.0)
    assert fit.peak and fit.single and fit.contention and fit.coherency and fit.peak_rate
    assert fit.peak.value == pytest.approx(PEAKED.peak) and fit.peak_rate.value == pytest.approx(
        PEAKED.rate(30.8), 1e-3
    )
    values = [found.value for found in (fit.single, fit.contention, fit.coherency)]
    assert values == pytest.approx(PEAKED) and fit.problem is None and fit.peak_measured


def fitted(rates: dict[int, float]) -> UslFit:
    found = fit_usl(levels_of(rates))
    assert found is not None
    return found


def test_bad_fits_and_missing_peaks_are_said() -> None:
    curve = {number: PEAKED.rate(number) for number in LEVELS}
    linear = {number: 100.0 * number * (1 + 0.01 * (-1) ** at) for at, number in enumerate(LEVELS)}
    for rates, words in (
        (curve, "scalability: peak 4.52k/s (4.52k–4.52k) at c=31 (31–31)"),
        (curve | {8: 800.0}, "scalability: the fit is bad: largest residual -"),
        ({1: 100.0, 2: 400.0, 4: 90.0, 8: 500.0, 16: 80.0}, "scalability: the fit is bad: largest residual "),
        ({1: 100.0, 2: 190.0, 4: 300.0, 8: 310.0}, "the fit is bad: 4 usable load levels, at least 5 are needed"),
        (linear, "no peak found within the measured levels (c=1 to 64)"),
    ):
        assert words in usl_line(fitted(rates)), usl_line(fitted(rates))
    assert fitted(linear).coherency is not None
    # Two levels are no curve, and hostile ones have a fit that says nothing.
    assert fit_usl(levels_of({1: 5.0, 2: 9.0})) is None
    big = 10**7
    strange = fitted({big: 1e-9, big - 1: 1e15, big - 2: 1.0, 1: 1e-9, 2: 7.0, 3: 1e12})
    assert strange.problem is UslProblem.RESIDUAL and list(usl_details(strange))


def stepped(law: Law, change: bool = False) -> Iterator[ev.AnyEvent]:
    """Yield a run with a level of 3 s per number of connections; the third has errors, in the fourth the generator is
    saturated. `change`: a second run with another setting and a ramp."""
    stages = tuple(Stage(duration=3.0, concurrency=number) for number in LEVELS)
    plan = LoadPlan(url="http://web1/", stages=stages)
    yield ev.SessionStarted(t=0, wall=1.7e9, version="0", name="stepped")
    for run in (1, 2) if change else (1,):
        begin = 100.0 * (run - 1)
        if run == 2:
            setting = Setting(knob="K", old="1", new="2")
            yield ev.ChangeBegun(t=50.0, change="A", host="web1", settings=(setting,))
            yield ev.ChangeEnded(t=51.0, change="A", outcome="applied")
        yield ev.RunStarted(t=begin, run=run, plan=plan)
        for second in range(3 * len(LEVELS)):
            stage, at = second // 3, begin + second
            done = round(law.rate(LEVELS[stage]) * (1 + 0.01 * (-1) ** stage))
            yield ev.Tick(
                t=at + 1.0,
                start=at,
                run=run,
                worker=0,
                stage=stage,
                sent=done,
                completed=done,
                errors={"timeout": 99} if stage == 2 else {},
                cpu=1.0 if stage == 3 else 0.1,
                service=Histogram.of([1_000_000]),
            )
        yield ev.RunEnded(t=begin + 3.0 * len(LEVELS), run=run, reason="completed")


def state_of(law: Law, change: bool = False) -> State:
    return fold_all(stepped(law, change))


def test_levels_with_errors_or_saturated_generator_are_excluded() -> None:
    [fit] = usl_fits(state_of(PEAKED))
    excluded = [level.excluded for level in fit.levels]
    assert excluded == [None, None, LevelExclusion.FAILED, LevelExclusion.SATURATED, None, None, None]
    assert fit.peak is not None and fit.peak.value == pytest.approx(PEAKED.peak, rel=0.15) and fit.problem is None
    assert "c=8 (segment 4) is excluded: generator saturated" in list(usl_details(fit))


def test_settings_have_their_own_fits() -> None:
    state = state_of(PEAKED, change=True)
    first, second = usl_fits(state)
    assert (first.label, second.label) == ("", "K 2")
    ramps = tuple(replace(one, plan=replace(one.plan, ramp_to=99.0)) for one in state.segments)
    assert usl_fits(replace(state, segments=ramps)) == ()


def test_reports_and_screen_show_the_fit() -> None:
    state = state_of(PEAKED)
    [fit], [result] = usl_fits(state), all_results(state)
    words = usl_line(fit)
    assert words.startswith("scalability: peak ")
    assert words in run_text(result, state=state) and "## Scalability" in session_markdown(state)
    html = session_page(state)
    assert "requests/s by connections" in html and "fitted law" in html and words in html
    [found] = run_json(result, state=state).scalability
    assert (found.text, len(found.levels)) == (words, len(LEVELS))
    lines = ["".join(text for text, _ in line) for line in scaling_lines(state, state.segments[0], 100)]
    assert words in lines and all(len(line) <= 100 for line in lines)
    assert sum("█" in line for line in lines) == len(LEVELS)
    assert scaling_lines(fold_all(()), state.segments[0], 100) == []
    details = detail_lines(DrawContext(state=state, view=View()), state.segments[-1], 100, 9)
    assert words in "".join(text for line in details for text, _ in line)
