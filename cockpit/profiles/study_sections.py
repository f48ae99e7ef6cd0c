"""The [study] table of a profile."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from cockpit.model.study import MOST_ROUNDS
from cockpit.profiles.section import Duration, Positive, Section, Seed

Label = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f\x7f]+$")]
Often = Annotated[int, Meta(ge=1, le=1000)]
Rounds = Annotated[int, Meta(ge=1, le=MOST_ROUNDS)]
Discard = Annotated[int, Meta(ge=0, le=1000)]
AboveZero = Annotated[float, Meta(gt=0)]


class VariantSection(Section, frozen=True, kw_only=True):
    """One of the settings that a study compares: knobs, target, load, actions."""

    name: Label
    set: dict[str, str] = field(default_factory=dict)
    url: str = ""
    before: tuple[str, ...] = ()
    concurrency: Positive | None = None
    rate: AboveZero | None = None
    keepalive: bool | None = None
    urls: str | None = None
    mix: tuple[str, ...] = ()


class FactorSection(Section, frozen=True, kw_only=True):
    """A knob and its values; several factors make a grid, a variant each."""

    knob: str
    values: Annotated[tuple[str, ...], Meta(min_length=1)]


class PassSection(Section, frozen=True, kw_only=True):
    """One of several runs in a row."""

    name: Label
    before: tuple[str, ...] = ()


class ObserveSection(Section, frozen=True, kw_only=True):
    """A command that is run on a host before and after each run."""

    name: Label
    host: str
    command: Annotated[str, Meta(min_length=1)]
    counter: bool = False


class ShortSection(Section, frozen=True, kw_only=True):
    """Keys of the short form that replace those of the full one; `variants` and `passes` name those that it has."""

    requests: int | str | None = None
    duration: Duration | None = None
    rate: AboveZero | None = None
    concurrency: Positive | None = None
    warmup: Duration | None = None
    rounds: Rounds | None = None
    discard_rounds: Discard | None = None
    runs: Often | None = None
    discard: Discard | None = None
    levels: tuple[AboveZero, ...] | None = None
    variants: tuple[str, ...] | None = None
    passes: tuple[str, ...] | None = None
    judge: tuple[str, ...] | None = None
    compare: tuple[tuple[str, str], ...] | None = None
    margin: str | None = None
    run_time: Duration | None = None
    warm_up: Duration | None = None


class StudySection(Section, frozen=True, kw_only=True):
    """The whole table; its `requests`, `duration` and `concurrency` replace those of the load."""

    requests: int | str | None = None
    duration: Duration | None = None
    concurrency: Positive | None = None
    rounds: Rounds = 12
    discard_rounds: Discard = 0
    variant: tuple[VariantSection, ...] = ()
    factor: tuple[FactorSection, ...] = ()
    passes: tuple[PassSection, ...] = ()
    levels: tuple[AboveZero, ...] = ()
    seed: Seed | None = None
    runs: Often = 1
    discard: Discard = 0
    after: tuple[str, ...] = ()
    observe: tuple[ObserveSection, ...] = ()
    watch: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    margin: str | None = None
    run_time: Duration | None = None
    warm_up: Duration = 0.0
    short: ShortSection | None = None
