"""The start screen: what it lists, and what each key opens."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from cockpit.cli.load_flags import profile_of
from cockpit.profiles import catalogue
from cockpit.recording.library import ChangeSummary, Kept, Recent
from cockpit.tui.dialogs.prompt import FilterScreen, PromptScreen
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.doctor import DoctorScreen
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.terminal.appearance import Appearance
from tests.tui.driving import at_rest, text_of, until

NOW = dt.datetime(2026, 11, 21, 15, 0)
WALL = dt.datetime(2026, 11, 21, 14, 5).timestamp()
PROFILES = Path(__file__).parents[2] / "profiles"


def offers(*, recordings: bool = True, broken: bool = True) -> StartChoices:
    """Two shipped profiles, one that does not read; three recordings."""
    profiles = [catalogue._read(PROFILES / f"{name}.toml", "shipped") for name in ("mpm", "spare-servers")]
    if broken:
        problem = "target.url: found 'ftp://x/'; allowed: http://host[:port]/path"
        profiles.insert(0, catalogue.Listed(name="broken", path=Path("broken.toml"), origin="here", problem=problem))
    kept = Kept(
        name="spare-servers-20261121-140500",
        path="/state/one.cockpit",
        size=1,
        began=WALL,
        seconds=192.0,
        runs=2,
        session="spare-servers",
        target="http://web1/hello.html",
        ended=True,
    )
    change = ChangeSummary(letter="A", label="A MaxSpareServers 10 → 40", outcome="applied")
    newest = Recent(kept=kept, rate=13_934.0, p99_ms=4.2, changes=(change,))
    cut = Recent(kept=Kept(name="before", path="/state/two.cockpit", size=1, began=WALL - 86_400, session="x"))
    odd = Recent(kept=Kept(name="junk", path="/state/junk.cockpit", size=1, problem="does not read: not a database"))
    return StartChoices(profiles, [newest, cut, odd] if recordings else [])


def start_app(found: StartChoices, *, appearance: Appearance | None = None, **options: object) -> StartApp:
    return StartApp(StartScreen(lambda: found, now=lambda: NOW, **options), appearance)


@asynccontextmanager
async def started(
    found: StartChoices, size: tuple[int, int] = (120, 40), **options: object
) -> AsyncIterator[tuple[Pilot[Choice], StartApp]]:
    app = start_app(found, **options)
    async with app.run_test(size=size) as pilot:
        await found_all(pilot)
        yield pilot, app


async def found_all(pilot: Pilot[Choice]) -> None:
    """Until everything is listed and drawn."""
    await until(pilot, lambda: first(pilot)._offers is not None)
    await at_rest(pilot)


def first(pilot: Pilot[Choice]) -> StartScreen:
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, StartScreen))


def text(pilot: Pilot[Choice], name: str) -> str:
    widget = first(pilot).query_one(name)
    return "\n".join("".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height))


async def ended(pilot: Pilot[Choice], app: StartApp) -> Choice | None:
    await until(pilot, lambda: not app.is_running)
    return app.return_value


async def test_it_lists_ways_to_begin_profiles_with_their_question_and_recordings() -> None:
    async with started(offers()) as (pilot, _):
        listing = text(pilot, "OptionList")
    for words in (
        "j try it on the demo",
        "mpm                   Does Apache's event MPM take less CPU than its",
        "web1 · 6 knobs · study",
        "invalid: target.url: found 'ftp://x/'",
        "spare-servers          today 14:05  00:03:12   2 runs  13.9k req/s  p99  4.2 ms  1 change",
        "before                Nov 20 14:05  00:00:00   no run  not ended",
        "junk                  does not read: not a database",
    ):
        assert words in listing


async def test_nothing_there_yet_says_what_to_do() -> None:
    async with started(StartChoices()) as (pilot, _):
        assert "No profiles yet. n: write one" in text(pilot, "OptionList")
        assert "No recordings yet. Every session is recorded here." in text(pilot, "OptionList")
        assert "cockpit demo" in text(pilot, "#about"), "a newcomer begins with the demo"


async def test_the_screen_is_there_before_everything_is_found() -> None:
    gate = threading.Event()

    def slow() -> StartChoices:
        gate.wait(20)
        return offers()

    app = StartApp(StartScreen(slow, now=lambda: NOW))
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot)
        assert text(pilot, "OptionList").count("loading …") == 2
        gate.set()
        await found_all(pilot)
        assert "looking" not in text(pilot, "OptionList")


async def test_arrows_choose_and_enter_opens_a_profile() -> None:
    async with started(offers(broken=False)) as (pilot, app):
        assert "fixed rate of new connections" in text(pilot, "#about"), "the first profile is looked at first"
        await pilot.press("down")
        await at_rest(pilot)
        told = text(pilot, "#about")
        assert "Is process churn what makes Apache" in told
        assert "knobs MinSpareServers, MaxSpareServers" in told
        assert "space starts the load" in told
        await pilot.press("enter")
        assert await ended(pilot, app) == Choice("profile", str(PROFILES / "spare-servers.toml"))


async def test_enter_opens_a_recording_and_what_came_of_it_is_told() -> None:
    async with started(offers(), at=Choice("recording", "/state/one.cockpit")) as (pilot, app):
        told = text(pilot, "#about")
        assert "A MaxSpareServers 10 → 40  applied" in told
        assert "cockpit report spare-servers-20261121-140500" in told
        await pilot.press("enter")
        assert await ended(pilot, app) == Choice("recording", "/state/one.cockpit")


@pytest.mark.parametrize("what", [Choice("profile", "broken.toml"), Choice("recording", "/state/junk.cockpit")])
async def test_what_does_not_read_is_not_opened(what: Choice) -> None:
    async with started(offers(), at=what) as (pilot, app):
        assert first(pilot).selected.choice == what
        await pilot.press("enter")
        await until(pilot, lambda: "invalid profile" in text(pilot, "#message"))
        assert app.is_running


async def test_slash_filters_as_one_types_and_escape_shows_all_again() -> None:
    async with started(offers()) as (pilot, app):
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.screen, FilterScreen))
        await pilot.press(*"churn")
        await until(pilot, lambda: "mpm" not in text(pilot, "OptionList"))
        assert "spare-servers" in text(pilot, "OptionList")
        assert "no match" in text(pilot, "OptionList"), "no recording is called that"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is first(pilot))
        assert "only with 'churn', Esc shows all" in text(pilot, "#keys")
        await pilot.press("escape")
        await until(pilot, lambda: "mpm" in text(pilot, "OptionList"))


def error_of(app: StartApp) -> str:
    return text_of(app.screen.query_one("#error", Static))


async def test_u_asks_for_a_url_and_one_that_is_none_is_told_back() -> None:
    async with started(offers()) as (pilot, app):
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await pilot.press(*"ftp://x", "enter")
        await until(pilot, lambda: "allowed: http://host[:port]/path" in error_of(app))
        field = app.screen.query_one(Input)
        assert field.value == "ftp://x"
        field.value = ""
        await pilot.press(*"web1:8080", "enter")
        assert await ended(pilot, app) == Choice("url", "web1:8080")


async def test_u_takes_the_flags_of_a_run() -> None:
    async with started(offers(), check_url=profile_of) as (pilot, app):
        await pilot.press("u", *"web1 -c many", "enter")
        await until(pilot, lambda: "-c: 'many' is not a whole number" in error_of(app))
        app.screen.query_one(Input).value = ""
        await pilot.press(*"web1:8080 -c 20 -z 60s", "enter")
        choice = await ended(pilot, app)
        assert choice is not None and choice.kind == "url"
        plan = profile_of(choice.what).plan
        assert (plan.url, plan.concurrency, plan.duration) == ("http://web1:8080/", 20, 60.0)


async def test_j_opens_the_demo() -> None:
    async with started(offers()) as (pilot, app):
        await pilot.press("j")
        assert await ended(pilot, app) == Choice("demo")


@pytest.mark.parametrize(("key", "interrupted"), [("q", False), ("ctrl+q", False), ("ctrl+c", True)])
async def test_leaving_opens_nothing(key: str, interrupted: bool) -> None:
    async with started(offers()) as (pilot, app):
        await pilot.press(key)
        assert await ended(pilot, app) is None
    assert app.interrupted is interrupted


async def test_what_became_of_the_session_before_is_told() -> None:
    async with started(offers(), message="no host \x1b[31mof that name", bad=True) as (pilot, _):
        assert text(pilot, "#message").strip() == "no host ·[31mof that name"
        assert first(pilot).query_one("#message", Static).has_class("-bad")


@pytest.mark.parametrize("size", [(200, 50), (80, 24), (60, 15), (40, 12), (20, 5)])
async def test_it_stays_whole_at_any_size(size: tuple[int, int]) -> None:
    async with started(offers(), size) as (pilot, _):
        listing = first(pilot).query_one(OptionList)
        assert listing.option_count >= 9
        assert all(len(line) <= size[0] for line in text(pilot, "OptionList").splitlines())
        await pilot.press("end", "home")
        await at_rest(pilot)
        assert first(pilot).selected is not None


async def test_c_examines_the_profile_looked_at(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[target]\nurl = "http://no-such-host.invalid/"\n')
    mine = catalogue._read(tmp_path / "mine.toml", "here")
    async with started(StartChoices([mine]), at=Choice("profile", str(mine.path))) as (pilot, app):
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen) and app.screen.over)
        told = str(app.screen.query_one("#text", Static).render())
        assert "mine reads: " in told
        assert "no such host" in told and "→ is the server up" in told
        # On a busy machine there is a note about that.
        assert told.splitlines()[-1] in ("1 to fix", "1 to fix, 1 note")


async def test_c_elsewhere_says_what_to_do() -> None:
    async with started(offers(), at=Choice("profile", "broken.toml")) as (pilot, _):
        await pilot.press("h")
        await until(pilot, lambda: "select a valid profile first" in text(pilot, "#message"))
