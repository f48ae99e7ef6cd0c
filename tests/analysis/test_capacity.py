"""Capacity search: limits, levels, the order of levels, ends of a search, and accuracy on a simulated queue."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.capacity.levels import Level, is_hopeless, level_of, parse_limits, shares, suggested_limits
from cockpit.analysis.capacity.search import Aim, Step, at_least, capacity, next_step
from cockpit.model.capacity import CapacityOutcome
from cockpit.model.counts import Counts
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram
from tests.statistics.capacity import CASES, result_of, search

LIMITS = parse_limits("p99 < 50ms, errors < 1%")


def counts(slow: int = 0, failed: int = 0, **more: int) -> Counts:
    """Return 1000 requests; `slow` ones take 80 ms, the others 10 ms."""
    times = np.full(1000, 10_000_000)
    times[:slow] = 80_000_000
    errors = {"timeout": failed} if failed else {}
    return Counts(**{"sent": 1000, "completed": 1000 - failed, "errors": errors, **more}, response=Histogram.of(times))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("p99 < 50ms, errors < 0.1%", [("p99", 0.05), ("failed.share", 0.1)]),
        ("p99<50ms", [("p99", 0.05), ("failed.share", 1.0)]),
        ("failed == 0", [("failed", 0.0)]),
        (" web1.cpu.user < 80%, failed.share < 2%,", [("web1.cpu.user", 80.0), ("failed.share", 2.0)]),
    ],
)
def test_limits_are_thresholds_with_limit_of_failures(text: str, parsed: list[tuple[str, float]]) -> None:
    assert [(limit.name, limit.value) for limit in parse_limits(text)] == parsed


@pytest.mark.parametrize("text", ["", " , ", "rate > 5", "completed > 10", "p99 < 110% of baseline", "p99 50ms"])
def test_invalid_limits_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_limits(text)


def test_limits_are_suggested_from_profile() -> None:
    assert suggested_limits(("p95 < 1s", "rate >= 95% of baseline", "nonsense")) == "p95 < 1s"
    assert suggested_limits(()) == "p99 < 50ms, errors < 0.1%"
    assert shares(LIMITS) == pytest.approx((0.01, 0.01))


@pytest.mark.parametrize(
    ("found", "holds", "decisive", "exceeding"),
    [
        (counts(slow=5), True, "p99 < 50ms", 5),
        (counts(slow=20), False, "p99 < 50ms", 20),
        (counts(slow=5, failed=30), False, "errors < 1%", 30),
        (counts(completed=700), False, "stable queue", 30),
        (counts(queued=1), False, "stable queue", 30),
        (counts(completed=950), True, "p99 < 50ms", 0),
    ],
)
def test_level_counts_requests_beyond_decisive_limit(
    found: Counts, holds: bool, decisive: str, exceeding: float
) -> None:
    level = level_of(100.0, result_of(found, 100.0, 10.0), LIMITS)
    assert (level.holds, level.decisive, level.exceeding) == (holds, decisive, exceeding)


def test_level_is_hopeless_if_rest_cannot_save_it() -> None:
    assert not is_hopeless(level_of(100.0, result_of(counts(slow=60), 100.0, 2.0), LIMITS), 10.0)
    assert is_hopeless(level_of(100.0, result_of(counts(slow=90), 100.0, 2.0), LIMITS), 10.0)


def searched(level: Callable[[Step], Level], aim: Aim | None = None) -> tuple[CapacityOutcome, list[Level], float]:
    """Search with levels from a function; return outcome, levels and duration."""
    aim, levels, spent = aim or Aim(share=0.01), list[Level](), 0.0
    while isinstance(step := next_step(levels, aim, spent), Step):
        levels.append(level(step))
        spent += step.settle + step.seconds
    return step, levels, spent


def stepwise(limit: float, generator: float = math.inf) -> Callable[[Step], Level]:
    """Return levels of a server that fails entirely above `limit`, loaded by a generator that sends up to a rate."""

    def level(step: Step) -> Level:
        allowed = step.rate * step.seconds / 100
        holds = step.rate <= limit
        return Level(
            rate=step.rate,
            seconds=step.seconds,
            holds=holds,
            exceeding=0.0 if holds else 50 * allowed,
            allowed=allowed,
            saturated=step.rate > generator,
            limited=step.rate > generator,
        )

    return level


def test_step_is_found_by_bisection() -> None:
    outcome, levels, spent = searched(stepwise(1840.0))
    found = capacity(levels)
    assert outcome == "found" and found is not None and spent <= 180
    assert abs(found.rate - 1840) < 0.02 * 1840 and found.low <= 1840 <= found.high
    assert [level.rate for level in levels[:7]] == [50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0]


def test_load_does_not_exceed_generator() -> None:
    outcome, levels, _ = searched(stepwise(1e9, generator=5000.0))
    assert outcome == "generator" and capacity(levels) is None and 4000 < at_least(levels) <= 5000
    # One such level may be a disturbance: it is repeated.
    assert [level.rate for level in levels].count(6400.0) == 2 and max(level.rate for level in levels) == 6400.0


def test_level_disturbed_on_generators_machine_is_repeated_within_time() -> None:
    outcome, levels, spent = searched(lambda step: replace(stepwise(1e9)(step), saturated=True))
    assert outcome == "budget" and {level.rate for level in levels} == {50.0} and spent <= 180


@pytest.mark.parametrize(
    ("limit", "aim", "outcome", "lowest"),
    [(0.0, Aim(), "lowest", 1.0), (1e9, Aim(longest=20.0), "budget", 50.0), (7.0, Aim(), "found", 3.125)],
)
def test_search_ends_without_capacity(limit: float, aim: Aim, outcome: str, lowest: float) -> None:
    found, levels, spent = searched(stepwise(limit), aim)
    assert (found, min(level.rate for level in levels)) == (outcome, lowest) and spent <= aim.longest


def test_outlier_does_not_end_search() -> None:
    level = stepwise(1000.0)
    outcome, levels, _ = searched(lambda step: level(step) if step.rate != 200.0 else stepwise(0.0)(step))
    found = capacity(levels)
    assert outcome == "found" and found is not None and found.low < 1000 < found.high


def test_capacity_of_simulated_queue() -> None:
    """A single search; `make statistics` has the share of searches within 5%."""
    case = CASES[0]
    one = search(case, seed=3)
    assert one.found is not None and abs(one.found.rate / case.truth - 1) <= 0.1 and one.seconds <= 181
    assert one.found.low <= case.truth <= one.found.high
