"""Every binding of every screen is pressed and must have a visible effect; a binding without a row is an error."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.app import App
from textual.binding import Binding
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

import cockpit.tui
from cockpit.autopilot.diagnosis import Bottleneck, BottleneckKind
from cockpit.hosts.prompts import Question
from cockpit.model.clock import Clock
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.session.controls import Action, immediate
from cockpit.session.live import LiveSource
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from cockpit.tui.autopilot.screen import AutopilotScreen, KnobsScreen
from cockpit.tui.dialogs.checklist import Checklist
from cockpit.tui.dialogs.host_prompt import HostPromptScreen
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.generators import GeneratorScreen
from cockpit.tui.key_names import action_key
from cockpit.tui.start.new_profile import FoundServersScreen, NewProfileScreen, ProfileForm
from cockpit.tui.start.trust import TrustScreen
from tests.tui.driving import main, press, reset_screen, running_app, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedTuning
from tests.tui.test_start import running_start_app, start_choices

EVENTS = Scenario(2).events(99)
RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"
# Named keys that print a single character.
SIGNS = {"space", "plus", "minus", "comma", "full_stop", "colon", "slash", "question_mark", "equals_sign"} | {
    *("left_square_bracket", "right_square_bracket", "greater_than_sign", "less_than_sign")
}
Prepare = Callable[[Pilot[Any]], Awaitable[None]]


class Row(NamedTuple):
    """`keys` are pressed one by one, each after a reset and `before`; `prepare` opens screens that no key opens."""

    class_name: str
    keys: str
    before: str = ""
    prepare: Prepare | None = None
    app: str = "main"


async def push_asking(pilot: Pilot[Any]) -> None:
    question = Question("web1", "passphrase", None, asyncio.get_running_loop().create_future())
    await pilot.app.push_screen(HostPromptScreen(lambda: question, question))


async def push_generators(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(GeneratorScreen(main(pilot.app).session))


async def push_board(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(EvaluationsScreen(main(pilot.app).session))


async def push_knobs(pilot: Pilot[Any]) -> None:
    found = Bottleneck(BottleneckKind.WORKERS, "web1", "150 busy, 0 idle (apache)", ("MaxRequestWorkers",))
    await pilot.app.push_screen(KnobsScreen([found], ["MaxRequestWorkers", "KeepAlive"]))


async def push_question(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(ConfirmScreen(Content("Try MaxRequestWorkers 400?"), "try it", "exclude it"))


async def push_search(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(AutopilotScreen(main(pilot.app).session, lambda: None))


async def push_trust(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(TrustScreen(Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"))))


async def type_value(pilot: Pilot[Any]) -> None:
    """Type a value for the first knob of the tuning panel."""
    await pilot.press("t")
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await pilot.press("3", "0")


async def open_tuning_panel(pilot: Pilot[Any]) -> None:
    await pilot.press("t")
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def open_profile_form(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(NewProfileScreen(None, "web1"))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def focus_second_field(pilot: Pilot[Any]) -> None:
    await open_profile_form(pilot)
    pilot.app.screen.query_one("#concurrency").focus()


async def open_empty_draft(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(FoundServersScreen(ProfileForm("http://web1/", 1, "1s", True, ()), ()))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def focus_file_field(pilot: Pilot[Any]) -> None:
    await open_empty_draft(pilot)
    pilot.app.screen.query_one("#file").focus()


async def focus_checklist(pilot: Pilot[Any]) -> None:
    await open_profile_form(pilot)
    pilot.app.screen.query_one("#hosts", Checklist).focus()


ROWS = (
    Row("CockpitBase", "f1 ctrl+p ctrl+z ctrl+q ctrl+c"),
    Row("CockpitBase", "f1 question_mark T ctrl+z ctrl+q ctrl+c", app="start"),
    Row("ViewKeys", "e i l A"),
    Row("ViewKeys", "o", before="i"),
    Row("ChoiceScreen", "escape l q", before="l"),
    Row("MainScreen", "T t v c r x L ctrl+u equals_sign up question_mark q"),
    Row("MainScreen", "b down escape", before="up"),
    Row("ViewKeys", "tab shift+tab p d D enter w a f slash s S z"),
    Row("ViewKeys", "pagedown G", before="enter"),
    Row("ViewKeys", "pageup g", before="enter G"),
    Row("TuningScreen", "escape up down tab shift+tab ctrl+g ctrl+y ctrl+r ctrl+u", prepare=open_tuning_panel),
    Row("TuningScreen", "ctrl+f ctrl+s", prepare=type_value),
    Row("CheckScreen", "escape q x", before="x"),
    Row("EvaluationsScreen", "escape q A", prepare=push_board),
    Row("KnobsScreen", "escape q", prepare=push_knobs),
    Row("Checklist", "space enter", prepare=push_knobs),
    Row("ConfirmScreen", "y enter escape q", prepare=push_question),
    Row("AutopilotScreen", "P K F", prepare=push_search),
    Row("GeneratorScreen", "escape q L", prepare=push_generators),
    Row("LoadForm", "escape enter up down", before="equals_sign"),
    Row("CheckBox", "space", before="equals_sign down down down down"),
    Row("ConfirmScreen", "enter escape", before="ctrl+u"),
    Row("CompareScreen", "left b escape c q enter", before="c"),
    Row("CompareScreen", "right", before="c left"),
    Row("HelpScreen", "escape question_mark q enter", before="question_mark"),
    Row("TextDialog", "escape", before="m"),
    Row("HostPromptScreen", "escape", prepare=push_asking),
    Row("TrustScreen", "y escape q", prepare=push_trust),
    Row("StartScreen", "slash n u j h E delete tab R question_mark q", app="start"),
    Row("DoctorScreen", "escape q h enter", before="end h", app="start"),
    Row("StartScreen", "escape", before="slash c h u r n enter", app="start"),
    Row("NewProfileScreen", "enter", prepare=open_profile_form, app="start"),
    Row("_Page", "escape down", prepare=open_profile_form, app="start"),
    Row("_Page", "up", prepare=focus_second_field, app="start"),
    Row("FoundServersScreen", "enter", prepare=focus_file_field, app="start"),
    Row("Checklist", "space enter", prepare=focus_checklist, app="start"),
)
# Keys that a screen handles without a binding, so that keys in quick succession keep their order.
UNBOUND = (
    Row("ViewKeys", "left home pageup left_square_bracket", before="e"),
    Row("ViewKeys", "right end pagedown right_square_bracket", before="e home"),
)


def classes_with_bindings() -> Iterator[type]:
    """Yield the classes that define bindings."""
    for module in pkgutil.walk_packages(cockpit.tui.__path__, "cockpit.tui."):
        for cls in vars(importlib.import_module(module.name)).values():
            if isinstance(cls, type) and cls.__module__ == module.name and "BINDINGS" in vars(cls):
                yield cls


def bound_keys() -> dict[str, set[str]]:
    """Return the keys that each class of `cockpit.tui` binds."""
    found: dict[str, set[str]] = {}
    for cls in classes_with_bindings():
        for binding in vars(cls)["BINDINGS"]:
            assert isinstance(binding, Binding), f"{cls.__name__}: use Binding objects"
            assert binding.description, f"{cls.__name__} {binding.key}: help and palette need a description"
            found.setdefault(cls.__name__, set()).update(key.strip() for key in binding.key.split(","))
    return found


# Widgets that repeat bindings of their screen.
REPEATED = {"ValueInput", "ReadOnlyValue"}
# Bindings that do not change the screen; test_screen_diff tests that ctrl+l redraws it.
INVISIBLE = {"CockpitBase": {"ctrl+l"}}


def test_rows_cover_exactly_all_bindings() -> None:
    tested: dict[str, set[str]] = {}
    for row in ROWS:
        tested.setdefault(row.class_name, set()).update(row.keys.split())
    wanted = {name: keys - INVISIBLE.get(name, set()) for name, keys in bound_keys().items() if name not in REPEATED}
    assert wanted == tested


# Keys with several descriptions of one meaning: open and close a dialog, or the same action in another place.
SAME_MEANING = {
    "A": {"evaluations of a search", "close"},
    "L": {"load generators", "close"},
    "c": {"compare", "close"},
    "h": {"doctor: check a profile", "close"},
    "l": {"list of markers", "close"},
    "m": {"mark", "note"},
    "q": {"quit", "close", "no", "do not trust it"},
    "question_mark": {"help", "close"},
    "slash": {"filter", "filter by a text"},
    "space": {"start/stop", "pause/resume", "select or deselect", "on or off"},
    "x": {"check", "close"},
    "y": {"keep change", "trust it", "yes"},
}


def test_key_has_same_meaning_on_all_screens() -> None:
    texts: dict[str, set[str]] = {}
    for cls in classes_with_bindings():
        for binding in vars(cls)["BINDINGS"]:
            for key in binding.key.split(","):
                texts.setdefault(key.strip(), set()).add(binding.description)
    with Recording(RECORDING) as recording:
        live = LiveSource(Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/")), Clock())
        controls = (live.controls, ReplaySource(recording).controls)
        actions = [action for each in controls for action in each.actions]
    actions.append(Action("keep", "keep change", immediate(str)))
    for action in actions:
        texts.setdefault(action_key(action).key, set()).add(action.label)
    signs = {key: found for key, found in texts.items() if len(key) == 1 or key in SIGNS}
    assert {key: found for key, found in signs.items() if len(found) > 1} == SAME_MEANING


@asynccontextmanager
async def run_row_app(row: Row) -> AsyncIterator[tuple[Pilot[Any], Callable[[], object]]]:
    """Run the app of a row; yields the pilot and a function that returns the effects outside the screen."""
    if row.app == "start":
        async with running_start_app(start_choices()) as (pilot, _):
            yield pilot, lambda: None
    else:
        async with running_app(EVENTS) as (pilot, source):
            tuning = source.controls.tuning
            assert isinstance(tuning, ScriptedTuning)
            yield (
                pilot,
                lambda: (
                    list(source.controls.done),
                    list(tuning.calls),
                    tuning.confirmed.is_set(),
                    main(pilot.app).view,
                ),
            )


def visible_state(app: App[Any]) -> object:
    """Return everything that is visible, or whether the app has ended."""
    if not app.is_running:
        return "ended"
    lines = app.screen._compositor.render_strips()
    drawn = [[(segment.text, str(segment.style)) for segment in line] for line in lines]
    return drawn, [type(screen).__name__ for screen in app.screen_stack], len(app._notifications), id(app.focused)


def accepts_keys(app: App[Any]) -> bool:
    """Return whether another key can be pressed."""
    return app.is_running and not app._exit and not (isinstance(app, CockpitApp) and app.leaving)


@pytest.mark.parametrize("row", (*ROWS, *UNBOUND), ids=lambda row: f"{row.class_name}-{row.keys}")
async def test_every_binding_has_visible_effect(row: Row, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keys = row.keys.split()
    while keys:
        async with run_row_app(row) as (pilot, effects):
            while keys and accepts_keys(pilot.app):
                await press_and_check(row, keys.pop(0), pilot, effects)


async def press_and_check(row: Row, key: str, pilot: Pilot[Any], effects: Callable[[], object]) -> None:
    """Press the key in the situation of its row, and wait for a visible effect."""
    await reset_screen(pilot)
    if row.prepare:
        await row.prepare(pilot)
    for before in row.before.split():
        await press(pilot, before)
    await wait_idle(pilot)
    initial = visible_state(pilot.app), effects()
    await pilot.press(key)
    try:
        await until(pilot, lambda: (visible_state(pilot.app), effects()) != initial)
    except TimeoutError:
        pytest.fail(f"{row.class_name}: {key} has no visible effect")
    if pilot.app.is_running:
        await wait_idle(pilot)
