"""Dialogs that only show: the evaluations of a search, the load generators on other machines, and the quick check."""

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.model import events as ev
from cockpit.model.autopilot import AutopilotBegun, AutopilotTrial, SearchedKnob, SearchPlan
from cockpit.model.errors import UsageError
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.session.controls import LoadPhase, LoadStatus
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from cockpit.tui.generators import Generators, GeneratorScreen
from cockpit.tui.runs.check import CheckScreen
from tests.tui.driving import context_of, main, plain, press, running_app, until, wait_for_events
from tests.tui.scenario import Scenario, plan, session_started
from tests.tui.screens import RECORDINGS, replayed_app
from tests.tui.scripted import ScriptedSource


async def dialog_lines(pilot: Pilot[object], key: str, kind: type[object]) -> list[str]:
    """Open a dialog by its key, close it, and return its text without indentation."""
    await press(pilot, key)
    assert isinstance(pilot.app.screen, kind)
    text = str(pilot.app.screen.query_one("#text", Static).content)
    assert "\x1b" not in text
    await press(pilot, "escape")
    assert pilot.app.screen is main(pilot.app)
    return [line.strip() for line in text.splitlines()]


SEARCH = SearchPlan(
    metric="rate",
    maximize=True,
    knobs=(SearchedKnob("Level", ("1", "2", "4", "8"), 4), SearchedKnob("Mode", ("on", "off"), 0)),
    constraints=("p99 < 20ms",),
    budget=600.0,
)


def trial(number: int, level: str, mode: str, metric: float | None, margin: float, detail: str = "") -> ev.AnyEvent:
    return AutopilotTrial(
        t=float(number),
        number=number,
        purpose="original" if number == 1 else "spread",
        values={"Level": level, "Mode": mode},
        outcome="failed" if metric is None else "measured",
        metric=metric,
        margins=(margin,),
        detail=detail,
    )


EVALUATIONS = [
    AutopilotBegun(t=0.0, plan=SEARCH, original={"Level": "1", "Mode": "on"}),
    trial(1, "1", "on", 1000.0, 0.4),
    trial(2, "4", "on", 2000.0, 0.3),
    trial(3, "2", "off", 1500.0, 0.3),
    trial(4, "8", "on", 2500.0, -0.2),
    trial(5, "8", "off", None, -0.5, "the server\x1b[2J refused it"),
]


async def test_board_lists_evaluations_best_and_knob_effects() -> None:
    async with running_app([session_started()]) as (pilot, source):
        await press(pilot, "A")
        assert pilot.app.screen is main(pilot.app), "there is no search"
        source.push(*EVALUATIONS)
        await wait_for_events(pilot, source, 1 + len(EVALUATIONS))
        lines = await dialog_lines(pilot, "A", EvaluationsScreen)
        assert lines[0] == "maximize rate subject to p99 < 20ms; budget 10:00 including the proof; seed 1"
        assert "Level: 1, 2, 4, 8 (now 1)" in lines and "Mode: on, off (now on)" in lines
        assert "best so far, by the fitted mean: Level 4" in lines
        assert "1 original  the original values: rate 1k/s" in lines
        assert "▸   2 spread    Level 4: rate 2k/s" in lines
        assert "4 spread    Level 8: rate 2.5k/s, constraint failed: p99 < 20ms" in lines
        assert "5 spread    Level 8, Mode off: failed: the server·[2J refused it" in lines
        assert sum("relative importance" in line for line in lines) == 2


CLOCK = GeneratorClock(t=2.5, machine="gen1", offset=-3600.0, uncertainty=0.0004, drift=25e-6)
LOST = GeneratorLost(t=3.0, machine="gen2", detail="no answer for 1.2 s\x1b[2J")
LOCAL = [session_started(), ev.RunStarted(t=0.0, run=1, plan=plan())]


def generator_run(seconds: int) -> list[ev.AnyEvent]:
    """Return a run of two workers; the second uses 95% of a CPU."""
    found: list[ev.AnyEvent] = [ev.RunStarted(t=0.0, run=1, plan=plan(), machines=("gen1", "gen2"))]
    for tick in range(10 * seconds):
        for worker, (completed, cpu) in enumerate(((10, 0.02), (20, 0.095))):
            t = (tick + 1) / 10
            found.append(ev.Tick(t=t, run=1, worker=worker, start=tick / 10, completed=completed, cpu=cpu))
    return found


def generator_lines(events: list[ev.AnyEvent], height: int = 4) -> list[str]:
    return plain(Generators().draw(context_of(events), 100, height))


def test_generator_lines_show_clocks_and_losses() -> None:
    assert generator_lines(LOCAL) == []
    events = [session_started(), *generator_run(3), CLOCK]
    first, second = generator_lines(events)
    assert " ".join(first.split()) == "generator gen1 req/s 100 cpu 20% lag 0.00 ms clock ±0.40 ms, drift +25 µs/s"
    assert " ".join(second.split()) == "generator gen2 req/s 200 cpu 95% lag 0.00 ms"
    assert "gen2 LOST at 00:00:03: no answer for 1.2 s" in generator_lines([*events, LOST])[1]
    [only] = generator_lines([*events, LOST], height=1)
    assert "LOST" in only and "\x1b" not in only


async def test_generator_screen_shows_clocks_and_losses() -> None:
    async with running_app(LOCAL) as (pilot, source):
        await press(pilot, "L")
        assert pilot.app.screen is main(pilot.app), "the load is local"
        source.push(ev.RunEnded(t=0.0, run=1, reason="stopped"), *generator_run(3), CLOCK, LOST)
        await wait_for_events(pilot, source, len(LOCAL) + 64)
        _, first, second, *_ = await dialog_lines(pilot, "L", GeneratorScreen)
        assert " ".join(first.split()) == "gen1 1 100 20% 0.00 ms 0.00 ms -3600.0000 s 0.40 ms +25 µs/s"
        assert "LOST at 00:00:03: no answer for 1.2 s" in second


EVENTS = Scenario().events()


def before_check(t: float, thresholds: tuple[str, ...] = ()) -> list[ev.AnyEvent]:
    first, *more = [event for event in EVENTS if event.t <= t]
    return [replace(first, thresholds=thresholds), *more]


def push(source: ScriptedSource, after: float, until: float) -> None:
    source.push(*(event for event in EVENTS if after < event.t <= until))


def panel(pilot: Pilot[object]) -> str:
    assert isinstance(pilot.app.screen, CheckScreen)
    return str(pilot.app.screen.query_one("#results", Static).content)


def toggle_count(source: ScriptedSource) -> int:
    return source.controls.done.count(("toggle", ""))


async def test_running_load_is_checked_after_15_seconds() -> None:
    async with running_app(before_check(15.0, ("p99 < 60s", "rate > 1m"))) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "waiting for 5 s of load …"
        push(source, 15.0, 25.0)
        await until(pilot, lambda: "of load ·" in panel(pilot))
        head, *lines = panel(pilot).splitlines()
        assert head.startswith("1 of 2 failed · segment 1, ") and head.endswith(" · no baseline for this load")
        assert lines[0].startswith("✓  p99 < 60s  found ") and lines[1].startswith("✗  rate > 1m  found ")
        assert source.controls.done == [], "the load continues"
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)

        def unreadable(_plan: object) -> None:
            raise UsageError("spring: no such baseline")

        main(pilot.app).baseline_of = unreadable  # type: ignore[assignment]
        await press(pilot, "x")
        assert panel(pilot) == "spring: no such baseline"


async def test_check_without_load_starts_and_stops_load() -> None:
    async with running_app(before_check(40.0)) as (pilot, source):
        await press(pilot, "x")
        assert panel(pilot) == "waiting for 15 s of load …"
        assert toggle_count(source) == 1
        push(source, 40.0, 62.0)
        await until(pilot, lambda: "pass · segment 2, " in panel(pilot))
        await until(pilot, lambda: toggle_count(source) == 2)
        await press(pilot, "escape")
        assert toggle_count(source) == 2


async def test_closing_stops_load_started_by_check() -> None:
    async with running_app(before_check(40.0)) as (pilot, source):
        await press(pilot, "x")
        push(source, 40.0, 50.0)
        await until(pilot, lambda: panel(pilot) == "waiting for 10 s of load …")
        await press(pilot, "escape")
        await until(pilot, lambda: toggle_count(source) == 2)


async def test_check_of_a_load_that_cannot_start_says_why() -> None:
    async with running_app(before_check(40.0)) as (pilot, source):
        source.controls.status = LoadStatus(plan(), LoadPhase.IDLE, "web1:80: connection refused")
        await press(pilot, "x")
        await until(pilot, lambda: panel(pilot) == "not started: web1:80: connection refused")


async def test_check_of_a_replay_judges_the_recorded_segment() -> None:
    async with replayed_app(RECORDINGS / "under-load.cockpit") as (pilot, _):
        await press(pilot, "x")
        assert "of load ·" in panel(pilot)
