"""The plan of a study: its rounds, the order of the steps in each round, and their estimated duration. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

from cockpit.analysis.capacity.search import LONGEST
from cockpit.analysis.intervals import FIRST_TEST
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.study import Study, StudyRound, Variant

# Estimated durations (s): of a change by its cost, of an action, and of the time around each run.
CHANGE_TAKES = {"written": 1.5, "live": 1.5, "graceful": 4.0, "restart": 6.0, "remount": 2.0}
ACTION_TAKES = 2.0
RUN_ADDS = 2.0
# Shortest time of a capacity search that finds a capacity, as a share of the longest.
_SHORTEST_SEARCH = 0.3

# Baseline variant, other variant, load level (None: the plan's load).
PlannedPair = tuple[str, str, float | None]


class StudyStep(NamedTuple):
    """One variant at one load level in one round (from 1).

    `number` identifies the step, independent of the drawn order. Steps without a set-up between them have the same
    `visit`.
    """

    number: int
    visit: int
    round: int
    variant: Variant
    level: float | None


class DurationRange(NamedTuple):
    """Minimum and maximum duration (s). Not `known`: they leave out the runs, whose duration is unknown."""

    least: float
    most: float
    known: bool


def planned_comparisons(study: Study) -> tuple[PlannedPair, ...]:
    """Return all planned comparisons, without the A/A control."""
    return tuple((first, second, level) for first, second in study.compare for level in study.levels or (None,))


def order_of(study: Study, turn: int) -> tuple[Variant, ...]:
    """Return the order of the variants in a round (from 1), by the seed.

    Orders are drawn independently, because the tests after each round assume independent rounds. Balanced orders would
    alias with noise of the same period as the rounds. If there are too few rounds for these tests, rounds are paired,
    and the second of a pair has the reverse order.
    """
    paired = study.rounds < FIRST_TEST
    drawn = random.Random(f"{study.seed}/{(turn + 1) // 2 if paired else turn}")
    order = drawn.sample(study.variants, len(study.variants))
    return tuple(order[::-1] if paired and turn % 2 == 0 else order)


def round_of(study: Study, turn: int, open_now: Sequence[PlannedPair]) -> StudyRound:
    """Return a round with its steps: the variants of the open comparisons at their load levels, and the A/A control.

    In a study without comparisons each round has all steps.
    """
    open_cells = {(name, level) for first, second, level in open_now for name in (first, second)}
    if study.control is not None:
        pair = (study.variants[0].name, study.control.name)
        open_cells |= {(name, level) for _, _, level in open_now for name in pair}
    steps = tuple(
        (variant.name, level)
        for variant in order_of(study, turn)
        for level in study.levels or (None,)
        if not study.compare or (variant.name, level) in open_cells
    )
    return StudyRound(t=0, round=turn, steps=steps, open=tuple(open_now))


def steps_of(study: Study, turn: StudyRound) -> tuple[StudyStep, ...]:
    """Return the steps of a round, in order; steps in a recording that the study does not have are skipped."""
    places = {variant.name: (place, variant) for place, variant in enumerate(study.variants)}
    levels = study.levels or (None,)
    steps = []
    for name, level in turn.steps:
        if name not in places or level not in levels:
            continue
        place, variant = places[name]
        visit = (turn.round - 1) * len(places) + place
        steps.append(StudyStep(visit * len(levels) + levels.index(level), visit, turn.round, variant, level))
    return tuple(steps)


def all_steps(study: Study, last: int | None = None) -> tuple[StudyStep, ...]:
    """Return the steps of all rounds, or of the rounds up to `last`, if every comparison stays open."""
    return tuple(
        step
        for turn in range(1, (study.all_rounds if last is None else last) + 1)
        for step in steps_of(study, round_of(study, turn, planned_comparisons(study)))
    )


def values_of(study: Study, variant: Variant, originals: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the value of each knob of the study for a variant: the variant's value, else the original one."""
    return {**{name: originals[name] for name in study.knobs}, **dict(variant.set)}


def search_time(study: Study) -> float:
    """Return the longest time (s) of a capacity search of the study."""
    return study.run_time or LONGEST


def run_duration(study: Study) -> DurationRange:
    """Return the duration of one run, with the time around it."""
    plan = study.plan
    if study.until:
        most = search_time(study)
        return DurationRange(_SHORTEST_SEARCH * most + RUN_ADDS, most + RUN_ADDS, True)
    longest = inf if plan.duration is None else plan.warmup + plan.duration + RUN_ADDS
    if plan.requests is None and isfinite(longest):
        seconds = longest
    elif study.run_time is not None:
        seconds = study.run_time + RUN_ADDS
    elif plan.rate and plan.requests:
        seconds = min(longest, plan.warmup + plan.requests / plan.rate + RUN_ADDS)
    else:
        known = isfinite(longest)
        return DurationRange(RUN_ADDS, longest if known else RUN_ADDS, known)
    return DurationRange(seconds, seconds, True)


def total_duration(
    study: Study,
    todo: Iterable[StudyStep],
    knobs: Sequence[Knob],
    actions: Sequence[ServerAction],
    run: float | None = None,
) -> DurationRange:
    """Return the total duration of the steps. `run` is the mean duration of the runs so far (s), None without any."""
    run_range = run_duration(study) if run is None else DurationRange(run, run, True)
    least = most = 0.0
    visit = None
    turns = study.discard + study.runs
    for step in todo:
        passes = len(study.passes)
        around = sum(_actions_take(part.before, actions) for part in study.passes)
        if step.visit != visit:
            setting = _set_up_takes(study, knobs) + _actions_take(step.variant.before, actions)
            setting += study.setup_warmup + RUN_ADDS if study.setup_warmup else 0.0
            least, most = least + setting, most + setting
        least += turns * (passes * run_range.least + around)
        most += turns * (passes * run_range.most + around)
        visit = step.visit
    if study.knobs:
        back = max(CHANGE_TAKES[knob.effective_cost] for knob in knobs if knob.name in study.knobs)
        least, most = least + back, most + back
    return DurationRange(least, most, run_range.known)


def is_counted(study: Study, step: StudyStep, turn: int) -> bool:
    """Return whether run `turn` (from 1) of a step counts: neither its round nor the run is discarded."""
    return step.round > study.discard_rounds and turn > study.discard


def first_test(study: Study) -> int:
    """Return the round after which the first test is made; the last one if nothing is compared."""
    return study.discard_rounds + (min(study.rounds, FIRST_TEST) if study.compare else study.rounds)


def study_duration(study: Study, knobs: Sequence[Knob], actions: Sequence[ServerAction]) -> DurationRange:
    """Return the duration of a study: at least the rounds until the first test, at most all rounds."""
    least = total_duration(study, all_steps(study, last=first_test(study)), knobs, actions)
    most = total_duration(study, all_steps(study), knobs, actions)
    return DurationRange(least.least, most.most, most.known)


def reloads_left(study: Study, knobs: Sequence[Knob], moved: Collection[str]) -> tuple[str, ...]:
    """Return one knob per reload command of the study that changing the `moved` knobs does not run."""
    own = [knob for knob in knobs if knob.name in study.knobs and knob.reload]
    run = {(knob.host, knob.reload) for knob in own if knob.name in moved}
    return tuple({(knob.host, knob.reload): knob.name for knob in own if (knob.host, knob.reload) not in run}.values())


def _set_up_takes(study: Study, knobs: Sequence[Knob]) -> float:
    """Return the estimated time (s) of a set-up: the most expensive change on each host."""
    costs: dict[str, float] = {}
    for knob in knobs:
        if knob.name in study.knobs:
            costs[knob.host] = max(costs.get(knob.host, 0.0), CHANGE_TAKES[knob.effective_cost])
    return sum(costs.values())


def _actions_take(names: Iterable[str], actions: Sequence[ServerAction]) -> float:
    times = {action.name: action.times for action in actions}
    return sum(ACTION_TAKES * times[name] for name in names)
