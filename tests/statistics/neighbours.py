"""Simulated other load on a machine with two CPUs: invalid and valid comparisons.

A sample of one second has a standard error of about 3 points (measured on a busy machine with known CPU time of all
processes). The errors of consecutive seconds cancel out: each sample includes the time that the previous sample missed.
"""

from typing import NamedTuple

import numpy as np

from cockpit.analysis.verdicts.other_load import MeasuredOtherLoad, has_different_load, noise_of, takes_server_cpu
from cockpit.analysis.verdicts.outcome import OtherLoad
from tests.statistics.noise import Floats

SECONDS = 30
_ERROR = 3.0


class Case(NamedTuple):
    """Other load before and after, and idle time, in % of the CPUs.

    A job takes `jobs` for 10 s per minute, at a random phase. `part` is the final share of the side after that has its
    load.
    """

    name: str
    before: float
    after: float
    idle: float
    jobs: float = 0.0
    part: float = 1.0


CASES = (
    Case("idle machine, 1% on both sides", 1, 1, 60),
    Case("server takes all CPU, 1% on both sides", 1, 1, 0),
    Case("a job of 10% for 10 s of each minute", 1, 1, 20, jobs=10),
    Case("2% more after", 1, 3, 10),
    Case("a hog on one CPU after", 1, 49, 5),
    Case("a hog that shares a CPU with 4 server processes", 1, 11, 0),
    Case("a hog on one CPU in the last third of after", 1, 49, 5, part=1 / 3),
    Case("a hog on one CPU on both sides, server and load 45%", 49, 49, 5),
    Case("a hog on one CPU on both sides, server and load 20%", 49, 49, 30),
)


def spoiled_shares(case: Case, repetitions: int, seed: int) -> Floats:
    """Return for each repetition whether other load makes the comparison invalid."""
    random = np.random.default_rng(seed)
    return np.array([_is_spoiled(case, random) for _ in range(repetitions)], dtype=np.float64)


def _is_spoiled(case: Case, random: np.random.Generator) -> bool:
    before = _samples(np.full(SECONDS, case.before), case, random)
    load = np.where(np.arange(SECONDS) >= SECONDS * (1 - case.part), case.after, case.before)
    after = _samples(load, case, random)
    measured = MeasuredOtherLoad(
        load=OtherLoad(host="web1", before=max(0.0, float(before.mean())), after=max(0.0, float(after.mean()))),
        idle=(case.idle / 100, case.idle / 100),
        noise=noise_of(before, after),
        rate=1.0,
        unloaded=(None, None),
    )
    return has_different_load(measured) or takes_server_cpu(measured)


def _samples(load: Floats, case: Case, random: np.random.Generator) -> Floats:
    """Return the sampled shares per second."""
    at = (np.arange(len(load)) + random.integers(0, 60)) % 60
    errors = random.normal(0, _ERROR, len(load) + 1)
    return np.asarray((load + case.jobs * (at < 10) + np.diff(errors)) / 100)
