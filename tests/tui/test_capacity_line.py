"""The line of a capacity search: progress, conclusion, in place of the verdict strip; its prompt."""

from textual.widgets import Input

from cockpit.model import events as ev
from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded
from cockpit.model.load.plan import LoadPlan
from cockpit.tui.dialogs.prompt import PromptScreen
from cockpit.tui.runs.capacity_line import capacity_line
from cockpit.tui.runs.table import Runs
from cockpit.tui.terminal.styled_line import clip
from tests.tui.driving import context_of, plain, press, running_app, screen_text, until
from tests.tui.scenario import session_started


def events() -> list[ev.AnyEvent]:
    """Return a search whose second level, at 200/s, fails."""
    found: list[ev.AnyEvent] = [
        session_started(),
        ev.RunStarted(t=0.5, run=1, plan=LoadPlan(url="http://a/", rate=100.0)),
        CapacityBegun(t=0.6, number=1, run=1, limits=("errors < 1%",), longest=180.0),
    ]
    for number, (t, status) in enumerate(((1.0, 200), (8.0, 503)), 1):
        found.append(CapacityLevel(t=t, number=1, level=number, rate=100.0 * number, until=t + 5))
        found.append(
            ev.Tick(t=t + 5, start=t + 0.1, run=1, worker=0, sent=1000, completed=1000, statuses={status: 1000})
        )
        found.append(CapacityLevelEnded(t=t + 5, number=1))
    return found


def test_runs_table_shows_levels_and_whether_they_hold() -> None:
    lines = plain(Runs().draw(context_of(events()), 90, 12))
    rows = [" ".join(line.split()) for line in lines[2:] if line.strip()]
    assert [row[:9] for row in rows] == ["3 level 1", "5 level 2", "▸ 6 betwe"], "without the earlier pauses"
    assert "✓ holds" in rows[0] and "✗ fails" in rows[1]


def test_line_shows_progress_then_conclusion() -> None:
    for number, words in (
        (3, "capacity unknown so far; starting; at most 180 s more"),
        (4, "capacity unknown so far; level 1: 100/s; at most 180 s more"),
        (6, "capacity at least 100/s so far; level 1: 100/s; at most 175 s more"),
    ):
        [line] = plain([capacity_line(context_of(events()[:number])) or ()])
        assert line == words
    ended = capacity_line(context_of([*events(), CapacityEnded(t=14.0, number=1, outcome="found")])) or ()
    [line] = plain([ended])
    assert line.startswith("capacity 1") and line.endswith("); errors < 1%")
    assert plain([clip(ended, 20)]) == [f"{line[:19]}…"]
    unmeasured = [
        CapacityLevel(t=15.0, number=1, level=3, rate=150.0, until=20.0),
        CapacityLevelEnded(t=20.0, number=1),
        CapacityLevel(t=21.0, number=1, level=4, rate=float("inf"), until=26.0),
        ev.Tick(t=26.0, start=21.1, run=1, worker=0, sent=1000, completed=1000, statuses={503: 1000}),
        CapacityLevelEnded(t=26.0, number=1),
        CapacityEnded(t=27.0, number=1, outcome="found"),
    ]
    assert plain([capacity_line(context_of([*events(), *unmeasured])) or ()]) == [line], "levels without ticks or rate"
    assert capacity_line(context_of(events()[:2])) is None and capacity_line(context_of([])) is None


async def test_screen_shows_line_and_prompt_is_prefilled() -> None:
    async with running_app(events()) as (pilot, _):
        app = pilot.app
        await until(pilot, lambda: "level 2: 200/s" in screen_text(pilot))
        answers: list[str | None] = []
        app.push_screen(PromptScreen("Limits", value="p99 < 50ms"), answers.append)
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        assert app.screen.query_one(Input).value == "p99 < 50ms"
        await press(pilot, "enter")
        assert answers == ["p99 < 50ms"]
