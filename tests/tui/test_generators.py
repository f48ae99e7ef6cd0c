"""Load generators on other machines: one line each with rate, CPU, lag and clock, or the loss."""

from __future__ import annotations

from textual.widgets import Static

from cockpit.model import events as ev
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.tui.generators import Generators, GeneratorScreen
from tests.tui.driving import context_of, main, plain, press, running_app
from tests.tui.scenario import plan, session_started

MACHINES = ("gen1", "gen2")


def run(seconds: int) -> list[ev.AnyEvent]:
    """Return a run of two workers; the second uses 95% of a CPU."""
    found: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=0.0, run=1, plan=plan(), machines=MACHINES)]
    for tick in range(10 * seconds):
        for worker, (completed, cpu) in enumerate(((10, 0.02), (20, 0.095))):
            t = (tick + 1) / 10
            found.append(ev.Tick(t=t, run=1, worker=worker, start=tick / 10, completed=completed, cpu=cpu))
    return found


def lines(events: list[ev.AnyEvent], height: int = 4) -> list[str]:
    return plain(Generators().draw(context_of(events), 100, height))


def test_generator_line_has_rate_cpu_and_clock() -> None:
    clock = GeneratorClock(t=2.5, machine="gen1", offset=-3600.0, uncertainty=0.0004, drift=25e-6)
    first, second = lines([*run(3), clock])
    assert " ".join(first.split()) == "generator gen1 req/s 100 cpu 20% lag 0.00 ms clock ±0.40 ms, drift +25 µs/s"
    assert " ".join(second.split()) == "generator gen2 req/s 200 cpu 95% lag 0.00 ms"


def test_lost_generator_is_first_with_time_and_reason() -> None:
    lost = GeneratorLost(t=3.0, machine="gen2", detail="no answer for 1.2 s\x1b[2J")
    assert "gen2 LOST at 00:00:03: no answer for 1.2 s" in lines([*run(3), lost])[1]
    [only] = lines([*run(3), lost], height=1)
    assert "LOST" in only and "\x1b" not in only


def test_local_load_has_no_generator_line() -> None:
    assert lines([session_started(), ev.RunStarted(t=0.0, run=1, plan=plan())]) == []


async def test_generator_screen_shows_clocks_and_losses() -> None:
    clock = GeneratorClock(t=2.5, machine="gen1", offset=-3600.0, uncertainty=0.0004, drift=25e-6)
    lost = GeneratorLost(t=3.0, machine="gen2", detail="no answer for 1.2 s\x1b[2J")
    async with running_app([*run(3), clock, lost]) as (pilot, _):
        await press(pilot, "L")
        assert isinstance(pilot.app.screen, GeneratorScreen)
        _, first, second, *_ = str(pilot.app.screen.query_one("#text", Static).content).splitlines()
        assert " ".join(first.split()) == "gen1 1 100 20% 0.00 ms 0.00 ms -3600.0000 s 0.40 ms +25 µs/s"
        assert "LOST at 00:00:03: no answer for 1.2 s" in second and "\x1b" not in second
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)


async def test_generator_screen_does_not_open_for_local_load() -> None:
    async with running_app([session_started(), ev.RunStarted(t=0.0, run=1, plan=plan())]) as (pilot, _):
        await press(pilot, "L")
        assert pilot.app.screen is main(pilot.app)
