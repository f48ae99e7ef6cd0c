"""All regular expressions in the source take linear time, measured on adversarial strings."""

import ast
import functools
import importlib
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cockpit
from tests.hostile.measuring import THOROUGH

PACKAGE = Path(cockpit.__file__).parent
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
# Repetitions that reveal exponential and quadratic time.
FEW, MANY = 22, 1000 if THOROUGH else 500
# CPU seconds. Quadratic time on MANY repetitions takes several times as long on any current machine.
MIN_SECONDS = 0.0005
# Time for four times the length: linear is 4, quadratic 16.
GROWTH = 8.0
# Repeated units besides the parts of matching strings, and ends; number of matching strings, and maximum number of
# their characters before the repetition.
_UNITS = (" ", "\t", "0", "a", ".", "/", "\n", "x=", "\x1b[") if THOROUGH else (" ", "0", "a", "/", "x=")
_ENDS = ("\x00", "!", "\n\x00") if THOROUGH else ("\x00", "\n\x00")
_EXAMPLES, _STARTS = (6, 12) if THOROUGH else (2, 4)


class Use(NamedTuple):
    """A pattern and the method that is called on it."""

    where: str
    pattern: re.Pattern[Any]
    method: str


def sources() -> dict[str, list[Path]]:
    """The files that import `re`, by package."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"^ *import re$", path.read_text(), re.MULTILINE):
            found.setdefault(path.relative_to(PACKAGE).parts[0], []).append(path)
    return found


def uses(path: Path) -> Iterator[Use]:
    """Yield the patterns that a file compiles or uses in place, with each method that it calls on them.

    Raises AssertionError for a pattern that is neither constant nor an attribute of its module.
    """
    tree = ast.parse(path.read_text())
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    called = {
        (node.func.value.id, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    }
    for attribute, value in vars(module).items():
        if isinstance(value, re.Pattern) and _assigned(tree, attribute):
            methods = [method for method in METHODS if (attribute, method) in called] or ["search"]
            yield from (Use(f"{name}.{attribute}", value, method) for method in methods)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_of_re(node.func):
            constant = node.args[0]
            assert isinstance(constant, ast.Constant), f"{path}:{node.lineno}: a pattern that is not constant"
            flags = next((ast.unparse(word.value) for word in node.keywords if word.arg == "flags"), "0")
            number = sum(getattr(re, flag.removeprefix("re.").strip()) for flag in flags.split("|") if flag != "0")
            yield Use(f"{name}:{node.lineno}", re.compile(constant.value, number), ast.unparse(node.func)[3:])


def _is_of_re(function: ast.expr) -> bool:
    named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    return named and function.attr in METHODS


def _assigned(tree: ast.Module, name: str) -> bool:
    targets = (node.targets for node in tree.body if isinstance(node, ast.Assign))
    return any(isinstance(target, ast.Name) and target.id == name for each in targets for target in each)


def slow_string(use: Use) -> str:
    """Describe a string on which the pattern takes more than linear time; empty if none is found."""
    for start, unit, end in attacks(use.pattern):
        if _seconds(use, start + unit * FEW + end) > 0.05:
            return f"{start!r} + {unit!r} * n + {end!r}: exponential"
        if _seconds(use, start + unit * MANY + end) < MIN_SECONDS:
            continue
        # Again and longer, to exclude noise of the machine.
        if all(_growth(use, start, unit, end, pairs) > GROWTH for pairs in (3, 15)):
            return f"{start!r} + {unit!r} * n + {end!r}: more than {GROWTH:g} times as long for 4 times the length"
    return ""


def _growth(use: Use, start: str, unit: str, end: str, pairs: int) -> float:
    """Median ratio of CPU times for four times the length, each pair measured one right after the other."""
    short, long = (start + unit * n + end for n in (MANY, 4 * MANY))
    return median(_seconds(use, long) / _seconds(use, short) for _ in range(pairs))


@functools.cache
def attacks(pattern: re.Pattern[Any]) -> Iterable[tuple[str, str, str]]:
    """(start, unit, end): the start of a string that matches, a unit to repeat, an end that does not match."""
    found = {
        (text[:at], unit, end)
        for text in examples(pattern)
        for at in range(min(len(text), _STARTS) + 1)
        for unit in {text[at : at + 1], text[at : at + 2], *_UNITS} - {""}
        for end in _ENDS
    }
    return sorted(found)


def examples(pattern: re.Pattern[Any], count: int = _EXAMPLES) -> list[str]:
    """Strings in which the pattern matches; deterministic."""
    found: list[str] = []

    @settings(
        max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None
    )
    @given(st.from_regex(pattern))
    def collect(text: str | bytes) -> None:
        found.append(text if isinstance(text, str) else text.decode("latin-1"))

    collect()
    return sorted(set(found), key=len)[:count]


def _seconds(use: Use, text: str) -> float:
    """CPU seconds of this thread, independent of other load."""
    subject = text if isinstance(use.pattern.pattern, str) else text.encode("latin-1", "replace")
    method = getattr(use.pattern, use.method)
    started = time.thread_time()
    if use.method in ("sub", "subn"):
        method("" if isinstance(subject, str) else b"", subject)
    elif use.method == "finditer":
        for _ in method(subject):
            pass
    else:
        method(subject)
    return time.thread_time() - started


PACKAGES = sources()


@pytest.mark.parametrize("package", PACKAGES)
def test_regular_expressions_take_linear_time(package: str) -> None:
    found = [use for path in PACKAGES[package] for use in uses(path)]
    assert [f"{use.where}.{use.method}: {slow}" for use in found if (slow := slow_string(use))] == []


@pytest.mark.parametrize(("pattern", "method"), [(r"(a+)+$", "match"), (r"x*y", "search")])
def test_slow_patterns_are_detected(pattern: str, method: str) -> None:
    assert slow_string(Use("here", re.compile(pattern), method))
