"""From a profile's [study] table to the study that is carried out, in full or in its short form."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.model.figures import is_figure, is_host_figure
from cockpit.model.knobs import Knob
from cockpit.model.load import LoadPlan
from cockpit.model.study import Arm, Look, Pass, Settle, Study
from cockpit.profiles.files import NamedFiles
from cockpit.profiles.plan import Wrong, checked_url, make_plan, seconds_of
from cockpit.profiles.sections import Load, ProfileFile
from cockpit.profiles.study_sections import SettleSection, ShortSection, StudySection

_NOTHING = ShortSection()
_OF_LOAD = ("requests", "duration", "rate", "concurrency", "warmup")
_ENDS = ("requests", "duration")


def to_study(file: ProfileFile, knobs: Sequence[Knob], files: NamedFiles, *, short: bool = False) -> Study:
    """The study of a file that has one. `files` reads the files that it names. Raises Wrong."""
    section = file.study or StudySection()
    instead = (section.short or _NOTHING) if short else _NOTHING
    plan = make_plan(file.target, _load(file.load, instead), file.tls, file.request, files)
    chosen = _merged(section, instead)
    study = Study(
        plan=plan,
        form="short" if short else "full",
        arms=_arms(section, instead),
        passes=tuple(Pass(name=one.name, before=one.before) for one in section.passes) or (Pass(),),
        rungs=chosen["rungs"],
        repeats=chosen["repeats"],
        order=section.order,
        seed=section.seed,
        runs=chosen["runs"] or 1,
        leave_out=chosen["leave_out"],
        settle=_settle(chosen["settle"], chosen["runs"]),
        after=section.after,
        looks=tuple(msgspec.convert(msgspec.to_builtins(one), Look) for one in section.look),
        watch=section.watch,
        compare=section.compare,
        takes=seconds_of("study.takes", chosen["takes"]),
        warm_up=seconds_of("study.warm_up", chosen["warm_up"], least=0.0) or 0.0,
        secret=tuple(knob.name for knob in knobs if knob.secret),
    )
    study = replace(study, compare=_pairs(study))
    _check(study, knobs, file)
    return study


def _load(load: Load, instead: ShortSection) -> Load:
    """The file's load with what the short form says of it."""
    given = {name: getattr(instead, name) for name in _OF_LOAD if getattr(instead, name) is not None}
    if any(name in given for name in _ENDS):
        given = dict.fromkeys(_ENDS) | given
    return replace(load, **given)


def _merged(section: StudySection, instead: ShortSection) -> dict[str, Any]:
    """What both forms can say. A short form with a number of runs does not wait for them to settle."""
    names = ("rungs", "repeats", "runs", "leave_out", "settle", "takes", "warm_up")
    full = {name: getattr(section, name) for name in names}
    given = {name: getattr(instead, name) for name in names if getattr(instead, name) is not None}
    if "runs" in given and "settle" not in given:
        full["settle"] = None
    if "settle" in given and "runs" not in given:
        full["runs"] = None
    return full | given


def _settle(section: SettleSection | None, runs: int | None) -> Settle | None:
    if section is None:
        return None
    if runs is not None:
        raise Wrong("study.settle", "found beside runs; allowed: one of the two")
    if section.at_most < section.runs:
        raise Wrong("study.settle.at_most", f"found {section.at_most}; allowed: at least runs, {section.runs}")
    return Settle(runs=section.runs, within=section.within, at_most=section.at_most)


def _arms(section: StudySection, instead: ShortSection) -> tuple[Arm, ...]:
    if section.arm and section.factor:
        raise Wrong("study.factor", "found beside [[study.arm]] blocks; allowed: one of the two")
    arms = _grid(section) if section.factor else _listed(section)
    _once("study.arm.name", [arm.name for arm in arms])
    if instead.arms is None:
        return arms
    known = {arm.name: arm for arm in arms}
    for name in instead.arms:
        if name not in known:
            raise Wrong("study.short.arms", f"found {name!r}; allowed: {', '.join(known)}")
    return tuple(known[name] for name in instead.arms)


def _listed(section: StudySection) -> tuple[Arm, ...]:
    arms = tuple(
        Arm(
            name=one.name,
            set=tuple(one.set.items()),
            url=_url(f"study.arm {one.name}.url", one.url),
            before=one.before,
        )
        for one in section.arm
    )
    return arms or (Arm(name="as it is"),)


def _grid(section: StudySection) -> tuple[Arm, ...]:
    """An arm for every combination of the factors' values, the last factor changing fastest."""
    _once("study.factor.knob", [factor.knob for factor in section.factor])
    columns = [[(factor.knob, value) for value in factor.values] for factor in section.factor]
    return tuple(
        Arm(name=", ".join(f"{knob} {value}" for knob, value in row), set=row) for row in itertools.product(*columns)
    )


def _url(key: str, url: str) -> str:
    if not url:
        return ""
    try:
        return checked_url(url)
    except Wrong as error:
        raise Wrong(key, str(error).partition(": ")[2]) from None


def _pairs(study: Study) -> tuple[tuple[str, str], ...]:
    """The pairs to judge: those named that are there; where none is named, the first arm against each other one."""
    names = [arm.name for arm in study.arms]
    if study.compare:
        return tuple(pair for pair in study.compare if set(pair) <= set(names))
    return tuple((names[0], other) for other in names[1:])


def _check(study: Study, knobs: Sequence[Knob], file: ProfileFile) -> None:
    """What must fit together. Raises Wrong."""
    if study.plan.stages:
        raise Wrong("load.stages", "found in a profile with a study; allowed: study.rungs, each a run of its own")
    if study.rungs and not study.plan.open and any(rung != int(rung) for rung in study.rungs):
        raise Wrong("study.rungs", "found a fraction; allowed: whole connections (a load with a rate may have any)")
    _once("study.passes.name", [one.name for one in study.passes])
    _once("study.look.name", [one.name for one in study.looks])
    _check_names(study, knobs, file)
    _check_plans(study.plan, study)


def _check_names(study: Study, knobs: Sequence[Knob], file: ProfileFile) -> None:
    known = {knob.name: knob for knob in knobs}
    for arm in study.arms:
        for name, value in arm.set:
            _known(f"study.arm {arm.name}.set", name, known, "knobs")
            if refused := known[name].refuses(value):
                raise Wrong(f"study.arm {arm.name}.set", f"{name} = {value!r} {refused}")
    actions = [action.name for action in file.action]
    used = [(f"study.arm {arm.name}.before", name) for arm in study.arms for name in arm.before]
    used += [(f"study.passes {one.name}.before", name) for one in study.passes for name in one.before]
    used += [("study.after", name) for name in study.after]
    for key, name in used:
        _known(key, name, actions, "actions")
    _check_active(study, known)
    hosts = [host.name for host in file.host]
    for look in study.looks:
        _known(f"study.look {look.name}.host", look.host, hosts, "hosts")
    for name in study.watch:
        _check_figure(name, hosts)
    if file.study and file.study.compare:
        arms = [arm.name for arm in (_grid(file.study) if file.study.factor else _listed(file.study))]
        for one in itertools.chain(*file.study.compare):
            _known("study.compare", one, arms, "arms")


def _check_active(study: Study, known: Mapping[str, Knob]) -> None:
    """A value that is only written must become active before an arm is measured. Raises Wrong."""
    around = [set(one.before) for one in study.passes] or [set()]
    for arm in study.arms:
        done = set(arm.before).union(set.intersection(*around))
        for name in study.knobs:
            if known[name].written_only and known[name].action not in done:
                raise Wrong(
                    f"study.arm {arm.name}.set",
                    f"{name} is only written, not active; allowed: a knob with reload, or with its action in before",
                )


def _check_figure(name: str, hosts: Sequence[str]) -> None:
    host, _, rest = name.partition(".")
    if not is_figure(name) or (is_host_figure(rest) and host not in hosts):
        raise Wrong("study.watch", f"found {name!r}; allowed: figures as thresholds name them, of hosts of this file")


def _check_plans(plan: LoadPlan, study: Study) -> None:
    least = min(study.rungs, default=None)
    if least is None or plan.open:
        return
    if plan.workers > least:
        raise Wrong("study.rungs", f"found {least:g}; allowed: at least the load's workers, {plan.workers}")
    if plan.requests is not None and plan.requests < max(study.rungs):
        raise Wrong("study.rungs", f"found {max(study.rungs):g}; allowed: at most the requests, {plan.requests}")


def _known(key: str, name: str, names: Iterable[str], what: str) -> None:
    allowed = list(names)
    if name not in allowed:
        raise Wrong(key, f"found {name!r}; allowed: {what} of this file ({', '.join(allowed) or 'none is defined'})")


def _once(key: str, names: list[str]) -> None:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise Wrong(key, f"found {twice[0]!r} twice; allowed: each name once")
