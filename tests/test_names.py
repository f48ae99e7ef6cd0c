"""Names in the product: unique public classes and aliases, no banned words, also as fields, JSON keys and locals."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PRODUCT = Path(__file__).parents[1] / "cockpit"
MODULES = sorted(PRODUCT.rglob("*.py"))
BANNED = {"arms", "born", "bury", "deck", "dial", "died", "dress", "lane", "lanes", "look", "looking", "rung", "said"}
BANNED |= {"breaker", "carrier", "crew", "dealt", "fate", "harden", "held", "hunch", "kept"}
BANNED |= {"namesakes", "offered", "patience", "proven", "reap", "rouse", "sought"}
BANNED |= {"spoiled", "surveyed", "taken", "unanswered", "witness"}
BANNED |= {"sink", "shelf", "spring", "standing", "told", "worth", "resemblance", "deeds", "offers", "picks", "starved"}
# Words that say nothing about a function, a method or a local.
VAGUE = {"take", "spell", "do", "by", "wanted", "other", "named", "beside", "packed", "ends", "together", "share_out"}
VAGUE |= {"in_sight", "try_out", "make_and_undo", "prove"}
VAGUE_LOCALS = {"found", "one"}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all syntax nodes of a module, after the module itself."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def alias(node: ast.stmt) -> str:
    """Return the public name of a type alias (`Span = tuple[int, int]`); "" for another statement."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    name = target.id if isinstance(target, ast.Name) else ""
    return name if re.fullmatch(r"[A-Z][A-Za-z]*[a-z][A-Za-z]*", name) else ""


def types(path: Path) -> set[str]:
    """Return the public classes and type aliases of a module."""
    module = nodes(path)[0]
    assert isinstance(module, ast.Module)
    classes = {node.name for node in nodes(path) if isinstance(node, ast.ClassDef)}
    return {name for name in (*classes, *map(alias, module.body)) if name and not name.startswith("_")}


def functions(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def fields(path: Path) -> Iterator[str]:
    """Yield the fields of the classes of a module, with their names in JSON."""
    for owner in (node for node in nodes(path) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id
                call = node.value if isinstance(node.value, ast.Call) else None
                for keyword in call.keywords if call else ():
                    if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                        yield str(keyword.value.value)


def variables(path: Path) -> Iterator[str]:
    """Yield the locals and parameters of a module."""
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_names_of_public_classes_and_aliases_are_unique() -> None:
    places = defaultdict(list)
    for path in MODULES:
        for name in types(path):
            places[name].append(str(path.relative_to(PRODUCT)))
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_public_names_are_not_banned_words() -> None:
    banned = set()
    for path in MODULES:
        names = {*types(path), *(name for name in functions(path) if not name.startswith("_")), path.stem}
        names |= set(fields(path))
        banned |= {
            f"{path.relative_to(PRODUCT)} {name}"
            for name in names
            if re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() in BANNED
        }
    assert banned == set()


def test_functions_fields_and_locals_have_names_of_their_own() -> None:
    vague = {
        f"{path.relative_to(PRODUCT)} {name}"
        for path in MODULES
        for words, names in (
            (VAGUE, (name.strip("_") for name in functions(path))),
            # CPU of other programs is `other`.
            ((VAGUE | VAGUE_LOCALS) - {"other"}, fields(path)),
            (VAGUE_LOCALS, variables(path)),
        )
        for name in names
        if name in words
    }
    assert vague == set()


def test_fold_contains_no_text() -> None:
    """Words for markers, labels and losses are in analysis/words."""
    texts = set()
    for path in sorted((PRODUCT / "model" / "fold").glob("*.py")):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        descriptions = {
            id(node.body[0].value)
            for node in nodes(path)
            if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)
        }
        constants = (node for node in nodes(path) if isinstance(node, ast.Constant) and id(node) not in descriptions)
        texts |= {node.value for node in constants if isinstance(node.value, str) and node.value.count(" ") > 1}
    assert texts == set()
