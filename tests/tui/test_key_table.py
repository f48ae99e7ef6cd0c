"""A key is changed in one file: bindings, footer, hints, help and texts follow the table."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cockpit.tui
from cockpit.tui.key_table import Shortcut, key_named

ROOT = Path(__file__).parents[2]
# Run in a process with a changed table: presses the new keys, prints all that names them.
TRIAL = """
import asyncio
from cockpit.tui.dialogs.help import HelpScreen, help_entries
from cockpit.tui.footer import Footer
from cockpit.tui.hints import _HINTS, change_hint
from cockpit.tui.palette import commands_of
from cockpit.tui.runs.compare import CompareScreen
from cockpit.tui.runs.table import Runs
from cockpit.tui.tips import _PANES
from tests.tui.driving import context_of, main, press, running_app, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.test_verdicts import changed_under_load


async def trial():
    async with running_app() as (pilot, source):
        print("EMPTY", text_of(main(pilot.app).query_one(Runs)))
    async with running_app(Scenario().events(40)) as (pilot, source):
        print("FOOTER", text_of(main(pilot.app).query_one(Footer)))
        print("HELP", help_entries(source.controls.actions))
        print("PALETTE", [command[:2] for command in commands_of(pilot.app, pilot.app.screen)])
        await press(pilot, "space", "c")
        assert source.controls.done == [] and len(pilot.app.screen_stack) == 1, "the old keys do nothing"
        await press(pilot, "Y")
        await until(pilot, lambda: source.controls.done == [("toggle", "")])
        await press(pilot, "Q")
        await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen))
        await press(pilot, "Q")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
    context = context_of(changed_under_load())
    print("HINTS", change_hint(context), [hint.words for hint in _HINTS])
    print("TIPS", _PANES)


asyncio.run(trial())
"""


def test_rebound_keys_are_followed_everywhere(tmp_path: Path) -> None:
    """Rebind a key of the session and one of the screen in the table alone."""
    shutil.copytree(ROOT / "cockpit", tmp_path / "cockpit", ignore=shutil.ignore_patterns("__pycache__"))
    table = tmp_path / "cockpit" / "tui" / "key_table.py"
    text = table.read_text()
    for old, new in (('"space", "toggle"', '"Y", "toggle"'), ('"c", "compare"', '"Q", "compare"')):
        assert text.count(old) == 1
        text = text.replace(old, new)
    table.write_text(text)
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    found = subprocess.run(
        [sys.executable, "-c", TRIAL],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    shown = found.stdout
    for text in (
        *("Press Y to start", "Y start/stop", "Q compare", "('Y', 'start/stop')", "('Q', 'compare the selected"),
        *("('compare', 'Q   ", ". Q: all metrics", "'Y: start the load, and stop it'", "Q shows its verdict"),
    ):
        assert text in shown
    assert re.findall(r"space(?!: choose)|\bc: ", shown) == [], "the old keys are not named"


# Phrases that are no keys: signs on charts and in columns.
SIGNS = ("?: no data yet", "+ and -: spawned", "> and <: the cell", "requests (x)")


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of the screen's modules, docstrings aside, each with its module."""
    for path in sorted(Path(cockpit.tui.__path__[0]).rglob("*.py")):
        tree = ast.parse(path.read_text())
        statements = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in statements:
                yield path.name, node.value


def test_no_text_names_a_key_by_itself() -> None:
    keys = {str(key) for scope in Shortcut.__subclasses__() for key in scope} - {"Enter"}
    named = "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True))
    pattern = re.compile(rf"(?:^|[\s(·])(?:{named})(?=: [a-z]|\))")
    found = []
    for module, text in texts():
        for sign in SIGNS:
            text = text.replace(sign, "")
        found += [(module, text[match.start() : match.end() + 20]) for match in pattern.finditer(text)]
    assert found == []


def bound() -> set[str]:
    return {key.key for scope in Shortcut.__subclasses__() for key in scope} | {"enter"}


@pytest.mark.parametrize("topic", ["screen", "hosts", "tuning"])
def test_topics_name_existing_keys(topic: str) -> None:
    text = (ROOT / "cockpit" / "cli" / "topics" / f"{topic}.md").read_text()
    rows = re.findall(r"^\| ((?:`[^` ]+` ?)+) \| ", text, re.MULTILINE)
    named = {key_named(key) for row in rows for key in re.findall(r"`([^`]+)`", row)}
    printed = {name for name in named if len(name) == 1 or name in ("space", "tab", "enter") or "+" in name}
    assert printed
    assert printed <= bound()


def test_actions_of_one_place_have_different_keys() -> None:
    for scope in Shortcut.__subclasses__():
        keys = [key.key for key in scope]
        assert len(keys) == len(set(keys)), scope.__name__
