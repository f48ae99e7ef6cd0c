"""What two samples say of each figure: by how much it differs, how surely, and what could have been seen.

Blocks are compared by ranks (Mann-Whitney exact for few, Hodges-Lehmann's shift of logarithms: a ratio), p99 also by a
bootstrap over blocks of the whole window's p99, repeats by van Elteren's test, fewer than five whole runs by Welch's t.
What blocks still resemble each other is taken off: they count for fewer. Looking at several figures is paid for by
Holm's rule; the headline has half of the risk to itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np

from cockpit.analysis.blocks import PERCENTILES, Sample
from cockpit.analysis.ranks import Floats, Shift, holm, shift, smallest_p, student_quantile, van_elteren, welch

Word = Literal["better", "worse", "no detectable difference", "not comparable"]
SAME: Word = "no detectable difference"
NOT: Word = "not comparable"

FEW = "too few values"

# The risk of calling a difference where there is none, over all figures together; less while a window still grows,
# because it is then looked at again and again.
RISK = 0.05
RISK_GOING_ON = 0.01
HEADLINE_SHARE = 0.5
# A smaller difference is not called one, however surely it is seen: machines drift by as much.
LEAST = 0.01
# How far blocks resemble each other cannot be seen from fewer, however many there are on the other side.
LEAST_BLOCKS = 5

_DRAWS = 400
_SEED = 20
_NORMAL = NormalDist()
_POWER = _NORMAL.inv_cdf(0.8)
_TWO_SIDED = _NORMAL.inv_cdf(0.975)
# Fewer whole runs than this on a side cannot be told apart by their ranks.
_RANKABLE = 5
Pairs = Sequence[tuple[Sample, Sample]]


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One figure before and after. `change`, `low` and `high` (95 %) are shares (0.15 is 15 % more) where `relative`,
    else in the figure's unit; `seen` is the smallest change that would have been found four times out of five.

    `p` is corrected for the number of figures. `worth` is for how many independent values those of both sides count.
    What cannot be told is None.
    """

    name: str
    word: Word
    headline: bool = False
    reason: str = ""
    before: float | None = None
    after: float | None = None
    relative: bool = True
    change: float | None = None
    low: float | None = None
    high: float | None = None
    seen: float | None = None
    p: float | None = None
    worth: tuple[int, int] = (0, 0)


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A figure's shift on the scale it was compared on."""

    name: str
    shift: Shift
    logarithmic: bool
    inflation: float
    sizes: tuple[int, int]
    before: float
    after: float


def higher_is_better(name: str) -> bool:
    """Only the rate: of all else less is better."""
    return name == "rate"


def figures(pairs: Pairs, open_load: bool) -> list[str]:
    """Names of what is judged, in order. A host's CPU at a rate that the plan fixes, else its CPU a reply."""
    cost = "cpu.busy" if open_load else "cpu.per_reply"
    known = set.intersection(*(set(sample.blocks) for pair in pairs for sample in pair))
    hosts = sorted({name.partition(".")[0] for name in known if "." in name})
    wanted = ["rate", "p50", "p99", "errors"]
    wanted += [f"{host}.{figure}" for host in hosts for figure in (cost, "processes.births_per_s", "memory.used")]
    return [name for name in wanted if name in known and not _nothing(pairs, name)]


def effects(pairs: Pairs, headline: str, open_load: bool, risk: float = RISK) -> tuple[Effect, ...]:
    """The effect on each figure, the headline first. A pair is (before, after); several are repeats."""
    names = figures(pairs, open_load)
    names = [headline, *(name for name in names if name != headline)]
    found = [_found(pairs, name) for name in names]
    weights = _weights(len(names))
    honest = holm([1.0 if one is None else one.shift.p for one in found], weights)
    return tuple(
        _effect(one, name, p, risk, weight * risk, name == headline) if one else _untold(name, name == headline)
        for name, one, p, weight in zip(names, found, honest, weights, strict=True)
    )


def _weights(number: int) -> list[float]:
    if number == 1:
        return [1.0]
    return [HEADLINE_SHARE, *[(1 - HEADLINE_SHARE) / (number - 1)] * (number - 1)]


def enough(pairs: Pairs, headline: str, risk: float = RISK) -> bool:
    """Whether these are so many values that a headline could be told at all."""
    if pairs[0][0].unit == "run" and len(pairs) == 1:
        return min(sample.size for sample in pairs[0]) >= 2
    if len(pairs) > 1:
        least = [min(one.size, other.size) for one, other in pairs]
        return min(least) >= 2 and sum(least) >= _RANKABLE
    one, other = pairs[0]
    inflation = inflation_of(pairs, headline)
    if min(one.size, other.size) < LEAST_BLOCKS:
        return False
    return smallest_p(one.size, other.size, inflation) <= risk * HEADLINE_SHARE


def blocks_needed(present: int, inflation: float = 1.0, risk: float = RISK) -> int:
    """How many blocks a side it takes beside `present` others (or as many, where that is more) to tell anything."""
    for number in range(LEAST_BLOCKS, 1000):
        if smallest_p(number, max(number, present), inflation) <= risk * HEADLINE_SHARE:
            return number
    return 1000


def inflation_of(pairs: Pairs, name: str) -> float:
    """By how much the variance of a mean of blocks exceeds that of independent ones.

    From how far seconds resemble the next one, carried over to blocks, and from how far blocks do: the larger.
    Whole runs stand for themselves.
    """
    if pairs[0][0].unit == "run":
        return 1.0
    samples = [sample for pair in pairs for sample in pair]
    logarithmic = _logarithmic([sample.blocks[name] for sample in samples])
    by_second = _resemblance([_scaled(sample.series[name], logarithmic) for sample in samples if name in sample.series])
    by_block = _resemblance([_scaled(sample.blocks[name], logarithmic) for sample in samples])
    number = sum(sample.size for sample in samples)
    surely = max(0.0, by_block - 0.5 / math.sqrt(number)) if number else 0.0
    return max(_carried_over(by_second, samples[0].length), (1 + surely) / (1 - surely))


def _carried_over(phi: float, length: int) -> float:
    """The inflation for blocks of `length` seconds each of which resembles the last by `phi` (AR(1))."""
    if phi <= 0 or length < 1:
        return 1.0
    decay = phi**length
    next_block = phi * (1 - decay) ** 2 / (length * (1 - phi**2) - 2 * phi * (1 - decay))
    return 1 + 2 * next_block / (1 - decay)


def _resemblance(series: Sequence[Floats]) -> float:
    """Correlation of values with the next one, all series together, put right for its known lowness in short ones."""
    products = squares = 0.0
    lengths = []
    for values in series:
        there = values[np.isfinite(values)]
        if len(there) < 4:
            continue
        apart = there - there.mean()
        products += float((apart[1:] * apart[:-1]).sum())
        squares += float((apart**2).sum())
        lengths.append(len(there))
    if not squares:
        return 0.0
    number = sum(lengths) / len(lengths)
    return float(np.clip((products / squares + 1 / number) / (1 - 3 / number), 0.0, 0.97))


def _nothing(pairs: Pairs, name: str) -> bool:
    """Whether there is nothing to compare: not read on a side, or 0 all the time."""
    values = [sample.blocks[name] for pair in pairs for sample in pair]
    return any(np.isnan(one).all() for one in values) or not any(np.nan_to_num(one).any() for one in values)


def _logarithmic(values: Sequence[Floats]) -> bool:
    return all(bool((one[~np.isnan(one)] > 0).all()) for one in values)


def _scaled(values: Floats, logarithmic: bool) -> Floats:
    if not logarithmic:
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Floats = np.log(values)
    return scaled


def _found(pairs: Pairs, name: str) -> _Found | None:
    """None where a side has too few values for any test."""
    known = all(name in sample.blocks for pair in pairs for sample in pair)
    if not known:
        return None
    values = [[sample.blocks[name][~np.isnan(sample.blocks[name])] for sample in pair] for pair in pairs]
    if any(len(one) < 2 for pair in values for one in pair):
        return None
    logarithmic = _logarithmic([one for pair in values for one in pair])
    scaled = [(_scaled(a, logarithmic), _scaled(b, logarithmic)) for a, b in values]
    inflation = inflation_of(pairs, name)
    sizes = (sum(len(a) for a, _ in scaled), sum(len(b) for _, b in scaled))
    return _Found(
        name=name,
        shift=_tested(pairs, name, scaled, inflation, logarithmic),
        logarithmic=logarithmic,
        inflation=inflation,
        sizes=sizes,
        before=_overall([before for before, _ in pairs], name),
        after=_overall([after for _, after in pairs], name),
    )


def _overall(samples: Sequence[Sample], name: str) -> float:
    """Of all samples, each by its length."""
    return float(np.average([one.overall[name] for one in samples], weights=[one.seconds for one in samples]))


def _tested(pairs: Pairs, name: str, scaled: list[tuple[Floats, Floats]], inflation: float, logarithmic: bool) -> Shift:
    if len(scaled) > 1:
        return van_elteren(scaled, inflation)
    (a, b) = scaled[0]
    if pairs[0][0].unit == "run" and min(len(a), len(b)) < _RANKABLE:
        return welch(a, b)
    by_ranks = shift(a, b, inflation)
    if name in PERCENTILES and PERCENTILES[name] > 90 and pairs[0][0].unit == "block" and logarithmic:
        estimate, low, high = _bootstrap(pairs[0], PERCENTILES[name], inflation)
        return Shift(estimate, low, high, by_ranks.p)
    return by_ranks


def _bootstrap(pair: tuple[Sample, Sample], percent: float, inflation: float) -> tuple[float, float, float]:
    """Logarithm of the ratio of the two windows' percentile, with the interval that drawing blocks anew gives.

    Seeded, so that the same windows give the same interval. Widened for blocks that resemble each other, for the
    spread that a draw from few blocks lacks, and by Student's t.
    """
    spreads = []
    centres = []
    for sample in pair:
        centre = math.log(float(sample.spread.percentiles_of(sample.spread.pooled, percent)[0]))
        # Each side draws the same numbers, so that turning the sides round turns the interval round.
        generator = np.random.default_rng(_SEED)
        draws = generator.multinomial(sample.size, np.full(sample.size, 1 / sample.size), size=_DRAWS).astype(
            np.float64
        )
        spread = sample.spread.around(percent)
        # Not by @: for so little work the threads of a BLAS cost more than they bring.
        drawn = np.log(spread.percentiles_of(np.einsum("db,bk->dk", draws, spread.counts), percent))
        wider = math.sqrt(inflation * sample.size / (sample.size - 1))
        spreads.append(np.sort(drawn - centre) * wider)
        centres.append(centre)
    before, after = spreads
    freedom = max(1.0, (pair[0].size + pair[1].size) / inflation - 2)
    stretch = student_quantile(0.975, round(freedom, 1)) / _TWO_SIDED
    estimate = centres[1] - centres[0]
    # All draws of one side against all of the other, thinned: no pairing by chance.
    apart = np.sort((after[::10, None] - before[None, ::10]).ravel()) * stretch
    low, high = float(np.quantile(apart, 0.025)), float(np.quantile(apart, 0.975))
    return estimate, estimate + low, estimate + high


def _effect(one: _Found, name: str, p: float, risk: float, own_risk: float, headline: bool) -> Effect:
    estimate, low, high, _ = one.shift
    known = math.isfinite(low) and math.isfinite(high)
    turned = math.expm1 if one.logarithmic else float
    # From the interval's half width to what a test at this figure's own risk finds four times out of five.
    half = (high - low) / 2 / _TWO_SIDED * (_POWER - _NORMAL.inv_cdf(own_risk / 2)) if known else math.inf
    large = abs(turned(estimate)) >= LEAST or not one.logarithmic
    different = p < risk and known and large and (low > 0 or high < 0)
    word: Word = SAME
    if different:
        word = "better" if (estimate > 0) == higher_is_better(name) else "worse"
    return Effect(
        name=name,
        word=word if known else NOT,
        headline=headline,
        reason="" if known else FEW if one.inflation <= 1 else f"{FEW}: they resemble each other",
        before=one.before,
        after=one.after,
        relative=one.logarithmic,
        change=turned(estimate),
        low=turned(low) if known else None,
        high=turned(high) if known else None,
        seen=turned(half) if known else None,
        p=p,
        worth=(max(1, int(one.sizes[0] / one.inflation)), max(1, int(one.sizes[1] / one.inflation))),
    )


def _untold(name: str, headline: bool) -> Effect:
    return Effect(name=name, word=NOT, headline=headline, reason=FEW)
