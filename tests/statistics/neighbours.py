"""Other load simulated on a machine of two CPUs: what makes a comparison invalid, and what does not.

A reading of a second is off by some 3 points (as measured on a busy machine, where the CPU time of all processes is
known); the errors of neighbouring seconds cancel out, since each reading takes in what the one before it missed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cockpit.analysis.other_load import MeasuredOtherLoad, differs, noise_of, takes
from cockpit.analysis.outcome import OtherLoad
from tests.statistics.noise import Floats

SECONDS = 30
_ERROR = 3.0


class Case(NamedTuple):
    """Per cent of the CPUs: other load before and after, and idle time. A job takes `jobs` for 10 s of each minute, at
    any phase. `part` is that of the side after, its end, in which its load is there."""

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
    before = _readings(np.full(SECONDS, case.before), case, random)
    load = np.where(np.arange(SECONDS) >= SECONDS * (1 - case.part), case.after, case.before)
    after = _readings(load, case, random)
    measured = MeasuredOtherLoad(
        load=OtherLoad(host="web1", before=max(0.0, float(before.mean())), after=max(0.0, float(after.mean()))),
        idle=case.idle / 100,
        noise=noise_of(before, after),
        rate=1.0,
        unloaded=(None, None),
    )
    return differs(measured) or takes(measured)


def _readings(load: Floats, case: Case, random: np.random.Generator) -> Floats:
    """Shares as they are read, second by second."""
    at = (np.arange(len(load)) + random.integers(0, 60)) % 60
    errors = random.normal(0, _ERROR, len(load) + 1)
    return np.asarray((load + case.jobs * (at < 10) + np.diff(errors)) / 100)
