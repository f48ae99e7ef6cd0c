"""Studies: the plan (variants, load levels, passes, rounds), the load of a variant, and the events."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from cockpit.model.event import Event
from cockpit.model.load.plan import REDACTED, HttpVersion, LoadPlan, PathList, at_target, url_without_password
from cockpit.model.recorded import Name, Url

# Name of the variant that repeats the first variant.
CONTROL = "A/A control"
# The significance levels of the sequential test are calibrated up to this number of rounds.
MOST_ROUNDS = 50


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a study. `set`: values of knobs; other knobs of the study have their values from before the study.
    `before`: actions to run once the values are active.

    `url`, `concurrency`, `rate`, `burst`, `max_in_flight`, `http`, `streams`, `keepalive`, `paths` and `mix` (names of
    requests of the plan) replace those of the plan. `control`: an A/A control that repeats the first variant:
    differences between the two are chance.
    """

    name: Name
    set: tuple[tuple[Name, str], ...] = ()
    url: Url = ""
    before: tuple[Name, ...] = ()
    concurrency: int | None = None
    rate: float | None = None
    burst: int | None = None
    max_in_flight: int | None = None
    http: HttpVersion | None = None
    streams: int | None = None
    keepalive: bool | None = None
    paths: PathList | None = None
    mix: tuple[Name, ...] = ()
    control: bool = False


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One of several consecutive runs of a variant, e.g. cold and warm. `before`: actions to run before it."""

    name: Name = ""
    before: tuple[Name, ...] = ()


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is run on a host before and after each run. `counter`: it prints a number whose increase during
    the run is reported."""

    name: Name
    host: Name
    command: str
    counter: bool = False


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a study: `discard_rounds` rounds that are not counted, then at most `rounds` counted rounds. Each
    round measures every unresolved variant once, after its own set-up, in an order drawn from `seed` (None: not chosen
    yet).

    A step is a variant at a load level in a round: `discard` runs that are not counted, then `runs` counted runs; each
    run consists of all `passes` in sequence. `levels`: connections, or arrivals/s under open load; (): the plan's load.
    `until`: limits of a capacity search, which each run then is; its capacity is the only metric. "": no search.
    `compare`: pairs of variants to compare, by `metrics`, the headline first ((): the default ones). `margin`:
    equivalence margin (share), unless a metric's own margin is larger; None: the metric's own. `after`: actions at the
    end; `watch`: metrics for the table. `run_time`: approximate length of a run (s), if the plan has none; the longest
    time of a capacity search. `setup_warmup`: seconds of load at the highest level after each set-up, never counted.
    `addresses`: addresses of the names in URLs. `secret`: knobs whose values must not be recorded.
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
    after: tuple[Name, ...] = ()
    observations: tuple[Observation, ...] = ()
    watch: tuple[Name, ...] = ()
    metrics: tuple[Name, ...] = ()
    until: str = ""
    compare: tuple[tuple[Name, Name], ...] = ()
    margin: float | None = None
    run_time: float | None = None
    setup_warmup: float = 0.0
    addresses: tuple[tuple[Name, Name], ...] = ()
    secret: tuple[Name, ...] = ()

    @property
    def control(self) -> Variant | None:
        """The A/A control; None if there is none."""
        return next((variant for variant in self.variants if variant.control), None)

    @property
    def comparisons(self) -> int:
        """Number of comparisons among which the error probability is split: pairs at each load level in each pass,
        without the A/A control."""
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
        """A hash of the plan, without seed and addresses: equal if one study can continue the other."""
        encoded = msgspec.json.encode(replace(self.without_secrets(), addresses=(), seed=0))
        return hashlib.sha256(encoded).hexdigest()[:16]

    def without_secrets(self) -> Study:
        """Return the study without secrets, for recordings."""
        variants = tuple(
            replace(
                variant,
                url=url_without_password(variant.url),
                set=tuple((knob, REDACTED if knob in self.secret else value) for knob, value in variant.set),
            )
            for variant in self.variants
        )
        return replace(self, plan=self.plan.without_secrets(), variants=variants)


def variant_plan(study: Study, variant: Variant, level: float | None) -> LoadPlan:
    """Return the load of a variant at a load level (None: the load of the plan and the variant)."""
    plan = at_target(study.plan, variant.url) if variant.url else study.plan
    given: dict[str, Any] = {
        name: value
        for name in ("concurrency", "rate", "burst", "max_in_flight", "http", "streams", "keepalive", "paths")
        if (value := getattr(variant, name)) is not None
    }
    if variant.mix:
        given["mix"] = tuple(request for request in plan.mix if request.name in variant.mix)
    if level is not None:
        given |= {"rate": level} if plan.open else {"concurrency": int(level)}
    return with_address(replace(plan, **given), dict(study.addresses))


def setup_warmup_plan(study: Study, variant: Variant) -> LoadPlan:
    """Return the load that follows a set-up: the variant's highest level, for the study's warm-up."""
    plan = variant_plan(study, variant, max(study.levels, default=None))
    return replace(plan, requests=None, warmup=0.0, duration=study.setup_warmup)


def with_address(plan: LoadPlan, addresses: Mapping[str, str]) -> LoadPlan:
    """Return the plan with `connect_to` set to the address of its URL's host, if the address is known."""
    parts = urlsplit(plan.url)
    address = addresses.get(parts.hostname or "")
    if not address or plan.connect_to or plan.unix:
        return plan
    shown = f"[{address}]" if ":" in address else address
    return replace(plan, connect_to=f"{shown}:{parts.port or (443 if parts.scheme == 'https' else 80)}")


def host_names(study: Study) -> tuple[str, ...]:
    urls = [study.plan.url, *(variant.url for variant in study.variants if variant.url)]
    return tuple(dict.fromkeys(name for url in urls if (name := urlsplit(url).hostname)))


class StudyBegun(Event, frozen=True, tag="study_begun"):
    """A study starts or continues. `steps`: maximum number of steps; `done`: steps completed in earlier sessions.

    `fingerprint`: of the plan before secrets were replaced; the same in all sessions of a study."""

    study: Study
    steps: int
    done: int = 0
    fingerprint: Name = ""


class StudyRound(Event, frozen=True, tag="study_round"):
    """A round (from 1) starts. `steps`: (variant, load level), in order; `open`: comparisons without a conclusion,
    (first variant, second variant, load level)."""

    round: int
    steps: tuple[tuple[Name, float | None], ...]
    open: tuple[tuple[Name, Name, float | None], ...] = ()


class StudyRun(Event, frozen=True, tag="study_run"):
    """The next run, number `run` of the session, belongs to `step` (from 0) of the study: `variant` in `round` (from 1)
    at load `level`, in pass `pass_name`. `turn`: number of the run in the step and pass, from 1; 0: warm-up."""

    run: int
    step: int
    round: int
    variant: Name
    level: float | None = None
    pass_name: Name = ""
    turn: int = 1


class StudyObservation(Event, frozen=True, tag="study_observation"):
    """The output (`text`) of an observation's command before or `after` a run; `detail`: why there is none."""

    run: int
    name: Name
    host: Name
    after: bool
    text: str = ""
    detail: str = ""


class StudyStepEnded(Event, frozen=True, tag="study_step_ended"):
    """A step is complete; `counted`: the numbers of its counted runs in the session."""

    step: int
    counted: tuple[int, ...]


class StudyStepLost(Event, frozen=True, tag="study_step_lost"):
    """A step was interrupted because a host was lost (`detail`). It is repeated when the host is up again."""

    step: int
    detail: str


class StudyEnded(Event, frozen=True, tag="study_ended"):
    """A study ended: every comparison is concluded, or the last round is complete."""


StudyEvent = StudyBegun | StudyRound | StudyRun | StudyObservation | StudyStepEnded | StudyStepLost | StudyEnded
