"""All regular expressions in the source take linear time on any input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.hostile.patterns import PACKAGE, Use, slow_string, sources, uses

SOURCES = sources()


@pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(PACKAGE)) for path in SOURCES])
def test_regular_expressions_take_linear_time(path: Path) -> None:
    assert [f"{use.where}.{use.method}: {found}" for use in uses(path) if (found := slow_string(use))] == []


@pytest.mark.parametrize(("pattern", "method"), [(r"(a+)+$", "match"), (r"x*y", "search")])
def test_slow_patterns_are_detected(pattern: str, method: str) -> None:
    assert slow_string(Use("here", re.compile(pattern), method))
