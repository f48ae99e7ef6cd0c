"""Effects weighed by other load: how much of each it can explain at most, and in which direction. Pure.

Other load slows the server on a side by at most a known factor (see `other_load`). The true effect on the rate or on a
capacity therefore lies in the measured interval, extended by the factor of the side before downwards and by that of the
side after upwards; the median latency under closed load follows the rate. CPU and CPU per request of the machine
include the other programs by the same factor. Only the run-queue wait of the server (see `waiting`) bounds what they do
to the tail, and to latencies at a fixed rate: if it does not, and for errors, intervals are open in the direction in
which it can have acted. Memory of the machine is that of all
programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from cockpit.analysis.effects import conclude, overall
from cockpit.analysis.intervals import Interval
from cockpit.analysis.verdicts.objections import invalid, with_invalid_effects
from cockpit.analysis.verdicts.other_load import DIFFERS, other_load_objection
from cockpit.analysis.verdicts.outcome import DIFFERENT, Effect, OtherLoad, Outcome, Verdict

# Factors up to this do not delay the slowest requests noticeably.
_NOTICEABLE = 1 + DIFFERS


def weighed(verdict: Verdict, loads: Sequence[OtherLoad], open_load: bool) -> Verdict:
    """Return the verdict with its effects shortened by what other load explains; `at_least` if it stands.

    The verdict is invalid if other load can explain the headline's whole effect.
    """
    mattering = [load for load in loads if load.slowed is not None]
    verdict = replace(verdict, other_loads=tuple(loads))
    if not mattering or not verdict.effects or verdict.outcome is Outcome.INVALID:
        return verdict
    effects = verdict.effects
    for load in mattering:
        effects = tuple(_weighed_effect(effect, load, open_load) for effect in effects)
    outcome = overall(effects)
    shortened = replace(verdict, effects=effects, outcome=outcome, at_least=verdict.at_least or outcome in DIFFERENT)
    if outcome is Outcome.INVALID and (reason := effects[0].objection) is not None:
        return with_invalid_effects(shortened, reason)
    return shortened


def _weighed_effect(effect: Effect, load: OtherLoad, open_load: bool) -> Effect:
    if effect.outcome is Outcome.INVALID:
        return effect
    host, dot, metric = effect.name.partition(".")
    if dot and (host != load.host or metric.startswith("processes.")):
        return effect
    if dot and not metric.startswith("cpu."):
        return invalid(effect, other_load_objection(load))
    known = Interval(effect.change or 0.0, _or(effect.low, -math.inf), _or(effect.high, math.inf))
    if effect.change is None or (math.isinf(known.low) and math.isinf(known.high)):
        return replace(effect, likely=None)
    down, up = _explained(effect.name, load, open_load)
    low, high = _shifted(known.low, -down, effect.relative), _shifted(known.high, up, effect.relative)
    outcome = conclude(effect.name, Interval(known.estimate, low, high), effect.relative, effect.margin)
    if outcome in DIFFERENT:
        bounds = (low, None) if known.estimate > 0 else (None, high)
        return replace(effect, outcome=outcome, low=bounds[0], high=bounds[1], likely=None)
    if effect.outcome in DIFFERENT:
        return invalid(effect, other_load_objection(load))
    return replace(effect, outcome=outcome, low=_finite(low), high=_finite(high), likely=None)


def _explained(name: str, load: OtherLoad, open_load: bool) -> tuple[float, float]:
    """Return how far the true effect can lie below and above the measured one (log scale)."""
    assert load.slowed is not None
    before, after = (math.log(factor) for factor in load.slowed)
    if name in ("rate", "capacity"):
        return before, after
    if "." in name:
        return after, before
    if name != "p50" or open_load:
        before, after = (math.inf if factor > _NOTICEABLE else 0.0 for factor in load.slowed)
    waits = [math.inf if factor is None else math.log(factor) for factor in load.delayed.get(name, (None, None))]
    return min(after, waits[1]), min(before, waits[0])


def _shifted(end: float, log_factor: float, relative: bool) -> float:
    """Return an end of an interval shifted by a log factor, or to infinity."""
    if math.isinf(end) or not log_factor:
        return end
    if math.isinf(log_factor) or not relative:
        return math.copysign(math.inf, log_factor)
    return math.expm1(math.log1p(end) + log_factor) if end > -1 else end


def _or(end: float | None, otherwise: float) -> float:
    return otherwise if end is None else end


def _finite(end: float) -> float | None:
    return None if math.isinf(end) else end
