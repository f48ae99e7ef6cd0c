"""Every binding of every screen has a row here and a visible effect; texts name keys as the key table does."""

import ast
import asyncio
import functools
import importlib
import pkgutil
import re
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
from cockpit.document.model import Document, Paragraph
from cockpit.hosts.ssh.prompts import Question
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.check_history import CheckedTarget, PastCheck
from cockpit.tui.app import CockpitApp
from cockpit.tui.autopilot.evaluations import EvaluationsScreen
from cockpit.tui.autopilot.screen import AutopilotScreen, KnobsScreen
from cockpit.tui.dialogs.host_prompt import HostPromptScreen
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.generators import GeneratorScreen
from cockpit.tui.key_table import Shortcut, key_named
from cockpit.tui.runs.stacks_screen import StacksScreen
from cockpit.tui.start.history import HistoryReader, HistoryScreen
from cockpit.tui.start.new_profile import FoundServersScreen, NewProfileScreen, ProfileForm
from cockpit.tui.start.trust import TrustScreen
from tests.analysis.profiled import profiled_on_two_hosts
from tests.tui.driving import context_of, main, press, reset_screen, running_app, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.screens import rendered_text
from tests.tui.test_start import running_start_app, start_choices

EVENTS = Scenario(2).events(99)
FORM = ProfileForm("http://web1/", 1, "1s", True, ())
PROFILE = Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/"))
Prepare = Callable[[Pilot[Any]], Awaitable[None]]


class Row(NamedTuple):
    """`keys` are pressed one by one on the screen that `prepare` or the keys `before` open."""

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


def stacks_screen(app: App[Any]) -> Screen[Any]:
    return StacksScreen(lambda: context_of(profiled_on_two_hosts()))


def profile_screen(app: App[Any]) -> Screen[Any]:
    return NewProfileScreen(None, "web1")


MAIN = (
    Row("CockpitBase", "f1 ctrl+p colon ctrl+z ctrl+q ctrl+c"),
    Row("ViewKeys", "e i o l A H"),
    Row("ChoiceScreen", "escape", before="l"),
    Row("MainScreen", "T t v c r x L ctrl+u equals_sign up question_mark q"),
    Row("MainScreen", "b down escape", before="up"),
    Row("ViewKeys", "tab shift+tab p d D enter a f slash s S z"),
    Row("ViewKeys", "pagedown pageup G g", before="enter"),
    Row("TuningScreen", "up down tab shift+tab ctrl+g ctrl+y ctrl+r ctrl+u slash", before="t"),
    Row("TuningScreen", "escape", before="t"),
    Row("TuningScreen", "ctrl+s ctrl+f", before="t 3 0"),
    Row("CheckScreen", "escape", before="x"),
    Row("EvaluationsScreen", "escape", prepare=pushed(lambda app: EvaluationsScreen(main(app).session))),
    Row("KnobsScreen", "escape", prepare=pushed(knobs_screen)),
    Row("Checklist", "enter space", prepare=pushed(knobs_screen)),
    Row("ConfirmScreen", "y escape", prepare=pushed(lambda app: ConfirmScreen(Content("Try it?"), "yes", "no"))),
    Row("AutopilotScreen", "P K F", prepare=pushed(lambda app: AutopilotScreen(main(app).session, lambda: None))),
    Row("GeneratorScreen", "escape", prepare=pushed(lambda app: GeneratorScreen(main(app).session))),
    Row("LoadForm", "up down enter escape", before="equals_sign"),
    Row("Checklist", "space", before="equals_sign down down down down"),
    Row("CompareScreen", "left right b m escape", before="c"),
    Row("StacksScreen", "down right left enter o b up", prepare=pushed(stacks_screen)),
    Row("StacksScreen", "left_square_bracket right_square_bracket tab pagedown pageup", prepare=pushed(stacks_screen)),
    Row("StacksScreen", "slash escape w", prepare=pushed(stacks_screen)),
    Row("HelpScreen", "escape", before="question_mark"),
    Row("TextDialog", "escape", before="m"),
    Row("CommandLine", "tab", before="colon"),
    Row("HostPromptScreen", "escape", prepare=pushed(host_prompt)),
    Row("TrustScreen", "y escape", prepare=pushed(lambda app: TrustScreen(PROFILE))),
)


def history_screen(app: App[Any]) -> HistoryScreen:
    """Return a history that is longer than the screen."""
    newest = PastCheck(wall=0.0, plan=LoadPlan(url="http://web1/"), metrics={})
    lines = [Paragraph(f"line {number}") for number in range(200)]
    return HistoryScreen(HistoryReader(lambda: [CheckedTarget("shop", 1, newest)], lambda name: Document(name, lines)))


START = (
    Row("CockpitBase", "f1 question_mark ctrl+z T ctrl+q ctrl+c"),
    Row("StartScreen", "n u h X E delete tab R slash question_mark q j"),
    Row("HistoryScreen", "pagedown pageup escape", prepare=pushed(history_screen)),
    Row("DoctorScreen", "escape", before="end h"),
    Row("StartScreen", "escape", before="slash c h u r n enter"),
    Row("NewProfileScreen", "enter", prepare=pushed(profile_screen)),
    Row("_Page", "down up escape", prepare=pushed(profile_screen)),
    Row("FoundServersScreen", "enter", prepare=pushed(lambda app: FoundServersScreen(FORM, ()), "#file")),
    Row("Checklist", "enter space", prepare=pushed(profile_screen, "#hosts")),
)
# Keys that a screen handles without a binding, so that keys in quick succession keep their order.
UNBOUND = (Row("ViewKeys", "left left_square_bracket pageup right right_square_bracket pagedown", before="e"),)


def bound_keys() -> dict[str, set[str]]:
    """Return the first key of each binding of each class of `cockpit.tui`."""
    found: dict[str, set[str]] = {}
    for module in pkgutil.walk_packages(cockpit.tui.__path__, "cockpit.tui."):
        for name, cls in vars(importlib.import_module(module.name)).items():
            if isinstance(cls, type) and cls.__module__ == module.name:
                for binding in vars(cls).get("BINDINGS", ()):
                    assert isinstance(binding, Binding), f"{name}: use Binding objects"
                    assert binding.description, f"{name} {binding.key}: help and palette need a description"
                    found.setdefault(name, set()).add(binding.key.partition(",")[0])
    return found


# Widgets that repeat bindings of their screen.
REPEATED = {"ValueInput", "ReadOnlyValue"}
# Bindings that do not change the screen; tests/cli/test_terminal.py tests that ctrl+l redraws it.
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

        def effects() -> object:
            return list(source.controls.done), list(tuning.calls), tuning.confirmed.is_set(), main(pilot.app).view

        yield pilot, effects


def visible_state(app: App[Any]) -> object:
    """Return everything that is visible, or whether the app has ended."""
    if not app.is_running:
        return "ended"
    screens = [type(screen).__name__ for screen in app.screen_stack]
    return rendered_text(app), screens, len(app.notices()), id(app.focused)


def accepts_keys(app: App[Any]) -> bool:
    """Return whether another key can be pressed."""
    return app.is_running and not app._exit and not (isinstance(app, CockpitApp) and app.leaving)


@pytest.mark.parametrize(("kind", "rows"), [("main", (*MAIN, *UNBOUND)), ("start", START)], ids=["main", "start"])
async def test_bindings_have_effects(
    kind: str, rows: tuple[Row, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keys = [(row, key) for row in rows for key in row.keys.split()]
    while keys:
        async with run_app(kind) as (pilot, effects):
            ready: tuple[Row, list[Screen[Any]]] | None = None
            while keys and accepts_keys(pilot.app):
                row, key = keys.pop(0)
                if ready != (row, pilot.app.screen_stack):
                    await open_screens(row, pilot)
                    ready = row, [*pilot.app.screen_stack]
                await press_and_check(row, key, pilot, effects)


async def open_screens(row: Row, pilot: Pilot[Any]) -> None:
    await reset_screen(pilot)
    if row.prepare:
        await row.prepare(pilot)
    for before in row.before.split():
        await press(pilot, before)


async def press_and_check(row: Row, key: str, pilot: Pilot[Any], effects: Callable[[], object]) -> None:
    """Press the key without earlier notices, and wait for a visible effect."""
    pilot.app.forget_notices(pilot.app.notices())
    await wait_idle(pilot)
    initial = visible_state(pilot.app), effects()
    await pilot.press(key)
    try:
        await until(pilot, lambda: (visible_state(pilot.app), effects()) != initial)
    except TimeoutError:
        pytest.fail(f"{row.class_name}: {key} has no visible effect")
    if pilot.app.is_running:
        await wait_idle(pilot)


ROOT = Path(__file__).parents[2]
KEYS = {key.key for scope in Shortcut.__subclasses__() for key in scope} | {"enter"}
# Phrases that are no keys: signs on charts and in columns.
SIGNS = ("?: no data yet", "+ and -: spawned", "> and <: the cell", "requests (x)")


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    """List the syntax of the screen's modules, docstrings aside, each node with its module."""
    found = []
    for path in sorted(Path(cockpit.tui.__path__[0]).rglob("*.py")):
        every = list(ast.walk(ast.parse(path.read_text())))
        statements = {node.value for node in every if isinstance(node, ast.Expr)}
        found += [(path.name, node) for node in every if node not in statements]
    return found


def test_no_text_names_a_key_by_itself() -> None:
    keys = {str(key) for scope in Shortcut.__subclasses__() for key in scope} - {"Enter"}
    named = "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True))
    pattern = re.compile(rf"(?:^|[\s(·])(?:{named})(?=: [a-z]|\)| shows)|[Pp]ress (?:{named})\b")
    found = []
    for module, node in nodes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = " ".join(node.value.split())
            for sign in SIGNS:
                text = text.replace(sign, "")
            found += [(module, text[match.start() : match.end() + 20]) for match in pattern.finditer(text)]
    assert found == []


def test_no_binding_or_handler_names_a_key_by_itself() -> None:
    found = []
    for module, node in nodes():
        named = node.args[:1] if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Binding" else []
        if isinstance(node, ast.Compare) and getattr(node.left, "attr", "") == "key":
            named = node.comparators
        keys = {each.value for part in named for each in ast.walk(part) if isinstance(each, ast.Constant)}
        found += [(module, key) for key in keys & KEYS - {"enter"}]
    assert found == []


@pytest.mark.parametrize("topic", ["screen", "hosts", "tuning"])
def test_topics_name_existing_keys(topic: str) -> None:
    text = (ROOT / "cockpit" / "cli" / "topics" / f"{topic}.md").read_text()
    rows = re.findall(r"^\| ((?:`[^` ]+` ?)+) \| ", text, re.MULTILINE)
    named = {key_named(key) for row in rows for key in re.findall(r"`([^`]+)`", row)}
    printed = {name for name in named if len(name) == 1 or name in ("space", "tab", "enter") or "+" in name}
    assert printed
    assert printed <= KEYS


def test_key_has_same_meaning_everywhere() -> None:
    for scope in Shortcut.__subclasses__():
        keys = [key.key for key in scope]
        assert len(keys) == len(set(keys)), scope.__name__
    meanings: dict[str, set[str]] = {}
    for scope in Shortcut.__subclasses__():
        for key in scope:
            if str(key).isascii() and (len(str(key)) == 1 or key.key == "space"):
                meanings.setdefault(str(key), set()).add(key.description or key.action)
    assert {key: found for key, found in meanings.items() if len(found) > 1} == SAME_MEANING


# Descriptions and actions of printed keys that have several: of one meaning, or of one action in several places.
SAME_MEANING = {
    "space": {"toggle", "select or deselect"},
    "m": {"mark", "method"},
    "y": {"keep", "yes"},
    "q": {"quit", "close"},
    "/": {"filter", "filter by a text", "highlight functions with a text"},
    "b": {"baseline", "difference to the baseline, on or off"},
    "[": {"previous", "to_marker", "previous segment"},
    "]": {"next", "to_marker", "next segment"},
}
