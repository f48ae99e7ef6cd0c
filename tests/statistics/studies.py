"""Studies on simulated noise: rounds in random order, a test after each round, closed variants drop out."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.effects import conclude, margin_of
from cockpit.analysis.intervals import ALPHA, FIRST_TEST, Interval, sequential
from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.model.load.plan import LoadPlan
from cockpit.model.study import Study, Variant
from cockpit.profiles.study import with_control
from cockpit.study.plan import planned_comparisons, round_of
from tests.statistics.noise import Floats, Noise
from tests.statistics.simulate import EACH, LOST

METRIC = "rate"
OPEN = Outcome.INCONCLUSIVE


class Concluded(NamedTuple):
    """A comparison at the end of a study: outcome, interval and number of rounds."""

    outcome: Outcome
    interval: Interval
    rounds: int


class Simulated(NamedTuple):
    """A study at its end: comparisons in order, A/A control and number of visits."""

    comparisons: tuple[Concluded, ...]
    control: Concluded
    visits: int


def studies(
    noise: Noise, repetitions: int, effects: Sequence[float], budget: int, restart: float, seed: int
) -> list[Simulated]:
    """Return simulated studies of one baseline and a variant per effect (a logarithm), of at most `budget` rounds.

    A visit takes EACH seconds, of which LOST are not counted; a set-up shifts the level, with a standard deviation of
    `restart`. Noise continues through set-ups and rounds.
    """
    random = np.random.default_rng(seed)
    visits = budget * (len(effects) + 2)
    values = noise(random, (repetitions, visits * EACH)).reshape(repetitions, visits, EACH)[:, :, LOST:]
    levels = values.mean(axis=2) + random.normal(0, restart, (repetitions, visits))
    return [_study(row, effects, budget, order) for order, row in enumerate(levels)]


def _study(levels: Floats, effects: Sequence[float], budget: int, seed: int) -> Simulated:
    names = [f"v{at}" for at in range(len(effects))]
    study = with_control(
        Study(
            plan=LoadPlan(url="http://web1/"),
            variants=(Variant(name="base"), *(Variant(name=name) for name in names)),
            rounds=budget,
            seed=seed,
            compare=tuple(("base", name) for name in names),
        )
    )
    assert study.control is not None
    truth = {"base": 0.0, study.control.name: 0.0, **dict(zip(names, effects, strict=True))}
    differences: dict[str, list[float]] = {name: [] for name in truth if name != "base"}
    still_open, visit = planned_comparisons(study), 0
    found = dict.fromkeys(differences, Concluded(OPEN, Interval(0.0, -math.inf, math.inf), 0))
    for number in range(1, budget + 1):
        steps = round_of(study, number, still_open).steps
        measured = {name: float(levels[visit + at]) + truth[name] for at, (name, _) in enumerate(steps)}
        visit += len(steps)
        for name in measured.keys() - {"base"}:
            differences[name].append(measured[name] - measured["base"])
            if number >= FIRST_TEST:
                found[name] = _tested(differences[name], budget, study.comparisons)
        still_open = tuple(pair for pair in still_open if found[pair[1]].outcome is OPEN)
        if not still_open:
            break
    return Simulated(tuple(found[name] for name in names), found[study.control.name], visit)


def _tested(differences: Sequence[float], budget: int, comparisons: int) -> Concluded:
    """Test one metric, with the whole error rate of its comparison."""
    interval = sequential(np.array(differences), budget, ALPHA / comparisons)
    shares = Interval(*(math.expm1(value) for value in interval))
    return Concluded(conclude(METRIC, shares, True, margin_of(METRIC)), interval, len(differences))
