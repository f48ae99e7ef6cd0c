"""Names in the product: unique public classes and aliases, no banned words, also as fields, JSON keys and locals."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PRODUCT = Path(__file__).parents[1] / "cockpit"
BANNED = {"arms", "born", "bury", "deck", "dial", "died", "dress", "lane", "lanes", "look", "looking", "rung", "said"}
BANNED |= {"breaker", "carrier", "crew", "dealt", "fate", "harden", "held", "hunch", "kept"}
BANNED |= {"namesakes", "offered", "patience", "proven", "reap", "rouse", "sought"}
BANNED |= {"spoiled", "surveyed", "taken", "unanswered", "witness"}
BANNED |= {"sink", "shelf", "spring", "standing", "told", "worth", "resemblance", "deeds", "offers", "picks", "starved"}
# Words that say nothing about a function, a method or a local.
VAGUE = {"take", "spell", "do", "by", "wanted", "other", "named", "beside", "packed", "ends", "together", "share_out"}
VAGUE |= {"in_sight", "try_out", "make_and_undo", "prove"}
VAGUE_LOCALS = {"found", "one"}
# Packages that still have vague names, and doubled names of classes and aliases. Remove a package once it has none.
RENAMED_LATER = {
    *("analysis", "autopilot", "cli", "cluster", "demo", "hosts", "model", "recording", "report", "session", "stream"),
    *("study", "tui", "tuning"),
}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each module with the name of its package."""
    for path in sorted(PRODUCT.rglob("*.py")):
        yield path.relative_to(PRODUCT).parts[0].removesuffix(".py"), path


def alias(node: ast.stmt) -> str:
    """Return the public name of a type alias (`Span = tuple[int, int]`); "" for another statement."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    name = target.id if isinstance(target, ast.Name) else ""
    return name if re.fullmatch(r"[A-Z][A-Za-z]*[a-z][A-Za-z]*", name) else ""


def types(path: Path) -> set[str]:
    """Return the public classes and type aliases of a module."""
    classes = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}
    return {name for name in (*classes, *map(alias, tree(path).body)) if name and not name.startswith("_")}


def functions(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def fields(path: Path) -> Iterator[str]:
    """Yield the fields of the classes of a module, with their names in JSON."""
    for owner in (node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
                call = node.value if isinstance(node.value, ast.Call) else None
                for keyword in call.keywords if call else ():
                    if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                        yield str(keyword.value.value)


def variables(path: Path) -> Iterator[str]:
    """Yield the locals and parameters of a module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_names_of_public_classes_and_aliases_are_unique() -> None:
    places = defaultdict(list)
    for package, path in modules():
        for name in types(path):
            places[name].append((package, str(path.relative_to(PRODUCT))))
    doubled = {name: found for name, found in places.items() if len(found) > 1}
    assert {
        name: found for name, found in doubled.items() if any(package not in RENAMED_LATER for package, _ in found)
    } == {}


def test_public_names_are_not_banned_words() -> None:
    banned = set()
    for package, path in modules():
        names = {*types(path), *(name for name in functions(path) if not name.startswith("_")), path.stem}
        names |= set() if package in RENAMED_LATER else set(fields(path))
        banned |= {
            f"{path.relative_to(PRODUCT)} {name}"
            for name in names
            if re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() in BANNED
        }
    assert banned == set()


def test_functions_fields_and_locals_have_names_of_their_own() -> None:
    vague = {
        f"{path.relative_to(PRODUCT)} {name}"
        for package, path in modules()
        if package not in RENAMED_LATER
        for words, names in (
            (VAGUE, (name.strip("_") for name in functions(path))),
            (VAGUE | VAGUE_LOCALS, fields(path)),
            (VAGUE_LOCALS, variables(path)),
        )
        for name in names
        if name in words
    }
    assert vague == set()


def test_packages_to_be_renamed_exist() -> None:
    assert {package for package, _ in modules()} >= RENAMED_LATER


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
