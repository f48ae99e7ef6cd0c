"""Whole studies on simulated noise keep their risk over all tests and comparisons, although closed variants drop out.

`make statistics` has the table over all kinds of noise.
"""

from __future__ import annotations

import math

import numpy as np

from cockpit.analysis.outcome import DIFFERENT, Outcome
from tests.statistics.noise import NOISES
from tests.statistics.studies import studies

REPETITIONS = 150
KINDS = ("white", "AR(1) 0.9", "drift 2 %/min")


def test_a_study_without_any_effect_is_wrong_in_at_most_a_twentieth() -> None:
    found = [one for kind in KINDS for one in studies(NOISES[kind], REPETITIONS, (0.0,) * 3, 8, 0.02, seed=1)]
    wrong = [any(each.outcome in DIFFERENT for each in one.comparisons) for one in found]
    # Two standard errors of 450 studies above 5%.
    assert np.mean(wrong) <= 0.07
    assert np.mean([one.control.outcome in DIFFERENT for one in found]) <= 0.05


def test_effects_are_found_and_close_early_while_the_others_stay_right() -> None:
    effects = (math.log(1.2), 0.0)
    found = studies(NOISES["white"], REPETITIONS, effects, 8, 0.02, seed=2)
    first, none = zip(*(one.comparisons for one in found), strict=True)
    assert np.mean([one.outcome is Outcome.BETTER for one in first]) >= 0.95
    assert np.mean([one.rounds for one in first]) < 6
    assert np.mean([one.outcome in DIFFERENT for one in none]) <= 0.07
    assert max(one.visits for one in found) <= 8 * 4
