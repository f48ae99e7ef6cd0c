"""Names in the product: one meaning each, and none of the words that nobody would search for."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

PRODUCT = Path(__file__).parents[1] / "cockpit"
BANNED = {"arms", "born", "bury", "deck", "dial", "died", "dress", "lane", "lanes", "look", "looking", "rung", "said"}
BANNED |= {"sink", "shelf", "spring", "standing", "told", "worth", "resemblance", "deeds", "offers", "picks", "starved"}


def public_names(path: Path) -> list[tuple[str, bool]]:
    """Public classes and functions of a module and its classes, with whether they are classes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            found.append((node.name, isinstance(node, ast.ClassDef)))
    return found


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in sorted(PRODUCT.rglob("*.py")):
        for name, is_class in public_names(path):
            if is_class:
                places[name].append(str(path.relative_to(PRODUCT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_public_name_is_a_banned_word() -> None:
    found = set()
    for path in sorted(PRODUCT.rglob("*.py")):
        place = str(path.relative_to(PRODUCT))
        if path.stem in BANNED:
            found.add(place)
        found |= {
            f"{place} {name}"
            for name, _ in public_names(path)
            if re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() in BANNED
        }
    assert found == set()
