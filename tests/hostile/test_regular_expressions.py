"""No regular expression takes more than linear time, whatever a host sends: every one in the source is checked."""

from __future__ import annotations

import re

import pytest

from tests.hostile.patterns import Use, slow_string, uses

USES = sorted(uses(), key=lambda use: (use.where, use.method))


def test_all_patterns_of_the_source_are_found() -> None:
    names = {use.where for use in USES}
    assert "cockpit.hosts.status.squid._FIGURE" in names and len(names) > 50


@pytest.mark.parametrize("use", USES, ids=[f"{use.where}.{use.method}" for use in USES])
def test_a_regular_expression_takes_linear_time(use: Use) -> None:
    assert slow_string(use) == ""


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(-?\d+(?:\.\d+)?)\s*(%|[A-Za-z/ .]*)$", "match"),
        (r"(a+)+$", "match"),
        (r"\s+$", "search"),
        (r"x*y", "search"),
        (r"^(.*?//)?.*@", "search"),
    ],
)
def test_the_checker_finds_what_is_slow(pattern: str, method: str) -> None:
    assert slow_string(Use("here", re.compile(pattern), method))
