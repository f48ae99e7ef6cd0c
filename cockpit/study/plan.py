"""A study laid out: its steps in order, the load of each, and about how long it all takes. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from cockpit.analysis.steady import settled
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load import LoadPlan
from cockpit.model.study import Arm, Study

# About how long (s) things take that no plan says: a change by its cost, an action once, what comes round each run.
CHANGE_TAKES = {"written": 1.5, "live": 1.5, "graceful": 4.0, "restart": 6.0, "remount": 2.0}
ACTION_TAKES = 2.0
RUN_ADDS = 2.0


class Step(NamedTuple):
    """One arm on one rung in one round (from 1). `number` counts from 0 in the order in which they are done; `visit`
    is the same for steps between which nothing is set up anew."""

    number: int
    visit: int
    round: int
    arm: Arm
    rung: float | None


class Extent(NamedTuple):
    """How long something takes at least and at most, seconds. `known`: what it says of its runs is not a guess."""

    least: float
    most: float
    known: bool


def steps(study: Study) -> tuple[Step, ...]:
    """All steps in order."""
    found: list[Step] = []
    for visit, (turn, arm) in enumerate(_visits(study)):
        for rung in study.rungs or (None,):
            found.append(Step(len(found), visit, turn, arm, rung))
    return tuple(found)


def _visits(study: Study) -> list[tuple[int, Arm]]:
    """(round, arm): A B A B, A A B B, or each round in an order of its own."""
    if study.order == "blocks":
        return [(turn, arm) for arm in study.arms for turn in range(1, study.repeats + 1)]
    drawn = random.Random(study.seed)
    visits = []
    for turn in range(1, study.repeats + 1):
        arms = list(study.arms)
        if study.order == "shuffle":
            drawn.shuffle(arms)
        visits += [(turn, arm) for arm in arms]
    return visits


def load_of(study: Study, arm: Arm, rung: float | None) -> LoadPlan:
    """The load of an arm on a rung."""
    plan = at_target(study.plan, arm.url) if arm.url else study.plan
    if rung is not None:
        plan = replace(plan, rate=rung) if plan.open else replace(plan, concurrency=int(rung))
    return located(plan, dict(study.addresses))


def warm_up_of(study: Study, arm: Arm) -> LoadPlan:
    """The load that comes before an arm's first step: its highest rung, for as long as the study says."""
    plan = load_of(study, arm, max(study.rungs, default=None))
    return replace(plan, requests=None, warmup=0.0, duration=study.warm_up)


def at_target(plan: LoadPlan, url: str) -> LoadPlan:
    """The plan at another target: its URL, and the requests of a mix at that server."""
    to = urlsplit(url)
    mix = tuple(
        replace(one, url=urlsplit(one.url)._replace(scheme=to.scheme, netloc=to.netloc).geturl()) for one in plan.mix
    )
    return replace(plan, url=url, mix=mix)


def located(plan: LoadPlan, addresses: Mapping[str, str]) -> LoadPlan:
    """The plan with its connections made to where its URL's name is reached, if that is told."""
    parts = urlsplit(plan.url)
    address = addresses.get(parts.hostname or "")
    if not address or plan.connect_to or plan.unix:
        return plan
    shown = f"[{address}]" if ":" in address else address
    return replace(plan, connect_to=f"{shown}:{parts.port or (443 if parts.scheme == 'https' else 80)}")


def names_of(study: Study) -> tuple[str, ...]:
    """The servers' names in the URLs of all arms."""
    urls = [study.plan.url, *(arm.url for arm in study.arms if arm.url)]
    return tuple(dict.fromkeys(name for url in urls if (name := urlsplit(url).hostname)))


def values_of(study: Study, arm: Arm, originals: Mapping[str, str | None]) -> dict[str, str | None]:
    """What each knob of the study is to be under an arm: what the arm says, else what it was at first."""
    return {**{name: originals[name] for name in study.knobs}, **dict(arm.set)}


def enough(study: Study, rates: Sequence[Sequence[float]]) -> bool:
    """Whether the runs of a step are done. `rates` are those of its runs, oldest first, for each pass."""
    done = min(len(one) for one in rates) - study.leave_out
    if study.settle is None:
        return done >= study.runs
    return done >= study.settle.at_most or agreed(study, rates)


def agreed(study: Study, rates: Sequence[Sequence[float]]) -> bool:
    """Whether the last runs of every pass agree; without a rule for that they always do."""
    rule = study.settle
    if rule is None:
        return True
    return all(settled(one[study.leave_out :], rule.runs, rule.within) for one in rates)


def counted(study: Study, done: int) -> range:
    """Which of `done` turns of a step count: the last ones that had to agree, or all but those left out."""
    if study.settle is None:
        return range(study.leave_out, done)
    return range(max(study.leave_out, done - study.settle.runs), done)


def run_takes(study: Study) -> Extent:
    """One run, with what comes round it."""
    plan = study.plan
    if plan.duration is not None and plan.requests is None:
        seconds = plan.warmup + plan.duration
        return Extent(seconds + RUN_ADDS, seconds + RUN_ADDS, True)
    if study.takes is not None:
        return Extent(study.takes + RUN_ADDS, study.takes + RUN_ADDS, True)
    longest = inf if plan.duration is None else plan.warmup + plan.duration + RUN_ADDS
    if plan.rate and plan.requests:
        seconds = min(longest, plan.warmup + plan.requests / plan.rate + RUN_ADDS)
        return Extent(seconds, seconds, True)
    if isfinite(longest):
        return Extent(RUN_ADDS, longest, True)
    return Extent(RUN_ADDS, RUN_ADDS, False)


def takes(
    study: Study, todo: Iterable[Step], knobs: Sequence[Knob], actions: Sequence[ServerAction], run: float | None = None
) -> Extent:
    """The steps together. `run` is how long a run has taken so far, where one was done (s)."""
    one = run_takes(study) if run is None else Extent(run, run, True)
    least = most = 0.0
    visit, arm = None, None
    for step in todo:
        few, many = _turns(study)
        passes = len(study.passes)
        around = sum(_actions_take(part.before, actions) for part in study.passes)
        if step.visit != visit:
            setting = _change_takes(study, step.arm, arm, knobs) + _actions_take(step.arm.before, actions)
            setting += study.warm_up + RUN_ADDS if study.warm_up else 0.0
            least, most = least + setting, most + setting
        least += few * (passes * one.least + around)
        most += many * (passes * one.most + around)
        visit, arm = step.visit, step.arm
    if study.knobs:
        back = max(CHANGE_TAKES[knob.price] for knob in knobs if knob.name in study.knobs)
        least, most = least + back, most + back
    return Extent(least, most, one.known)


def _turns(study: Study) -> tuple[int, int]:
    if study.settle is None:
        return study.leave_out + study.runs, study.leave_out + study.runs
    return study.leave_out + study.settle.runs, study.leave_out + study.settle.at_most


def _change_takes(study: Study, arm: Arm, before: Arm | None, knobs: Sequence[Knob]) -> float:
    """The dearest change on each host, as far as values differ from those of the arm before."""
    old = dict(before.set) if before else {}
    new = dict(arm.set)
    moved = {name for name in study.knobs if old.get(name) != new.get(name)}
    costs: dict[str, float] = {}
    for knob in knobs:
        if knob.name in moved:
            costs[knob.host] = max(costs.get(knob.host, 0.0), CHANGE_TAKES[knob.price])
    return sum(costs.values())


def _actions_take(names: Iterable[str], actions: Sequence[ServerAction]) -> float:
    times = {action.name: action.times for action in actions}
    return sum(ACTION_TAKES * times[name] for name in names)
