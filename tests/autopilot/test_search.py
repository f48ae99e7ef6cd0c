"""The search on surfaces with a known optimum, and its Gaussian process compared with scikit-learn's."""

import math
from random import Random

import numpy as np
import pytest
import scipy

from cockpit.autopilot.gaussian_process import GaussianProcess
from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.search import AGAIN, FAILED, LARGEST, Search, Trial, margin_of
from cockpit.autopilot.space import Space, levels
from cockpit.model.autopilot import SearchedKnob
from tests.autopilot.surfaces import regret, surface

SPACE = space_of([SearchedKnob("a", tuple("12345678"), 8), SearchedKnob("b", ("on", "off", "auto"), 0)])


def training_data(knobs: int, number: int, seed: int) -> tuple[Space, np.ndarray, np.ndarray]:
    found, draw = surface(knobs, seed), Random(seed)
    points = np.array([found.space.random(draw) for _ in range(number)])
    return found.space, points, np.array([found.rate(tuple(point)) + draw.gauss(0, 0.03) for point in points])


def test_predictions_match_scikit_learn() -> None:
    space, points, values = training_data(3, 20, 0)
    # The points are far apart in time, so that drift is fitted as noise.
    ours = GaussianProcess(space.tables, points, values, np.arange(20) * 1e9)
    lengths = np.exp(-ours.parameters[:3] / 2)
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    kernel = ConstantKernel(math.exp(ours.parameters[3])) * Matern(length_scale=lengths, nu=2.5)
    noise = math.exp(ours.parameters[4]) + math.exp(ours.parameters[5])
    theirs = GaussianProcessRegressor(kernel, alpha=noise + 1e-8, optimizer=None)
    centre, scale = values.mean(), values.std()
    theirs.fit(points / 7, (values - centre) / scale)
    all_points = np.array(list(space.all()))
    mean, deviation = theirs.predict(all_points / 7, return_std=True)
    found = ours.predict(all_points)
    assert found.mean == pytest.approx(centre + scale * mean, abs=1e-6)
    assert found.deviation == pytest.approx(scale * deviation, abs=1e-4)


def test_gradient_of_posterior_matches_finite_differences() -> None:
    space, points, values = training_data(2, 12, 1)
    process = GaussianProcess(space.tables, points, values, np.arange(12.0))
    for parameters in (process.parameters, np.array([0.5, -1.0, 0.2, -3.0, -4.0])):
        value, gradient = process.posterior(parameters)
        numeric = scipy.optimize.approx_fprime(parameters, lambda at: process.posterior(at)[0], 1e-6)
        assert gradient == pytest.approx(numeric, abs=1e-3) and math.isfinite(value)


def test_drift_is_separated_from_knob_effects() -> None:
    draw = Random(3)
    points = np.array([(at % 8, 0) for at in range(32)])
    values = np.array([0.02 * at + 0.1 * (at % 8) + draw.gauss(0, 0.005) for at in range(32)])
    found = GaussianProcess(SPACE.tables, points, values, np.arange(32.0))
    mean = found.predict(np.array([(0, 0), (7, 0)])).mean
    # If drift were not modelled, it would count as noise: 0.18.
    assert mean[1] - mean[0] == pytest.approx(0.7, abs=0.05)
    assert found.noise < 0.05


@pytest.mark.parametrize(("knobs", "evaluations", "share"), [(2, 12, 0.75), (4, 20, 0.75)])
def test_most_searches_end_within_5_percent_of_best(knobs: int, evaluations: int, share: float) -> None:
    """Fewer seeds than `search` in the benchmark, hence a lower bar."""
    regrets = [regret(surface(knobs, seed), evaluations, 0.03, seed) for seed in range(4)]
    assert sum(loss is not None and loss <= 0.05 for loss in regrets) / len(regrets) >= share


def test_failed_settings_are_not_repeated_and_similar_avoided() -> None:
    search = Search(SPACE, (3, 0), 1, seed=1)
    while len(search.trials) < 20 and (point := search.ask()) is not None:
        failed = point[1] == 2
        search.tell(Trial(point, None if failed else 0.1 * point[0], (FAILED if failed else LARGEST,)))
    tried = [trial.point for trial in search.trials if trial.point != search.start]
    assert len(tried) == len(set(tried))
    assert sum(point[1] == 2 for point in tried) < len(tried) / 3
    [best] = search.best()
    assert best[0] == 7 and best[1] != 2


def test_search_goes_far_as_long_as_every_point_fails_a_limit() -> None:
    values = tuple(map(str, range(12)))
    space = space_of([SearchedKnob("a", values, 12), SearchedKnob("b", values, 12)])
    search = Search(space, (2, 2), 1, seed=1)
    while not search.best() and len(search.trials) < 12:
        assert search.expected_improvement() == math.inf
        point = search.ask()
        assert point is not None
        search.tell(Trial(point, 1.0, (LARGEST if min(point) >= 9 else FAILED,)))
    assert min(search.best()[0]) >= 9, [trial.point for trial in search.trials]


def test_start_is_measured_first_and_periodically() -> None:
    search = Search(SPACE, (3, 0), 0, seed=1)
    asked = []
    for _ in range(2 * AGAIN):
        point = search.ask()
        assert point is not None
        asked.append(point == search.start)
        search.tell(Trial(point, 1.0))
    assert asked == [True, *[False] * AGAIN, True, *[False] * (AGAIN - 2)]


def test_search_ends_when_space_is_exhausted() -> None:
    search = Search(space_of([SearchedKnob("b", ("on", "off"), 0)]), (0,), 0, seed=1)
    search.tell(Trial((0,), 1.0))
    search.tell(Trial((1,), 1.2))
    assert search.ask() is None and search.best() == [(1,)]


def test_same_seed_proposes_same_points() -> None:
    def asked(seed: int) -> list[object]:
        found, draw = surface(3, 1), Random(1)
        search = Search(found.space, (0, 0, 0), 1, seed)
        for _ in range(12):
            point = search.ask()
            assert point is not None
            search.tell(found.measured(point, 0.03, draw))
        return [trial.point for trial in search.trials]

    assert asked(1) == asked(1) != asked(2)


def test_levels_are_spaced_logarithmically_within_range() -> None:
    assert levels(5, 400) == (5, 9, 17, 33, 61, 114, 214, 400)
    assert levels(1, 4) == (1, 2, 3, 4)
    assert levels(0, 100)[:2] == (0, 1) and levels(0, 100)[-1] == 100
    assert levels(0, 1) == (0, 1)
    for low, high in ((0.1, 0.9), (0, 0.5), (1, 5.5), (12.5, 100), (0, 7.25)):
        found = levels(low, high)
        assert (found[0], found[-1]) == (low, high) and list(found) == sorted(set(found))


def test_margin_is_log_ratio_to_limit() -> None:
    assert margin_of(10.0, 20.0, below=True, holds=True) == LARGEST
    assert margin_of(19.0, 20.0, below=True, holds=True) == pytest.approx(math.log(20 / 19))
    assert margin_of(21.0, 20.0, below=True, holds=False) == pytest.approx(math.log(20 / 21))
    assert margin_of(90.0, 100.0, below=False, holds=False) == pytest.approx(math.log(0.9))
    assert margin_of(0.0, 0.0, below=True, holds=True) == LARGEST
    assert margin_of(3.0, 0.0, below=True, holds=False) == FAILED


def test_every_other_proposal_varies_most_relevant_knobs() -> None:
    found, draw = surface(8, 3), Random(3)
    search = Search(found.space, found.space.random(draw), 1, 3)
    moved = []
    while len(search.trials) < 26:
        point = search.ask()
        assert point is not None
        if search.searching and point != search.start and len(search.trials) % 2 == 0:
            moved.append(sum(here != there for here, there in zip(point, search.best()[0], strict=True)))
        search.tell(found.measured(point, 0.03, draw))
    assert moved and max(moved) <= 6
