"""Simulated changes on a machine where other programs take CPU in bursts: words and bounds of weighed verdicts.

The server takes all CPU that the others leave. Its rate falls with the share that they take, to the power of `harm`:
1 is proportional, 1.15 has losses by caches too, 0.5 is a server that was not limited by CPU all the time.
"""

import math
from typing import NamedTuple

import numpy as np

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.effects import conclude, margin_of
from cockpit.analysis.intervals import ALPHA
from cockpit.analysis.switch import switch
from cockpit.analysis.verdicts.other_load import MeasuredOtherLoad, noise_of, weighed_load
from cockpit.analysis.verdicts.outcome import DIFFERENT, Design, Effect, OtherLoad, Outcome, Verdict
from cockpit.analysis.verdicts.weighing import weighed
from tests.statistics.noise import NOISES, Floats

# Seconds before the change, and at most after it.
BEFORE, CAP = 40, 180
EFFECTS = (1.0, 1.05, 1.2, 4.0, 1 / 1.2, 1 / 4.0)
SIDES = ("before", "after", "both", "always")
HARMS = (0.5, 1.0, 1.15)
# Standard error (share) of a reading of other load.
_ERROR = 0.03
_IDLE = 0.01


class Concluded(NamedTuple):
    """The conclusion of a simulated change, None without one, and the end of the interval nearest to no effect."""

    outcome: Outcome | None
    bound: float | None


def wrong(found: Concluded, effect: float) -> bool:
    """Return whether a conclusion contradicts the true effect, or promises more than it."""
    if found.outcome is None:
        return False
    truth = math.copysign(1, effect - 1) if effect != 1 else 0
    said = {Outcome.BETTER: 1, Outcome.WORSE: -1, Outcome.EQUIVALENT: 0}[found.outcome]
    if said != truth:
        return True
    return found.bound is not None and truth != 0 and truth * (math.log1p(found.bound) - math.log(effect)) > 0


def disturbed(side: str, effect: float, harm: float, repetitions: int, seed: int) -> list[Concluded]:
    """Simulate a change that multiplies the rate by `effect`, with bursts of other load on a side of it, or with equal
    other load all the time."""
    random = np.random.default_rng(seed)
    noises = list(NOISES.values())
    found = []
    for at in range(repetitions):
        noise = noises[at % len(noises)](random, (1, BEFORE + CAP))[0]
        others = _others(side, random)
        rate = np.exp(noise) * (1 - others) ** harm
        rate[BEFORE:] *= effect
        found.append(_concluded(rate, others + np.diff(random.normal(0, _ERROR, len(others) + 1))))
    return found


def _others(side: str, random: np.random.Generator) -> Floats:
    if side == "always":
        return np.full(BEFORE + CAP, random.uniform(0.05, 0.6))
    begin, end = {"before": (0, BEFORE), "after": (BEFORE, BEFORE + CAP), "both": (0, BEFORE + CAP)}[side]
    return bursts(BEFORE + CAP, random, begin, end)


def bursts(seconds: int, random: np.random.Generator, begin: int = 0, end: int | None = None) -> Floats:
    """Return the share of CPU that other programs take per second: 1%, and from `begin` to `end` bursts of 5 to 60% for
    5 to 60 s."""
    end = seconds if end is None else end
    others = np.full(seconds, 0.01)
    for _ in range(random.integers(1, 5)):
        start = random.integers(begin, end)
        others[start : min(end, start + random.integers(5, 60))] = random.uniform(0.05, 0.6)
    return others


def _concluded(rate: Floats, others: Floats) -> Concluded:
    """Return the first conclusion that stands, by a test after each block."""
    blocks = rate.reshape(-1, BLOCK).mean(axis=1)
    before, after = blocks[: BEFORE // BLOCK], blocks[BEFORE // BLOCK :]
    for number, interval in switch.effect_over_time(before, after, ALPHA / 2, scale=switch.ratio_scale):
        ends, margin = interval.as_shares(), margin_of("rate")
        outcome = conclude("rate", ends, True, margin)
        if outcome is Outcome.INCONCLUSIVE:
            continue
        effect = Effect(
            name="rate",
            outcome=outcome,
            headline=True,
            change=ends.estimate,
            low=ends.low,
            high=ends.high,
            margin=margin,
        )
        verdict = Verdict(outcome=outcome, design=Design.SWITCH, effects=(effect,))
        load = weighed_load(_measured(others[:BEFORE], others[BEFORE : BEFORE + number * BLOCK], math.exp(interval[0])))
        found = weighed(verdict, [load], open_load=False)
        if found.outcome in (*DIFFERENT, Outcome.EQUIVALENT):
            shown = found.effects[0]
            return Concluded(found.outcome, shown.low if (shown.change or 0) > 0 else shown.high)
    return Concluded(None, None)


def _measured(before: Floats, after: Floats, rate: float) -> MeasuredOtherLoad:
    shares = [max(0.0, float(side.mean())) for side in (before, after)]
    return MeasuredOtherLoad(
        load=OtherLoad(host="web1", before=shares[0], after=shares[1]),
        idle=(_IDLE, _IDLE),
        noise=noise_of(before, after),
        rate=rate,
        unloaded=(None, None),
    )
