"""Studies on simulated noise keep their error rate over all tests and comparisons, with variants that close early.

`make statistics` prints the error rates for all kinds of noise.
"""

from __future__ import annotations

import math

import numpy as np

from cockpit.analysis.outcome import DIFFERENT, Outcome
from tests.statistics.noise import NOISES
from tests.statistics.studies import studies

REPETITIONS = 40
KINDS = ("white", "AR(1) 0.9", "drift 2%/min")


def test_study_without_effect_keeps_error_rate() -> None:
    found = [study for kind in KINDS for study in studies(NOISES[kind], REPETITIONS, (0.0,) * 3, 8, 0.02, seed=1)]
    wrong = [any(each.outcome in DIFFERENT for each in study.comparisons) for study in found]
    assert np.mean(wrong) <= 0.05
    assert np.mean([study.control.outcome in DIFFERENT for study in found]) <= 0.05


def test_variant_with_effect_closes_early() -> None:
    effects = (math.log(1.2), 0.0)
    found = studies(NOISES["white"], REPETITIONS, effects, 8, 0.02, seed=2)
    effective, ineffective = zip(*(study.comparisons for study in found), strict=True)
    assert np.mean([each.outcome is Outcome.BETTER for each in effective]) >= 0.95
    assert np.mean([each.rounds for each in effective]) < 6
    assert np.mean([each.outcome in DIFFERENT for each in ineffective]) <= 0.07
    assert max(study.visits for study in found) <= 8 * 4
