"""The autopilot on surfaces with a known optimum vs random search and TPE, and the error rate of its claims."""

import math
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

import numpy as np

from cockpit.analysis.effects import HEADLINE_SHARE, LEAST
from cockpit.analysis.intervals import ALPHA, FIRST_TEST, Interval, sequential
from cockpit.autopilot.runner import ROUNDS
from cockpit.autopilot.search import Search, Trial
from tests.autopilot.surfaces import Surface, regret, surface
from tests.bench.table import at_least, at_most, show

SEEDS = 100
# Knobs, evaluations, and the minimum share of searches that end within NEAR of the optimum at 3% noise.
_BARS = ((2, 12, 0.90), (4, 30, 0.90), (6, 60, 0.75))
NEAR = 0.05
NOISES = (0.03, 0.06)
_SEARCHES, _EVALUATIONS = 200, 20
# Standard deviation of the difference of a round.
_ROUND = 0.03

Found = Callable[[int], float | None]


def search() -> bool:
    """Share of searches that end within 5% of the optimum, by number of knobs and noise."""
    lines, bars = [], []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for knobs, evaluations, least in _BARS:
            for noise in NOISES:
                methods = (_autopilot, _random_search, _tpe)
                shares = [
                    _share(pool.map(partial(method, knobs, evaluations, noise), range(SEEDS))) for method in methods
                ]
                name = f"{knobs} knobs, {evaluations} evaluations, {noise:.0%} noise"
                lines.append(f"{name}: {shares[0]:.2f}, random {shares[1]:.2f}, TPE {shares[2]:.2f}")
                if noise == NOISES[0]:
                    bars.append(at_least(name, shares[0], least))
    return show(f"searches that end within {NEAR:.0%} of the optimum, {SEEDS} surfaces", lines, bars)


def search_claims() -> bool:
    """False claims of "better" on flat surfaces, and coverage of the claimed intervals, by simulated rounds."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        flat = list(pool.map(_claimed_on_flat, range(_SEARCHES)))
        real = [covers for covers in pool.map(_claimed_on_surface, range(_SEARCHES)) if covers is not None]
    wrong = sum(flat) / len(flat)
    covered = sum(real) / len(real)
    lines = [f"{len(real)} of {_SEARCHES} searches on surfaces with a better point ended in a claim"]
    bars = [
        at_most("false claims of 'better' on flat surfaces", wrong, 0.05),
        at_least("coverage of claimed intervals", covered, 0.93),
    ]
    return show(f"claims of {_SEARCHES} searches of {_EVALUATIONS} evaluations with their rounds", lines, bars)


def _share(found: Sequence[float | None] | object) -> float:
    values = list(found)  # type: ignore[call-overload]
    return sum(regret is not None and regret <= -math.log(1 - NEAR) for regret in values) / len(values)


def _autopilot(knobs: int, evaluations: int, noise: float, seed: int) -> float | None:
    return regret(surface(knobs, seed), evaluations, noise, seed)


def _random_search(knobs: int, evaluations: int, noise: float, seed: int) -> float | None:
    found, draw = surface(knobs, seed), Random(seed)
    trials = [found.measured(found.space.random(draw), noise, draw) for _ in range(evaluations)]
    return _regret(found, trials, draw)


def _tpe(knobs: int, evaluations: int, noise: float, seed: int) -> float | None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found, draw = surface(knobs, seed), Random(seed)
    trials: list[Trial] = []

    def measured(trial: optuna.Trial) -> float:
        point = tuple(trial.suggest_int(each.knob, 0, len(each.values) - 1) for each in found.space.dimensions)
        trials.append(found.measured(point, noise, draw))
        trial.set_constraint("limit", -trials[-1].margins[0])
        return trials[-1].score or 0.0

    warnings.simplefilter("ignore")  # about experimental features
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True)
    optuna.create_study(direction="maximize", sampler=sampler).optimize(measured, n_trials=evaluations)
    return _regret(found, trials, draw)


def _regret(found: Surface, trials: Sequence[Trial], draw: Random) -> float | None:
    """Return the regret of the best feasible measurement; None if its point violates the constraint."""
    good = [trial for trial in trials if trial.margins[0] >= 0]
    if not good:
        return None
    point = max(good, key=lambda trial: trial.score or 0.0).point
    return None if found.limited(point) > found.limit else found.best(draw) - found.rate(point)


def _claimed_on_flat(seed: int) -> bool:
    """Return whether "better" is claimed on a flat surface."""
    draw = Random(seed)
    found = surface(3, seed)._replace(rate=lambda _: 7.0)
    proof = _proof(found, draw, seed)
    return proof is not None and _better(proof[0])


def _claimed_on_surface(seed: int) -> bool | None:
    """Return whether the interval of a claim covers the true effect; None without a claim."""
    proof = _proof(surface(3, seed), Random(seed), seed)
    if proof is None or not _better(proof[0]):
        return None
    interval, true = proof
    return interval.low <= true <= interval.high


def _proof(found: Surface, draw: Random, seed: int) -> tuple[Interval, float] | None:
    """Return the interval of the rounds after a search, and the true effect; None if it proposes its start.

    Every proposal is tested by rounds, whatever the search expects: claims depend on the rounds alone.
    """
    start = found.space.random(draw)
    search = Search(found.space, start, 1, seed)
    while len(search.trials) < _EVALUATIONS and (point := search.ask()) is not None:
        search.tell(found.measured(point, 0.03, draw))
    best = [point for point in search.best(2) if point != start]
    if not best:
        return None
    true = found.rate(best[0]) - found.rate(start)
    differences = np.array([draw.gauss(true, _ROUND) for _ in range(ROUNDS)])
    level = ALPHA * HEADLINE_SHARE
    for number in range(FIRST_TEST, ROUNDS + 1):
        interval = sequential(differences[:number], ROUNDS, level)
        if interval.low > 0 or interval.high < 0:
            break
    return interval, true


def _better(interval: Interval) -> bool:
    return interval.low > 0 and interval.estimate >= math.log1p(LEAST)
