"""The start screen: its lists, the choices its keys open, and the prompt for an untrusted profile."""

import datetime as dt
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from cockpit.cli.typed_load import profile_of
from cockpit.profiles import catalogue
from cockpit.profiles.reader import read_profile
from cockpit.profiles.trust import is_trusted
from cockpit.recording.library import ChangeSummary, Recent, RecordingInfo
from cockpit.tui.dialogs.prompt import FilterScreen, PromptScreen
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import Choice, StartChoices, row, sections, widths
from cockpit.tui.start.doctor import DoctorScreen
from cockpit.tui.start.screen import StartScreen
from cockpit.tui.start.trust import TrustScreen
from cockpit.tui.terminal.appearance import Appearance
from cockpit.tui.terminal.styled_line import Line
from cockpit.tuning.discovery.local_servers import LocalServer
from tests.tui.driving import press, text_of, until, wait_idle

NOW = dt.datetime(2026, 11, 21, 15, 0)
WALL = dt.datetime(2026, 11, 21, 14, 5, tzinfo=dt.UTC).timestamp()
PROFILES = Path(__file__).parents[2] / "profiles"


def start_choices(*, recordings: bool = True, broken: bool = True) -> StartChoices:
    """Return two shipped profiles, an invalid profile and three recordings."""
    profiles = [catalogue._read(PROFILES / f"{name}.toml", "shipped") for name in ("mpm", "spare-servers")]
    if broken:
        problem = "target.url: found 'ftp://x/'; allowed: http://host[:port]/path"
        entry = catalogue.ProfileEntry(name="broken", path=Path("broken.toml"), origin="here", problem=problem)
        profiles.insert(0, entry)
    kept = RecordingInfo(
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
    change = ChangeSummary(
        letter="A", label="A MaxSpareServers 10 → 40", outcome="applied", verdict="better", effect="rate ×3.7"
    )
    newest = Recent(info=kept, rate=13_934.0, p99_ms=4.2, changes=(change,))
    refused = ChangeSummary(letter="A", label="A K 1 → 2", outcome="rolled back")
    before = RecordingInfo(name="before", path="/state/two.cockpit", size=1, began=WALL - 86_400, session="x")
    junk = RecordingInfo(name="junk", path="/state/junk.cockpit", size=1, problem="does not read: not a database")
    return StartChoices(
        profiles, [newest, Recent(info=before, changes=(refused,)), Recent(info=junk)] if recordings else []
    )


def start_app(choices: StartChoices, *, appearance: Appearance | None = None, **options: object) -> StartApp:
    return StartApp(StartScreen(lambda: choices, now=lambda: NOW, **options), appearance)


@asynccontextmanager
async def running_start_app(
    choices: StartChoices, size: tuple[int, int] = (120, 40), **options: object
) -> AsyncIterator[tuple[Pilot[Choice], StartApp]]:
    app = start_app(choices, **options)
    async with app.run_test(size=size) as pilot:
        await wait_listed(pilot)
        yield pilot, app


async def wait_listed(pilot: Pilot[Choice]) -> None:
    """Wait until everything is listed and drawn."""
    await until(pilot, lambda: start_screen(pilot)._offers is not None)
    await wait_idle(pilot)


def start_screen(pilot: Pilot[Choice]) -> StartScreen:
    return next(screen for screen in pilot.app.screen_stack if isinstance(screen, StartScreen))


def widget_text(pilot: Pilot[Choice], name: str) -> str:
    widget = start_screen(pilot).query_one(name)
    return "\n".join("".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height))


async def exit_choice(pilot: Pilot[Choice], app: StartApp) -> Choice | None:
    await until(pilot, lambda: not app.is_running)
    return app.return_value


async def select(pilot: Pilot[Choice], choice: Choice) -> None:
    """Move down to a line of the list."""
    while start_screen(pilot).selected is None or start_screen(pilot).selected.choice != choice:
        await press(pilot, "down")


async def test_start_screen_lists_and_filters_demo_profiles_and_recordings() -> None:
    async with running_start_app(start_choices(), message="no host \x1b[31mof that name", bad=True) as (pilot, app):
        assert widget_text(pilot, "#message").strip() == "no host ·[31mof that name"
        assert start_screen(pilot).query_one("#message", Static).has_class("-bad")
        listing = widget_text(pilot, "OptionList")
        for entry in (
            "j try it on the demo",
            "mpm                   Does Apache's event MPM take less CPU than its",
            "worker MPM for the same work?",
            "invalid: target.url: found 'ftp://x/'",
            "web1/hello.html       A MaxSpareServers 10 → 40",
            "better       rate ×3.7   today 14:05",
            "before                A K 1 → 2",
            "not ended  Nov 20 14:05",
            "junk                  does not read: not a database",
        ):
            assert entry in listing
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.screen, FilterScreen))
        await pilot.press(*"churn")
        await until(pilot, lambda: "mpm" not in widget_text(pilot, "OptionList"))
        assert "spare-servers" in widget_text(pilot, "OptionList")
        assert "recent recordings" not in widget_text(pilot, "OptionList"), "no recording matches"
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is start_screen(pilot))
        assert "filter 'churn', Esc: show all" in widget_text(pilot, "#keys")
        await pilot.press("escape")
        await until(pilot, lambda: "mpm" in widget_text(pilot, "OptionList"))
        await pilot.press("slash", *"nothing like it")
        await until(pilot, lambda: "no match" in widget_text(pilot, "OptionList"))
        assert start_screen(pilot).selected is None


async def test_unreadable_choice_is_not_opened_and_list_fits_any_size() -> None:
    async with running_start_app(start_choices(), at=Choice("profile", "broken.toml")) as (pilot, app):
        await pilot.press("h")
        await until(pilot, lambda: "select a valid profile first" in widget_text(pilot, "#message"))
        for choice in (Choice("profile", "broken.toml"), Choice("recording", "/state/junk.cockpit")):
            await select(pilot, choice)
            start_screen(pilot).query_one("#message", Static).update("")
            await pilot.press("enter")
            await until(pilot, lambda: "invalid file" in widget_text(pilot, "#message"))
            assert app.is_running
        listing = start_screen(pilot).query_one(OptionList)
        for size in ((200, 50), (80, 24), (60, 15), (40, 12), (20, 5)):
            await pilot.resize_terminal(*size)
            await wait_idle(pilot)
            assert listing.option_count >= 9
            assert all(len(line) <= size[0] for line in widget_text(pilot, "OptionList").splitlines())
            await pilot.press("end", "home")
            await wait_idle(pilot)
            assert start_screen(pilot).selected is not None


async def test_start_screen_without_recordings_suggests_next_steps() -> None:
    async with running_start_app(StartChoices()) as (pilot, _):
        assert "No profiles of your own yet. n: write one" in widget_text(pilot, "OptionList")
        assert "No recordings yet. Every session is recorded here." in widget_text(pilot, "OptionList")
        assert "cockpit demo" in widget_text(pilot, "#about"), "the demo is suggested first"
    async with running_start_app(start_choices(recordings=False, broken=False)) as (pilot, _):
        assert start_screen(pilot).selected.choice == Choice("demo")
        listing = widget_text(pilot, "OptionList")
        assert listing.index("try it on the demo") < listing.index("No recordings yet") < listing.index("mpm")


async def test_start_screen_appears_before_lists_are_loaded() -> None:
    gate = threading.Event()

    def slow() -> StartChoices:
        gate.wait(20)
        return start_choices()

    app = StartApp(StartScreen(slow, now=lambda: NOW))
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_idle(pilot)
        assert widget_text(pilot, "OptionList").count("loading …") == 2
        gate.set()
        await wait_listed(pilot)
        listing = widget_text(pilot, "OptionList")
        assert "loading" not in listing and "mpm" in listing and "spare-servers  " in listing


async def test_arrows_select_and_enter_opens_profile() -> None:
    first = Choice("profile", str(PROFILES / "mpm.toml"))
    async with running_start_app(start_choices(broken=False), at=first) as (pilot, app):
        assert "fixed rate of new connections" in widget_text(pilot, "#about")
        await pilot.press("down")
        await wait_idle(pilot)
        about = widget_text(pilot, "#about")
        assert "Is process churn what makes Apache" in about
        assert "knobs MinSpareServers, MaxSpareServers" in about
        assert "space starts the load" in about
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == Choice("profile", str(PROFILES / "spare-servers.toml"))


def recording_row(recent: Recent, width: int) -> Line:
    groups = sections(StartChoices(recordings=[recent]))
    entry = next(entry for group in groups for entry in group.choices if entry.recent)
    return row(entry, widths(groups, width), width, NOW)


def test_recording_row_has_target_change_and_coloured_verdict_at_any_width() -> None:
    newest = start_choices().recordings[0]
    for verdict, effect, role in (
        ("better", "rate ×3.7", "better_value"),
        ("worse", "web1 CPU/request +49%", "worse_value"),
        ("inconclusive", "", "dim"),
    ):
        changed = replace(newest, changes=(replace(newest.changes[0], verdict=verdict, effect=effect),))
        for width in (117, 77):
            line = recording_row(changed, width)
            assert any(text.strip() == verdict and known == role for text, known in line)
            text = "".join(text for text, _ in line)
            assert text.startswith("web1/hello.html ") and f"  {effect}" in text and "A MaxSpareS" in text
            assert ("today 14:05" in text) == (width > 100)
    undone = replace(newest, changes=(*newest.changes, ChangeSummary(letter="B", label="B undo A", outcome="applied")))
    assert "A MaxSpareServers 10 → 40  and 1 more" in "".join(text for text, _ in recording_row(undone, 117))


def test_recording_without_changes_has_its_results() -> None:
    plain = replace(start_choices().recordings[0], changes=())
    assert "2 runs  13.9k req/s  p99 4.2 ms" in "".join(text for text, _ in recording_row(plain, 100))
    searched = replace(plain, capacity="1,840/s at p99 < 50ms")
    line = "".join(text for text, _ in recording_row(searched, 100))
    assert "2 runs  capacity 1,840/s at p99 < 50ms" in line and "req/s" not in line


async def test_running_servers_are_first_and_one_without_a_known_port_asks_for_its_url() -> None:
    servers = [
        LocalServer("nginx", "nginx", "http://127.0.0.1:8080/", "root"),
        LocalServer("apache", "apache2", "", "www\x1b[31m"),
    ]
    async with running_start_app(start_choices(), servers=lambda: servers) as (pilot, app):
        listing = widget_text(pilot, "OptionList")
        assert listing.index("running on this machine") < listing.index("nginx on :8080") < listing.index("recent rec")
        assert "apache                its port is unknown: only www·[31m can read it" in listing
        assert start_screen(pilot).selected.choice == Choice("server", "http://127.0.0.1:8080/", "nginx")
        assert "cockpit run http://127.0.0.1:8080/" in widget_text(pilot, "#about")
        await press(pilot, "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        await press(pilot, "escape", "up", "enter")
        assert await exit_choice(pilot, app) == Choice("server", "http://127.0.0.1:8080/", "nginx")


async def test_recording_summary_is_shown_and_enter_opens_recording() -> None:
    async with running_start_app(start_choices(), at=Choice("recording", "/state/one.cockpit")) as (pilot, app):
        about = widget_text(pilot, "#about")
        assert "A MaxSpareServers 10 → 40  applied  better  rate ×3.7" in about
        assert "cockpit report spare-servers-20261121-140500" in about
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == Choice("recording", "/state/one.cockpit")


def many_choices() -> StartChoices:
    """Return all shipped profiles, three of the user and 30 recordings."""
    own = [
        catalogue.ProfileEntry(
            name=f"mine-{number}", path=Path(f"mine-{number}.toml"), origin="yours", problem="invalid"
        )
        for number in range(3)
    ]
    shipped = [catalogue._read(path, "shipped") for path in sorted(PROFILES.glob("*.toml"))]
    known = start_choices().recordings[0]
    kept = [replace(known.info, name=f"recording-{n}", session="", path=f"/state/{n}.cockpit") for n in range(30)]
    return StartChoices([*own, *shipped], [replace(known, info=one) for one in kept])


@pytest.mark.parametrize(("size", "recordings"), [((120, 40), 5), ((80, 24), 3)])
async def test_recent_recordings_and_own_profiles_are_visible_first(size: tuple[int, int], recordings: int) -> None:
    async with running_start_app(many_choices(), size) as (pilot, _):
        listing = widget_text(pilot, "OptionList")
        assert listing.count("A MaxSpare") == recordings
        assert all(f"mine-{number}" in listing for number in range(3))
        assert "write a profile" in listing and "shipped profiles" in listing
        assert start_screen(pilot).selected.choice == Choice("recording", "/state/0.cockpit")
        for kind in ("profile", "demo", "profile", "recording"):
            await pilot.press("tab")
            await wait_idle(pilot)
            assert start_screen(pilot).selected.choice.kind == kind
        before = start_screen(pilot).query_one(OptionList).option_count
        await pilot.press("R")
        more = 30 - recordings
        await until(pilot, lambda: start_screen(pilot).query_one(OptionList).option_count == before + more)
        await pilot.press("escape")
        await until(pilot, lambda: start_screen(pilot).query_one(OptionList).option_count == before)


async def test_u_prompts_for_url_and_flags_and_reports_errors() -> None:
    async with running_start_app(start_choices(), check_url=profile_of) as (pilot, app):
        await pilot.press("u")
        await until(pilot, lambda: isinstance(app.screen, PromptScreen))
        field = app.screen.query_one(Input)
        for text, problem in (("ftp://x", "allowed: http://"), ("web1 -c many", "-c: 'many' is not a whole number")):
            field.value = ""
            await pilot.press(*text, "enter")
            await until(pilot, lambda problem=problem: problem in text_of(app.screen.query_one("#error", Static)))  # type: ignore[misc]
            assert field.value == text
        field.value = ""
        await pilot.press(*"web1:8080 -c 20 -z 60s", "enter")
        choice = await exit_choice(pilot, app)
        assert choice is not None and choice.kind == "url"
        plan = profile_of(choice.what).plan
        assert (plan.url, plan.concurrency, plan.duration) == ("http://web1:8080/", 20, 60.0)


@pytest.mark.parametrize(
    ("key", "choice", "interrupted"),
    [("j", Choice("demo"), False), ("q", None, False), ("ctrl+q", None, False), ("ctrl+c", None, True)],
)
async def test_keys_open_demo_or_quit(key: str, choice: Choice | None, interrupted: bool) -> None:
    async with running_start_app(start_choices()) as (pilot, app):
        await pilot.press(key)
        assert await exit_choice(pilot, app) == choice
    assert app.interrupted is interrupted


async def test_h_runs_doctor_on_selected_profile(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[target]\nurl = "http://no-such-host.invalid/"\n')
    mine = catalogue._read(tmp_path / "mine.toml", "here")
    async with running_start_app(StartChoices([mine]), at=Choice("profile", str(mine.path))) as (pilot, app):
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen) and app.screen.over)
        report = str(app.screen.query_one("#text", Static).render())
        assert "mine is valid: " in report
        assert "no such host" in report and "→ is the server up" in report
        # A busy machine adds a note.
        assert report.splitlines()[-1] in ("1 to fix", "1 to fix, 1 note")


HOSTILE = "[bold red]echo[/] [@click=app.bell]x[/] \x1b[2J\u202e"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "hostile.toml"
    tails = "".join(f'[[host]]\nname = "h{at}"\ntail = ["echo {at}"]\n' for at in range(40))
    path.write_text(
        '[target]\nurl = "http://127.0.0.1:1/"\n'
        + tails
        + f'[[action]]\nname = "a"\nhost = "h0"\ncommand = "{HOSTILE!a}"\n'.replace("'", "").replace("\\x1b", "\\u001b")
    )
    return path


def choices_of(path: Path) -> StartChoices:
    return StartChoices([catalogue._read(path, "here")])


async def test_untrusted_profile_opens_only_after_y(hostile: Path) -> None:
    at = Choice("profile", str(hostile))
    async with running_start_app(choices_of(hostile), at=at, size=(80, 24)) as (pilot, app):
        await press(pilot, "enter")
        assert isinstance(app.screen, TrustScreen)
        lines = text_of(app.screen.query_one("#uses", Static)).splitlines()
        assert "  runs      [bold red]echo[/] [@click=app.bell]x[/] ·[2J·   (action a)" in lines
        assert "  runs      echo 39   (tail)" in lines
        await press(pilot, "end")
        assert app.screen.query_one("VerticalScroll").scroll_offset.y > 0
        await press(pilot, "escape")
        assert "hostile: not trusted; nothing was run" in widget_text(pilot, "#message")
        assert not is_trusted(read_profile(hostile))
        await press(pilot, "enter")
        await pilot.press("y")
        assert await exit_choice(pilot, app) == at
    assert is_trusted(read_profile(hostile))
    async with running_start_app(choices_of(hostile), at=at) as (pilot, app):
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == at, "opens at once"


async def test_doctor_checks_untrusted_profile_only_after_y(hostile: Path) -> None:
    before = children()
    async with running_start_app(choices_of(hostile), at=Choice("profile", str(hostile))) as (pilot, app):
        await press(pilot, "h")
        assert isinstance(app.screen, TrustScreen)
        await press(pilot, "escape")
        assert not any(isinstance(screen, DoctorScreen) for screen in app.screen_stack)
        await press(pilot, "h")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, DoctorScreen))
        doctor = app.screen
        await until(pilot, lambda: bool(children() - before) or doctor.over)
    assert children() <= before, "closing the doctor ends the shells of all hosts"


def children() -> set[int]:
    """Return the PIDs of child processes that were not reaped."""
    return {child.pid for child in psutil.Process().children()}
