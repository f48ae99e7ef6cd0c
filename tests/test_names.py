"""Names in the product: unique public classes, no banned words."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

PRODUCT = Path(__file__).parents[1] / "cockpit"
BANNED = {"arms", "born", "bury", "deck", "dial", "died", "dress", "lane", "lanes", "look", "looking", "rung", "said"}
BANNED |= {"breaker", "carrier", "crew", "dealt", "fate", "harden", "held", "hunch", "kept"}
BANNED |= {"namesakes", "offered", "patience", "proven", "reap", "rouse", "sought"}
BANNED |= {"spoiled", "surveyed", "taken", "unanswered", "witness"}
BANNED |= {"sink", "shelf", "spring", "standing", "told", "worth", "resemblance", "deeds", "offers", "picks", "starved"}


@functools.cache
def public_names(path: Path) -> list[tuple[str, bool]]:
    """Return the public classes and functions of a module, each with whether it is a class."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            found.append((node.name, isinstance(node, ast.ClassDef)))
    return found


def test_public_class_names_are_unique() -> None:
    modules = defaultdict(list)
    for path in sorted(PRODUCT.rglob("*.py")):
        for name, is_class in public_names(path):
            if is_class:
                modules[name].append(str(path.relative_to(PRODUCT)))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def test_public_names_are_not_banned_words() -> None:
    found = set()
    for path in sorted(PRODUCT.rglob("*.py")):
        module = str(path.relative_to(PRODUCT))
        if path.stem in BANNED:
            found.add(module)
        found |= {
            f"{module} {name}"
            for name, _ in public_names(path)
            if re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() in BANNED
        }
    assert found == set()


def test_fold_contains_no_text() -> None:
    """Words for markers, labels and losses are in analysis/words."""
    texts = set()
    for path in sorted((PRODUCT / "model" / "fold").glob("*.py")):
        tree = ast.parse(path.read_text())
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        descriptions = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)
        }
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in descriptions)
        texts |= {node.value for node in constants if isinstance(node.value, str) and node.value.count(" ") > 1}
    assert texts == set()


def test_locals_say_what_they_hold() -> None:
    vague = {"found", "one", "two", "wanted", "named", "ends", "packed"}
    locals_ = set()
    for path in sorted(path for package in ("analysis", "recording") for path in (PRODUCT / package).rglob("*.py")):
        functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
        names = (name for function in functions for name in ast.walk(function))
        stored = (name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))
        locals_ |= {f"{path.name} {name}" for name in stored if name in vague}
    assert locals_ == set()
