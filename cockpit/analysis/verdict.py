"""The verdict on two windows, on repeats of a change, or on rows of whole runs: what it says, how surely, and why not.

The verdict's word is the headline's: the rate under closed load, p99 under open load, where the plan fixes the rate.
Where the headline shows no difference the first figure that does lends its word. More errors are worse whatever else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import msgspec
import numpy as np

from cockpit.analysis.blocks import SHORTEST, Sample, block_length, block_sample, runs_sample, windows_sample
from cockpit.analysis.compare import (
    LEAST,
    NOT,
    RISK,
    RISK_GOING_ON,
    SAME,
    Effect,
    Pairs,
    Word,
    blocks_needed,
    effects,
    enough,
    inflation_of,
)
from cockpit.analysis.doubt import BOUND, STARVED
from cockpit.analysis.lost import lost_hosts, without_lost
from cockpit.analysis.plans import differences
from cockpit.analysis.ranks import Floats, shift, smallest_p
from cockpit.analysis.steady import trend
from cockpit.analysis.windows import Window
from cockpit.model.state import Segment
from cockpit.model.text import neutral

# A share of failed requests from which rate and latency tell of other replies than they did before.
FAILING = 0.01
# Figures that lend the verdict their word where the headline has none. Memory and births alone make nothing better.
_LENDING = ("p50", "p99", "errors", "cpu.busy", "cpu.per_reply")
# What the generator itself takes part in.
_TIMED = ("rate", "p50", "p99")
# The difference (share of the headline) that one is told how long to wait for.
WANTED = 0.05


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`effects` begin with the headline. `before` and `after` are the numbers of the rows compared.

    `reason` says why it is not comparable. `blocks` counts values a side, each `length` seconds long (0: a whole run),
    in `repeats` pairs of windows. `left_out` are the words for what was not counted, a side each. `so_far`: a window
    still grows; `needs` is how many seconds more it takes to see a difference of WANTED (infinite: more of the window
    before is needed), None where that can be seen. `drift` is how much the state before moved between its repeats.
    `at_least`: the generator was saturated on the side that is the faster one all the same, so it may be faster still.
    """

    word: Word
    label: str = ""
    reason: str = ""
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()
    unit: str = "block"
    blocks: tuple[int, int] = (0, 0)
    length: int = 0
    repeats: int = 1
    left_out: tuple[str, str] = ("", "")
    doubts: tuple[str, ...] = ()
    drift: float | None = None
    so_far: bool = False
    needs: float | None = None
    at_least: bool = False

    @property
    def headline(self) -> Effect | None:
        return self.effects[0] if self.effects else None

    def effect(self, name: str) -> Effect | None:
        """The effect on a figure, where it was looked at."""
        return next((one for one in self.effects if one.name == name), None)


def judge(before: Window, after: Window, label: str = "", other_load: bool = False) -> Verdict:
    """The verdict on two windows; different load is refused unless `other_load`."""
    return judge_repeats([(before, after)], label, other_load)


def judge_repeats(pairs: Sequence[tuple[Window, Window]], label: str = "", other_load: bool = False) -> Verdict:
    """The verdict on a change made and undone several times: each pair is (before, after), in order of time."""
    verdict = _judged_repeats(pairs, label, other_load)
    before, after = [one for one, _ in pairs], [other for _, other in pairs]
    side = _bound_side(before, after)
    if not side or before[0].plan.open:
        return verdict
    whole = _with_bound(before, after, side)
    return _at_least(verdict, _judged_repeats(list(zip(*whole, strict=True)), label, other_load), whole, side)


def _judged_repeats(pairs: Sequence[tuple[Window, Window]], label: str, other_load: bool) -> Verdict:
    windows = [window for pair in pairs for window in pair]
    length = block_length(*windows)
    samples = [(block_sample(before, length), block_sample(after, length)) for before, after in pairs]
    plan = windows[0].plan
    going_on = any(window.going_on for window in windows)
    verdict = Verdict(
        word=NOT,
        label=label,
        before=_numbers(before for before, _ in pairs),
        after=_numbers(after for _, after in pairs),
        blocks=(sum(a.size for a, _ in samples), sum(b.size for _, b in samples)),
        length=length,
        repeats=len(pairs),
        left_out=(_left_out(before for before, _ in pairs), _left_out(after for _, after in pairs)),
        so_far=going_on,
    )
    unlike = {words for window in windows for words in differences(plan, window.plan)}
    against = _against([before for before, _ in pairs], "before") or _against([after for _, after in pairs], "after")
    doubts = _doubts(windows)
    if unlike and other_load:
        doubts = (f"the load differs: {', '.join(sorted(unlike))}", *doubts)
    elif unlike:
        against = f"different load: {', '.join(sorted(unlike))}"
    verdict = msgspec.structs.replace(verdict, doubts=doubts, reason=against)
    headline = "p99" if plan.open else "rate"
    risk = RISK_GOING_ON if going_on else RISK
    return (
        verdict if unlike and not other_load else _told(verdict, samples, headline, plan.open, risk, lost_hosts(pairs))
    )


def judge_runs(before: Sequence[Window], after: Sequence[Window], label: str = "") -> Verdict:
    """The verdict on rows of which each is one value: its window, or all of it where one of them is too short.

    Every window is of one row.
    """
    verdict = _judged_runs(before, after, label)
    side = _bound_side(before, after)
    if not side or before[0].plan.open:
        return verdict
    whole = _with_bound(before, after, side)
    return _at_least(verdict, _judged_runs(*whole, label), whole, side)


def _judged_runs(before: Sequence[Window], after: Sequence[Window], label: str) -> Verdict:
    windows = (*before, *after)
    plan = before[0].plan
    verdict = Verdict(
        word=NOT,
        label=label,
        before=_numbers(before),
        after=_numbers(after),
        unit="run",
        blocks=(len(before), len(after)),
        so_far=any(window.going_on for window in windows),
    )
    unlike = {words for window in windows for words in differences(plan, window.plan)}
    if unlike:
        return msgspec.structs.replace(verdict, reason=f"different load: {', '.join(sorted(unlike))}")
    verdict = msgspec.structs.replace(
        verdict,
        reason=_against(before, "before") or _against(after, "after"),
        doubts=_doubts(windows),
    )
    if all(len(window.seconds) >= 2 * SHORTEST for window in windows):
        samples = [(windows_sample(before), windows_sample(after))]
        verdict = msgspec.structs.replace(verdict, left_out=(_left_out(before), _left_out(after)))
    else:
        samples = [(runs_sample(before), runs_sample(after))]
    return _told(verdict, samples, "p99" if plan.open else "rate", plan.open, RISK, {})


def _told(
    verdict: Verdict, pairs: Pairs, headline: str, open_load: bool, risk: float, lost: Mapping[str, str]
) -> Verdict:
    """The verdict with its effects, where these are values enough; `lost` says why a host's figures tell nothing."""
    if not enough(pairs, headline, risk):
        if verdict.reason:
            return verdict
        unsteady = _unsteady(pairs, headline, 0.0)
        if unsteady:
            return msgspec.structs.replace(verdict, reason=unsteady)
        few, missing = _too_few(pairs, headline, risk)
        return msgspec.structs.replace(verdict, reason=few, needs=missing)
    found = without_lost(effects(pairs, headline, open_load, risk), lost, open_load)
    drift = _drift(pairs, headline)
    reason = verdict.reason or _unsteady(pairs, headline, found[0].change or 0.0)
    failing = _failing(found)
    if reason:
        found = tuple(msgspec.structs.replace(one, word=NOT, reason=reason) for one in found)
    elif failing:
        found = tuple(
            one if one.name == "errors" else msgspec.structs.replace(one, word=NOT, reason=failing) for one in found
        )
    word, why = _word(found)
    drifted = ""
    if not reason and word in ("better", "worse") and drift is not None and _outdone(drift, found[0], len(pairs)):
        word, drifted = NOT, f"what was before moved by {100 * drift:+.0f} % by itself between its repeats"
    return msgspec.structs.replace(
        verdict,
        word=word,
        reason=reason or drifted or (why if word == NOT else ""),
        effects=found,
        drift=drift,
        needs=_needs(pairs, found[0]) if verdict.so_far else None,
    )


def _word(found: Sequence[Effect]) -> tuple[Word, str]:
    """The verdict's word, and the reason that stands for it where it is not comparable."""
    errors = next((one for one in found if one.name == "errors"), None)
    if errors is not None and errors.word == "worse":
        return "worse", ""
    if found[0].word != SAME:
        return found[0].word, found[0].reason
    other = next(
        (one for one in found if one.word in ("better", "worse") and one.name.split(".", 1)[-1] in _LENDING), found[0]
    )
    return other.word, ""


def _bound_side(before: Sequence[Window], after: Sequence[Window]) -> str:
    """The one side on which the generator was saturated; empty where it was on none or on both."""
    sides = [any(window.bound_share > BOUND for window in windows) for windows in (before, after)]
    return {(True, False): "before", (False, True): "after"}.get((sides[0], sides[1]), "")


def _with_bound(
    before: Sequence[Window], after: Sequence[Window], side: str
) -> tuple[Sequence[Window], Sequence[Window]]:
    """Both sides, all counted on the one where the generator was saturated."""
    if side == "before":
        return [window.with_bound() for window in before], after
    return before, [window.with_bound() for window in after]


def _at_least(
    refused: Verdict, whole: Verdict, windows: tuple[Sequence[Window], Sequence[Window]], side: str
) -> Verdict:
    """The verdict on all that was counted, where the side that the generator held back is the faster one even so.

    Its rate is the least and its latencies are the most that the server is good for. What says the opposite of the
    rate may be the generator's doing, and tells nothing. What is only too short is told to be that: more time helps.
    """
    word: Word = "better" if side == "after" else "worse"
    doubt = f"{refused.reason.partition(':')[0]}: the server may be faster still"
    if whole.needs is not None and not whole.effects and _faster(*windows) == side:
        return msgspec.structs.replace(whole, doubts=(doubt, *whole.doubts))
    if whole.word != word or whole.headline is None or whole.headline.word != word:
        return refused
    found = tuple(
        one
        if one.word == word or one.name not in _TIMED
        else msgspec.structs.replace(one, word=NOT, reason=refused.reason)
        for one in whole.effects
    )
    return msgspec.structs.replace(whole, effects=found, at_least=True, doubts=(doubt, *whole.doubts))


def _faster(before: Sequence[Window], after: Sequence[Window]) -> str:
    """The side of more replies a second, not tested."""
    counts = [[second.completed for window in windows for second in window.seconds] for windows in (before, after)]
    return "before" if fmean(counts[0] or [0]) > fmean(counts[1] or [0]) else "after"


def _numbers(windows: Iterable[Window]) -> tuple[int, ...]:
    return tuple(row.number for window in windows for row in window.rows)


def _left_out(windows: Iterable[Window]) -> str:
    return "; ".join(dict.fromkeys(window.left_out for window in windows if window.left_out))


def _against(windows: Sequence[Window], side: str) -> str:
    """Why windows cannot be compared at all; empty where they can."""
    share = max(window.bound_share for window in windows)
    if share > BOUND:
        return f"generator saturated for {100 * share:.0f} % of the time {side}: it measures itself"
    return _rows_against([row for window in windows for row in window.rows], side)


def _rows_against(rows: Sequence[Segment], side: str) -> str:
    for row in rows:
        if row.altered:
            return f"the load was altered {side}"
        if row.reason == "failed":
            return f"the run {side} failed: {neutral(row.detail)}"
        if row.partial:
            return f"figures {side} are partial: {neutral(row.partial)}"
    return ""


def _doubts(windows: Sequence[Window]) -> tuple[str, ...]:
    """What stays in and is to be known."""
    total: dict[str, int] = {}
    for window in windows:
        for kind, seconds in window.doubtful.items():
            total[kind] = total.get(kind, 0) + seconds
    said = []
    if total.get("held back"):
        said.append(f"arrivals were held back in {total['held back']} s")
    said += [
        f"{neutral(kind.partition(':')[2])} was not read for {seconds} s"
        for kind, seconds in total.items()
        if kind.startswith("lost:")
    ]
    waits = [window.cpu_wait for window in windows]
    if max(waits) > STARVED:
        shares = " % and ".join(f"{100 * wait:.0f}" for wait in waits)
        said.append(f"the generator waited for a CPU {shares} % of the time: what ran beside it is in the figures")
    return tuple(said)


def _unsteady(pairs: Pairs, headline: str, change: float) -> str:
    """Said where the headline goes on rising or falling by so much that it matters beside the effect."""
    if pairs[0][0].unit == "run":
        return ""
    for pair in pairs:
        for sample, side in zip(pair, ("before", "after"), strict=True):
            moved = trend(sample.blocks[headline], trend_inflation(sample, headline))
            if abs(moved) > abs(change) / 2:
                way = "rises" if moved > 0 else "falls"
                return f"not steady: {headline} {way} by {100 * abs(moved):.0f} % within the window {side}"
    return ""


def trend_inflation(sample: Sample, name: str) -> float:
    """As `inflation_of`, around the straight line through the values: the trend itself must not hide it."""

    def levelled(values: Floats) -> Floats:
        if len(values) < 5 or not np.isfinite(values).all():
            return values
        at = np.arange(len(values))
        straight: Floats = values - np.polyval(np.polyfit(at, values, 1), at) + values.mean()
        return straight

    flat = sample._replace(blocks={name: levelled(sample.blocks[name])}, series={name: levelled(sample.series[name])})
    return inflation_of([(flat, flat)], name)


def _failing(found: Sequence[Effect]) -> str:
    """Said where so many more requests failed on one side that the rest tells of other replies."""
    errors = next((one for one in found if one.name == "errors"), None)
    if errors is None or errors.before is None or errors.after is None:
        return ""
    if max(errors.before, errors.after) <= FAILING or abs(errors.after - errors.before) <= FAILING:
        return ""
    return f"{100 * errors.before:.1f} % of the requests failed before, {100 * errors.after:.1f} % after"


def _drift(pairs: Pairs, headline: str) -> float | None:
    """By which share what was before moved from its first window to its last; None: not, as far as can be seen."""
    if len(pairs) < 2:
        return None
    first, last = pairs[0][0], pairs[-1][0]
    moved = shift(
        np.log(first.blocks[headline]), np.log(last.blocks[headline]), inflation_of([(first, last)], headline)
    )
    share = math.expm1(moved.estimate)
    return share if moved.p < RISK and abs(share) >= LEAST else None


def _outdone(drift: float, effect: Effect, repeats: int) -> bool:
    """Whether what moved by itself from one window to the next could pass for the effect."""
    return abs(effect.change or 0.0) <= abs(drift) / (repeats - 1)


def _too_few(pairs: Pairs, headline: str, risk: float) -> tuple[str, float | None]:
    """What is said of too few values, and how many seconds more the window after needs."""
    sizes = [(one.size, other.size) for one, other in pairs]
    if pairs[0][0].unit == "run":
        one, other = sizes[0]
        return f"too few runs to tell: {one} against {other}, needs 2 against 2", None
    length = pairs[0][0].length
    if len(pairs) > 1:
        return f"too short to tell: each window needs {2 * length} s, all together {5 * length} s a side", None
    (before, after), inflation = sizes[0], inflation_of(pairs, headline)
    needed = blocks_needed(before, inflation, risk)
    short, side = (after, "after") if after <= before else (before, "before")
    # The window before is over: where it is the shorter one, no waiting helps.
    wanting = blocks_needed(after, inflation, risk) if side == "before" else needed
    missing = (
        float((needed - after) * length)
        if after < needed and smallest_p(before, 1000, inflation) < risk / 2
        else math.inf
    )
    return f"too short to tell: {short * length} s {side}, needs {wanting * length} s", missing


def _needs(pairs: Pairs, effect: Effect) -> float | None:
    """How many seconds more the window after needs for a difference of WANTED; infinite where that cannot be enough."""
    if effect.seen is None or not effect.relative or effect.seen <= WANTED or len(pairs) > 1:
        return None
    before, after = pairs[0]
    smaller = (math.log1p(WANTED) / math.log1p(effect.seen)) ** 2
    left = smaller * (1 / before.size + 1 / after.size) - 1 / before.size
    return max(0.0, 1 / left - after.size) * after.length if left > 0 else math.inf
