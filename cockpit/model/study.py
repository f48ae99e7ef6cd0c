"""A planned study, its load and its events: variants, load levels and passes, and how many rounds there are at most."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from cockpit.model.event import Event
from cockpit.model.load import REDACTED, LoadPlan, PathList, url_without_password

# The name of the variant that repeats the first one.
CONTROL = "A/A control"
# The levels of the tests are calibrated up to this many rounds.
MOST_ROUNDS = 50


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant that a study compares. `set` gives knobs values; every other knob of the study keeps the
    value it had before the study. `before` are actions after the values are active.

    `url`, `concurrency`, `rate`, `keepalive`, `paths` and `mix` (names of requests of the plan) replace those of the
    plan. `control`: the variant repeats the first one, and differences between the two are chance.
    """

    name: str
    set: tuple[tuple[str, str], ...] = ()
    url: str = ""
    before: tuple[str, ...] = ()
    concurrency: int | None = None
    rate: float | None = None
    keepalive: bool | None = None
    paths: PathList | None = None
    mix: tuple[str, ...] = ()
    control: bool = False


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs that follow each other, as cold and warm. `before` are actions that are done before it."""

    name: str = ""
    before: tuple[str, ...] = ()


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """A command run on a host before and after each run. A `counter` prints a number; its growth is what counts."""

    name: str
    host: str
    command: str
    counter: bool = False


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of `discard_rounds` rounds that are not counted, then at most `rounds` that are; each holds every variant
    that is not resolved, set up by itself, in an order drawn from `seed` (None: not chosen yet).

    A step is a variant at a load level in a round: `discard` runs that are not counted, then `runs` that are; each run
    is all `passes`, one after the other. `levels` are connections, or arrivals/s under open load; none: as the plan
    says. `compare` are pairs of variants to judge, by the metrics `judge`, the headline first (none: the default ones);
    `margin` is the largest change that counts as equivalent, where a metric's own is no larger (a share; None: as the
    metric has it). `after` are actions at the end, `watch` metrics for the table. `run_time` is about how long a run
    lasts (s) if the plan does not say. `warm_up` seconds of load at the highest level follow each set-up and are never
    counted. `addresses` are those of the names in URLs. `secret` are the knobs whose values must not be recorded.
    """

    plan: LoadPlan
    form: str = "full"
    variants: tuple[Variant, ...] = (Variant(name="as it is"),)
    passes: tuple[Pass, ...] = (Pass(),)
    levels: tuple[float, ...] = ()
    rounds: int = 1
    discard_rounds: int = 0
    seed: int | None = 1
    runs: int = 1
    discard: int = 0
    after: tuple[str, ...] = ()
    observations: tuple[Observation, ...] = ()
    watch: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    margin: float | None = None
    run_time: float | None = None
    warm_up: float = 0.0
    addresses: tuple[tuple[str, str], ...] = ()
    secret: tuple[str, ...] = ()

    @property
    def control(self) -> Variant | None:
        """The variant that repeats the first one; None if there is nothing to compare."""
        return next((variant for variant in self.variants if variant.control), None)

    @property
    def comparisons(self) -> int:
        """The comparisons that share the risk: pairs at each load level in each pass, without the A/A control."""
        return len(self.compare) * max(1, len(self.levels)) * len(self.passes)

    @property
    def all_rounds(self) -> int:
        """The maximum number of rounds, discarded ones included."""
        return self.discard_rounds + self.rounds

    @property
    def knobs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for variant in self.variants for name, _ in variant.set))

    @property
    def fingerprint(self) -> str:
        """A hash that is equal if one study can continue the other; the seed is the journal's."""
        encoded = msgspec.json.encode(replace(self.without_secrets(), addresses=(), seed=0))
        return hashlib.sha256(encoded).hexdigest()[:16]

    def without_secrets(self) -> Study:
        """As it may be recorded."""
        variants = tuple(
            replace(
                variant,
                url=url_without_password(variant.url),
                set=tuple((knob, REDACTED if knob in self.secret else value) for knob, value in variant.set),
            )
            for variant in self.variants
        )
        return replace(self, plan=self.plan.without_secrets(), variants=variants)


def load_of(study: Study, variant: Variant, level: float | None) -> LoadPlan:
    """Return the load of a variant at a load level (None: that of the plan and the variant)."""
    plan = at_target(study.plan, variant.url) if variant.url else study.plan
    given: dict[str, Any] = {
        name: value
        for name in ("concurrency", "rate", "keepalive", "paths")
        if (value := getattr(variant, name)) is not None
    }
    if variant.mix:
        given["mix"] = tuple(request for request in plan.mix if request.name in variant.mix)
    if level is not None:
        given |= {"rate": level} if plan.open else {"concurrency": int(level)}
    return located(replace(plan, **given), dict(study.addresses))


def warm_up_of(study: Study, variant: Variant) -> LoadPlan:
    """Return the load that follows a set-up: the variant's highest level, for the study's warm-up."""
    plan = load_of(study, variant, max(study.levels, default=None))
    return replace(plan, requests=None, warmup=0.0, duration=study.warm_up)


def at_target(plan: LoadPlan, url: str) -> LoadPlan:
    """Return the plan at another target: its URL, and the requests of a mix at that server."""
    to = urlsplit(url)
    mix = tuple(
        replace(one, url=urlsplit(one.url)._replace(scheme=to.scheme, netloc=to.netloc).geturl()) for one in plan.mix
    )
    return replace(plan, url=url, mix=mix)


def located(plan: LoadPlan, addresses: Mapping[str, str]) -> LoadPlan:
    """Return the plan with its connections made to the address of its URL's name, if that is known."""
    parts = urlsplit(plan.url)
    address = addresses.get(parts.hostname or "")
    if not address or plan.connect_to or plan.unix:
        return plan
    shown = f"[{address}]" if ":" in address else address
    return replace(plan, connect_to=f"{shown}:{parts.port or (443 if parts.scheme == 'https' else 80)}")


def names_of(study: Study) -> tuple[str, ...]:
    urls = [study.plan.url, *(variant.url for variant in study.variants if variant.url)]
    return tuple(dict.fromkeys(name for url in urls if (name := urlsplit(url).hostname)))


class StudyBegun(Event, frozen=True, tag="study_begun"):
    """A study begins, or continues: its plan, how many `steps` that is at most, and how many were `done` before.

    `fingerprint` is that of the plan before secrets were replaced in it: sessions of one study have the same."""

    study: Study
    steps: int
    done: int = 0
    fingerprint: str = ""


class StudyRound(Event, frozen=True, tag="study_round"):
    """A round begins: its steps in order, each a variant at a load level, and the comparisons that are still `open`,
    each a first variant, another one and a load level. Numbers count from 1."""

    round: int
    steps: tuple[tuple[str, float | None], ...]
    open: tuple[tuple[str, str, float | None], ...] = ()


class StudyRun(Event, frozen=True, tag="study_run"):
    """The next run, number `run` of the session, belongs to a `step` (from 0) of the study: the `variant` in a `round`
    (from 1), at a load `level`, in a pass. `turn` counts the runs of the step in that pass from 1; 0 is a warm-up."""

    run: int
    step: int
    round: int
    variant: str
    level: float | None = None
    part: str = ""
    turn: int = 1


class StudyObservation(Event, frozen=True, tag="study_observation"):
    """What the command of an observation, by its `name`, printed before (`after`: after) a run; `detail`: why it did
    not."""

    run: int
    name: str
    host: str
    after: bool
    text: str = ""
    detail: str = ""


class StudyStepEnded(Event, frozen=True, tag="study_step_ended"):
    """A step is done: the `counted` runs of the session are its result."""

    step: int
    counted: tuple[int, ...]


class StudyStepLost(Event, frozen=True, tag="study_step_lost"):
    """A step was cut short because a host was lost (`detail`). It is repeated when the host is back."""

    step: int
    detail: str


class StudyEnded(Event, frozen=True, tag="study_ended"):
    """A study is over: every comparison is closed, or the last round is done."""


StudyEvent = StudyBegun | StudyRound | StudyRun | StudyObservation | StudyStepEnded | StudyStepLost | StudyEnded
