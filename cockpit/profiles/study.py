"""Turn the [study] table of a profile into a Study, in its full or short form."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import asdict, replace

from cockpit.model.knobs import Knob
from cockpit.model.load.checks import Invalid, check_plan, check_unique, conflict
from cockpit.model.load.plan import LoadPlan
from cockpit.model.study import CONTROL, Observation, Pass, Study, Variant, variant_plan
from cockpit.profiles.files import NamedFiles
from cockpit.profiles.plan import checked_url, errors_for_key, make_plan, paths_of, seconds_of, share_of
from cockpit.profiles.sections import LoadSection, ProfileFile, ShortSection, StudySection, VariantSection

_Named = TypeVar("_Named", Variant, Pass)
_NO_SHORT_FORM = ShortSection()
_LOAD_KEYS = ("requests", "duration", "rate", "concurrency", "warmup")
# Keys of a study that its short form replaces as they are.
_SHARED_KEYS = frozenset(ShortSection.__struct_fields__) & {*StudySection.__struct_fields__} - {"passes", *_LOAD_KEYS}
_END_KEYS = ("requests", "duration")
# A shorter capacity search (s) has too few levels for a comparison.
_SHORTEST_SEARCH = 60.0
# Keys of a study and of its variants that a capacity search leaves no room for.
_NOT_SEARCHED = (*("requests", "duration", "concurrency", "rate", "levels", "runs", "discard"), "metrics")
# Metrics of a host that only exist in comparisons.
_DERIVED = ("cpu.busy", "cpu.per_request")


def to_study(file: ProfileFile, knobs: Sequence[Knob], files: NamedFiles, *, short: bool = False) -> Study:
    """Return the study of a profile that has one. `files` reads the files named in it. Raises Invalid."""
    full = file.study or StudySection()
    overrides = (full.short or _NO_SHORT_FORM) if short else _NO_SHORT_FORM
    given = {name: value for name, value in asdict(overrides).items() if name in _SHARED_KEYS and value is not None}
    section = replace(full, **given)
    passes = tuple(Pass(name=each.name, before=each.before) for each in section.passes)
    study = Study(
        plan=make_plan(file.target, _load(_load(file.load, full), overrides), file.tls, file.request, files),
        form="short" if short else "full",
        variants=_variants(section, overrides, file, files),
        passes=_selected("study.short.passes", passes, overrides.passes) or (Pass(),),
        levels=section.levels,
        rounds=section.rounds,
        seed=section.seed,
        runs=section.runs,
        discard_rounds=section.discard_rounds,
        discard=section.discard,
        after=section.after,
        observations=tuple(msgspec.convert(each, Observation, from_attributes=True) for each in section.observe),
        watch=section.watch,
        metrics=("capacity",) if section.until else section.metrics,
        until=section.until,
        compare=section.compare,
        margin=share_of("study.margin", section.margin),
        run_time=seconds_of("study.run_time", section.run_time),
        setup_warmup=seconds_of("study.setup_warmup", section.setup_warmup, least=0.0) or 0.0,
        secret=tuple(knob.name for knob in knobs if knob.secret),
    )
    study = with_control(replace(study, compare=_pairs(study), after=_after(study, knobs)))
    if study.until:
        _check_search(full, overrides, study)
    _check(study, knobs, file)
    return study


def _after(study: Study, knobs: Sequence[Knob]) -> tuple[str, ...]:
    """Return the actions at the end, which activate also the original values of knobs that are only written."""
    written = (knob.action for knob in knobs if knob.name in study.knobs and knob.written_only and knob.action)
    return (*dict.fromkeys(name for name in written if name not in study.after), *study.after)


def with_control(study: Study) -> Study:
    """Return the study with an A/A control after the first variant, if variants are compared."""
    if not study.compare:
        return study
    first, *others = study.variants
    return replace(study, variants=(first, replace(first, name=CONTROL, control=True), *others))


def _load(load: LoadSection, overrides: StudySection | ShortSection) -> LoadSection:
    """Return the load with the values of the study, or of its short form."""
    given = {name: value for name in _LOAD_KEYS if (value := getattr(overrides, name, None)) is not None}
    if any(name in given for name in _END_KEYS):
        given = dict.fromkeys(_END_KEYS) | given
    return replace(load, **given)


def _variants(
    section: StudySection, overrides: ShortSection, file: ProfileFile, files: NamedFiles
) -> tuple[Variant, ...]:
    if section.variant and section.factor:
        raise Invalid("study.factor", conflict("[[study.variant]]"))
    variants = _grid(section) if section.factor else tuple(_variant(each, file, files) for each in section.variant)
    variants = variants or (Variant(name="as it is"),)
    check_unique("study.variant.name", [variant.name for variant in variants])
    if any(variant.name == CONTROL for variant in variants):
        raise Invalid("study.variant.name", f"found {CONTROL!r}; allowed: any other name, every study adds a control")
    return _selected("study.short.variants", variants, overrides.variants)


def _selected(key: str, every: tuple[_Named, ...], names: tuple[str, ...] | None) -> tuple[_Named, ...]:
    """Return the variants or passes selected by the short form; all if `names` is None. Raises Invalid."""
    if names is None:
        return every
    known = {item.name: item for item in every}
    for name in names:
        if name not in known:
            raise Invalid(key, f"found {name!r}; allowed: {', '.join(known) or 'none is defined'}")
    return tuple(known[name] for name in names)


def _variant(section: VariantSection, file: ProfileFile, files: NamedFiles) -> Variant:
    key = f"study.variant {section.name}"
    target = file.target
    with errors_for_key(f"{key}.url"):
        url = checked_url(section.url) if section.url else ""
    with errors_for_key(f"{key}.urls"):
        own = url or checked_url(target.url)
        paths = paths_of(section.urls, target.order, target.seed, files, own) if section.urls else None
    if section.mix and paths:
        raise Invalid(f"{key}.mix", conflict("urls"))
    for name in section.mix:
        _check_known(f"{key}.mix", name, [request.name for request in file.request], "[[request]] blocks")
    return Variant(
        name=section.name,
        set=tuple(section.set.items()),
        url=url,
        before=section.before,
        concurrency=section.concurrency,
        rate=section.rate,
        burst=section.burst,
        max_in_flight=section.max_in_flight,
        http=section.http,
        streams=section.streams,
        keepalive=section.keepalive,
        paths=paths,
        mix=section.mix,
    )


def _grid(section: StudySection) -> tuple[Variant, ...]:
    """Return a variant per combination of the factors' values; the last factor varies fastest."""
    check_unique("study.factor.knob", [factor.knob for factor in section.factor])
    columns = [[(factor.knob, value) for value in factor.values] for factor in section.factor]
    return tuple(
        Variant(name=", ".join(f"{knob} {value}" for knob, value in row), set=row)
        for row in itertools.product(*columns)
    )


def _pairs(study: Study) -> tuple[tuple[str, str], ...]:
    """Return the pairs to compare: of `compare` those whose variants are in this form; default: the first with each."""
    names = [variant.name for variant in study.variants]
    if study.compare:
        return tuple(pair for pair in study.compare if set(pair) <= set(names))
    return tuple((names[0], name) for name in names[1:])


def _check(study: Study, knobs: Sequence[Knob], file: ProfileFile) -> None:
    """Raise Invalid for parts that contradict each other."""
    if study.plan.stages:
        raise Invalid("load.stages", conflict("a study", "use study.levels, one run per level"))
    if study.plan.ramp_to is not None:
        raise Invalid("load", "found a ramp; allowed in a study: a constant load, since its runs are compared")
    if study.levels and not study.plan.open and any(level != int(level) for level in study.levels):
        raise Invalid(
            "study.levels", "found a fraction; allowed: whole numbers of connections (fractions only with load.rate)"
        )
    check_unique("study.levels", [f"{level:g}" for level in study.levels])
    check_unique("study.passes.name", [each.name for each in study.passes])
    check_unique("study.observe.name", [each.name for each in study.observations])
    _check_names(study, knobs, file)
    _check_compared(study)
    for variant in study.variants:
        _check_load(study, variant)
    _check_plans(study.plan, study)


def _check_search(section: StudySection, overrides: ShortSection, study: Study) -> None:
    """Raise Invalid for keys that contradict a capacity search, which sets rate and length of the load itself."""
    if study.run_time is not None and study.run_time < _SHORTEST_SEARCH:
        raise Invalid(
            "study.run_time", f"found {study.run_time:g} s; allowed with until: at least {_SHORTEST_SEARCH:g} s"
        )
    parts: list[tuple[str, StudySection | ShortSection | VariantSection]] = [
        ("study", section),
        ("study.short", overrides),
        *((f"study.variant {each.name}", each) for each in section.variant),
    ]
    for key, part in parts:
        for name in _NOT_SEARCHED:
            value = getattr(part, name, None)
            if value and (name, value) != ("runs", 1):
                raise Invalid(f"{key}.{name}", conflict("study.until", "remove it: each step is one capacity search"))


def _check_compared(study: Study) -> None:
    """Raise Invalid for variants that would never run: a study with comparisons runs only the compared variants."""
    compared = set(itertools.chain(*study.compare))
    left = [variant.name for variant in study.variants[1:] if not variant.control and variant.name not in compared]
    if study.compare and left:
        raise Invalid("study.compare", f"has no pair with {', '.join(left)}, which would never run; add one")


def _check_load(study: Study, variant: Variant) -> None:
    """Raise Invalid for a variant whose load is invalid, or cannot be compared."""
    key = f"study.variant {variant.name}"
    varied = [name for name in ("concurrency", "rate") if getattr(variant, name) is not None]
    if varied and study.levels:
        raise Invalid(f"{key}.{varied[0]}", conflict("study.levels"))
    if variant.rate is not None and not study.plan.open:
        raise Invalid(f"{key}.rate", "found without load.rate; allowed: a rate for all variants or for none")
    if variant.concurrency is not None and study.plan.open:
        raise Invalid(f"{key}.concurrency", conflict("load.rate", "use rate"))
    try:
        check_plan(variant_plan(study, variant, None))
    except Invalid as error:
        raise Invalid(key, str(error)) from None


def _check_names(study: Study, knobs: Sequence[Knob], file: ProfileFile) -> None:
    known = {knob.name: knob for knob in knobs}
    for variant in study.variants:
        for name, value in variant.set:
            _check_known(f"study.variant {variant.name}.set", name, known, "knobs")
            if refused := known[name].value_error(value):
                raise Invalid(f"study.variant {variant.name}.set", f"{name} = {value!r} {refused}")
            if refused := known[name].format_error(value):
                raise Invalid(f"study.variant {variant.name}.set", refused)
    actions = [action.name for action in file.action]
    used = [(f"study.variant {variant.name}.before", name) for variant in study.variants for name in variant.before]
    used += [(f"study.passes {each.name}.before", name) for each in study.passes for name in each.before]
    used += [("study.after", name) for name in study.after]
    for key, name in used:
        _check_known(key, name, actions, "actions")
    _check_active(study, known)
    hosts = [host.name for host in file.host]
    for observation in study.observations:
        _check_known(f"study.observe {observation.name}.host", observation.host, hosts, "hosts")
    for key in ("watch", *(() if study.until else ("metrics",))):
        for name in getattr(study, key):
            _check_metric(f"study.{key}", name, hosts)
    if file.study and file.study.compare:
        variants = [each.name for each in (_grid(file.study) if file.study.factor else file.study.variant)]
        for each in itertools.chain(*file.study.compare):
            _check_known("study.compare", each, variants, "variants")


def _check_active(study: Study, known: Mapping[str, Knob]) -> None:
    """Check that values that are only written become active before a variant is measured. Raises Invalid."""
    around = [set(each.before) for each in study.passes] or [set()]
    for variant in study.variants:
        done = set(variant.before).union(set.intersection(*around))
        for name in study.knobs:
            if known[name].written_only and known[name].action not in done:
                raise Invalid(
                    f"study.variant {variant.name}.set",
                    f"{name} is written but not activated; use a knob with reload, or add its action to before",
                )


def _check_metric(key: str, name: str, hosts: Sequence[str]) -> None:
    # Imported here, since most profiles have no study.
    from cockpit.metrics.values import is_host_metric, is_metric

    host, _, rest = name.partition(".")
    derived = key == "study.metrics" and rest in _DERIVED
    if not (is_metric(name) or derived) or ((is_host_metric(rest) or derived) and host not in hosts):
        raise Invalid(key, f"found {name!r}; allowed: metrics as in thresholds, of hosts of this file")


def _check_plans(plan: LoadPlan, study: Study) -> None:
    if not study.levels or plan.open:
        return
    least = min(study.levels)
    if plan.workers > least:
        raise Invalid("study.levels", f"found {least:g}; allowed: at least the load's workers, {plan.workers}")
    if plan.requests is not None and plan.requests < max(study.levels):
        raise Invalid("study.levels", f"found {max(study.levels):g}; allowed: at most the requests, {plan.requests}")


def _check_known(key: str, name: str, names: Iterable[str], what: str) -> None:
    allowed = list(names)
    if name not in allowed:
        raise Invalid(key, f"found {name!r}; allowed: {what} of this file ({', '.join(allowed) or 'none is defined'})")
