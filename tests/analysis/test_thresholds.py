"""Parsing and checking of absolute thresholds."""

import re

import pytest

from cockpit.analysis.thresholds import check_thresholds, parse_threshold
from cockpit.model.counts import Counts
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import RunResult

RESULT = RunResult(
    run=1,
    plan=LoadPlan(url="http://a/", requests=1000),
    counts=Counts(
        sent=1000,
        completed=998,
        statuses={200: 990, 503: 8},
        refused=8,
        errors={"reset": 2},
        service=Histogram.of([n * 1_000_000 for n in range(1, 101)]),
    ),
    seconds=2.0,
    hosts={},
    saturated=0.0,
    stalled=0.0,
    partial="",
    reason="completed",
    detail="",
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("p99 < 100ms", True),
        ("p99 < 99ms", False),
        ("p99.9<=100.1ms", True),
        ("connect.max >= 0", False),
        ("failed.share <= 1%", True),
        ("failed.share < 1", False),
        ("generator.cpu < 5%", True),
        ("service.p50 < 51ms", True),
        ("max == 100ms", True),
        ("errors == 0", False),
        ("errors == 2", True),
        ("failed == 10", True),
        ("rate > 400", True),
        ("rate >= 0.5k", False),
        ("duration < 3s", True),
        ("connect.p99 < 1s", False),
        ("web1.cpu.idle > 20", False),
    ],
)
def test_thresholds(text: str, holds: bool) -> None:
    (outcome,) = check_thresholds([parse_threshold(text)], RESULT)
    assert outcome.holds is holds
    assert (outcome.found is None) == (text.startswith(("connect", "web1")))


@pytest.mark.parametrize("text", ["", "p99", "p99 < ", "p99 < fast", "speed > 3", "rate > 3ms", "web1.cpu.heat > 3"])
def test_invalid_thresholds_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_threshold(text)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("p99 < 50", "a time needs a unit; write 50ms or 50s"),
        ("duration < 1.5", "write 1.5ms or 1.5s"),
        ("p99 < 50.", "a time needs a unit"),
        ("failed < 1%", "write 'failed.share < 1%'"),
        ("rate > 90%", "rate is not a percentage; write a number"),
    ],
)
def test_ambiguous_value_is_refused_with_suggestion(text: str, suggestion: str) -> None:
    with pytest.raises(UsageError, match=re.escape(suggestion)):
        parse_threshold(text)
