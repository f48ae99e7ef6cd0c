"""A key is changed in one place: bindings, footer, hints, help and texts follow the table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cockpit.tui
from cockpit.tui.key_table import Shortcut, key_named

ROOT = Path(__file__).parents[2]
KEYS = {key.key for scope in Shortcut.__subclasses__() for key in scope} | {"enter"}
# Phrases that are no keys: signs on charts and in columns.
SIGNS = ("?: no data yet", "+ and -: spawned", "> and <: the cell", "requests (x)")


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Yield the syntax of the screen's modules, docstrings aside, each node with its module."""
    for path in sorted(Path(cockpit.tui.__path__[0]).rglob("*.py")):
        tree = ast.parse(path.read_text())
        statements = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        yield from ((path.name, node) for node in ast.walk(tree) if node not in statements)


def test_no_text_names_a_key_by_itself() -> None:
    keys = {str(key) for scope in Shortcut.__subclasses__() for key in scope} - {"Enter"}
    named = "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True))
    pattern = re.compile(rf"(?:^|[\s(·])(?:{named})(?=: [a-z]|\)| shows)|[Pp]ress (?:{named})\b")
    found = []
    for module, node in nodes():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
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


def test_actions_of_one_place_have_different_keys() -> None:
    for scope in Shortcut.__subclasses__():
        keys = [key.key for key in scope]
        assert len(keys) == len(set(keys)), scope.__name__


# Descriptions and actions of printed keys that have several: of one meaning, or of one action in several places.
SAME_MEANING = {
    "space": {"toggle", "select or deselect"},
    "y": {"keep", "yes"},
    "q": {"quit", "close"},
    "/": {"filter", "filter by a text"},
    "[": {"previous", "to_marker"},
    "]": {"next", "to_marker"},
}


def test_key_has_same_meaning_everywhere() -> None:
    meanings: dict[str, set[str]] = {}
    for scope in Shortcut.__subclasses__():
        for key in scope:
            if str(key).isascii() and (len(str(key)) == 1 or key.key == "space"):
                meanings.setdefault(str(key), set()).add(key.description or key.action)
    assert {key: found for key, found in meanings.items() if len(found) > 1} == SAME_MEANING
