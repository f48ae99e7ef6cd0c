"""Verdicts on the planned comparisons and the A/A control of a study, and the spread between rounds. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.effects import HEADLINE_SHARE
from cockpit.analysis.intervals import ALPHA, FIRST_TEST, POWER, Speeds, estimate, minimum_detectable, student_quantile
from cockpit.analysis.replicates import ReplicatePairs, round_differences
from cockpit.analysis.verdicts.objections import objection, with_invalid_effects
from cockpit.analysis.verdicts.other_load import round_objections
from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Design, Effect, Objection, Outcome, Verdict
from cockpit.analysis.verdicts.verdict import PlannedComparisons, judge_rounds, judge_runs
from cockpit.analysis.warnings import WarningKind, warning_of
from cockpit.analysis.windows import Window
from cockpit.model.study import Study, StudyRound
from cockpit.study.plan import PlannedPair, planned_comparisons, round_of, steps_of
from cockpit.study.results import Contradiction, RoundSpread, StudyCell, StudyResult, StudyVerdict

# Outcomes that answer the question of a comparison.
CONCLUSIVE = (*DIFFERENT, Outcome.EQUIVALENT)
# A larger share of excluded rounds makes a comparison invalid.
MOST_EXCLUDED = 0.25
# Causes in the variants themselves; further rounds would be invalid too.
_SYSTEMATIC = (Cause.REQUESTS_FAILED, Cause.LOAD_DIFFERS)
# Set-ups in a round of one comparison: the baseline, the other variant, the A/A control.
_VISITS = 3
# Degrees of freedom that the pooled spread of the other cells adds when there are few rounds.
_BORROWED = 4


Cells = Mapping[tuple[str, float | None, str], StudyCell]


def verdicts_of(study: Study, cells: Sequence[StudyCell], rounds: Sequence[StudyRound]) -> tuple[StudyVerdict, ...]:
    """Return a verdict for the A/A control and each planned comparison, if both cells have counted runs."""
    by_place = {(cell.variant, cell.level, cell.pass_name): cell for cell in cells}
    verdicts: list[StudyVerdict] = []
    for level in study.levels or (None,):
        for part in study.passes:
            pairs = [(study.variants[0].name, study.control.name)] if study.control else []
            control = next((_verdict(study, by_place, rounds, (*pair, level), part.name) for pair in pairs), None)
            judged = [_verdict(study, by_place, rounds, (*pair, level), part.name) for pair in study.compare]
            verdicts += filter(None, (control, *(_checked(verdict, control) for verdict in judged)))
    return tuple(verdicts)


def open_after(study: Study, verdicts: Sequence[StudyVerdict]) -> tuple[PlannedPair, ...]:
    """Return the planned comparisons that are not closed in all passes."""
    closed: dict[PlannedPair, list[bool]] = {}
    for verdict in verdicts:
        closed.setdefault((verdict.first, verdict.other, verdict.level), []).append(verdict.closed)
    whole = len(study.passes)
    return tuple(
        comparison
        for comparison in planned_comparisons(study)
        if not (len(closed.get(comparison, ())) == whole and all(closed[comparison]))
    )


def spread_of(study: Study, cells: Sequence[StudyCell]) -> RoundSpread | None:
    """Return the spread between rounds of the headline's difference, pooled over the A/A comparisons; None: unknown."""
    if study.control is None:
        return None
    by_place = {(cell.variant, cell.level, cell.pass_name): cell for cell in cells}
    squares, freedom = 0.0, 0
    for level in study.levels or (None,):
        for part in study.passes:
            first = by_place.get((study.variants[0].name, level, part.name))
            control = by_place.get((study.control.name, level, part.name))
            if first is None or control is None:
                continue
            pairs = _pairs(study, first, control)
            pairs = [pair for pair, problem in zip(pairs, _objections(pairs), strict=True) if problem is None]
            if len(pairs) < 2:
                continue
            differences = round_differences(pairs, headline_of(study))
            if len(differences.values) > 1:
                spread = estimate(differences.values, Speeds(differences.speeds))
                squares += spread.deviation**2 * spread.freedom
                freedom += round(spread.freedom)
    return RoundSpread(deviation=math.sqrt(squares / freedom), freedom=freedom) if freedom else None


def headline_of(study: Study) -> str:
    """Return the decisive metric: the first one in `metrics`, else the rate, or p99 if the plan fixes the rate."""
    return study.metrics[0] if study.metrics else "p99" if study.plan.open else "rate"


def detectable(study: Study, deviation: float) -> float:
    """Return the minimum detectable effect on the headline (a share) if all rounds are run."""
    alpha = ALPHA / max(1, study.comparisons) * HEADLINE_SHARE
    if study.rounds >= FIRST_TEST:
        return _share(minimum_detectable(deviation, study.rounds, alpha))
    rounds = max(1, study.rounds)
    freedom = 2 * (rounds - 1) + _BORROWED
    reach = student_quantile(1 - alpha / 2, freedom) + student_quantile(POWER, freedom)
    return _share(reach * deviation / math.sqrt(rounds))


def _share(logarithm: float) -> float:
    """Return the relative change for the logarithm of a ratio."""
    return math.expm1(min(logarithm, 700.0))


def closed(study: Study, verdict: Verdict) -> bool:
    """Return whether a verdict is conclusive, for its headline and for every metric that the study compares."""
    decisive = [effect for effect in verdict.effects if effect.headline or effect.name in study.metrics]
    return verdict.outcome in CONCLUSIVE and all(effect.outcome is not Outcome.INCONCLUSIVE for effect in decisive)


def rounds_needed(study: Study, verdict: Verdict) -> int | None:
    """Estimate the number of rounds that would conclude an open comparison; None if unknown.

    They suffice to detect the observed effect, or to show that it is within the margin.
    """
    effect = verdict.headline
    if verdict.outcome is not Outcome.INCONCLUSIVE or effect is None or not effect.relative or not effect.detectable:
        return None
    size = _size(effect, effect.change)
    distance = max(size, math.log1p(effect.margin) - size)
    basis = study.rounds if verdict.design is Design.ROUNDS else min(verdict.values)
    return max(FIRST_TEST, math.ceil(basis * (math.log1p(effect.detectable) / distance) ** 2)) if distance else None


def _step_seconds(rounds: Sequence[StudyRound]) -> float | None:
    """Return the median duration of a step (s), from the starts of rounds of one session; None: unknown."""
    pairs = itertools.pairwise(rounds)
    times = [(later.t - turn.t) / len(turn.steps) for turn, later in pairs if later.t > turn.t and turn.steps]
    return median(times) if times else None


class _Judged(NamedTuple):
    """A verdict, its number of `rounds`, and the number of `excluded` rounds among all `whole` ones."""

    verdict: Verdict
    rounds: int
    excluded: int = 0
    whole: int = 0

    def is_hopeless(self, budget: int) -> bool:
        """Return whether further rounds cannot make the verdict valid: requests of a variant fail, the loads differ, or
        more rounds are excluded than a study of `budget` rounds can leave out."""
        if self.verdict.outcome is not Outcome.INVALID:
            return False
        cause = self.verdict.objection.cause if self.verdict.objection else None
        return cause in _SYSTEMATIC or self.excluded > MOST_EXCLUDED * budget


def _verdict(
    study: Study, cells: Cells, rounds: Sequence[StudyRound], place: PlannedPair, part: str
) -> StudyVerdict | None:
    first, second, level = place
    before, after = cells.get((first, level, part)), cells.get((second, level, part))
    if not (before and after and before.counted and after.counted):
        return None
    # Variants of a closed comparison may continue for other comparisons; those rounds are ignored.
    considered = {turn.round for turn in rounds if after.control or place in turn.open}
    label = " · ".join(filter(None, (f"{second} vs {first}", level_words(study, level), part)))
    others = {place: cell for place, cell in cells.items() if cell not in (before, after)}
    judged = _judged(study, before, after, others, considered, label)
    over = judged.whole >= FIRST_TEST and (judged.is_hopeless(study.rounds) or closed(study, judged.verdict))
    needed = None if over or after.control else rounds_needed(study, judged.verdict)
    step = _step_seconds(rounds)
    return StudyVerdict(
        first=first,
        other=second,
        level=level,
        pass_name=part,
        verdict=judged.verdict,
        control=after.control,
        closed=over and not after.control,
        rounds=judged.rounds,
        excluded=judged.excluded,
        needed=needed,
        needed_seconds=needed * _VISITS * step if needed and step else None,
    )


def level_words(study: Study, level: float | None) -> str:
    """Return a load level as `c=8` or `250/s`; empty for None."""
    if level is None:
        return ""
    return f"{level:g}/s" if study.plan.open else f"c={level:g}"


def _judged(
    study: Study, first: StudyCell, second: StudyCell, others: Cells, considered: set[int], label: str
) -> _Judged:
    """Judge by rounds if there are at least FIRST_TEST, else by runs, with the pooled spread of the other cells.

    Disturbed rounds (saturated generator, other load on the host) are excluded, in both variants, with a warning; too
    many of them make the verdict invalid.
    """
    family = PlannedComparisons(max(1, study.comparisons), study.metrics, study.margin)
    pairs = _pairs(study, first, second, considered)
    if len(pairs) < FIRST_TEST:
        before, after = (list(_by_round(study, cell).values()) for cell in (first, second))
        borrowed = [list(_by_round(study, cell).values()) for cell in others.values()]
        return _Judged(judge_runs(before, after, label, borrowed, family), min(len(before), len(after)))
    alike = _compared_alike(study, first, others, considered)
    objections = _objections(pairs)
    valid = [pair for pair, problem in zip(pairs, objections, strict=True) if problem is None]
    against = [problem for problem in objections if problem is not None]
    if not against or len(valid) < FIRST_TEST or len(against) > MOST_EXCLUDED * len(pairs):
        verdict = judge_rounds(pairs, label, study.rounds, family, alike)
        # A lower bound ("at least") may remain with a saturated generator, but nothing with other load.
        loads = [problem for problem in against if problem.cause is Cause.OTHER_LOAD]
        if loads and verdict.outcome is not Outcome.INVALID:
            verdict = with_invalid_effects(verdict, loads[0])
        return _Judged(verdict, len(pairs), len(against), len(pairs))
    verdict = judge_rounds(valid, label, study.rounds, family, alike)
    warning = warning_of(WarningKind.ROUNDS_EXCLUDED, against[0].cause, count=len(against), total=len(pairs))
    verdict = replace(verdict, warnings=(warning, *verdict.warnings))
    return _Judged(verdict, len(valid), len(against), len(pairs))


def _compared_alike(study: Study, first: StudyCell, others: Cells, considered: set[int]) -> list[ReplicatePairs]:
    """Return the rounds of `first` paired with each other variant at the same load level and in the same pass."""
    paired: list[ReplicatePairs] = []
    for (_, level, part), cell in others.items():
        if level == first.level and part == first.pass_name:
            pairs = _pairs(study, first, cell, considered)
            paired += [pairs] if len(pairs) > 1 else []
    return paired


def _objections(pairs: Sequence[tuple[list[Window], list[Window]]]) -> list[Objection | None]:
    """Return the objection to each round; None: the round is valid."""
    return [load or objection(*pair) for pair, load in zip(pairs, round_objections(pairs), strict=True)]


def _pairs(
    study: Study, first: StudyCell, second: StudyCell, considered: set[int] | None = None
) -> list[tuple[list[Window], list[Window]]]:
    """Return the windows of both cells per round, for rounds with runs of both."""
    before, after = _by_round(study, first), _by_round(study, second)
    rounds = sorted(before.keys() & after.keys())
    return [(before[turn], after[turn]) for turn in rounds if considered is None or turn in considered]


def _by_round(study: Study, cell: StudyCell) -> dict[int, list[Window]]:
    """Return the windows by round; runs without a set-up between them together are one value."""
    windows: dict[int, list[Window]] = {}
    for run in cell.counted:
        # Variants may differ in their load on purpose, so the windows get the study's plan.
        window = replace(run.window, plan=study.plan)
        windows.setdefault(run.place.round, []).append(window)
    return windows


def _checked(judged: StudyVerdict | None, control: StudyVerdict | None) -> StudyVerdict | None:
    """Return the verdict with its contradiction by the A/A control at the same level, if any."""
    if judged is None or control is None or judged.verdict.outcome not in CONCLUSIVE:
        return judged
    if control.verdict.outcome is Outcome.INVALID:
        return judged
    effect = next((effect for effect in judged.verdict.effects if effect.outcome is judged.verdict.outcome), None)
    same = control.verdict.effect(effect.name) if effect else None
    differs = judged.verdict.outcome in DIFFERENT
    if control.verdict.outcome in DIFFERENT and not (differs and effect and same and _exceeds(effect, same)):
        return replace(judged, contradiction=Contradiction.CONTROL_DIFFERS)
    if differs and effect and same and _size(effect, effect.change) < _size(same, same.change):
        return replace(judged, contradiction=Contradiction.SMALLER_THAN_CONTROL)
    return judged


def _exceeds(effect: Effect, control: Effect) -> bool:
    """Return whether the smallest change in the interval of an effect is larger than the largest in the control's."""
    bounds = [end for end in (effect.low, effect.high) if end is not None]
    if not bounds or control.low is None or control.high is None:
        return False
    smallest = min(_size(effect, end) for end in bounds)
    return smallest > max(_size(control, control.low), _size(control, control.high))


def _size(effect: Effect, change: float | None) -> float:
    """Return the absolute size of a change of an effect's metric, log scale if it is relative; 0 if unknown."""
    change = change or 0.0
    return abs(math.log1p(max(change, -0.999999))) if effect.relative else abs(change)


def next_round(study: Study, result: StudyResult | None) -> StudyRound | None:
    """Return the next round to run: the last one if it is incomplete, else a new one; None: the study is over.

    Comparisons are tested, and closed, from counted round FIRST_TEST on.
    """
    rounds = result.rounds if result else ()
    if result and rounds and any(step.number not in result.done for step in steps_of(study, rounds[-1])):
        return rounds[-1]
    number = len(rounds) + 1
    if number > study.all_rounds:
        return None
    still_open = planned_comparisons(study)
    if result and study.compare and len(rounds) >= study.discard_rounds + FIRST_TEST:
        left = open_after(study, result.verdicts)
        still_open = tuple(comparison for comparison in left if not _lacks_values(result, comparison))
        if not still_open:
            return None
    return round_of(study, number, still_open)


def _lacks_values(result: StudyResult, place: PlannedPair) -> bool:
    """Return whether a variant had several runs, none with a value: capacity searches beyond the generator, e.g."""
    first, second, level = place
    cells = [cell for cell in result.cells if cell.variant in (first, second) and cell.level == level]
    return any(len(cell.runs) >= FIRST_TEST and not cell.counted for cell in cells)
