"""Every binding of every screen is pressed and must have a visible effect; a binding without a row is an error."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.app import App
from textual.binding import Binding
from textual.content import Content
from textual.pilot import Pilot
from textual.screen import Screen

import cockpit.tui
from cockpit.autopilot.diagnosis import Bottleneck, BottleneckKind
from cockpit.hosts.prompts import Question
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.tui.app import CockpitApp
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from cockpit.tui.autopilot.screen import AutopilotScreen, KnobsScreen
from cockpit.tui.dialogs.host_prompt import HostPromptScreen
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.generators import GeneratorScreen
from cockpit.tui.start.new_profile import FoundServersScreen, NewProfileScreen, ProfileForm
from cockpit.tui.start.trust import TrustScreen
from tests.tui.driving import main, press, reset_screen, running_app, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedTuning
from tests.tui.test_start import running_start_app, start_choices

EVENTS = Scenario(2).events(99)
FORM = ProfileForm("http://web1/", 1, "1s", True, ())
PROFILE = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"))
Prepare = Callable[[Pilot[Any]], Awaitable[None]]


class Row(NamedTuple):
    """`keys` are pressed one by one, each after a reset and `before`; `prepare` opens screens that no key opens."""

    class_name: str
    keys: str
    before: str = ""
    prepare: Prepare | None = None


def pushed(make: Callable[[App[Any]], Screen[Any]], focus: str = "") -> Prepare:
    """Return a function that opens a screen and focuses a widget of it."""

    async def prepare(pilot: Pilot[Any]) -> None:
        await pilot.app.push_screen(make(pilot.app))
        await wait_idle(pilot)
        if focus:
            pilot.app.screen.query_one(focus).focus()

    return prepare


def host_prompt(app: App[Any]) -> Screen[Any]:
    question = Question("web1", "passphrase", None, asyncio.get_running_loop().create_future())
    return HostPromptScreen(lambda: question, question)


def knobs_screen(app: App[Any]) -> Screen[Any]:
    found = Bottleneck(BottleneckKind.WORKERS, "web1", "150 busy, 0 idle (apache)", ("MaxRequestWorkers",))
    return KnobsScreen([found], ["MaxRequestWorkers", "KeepAlive"])


def profile_screen(app: App[Any]) -> Screen[Any]:
    return NewProfileScreen(None, "web1")


MAIN = (
    Row("CockpitBase", "f1 ctrl+p ctrl+z ctrl+q ctrl+c"),
    Row("ViewKeys", "e i l A"),
    Row("ViewKeys", "o", before="i"),
    Row("ChoiceScreen", "escape l q", before="l"),
    Row("MainScreen", "T t v c r x L ctrl+u equals_sign up question_mark q"),
    Row("MainScreen", "b down escape", before="up"),
    Row("ViewKeys", "tab shift+tab p d D enter w a f slash s S z"),
    Row("ViewKeys", "pagedown G", before="enter"),
    Row("ViewKeys", "pageup g", before="enter G"),
    Row("TuningScreen", "escape up down tab shift+tab ctrl+g ctrl+y ctrl+r ctrl+u", before="t"),
    Row("TuningScreen", "ctrl+f ctrl+s", before="t 3 0"),
    Row("CheckScreen", "escape q x", before="x"),
    Row("EvaluationsScreen", "escape q A", prepare=pushed(lambda app: EvaluationsScreen(main(app).session))),
    Row("KnobsScreen", "escape q", prepare=pushed(knobs_screen)),
    Row("Checklist", "space enter", prepare=pushed(knobs_screen)),
    Row(
        "ConfirmScreen", "y enter escape q", prepare=pushed(lambda app: ConfirmScreen(Content("Try it?"), "yes", "no"))
    ),
    Row("AutopilotScreen", "P K F", prepare=pushed(lambda app: AutopilotScreen(main(app).session, lambda: None))),
    Row("GeneratorScreen", "escape q L", prepare=pushed(lambda app: GeneratorScreen(main(app).session))),
    Row("LoadForm", "escape enter up down", before="equals_sign"),
    Row("CheckBox", "space", before="equals_sign down down down down"),
    Row("ConfirmScreen", "enter escape", before="ctrl+u"),
    Row("CompareScreen", "left b escape c q enter", before="c"),
    Row("CompareScreen", "right", before="c left"),
    Row("HelpScreen", "escape question_mark q enter", before="question_mark"),
    Row("TextDialog", "escape", before="m"),
    Row("HostPromptScreen", "escape", prepare=pushed(host_prompt)),
    Row("TrustScreen", "y escape q", prepare=pushed(lambda app: TrustScreen(PROFILE))),
)
START = (
    Row("CockpitBase", "f1 question_mark T ctrl+z ctrl+q ctrl+c"),
    Row("StartScreen", "slash n u j h E delete tab R question_mark q"),
    Row("DoctorScreen", "escape q h enter", before="end h"),
    Row("StartScreen", "escape", before="slash c h u r n enter"),
    Row("NewProfileScreen", "enter", prepare=pushed(profile_screen)),
    Row("_Page", "escape down", prepare=pushed(profile_screen)),
    Row("_Page", "up", prepare=pushed(profile_screen, "#concurrency")),
    Row("FoundServersScreen", "enter", prepare=pushed(lambda app: FoundServersScreen(FORM, ()), "#file")),
    Row("Checklist", "space enter", prepare=pushed(profile_screen, "#hosts")),
)
# Keys that a screen handles without a binding, so that keys in quick succession keep their order.
UNBOUND = (
    Row("ViewKeys", "left home pageup left_square_bracket", before="e"),
    Row("ViewKeys", "right end pagedown right_square_bracket", before="e home"),
)


def bound_keys() -> dict[str, set[str]]:
    """Return the keys that each class of `cockpit.tui` binds."""
    found: dict[str, set[str]] = {}
    for module in pkgutil.walk_packages(cockpit.tui.__path__, "cockpit.tui."):
        for name, cls in vars(importlib.import_module(module.name)).items():
            if isinstance(cls, type) and cls.__module__ == module.name:
                for binding in vars(cls).get("BINDINGS", ()):
                    assert isinstance(binding, Binding), f"{name}: use Binding objects"
                    assert binding.description, f"{name} {binding.key}: help and palette need a description"
                    found.setdefault(name, set()).update(key.strip() for key in binding.key.split(","))
    return found


# Widgets that repeat bindings of their screen.
REPEATED = {"ValueInput", "ReadOnlyValue"}
# Bindings that do not change the screen; test_screen_diff tests that ctrl+l redraws it.
INVISIBLE = {"CockpitBase": {"ctrl+l"}}


def test_rows_cover_exactly_all_bindings() -> None:
    tested: dict[str, set[str]] = {}
    for row in (*MAIN, *START):
        tested.setdefault(row.class_name, set()).update(row.keys.split())
    wanted = {name: keys - INVISIBLE.get(name, set()) for name, keys in bound_keys().items() if name not in REPEATED}
    assert wanted == tested


@asynccontextmanager
async def run_app(kind: str) -> AsyncIterator[tuple[Pilot[Any], Callable[[], object]]]:
    """Run an app; yields the pilot and a function that returns the effects outside the screen."""
    if kind == "start":
        async with running_start_app(start_choices()) as (pilot, _):
            yield pilot, lambda: None
        return
    async with running_app(EVENTS) as (pilot, source):
        tuning = source.controls.tuning
        assert isinstance(tuning, ScriptedTuning)

        def effects() -> object:
            return list(source.controls.done), list(tuning.calls), tuning.confirmed.is_set(), main(pilot.app).view

        yield pilot, effects


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


@pytest.mark.parametrize(
    ("kind", "rows"),
    [*(("main", (*MAIN, *UNBOUND)[part::4]) for part in range(4)), *(("start", START[part::2]) for part in range(2))],
)
async def test_every_binding_has_visible_effect(
    kind: str, rows: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keys = [(row, key) for row in rows for key in row.keys.split()]
    while keys:
        async with run_app(kind) as (pilot, effects):
            while keys and accepts_keys(pilot.app):
                await press_and_check(*keys.pop(0), pilot, effects)


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
