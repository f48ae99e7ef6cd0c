"""Every binding of every screen, pressed: something that can be seen comes of it. One without a row is an error."""

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
from textual.pilot import Pilot
from textual.widgets import Input

import cockpit.tui
from cockpit.autopilot.diagnosis import FoundLimit, Limit
from cockpit.hosts.prompts import Question
from cockpit.model.clock import Clock
from cockpit.model.load import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.session.controls import Action, immediate
from cockpit.session.live import LiveSource
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.autopilot.board import BoardScreen
from cockpit.tui.autopilot.screen import ApproveScreen, AutopilotScreen, EndScreen, KnobsScreen
from cockpit.tui.dialogs.asking import AskingScreen
from cockpit.tui.generators import GeneratorScreen
from cockpit.tui.key_names import action_key
from cockpit.tui.start.new_profile import Checklist, FoundScreen, NewProfileScreen, Wanted
from cockpit.tui.start.profile_files import DeleteScreen
from cockpit.tui.start.trust import TrustScreen
from tests.tui.driving import at_rest, driven, first_screen, main, press, until
from tests.tui.scenario import Scenario
from tests.tui.scripted import ScriptedTuning
from tests.tui.test_start import offers, started

EVENTS = Scenario(2).events(99)
RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"
# Keys with a name that are one printed sign.
SIGNS = {"space", "plus", "minus", "comma", "full_stop", "colon", "slash", "question_mark", "equals_sign"} | {
    *("left_square_bracket", "right_square_bracket", "greater_than_sign", "less_than_sign")
}
Prepare = Callable[[Pilot[Any]], Awaitable[None]]


class Row(NamedTuple):
    """`keys` are pressed one by one, each from the first screen, after `before`; `prepare` opens what keys cannot."""

    of: str
    keys: str
    before: str = ""
    prepare: Prepare | None = None
    world: str = "main"


async def push_asking(pilot: Pilot[Any]) -> None:
    question = Question("web1", "passphrase", None, asyncio.get_running_loop().create_future())
    await pilot.app.push_screen(AskingScreen(lambda: question, question))


async def push_machines(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(GeneratorScreen(main(pilot.app).session))


async def push_board(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(BoardScreen(main(pilot.app).session))


async def push_knobs(pilot: Pilot[Any]) -> None:
    found = FoundLimit(Limit.WORKERS, "web1", "150 busy, 0 idle (apache)", ("MaxRequestWorkers",))
    await pilot.app.push_screen(KnobsScreen([found], ["MaxRequestWorkers", "KeepAlive"]))


async def push_approval(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(ApproveScreen("Try MaxRequestWorkers 400?"))


async def push_claim(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(EndScreen("better: MaxRequestWorkers 400", question=True))


async def push_search(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(AutopilotScreen(main(pilot.app).session, lambda: None))


async def push_trust(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(TrustScreen(Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"))))


async def push_delete(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(DeleteScreen(Path("x.toml")))


async def type_a_value(pilot: Pilot[Any]) -> None:
    """Into the first knob of the tuning panel."""
    await pilot.press("t")
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))
    await pilot.press("3", "0")


async def tune(pilot: Pilot[Any]) -> None:
    await pilot.press("t")
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def ask_for_a_profile(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(NewProfileScreen(None, "web1"))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def second_field(pilot: Pilot[Any]) -> None:
    await ask_for_a_profile(pilot)
    pilot.app.screen.query_one("#concurrency").focus()


async def find_nothing(pilot: Pilot[Any]) -> None:
    await pilot.app.push_screen(FoundScreen(Wanted("http://web1/", 1, "1s", True, ()), ()))
    await until(pilot, lambda: isinstance(pilot.app.focused, Input))


async def file_field(pilot: Pilot[Any]) -> None:
    await find_nothing(pilot)
    pilot.app.screen.query_one("#file").focus()


async def pick(pilot: Pilot[Any]) -> None:
    await ask_for_a_profile(pilot)
    pilot.app.screen.query_one("#hosts", Checklist).focus()


ROWS = (
    Row("CockpitBase", "f1 ctrl+z ctrl+q ctrl+c"),
    Row("CockpitBase", "f1 question_mark T ctrl+z ctrl+q ctrl+c", world="start"),
    Row("ViewKeys", "e i l A"),
    Row("ViewKeys", "o", before="i"),
    Row("PickScreen", "escape l q", before="l"),
    Row("MainScreen", "T t v c r x L ctrl+u equals_sign up question_mark q"),
    Row("MainScreen", "b down escape", before="up"),
    Row("ViewKeys", "tab shift+tab p d D enter w a f slash s S z"),
    Row("ViewKeys", "pagedown G", before="enter"),
    Row("ViewKeys", "pageup g", before="enter G"),
    Row("TuningScreen", "escape up down tab shift+tab ctrl+g ctrl+y ctrl+r ctrl+u", prepare=tune),
    Row("TuningScreen", "ctrl+f ctrl+s", prepare=type_a_value),
    Row("CheckScreen", "escape q x", before="x"),
    Row("BoardScreen", "escape q A", prepare=push_board),
    Row("KnobsScreen", "space enter escape q", prepare=push_knobs),
    Row("ApproveScreen", "enter escape q", prepare=push_approval),
    Row("EndScreen", "enter escape q", prepare=push_claim),
    Row("AutopilotScreen", "P K F", prepare=push_search),
    Row("GeneratorScreen", "escape q L", prepare=push_machines),
    Row("LoadForm", "escape enter up down", before="equals_sign"),
    Row("Toggle", "space", before="equals_sign down down down down"),
    Row("UndoScreen", "enter escape q", before="ctrl+u"),
    Row("CompareScreen", "left b escape c q enter", before="c"),
    Row("CompareScreen", "right", before="c left"),
    Row("HelpScreen", "escape question_mark q enter", before="question_mark"),
    Row("OneLine", "escape", before="m"),
    Row("AskingScreen", "escape", prepare=push_asking),
    Row("TrustScreen", "y escape q", prepare=push_trust),
    Row("StartScreen", "slash n u j h E delete question_mark q", world="start"),
    Row("DeleteScreen", "y escape q", prepare=push_delete, world="start"),
    Row("DoctorScreen", "escape q h enter", before="h", world="start"),
    Row("StartScreen", "escape", before="slash c h u r n enter", world="start"),
    Row("NewProfileScreen", "enter", prepare=ask_for_a_profile, world="start"),
    Row("_Page", "escape down", prepare=ask_for_a_profile, world="start"),
    Row("_Page", "up", prepare=second_field, world="start"),
    Row("FoundScreen", "enter", prepare=file_field, world="start"),
    Row("Checklist", "space enter", prepare=pick, world="start"),
)
# Keys that a screen takes without a binding, so that those typed in a row keep their order.
UNBOUND = (
    Row("ViewKeys", "left home pageup left_square_bracket", before="e"),
    Row("ViewKeys", "right end pagedown right_square_bracket", before="e home"),
)


def kinds() -> Iterator[type]:
    """The classes with bindings of their own."""
    for module in pkgutil.walk_packages(cockpit.tui.__path__, "cockpit.tui."):
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and kind.__module__ == module.name and "BINDINGS" in vars(kind):
                yield kind


def bound() -> dict[str, set[str]]:
    """The keys that each class of the screen's room binds by itself."""
    found: dict[str, set[str]] = {}
    for kind in kinds():
        for binding in vars(kind)["BINDINGS"]:
            assert isinstance(binding, Binding), f"{kind.__name__}: bindings are written out"
            assert binding.description, f"{kind.__name__} {binding.key}: help and palette need words"
            found.setdefault(kind.__name__, set()).update(key.strip() for key in binding.key.split(","))
    return found


# What only says again what the screen around it does with these keys.
REPEATED = {"Field", "Value"}
# What leaves the screen as it is; that it is sent anew is seen in test_updates.
UNSEEN = {"CockpitBase": {"ctrl+l"}}


def test_every_binding_has_a_row_and_no_row_is_of_one_that_is_gone() -> None:
    tested: dict[str, set[str]] = {}
    for row in ROWS:
        tested.setdefault(row.of, set()).update(row.keys.split())
    wanted = {name: keys - UNSEEN.get(name, set()) for name, keys in bound().items() if name not in REPEATED}
    assert wanted == tested


# Letters and signs with several texts for one meaning: it opens and closes a dialog, or does the same in another place.
ONE_MEANING = {
    "A": {"evaluations of a search", "close"},
    "L": {"machines that load comes from", "close"},
    "c": {"compare", "close"},
    "h": {"doctor: check a profile", "close"},
    "l": {"list of markers", "close"},
    "m": {"mark", "note"},
    "q": {"quit", "close", "leave it active", "do not trust it", "keep it"},
    "question_mark": {"help", "close"},
    "slash": {"filter", "filter by a text"},
    "space": {"start/stop", "pause/resume", "select or deselect", "on or off"},
    "x": {"check", "close"},
    "y": {"keep change", "trust it", "delete it"},
}


def test_a_letter_has_one_meaning_on_all_screens() -> None:
    texts: dict[str, set[str]] = {}
    for kind in kinds():
        for binding in vars(kind)["BINDINGS"]:
            for key in binding.key.split(","):
                texts.setdefault(key.strip(), set()).add(binding.description)
    with Recording(RECORDING) as recording:
        live = LiveSource(Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/")), Clock())
        controls = (live.controls, ReplaySource(recording).controls)
        actions = [action for each in controls for action in each.actions]
    actions.append(Action("keep", "keep change", immediate(str)))
    for action in actions:
        texts.setdefault(action_key(action), set()).add(action.label)
    signs = {key: found for key, found in texts.items() if len(key) == 1 or key in SIGNS}
    assert {key: found for key, found in signs.items() if len(found) > 1} == ONE_MEANING


@asynccontextmanager
async def world(row: Row) -> AsyncIterator[tuple[Pilot[Any], Callable[[], object]]]:
    """The app that a row is about, with what has come to those whom its keys tell."""
    if row.world == "start":
        async with started(offers()) as (pilot, _):
            yield pilot, lambda: None
    else:
        async with driven(EVENTS) as (pilot, source):
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


def seen(app: App[Any]) -> object:
    """All that a person could see, and whether it goes on."""
    if not app.is_running:
        return "ended"
    lines = app.screen._compositor.render_strips()
    drawn = [[(segment.text, str(segment.style)) for segment in line] for line in lines]
    return drawn, [type(screen).__name__ for screen in app.screen_stack], len(app._notifications), id(app.focused)


def goes_on(app: App[Any]) -> bool:
    """Whether another key can be pressed."""
    return app.is_running and not app._exit and not (isinstance(app, CockpitApp) and app.leaving)


@pytest.mark.parametrize("row", (*ROWS, *UNBOUND), ids=lambda row: f"{row.of}-{row.keys}")
async def test_every_binding_does_something_that_can_be_seen(
    row: Row, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keys = row.keys.split()
    while keys:
        async with world(row) as (pilot, told):
            while keys and goes_on(pilot.app):
                await pressed(row, keys.pop(0), pilot, told)


async def pressed(row: Row, key: str, pilot: Pilot[Any], told: Callable[[], object]) -> None:
    """Press the key where its row says, and wait for something to be seen."""
    await first_screen(pilot)
    if row.prepare:
        await row.prepare(pilot)
    for before in row.before.split():
        await press(pilot, before)
    await at_rest(pilot)
    was = seen(pilot.app), told()
    await pilot.press(key)
    try:
        await until(pilot, lambda: (seen(pilot.app), told()) != was)
    except TimeoutError:
        pytest.fail(f"{row.of}: nothing can be seen of {key}")
    if pilot.app.is_running:
        await at_rest(pilot)
