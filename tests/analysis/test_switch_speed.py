"""One switch under load on a machine whose CPU changes its speed: error rate, power, and what is reported."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis import switch, switch_speed
from cockpit.analysis.intervals import Floats
from cockpit.analysis.outcome import Outcome, Verdict
from cockpit.analysis.verdict import judge_switch
from cockpit.analysis.windows import Window
from cockpit.analysis.words import basis_lines, basis_words
from cockpit.report.encoding import to_json
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import window
from tests.statistics.noise import NOISES
from tests.statistics.switch_speeds import SPEEDS, Switched, switched

KINDS = ("white", "AR(1) 0.9", "1/f")


def shares(found: list[Switched]) -> tuple[float, float]:
    """Return the shares of significant differences, adjusted and not."""
    return (
        float(np.mean([math.isfinite(one.adjusted) for one in found])),
        float(np.mean([math.isfinite(one.plain) for one in found])),
    )


def of_kinds(speed: str, follows: float, repetitions: int, after: int, effect: float) -> list[Switched]:
    return [
        one
        for kind in KINDS
        for one in switched(SPEEDS[speed], NOISES[kind], follows, repetitions, after, effect, seed=3)
    ]


def test_change_of_speed_is_no_effect() -> None:
    for speed in SPEEDS:
        for follows in (0.0, 1.0):
            adjusted, _ = shares(of_kinds(speed, follows, 3, 90, 0.0))
            assert adjusted == 0, (speed, follows)
    adjusted, plain = shares(of_kinds("step of 10% at the switch", 1.0, 4, 120, 0.0))
    assert adjusted == 0 and plain >= 0.5


def test_effect_is_found_although_the_speed_varies() -> None:
    for speed in ("wanders within 10 s", "another each 10 s"):
        found = of_kinds(speed, 1.0, 4, 120, math.log(1.1))
        adjusted, plain = shares(found)
        assert adjusted >= 0.5 and plain <= 0.4
        assert np.mean([one.covered for one in found]) >= 0.9
    adjusted, plain = shares(of_kinds("constant", 1.0, 4, 120, math.log(1.1)))
    assert plain - adjusted <= 0.12


def blocks(
    values: tuple[Floats, Floats], speeds: tuple[Floats, Floats], error: float = 0.0
) -> switch_speed.SwitchBlocks:
    return switch_speed.with_speeds(*values, speeds, error, 1)


def test_slopes_are_those_within_the_sides() -> None:
    random = np.random.default_rng(1)
    speeds = random.normal(0, 0.08, 12), random.normal(0, 0.08, 20)
    values = tuple(np.exp(0.6 * side + random.normal(0, 0.01, len(side))) for side in speeds)
    found = switch_speed.slopes(blocks((values[0], 3 * values[1]), speeds), np.log)
    assert found.low < 0.6 < found.high and found.high - found.low < 0.25
    assert found.likely == pytest.approx(0.6, abs=0.1)
    random = np.random.default_rng(2)
    values = np.exp(random.normal(0, 0.02, 12)), np.exp(random.normal(0, 0.02, 20))
    read = random.normal(0, 0.01, 12), random.normal(0.1, 0.01, 20)
    assert switch_speed.slopes(blocks(values, (np.zeros(12), np.full(20, 0.1))), np.log)[::2] == (0.0, 1.0)
    assert switch_speed.slopes(blocks(values, read, 0.01), np.log)[::2] == (0.0, 1.0)
    # The speed differs by far more than it varies: the set of slopes includes 0, whatever the blocks say.
    random = np.random.default_rng(3)
    speeds = random.normal(0, 0.03, 12), random.normal(-0.3, 0.03, 20)
    values = tuple(np.exp(side + random.normal(0, 0.003, len(side))) for side in speeds)
    compared = blocks((values[0], values[1]), speeds)
    found = switch_speed.slopes(compared, np.log)
    assert found.low == 0.0 and found.likely == pytest.approx(1.0, abs=0.1)
    interval = switch_speed.effect(compared, scale=np.log)
    assert interval.low < -0.25 and interval.high > 0


def test_unknown_speeds_are_interpolated_or_nothing_is_adjusted() -> None:
    values = np.ones(12), np.ones(12)
    known = np.arange(12.0) / 100
    some, few = known.copy(), known.copy()
    some[[3, 11]], few[:5] = np.nan, np.nan
    interpolated = blocks(values, (some, known)).before_speeds
    assert interpolated[3] - interpolated[2] == pytest.approx(0.01) and interpolated[11] == interpolated[10]
    assert not blocks(values, (few, known)).is_adjusted
    plain = blocks((np.exp(known), 2 * np.exp(known)), (few, known))
    assert switch_speed.effect(plain, scale=np.log) == switch.effect(plain.before, plain.after, scale=np.log)


def with_speeds(found: Window, speeds: Floats) -> Window:
    """The window with a speed per second; the rate follows it in proportion."""
    points = tuple(
        replace(point, speed=1000 * float(speed)) for point, speed in zip(found.hosts["web1"], speeds, strict=True)
    )
    seconds = tuple(
        replace(second, completed=round(second.completed * float(speed)))
        for second, speed in zip(found.seconds, speeds, strict=True)
    )
    return replace(found, hosts={"web1": points}, seconds=seconds)


def verdict_on(rate: float) -> Verdict:
    random = np.random.default_rng(4)
    speeds = [np.repeat(np.exp(random.normal(0, 0.12, number // 10)), 10) for number in (60, 120)]
    before, after = window(1, 60), window(2, 120, rate=rate, start=60)
    return judge_switch(with_speeds(before, speeds[0]), with_speeds(after, speeds[1]))


def test_verdict_reports_the_effect_with_and_without_adjustment() -> None:
    verdict = verdict_on(1100.0)
    rate = verdict.headline
    assert (verdict.outcome, rate.outcome) == (Outcome.BETTER, Outcome.BETTER)
    assert rate.change == pytest.approx(0.1, abs=0.04)
    assert rate.speed is not None and rate.speed.slopes is not None and rate.speed.spread is None
    assert rate.speed.low is not None and rate.speed.high is not None and rate.speed.low < 0 < rate.speed.high
    assert rate.speed.slopes[0] > 0.5
    assert basis_words(verdict) == "60 s vs 120 s, adjusted for CPU speed"
    (line,) = [line for line in basis_lines(verdict) if line.startswith("adjusted for CPU speed")]
    assert f"{100 * rate.speed.ratio:.1f}% of its value before" in line and "unadjusted: rate " in line
    data = json.loads(to_json(verdict_json(verdict)))["effects"][0]["speed"]
    assert (data["change"], data["low"], data["ratio"]) == (rate.speed.change, rate.speed.low, rate.speed.ratio)
    memory = verdict_on(1000.0).effect("web1.memory.used")
    cost = verdict_on(1000.0).effect("web1.cpu.per_request")
    assert memory is not None and memory.speed is None
    assert cost is not None and cost.speed is not None
