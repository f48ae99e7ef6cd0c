"""What the [study] table of a profile may say."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from cockpit.model.study import Order
from cockpit.profiles.section import Duration, Positive, Section, Seed

Label = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f\x7f]+$")]
Often = Annotated[int, Meta(ge=1, le=1000)]


class SettleSection(Section, frozen=True, kw_only=True):
    """Again until the last `runs` lie `within` a share of their median, `at_most` times."""

    runs: Annotated[int, Meta(ge=2, le=100)] = 3
    within: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    at_most: Annotated[int, Meta(ge=2, le=1000)] = 10


class ArmSection(Section, frozen=True, kw_only=True):
    """Knob values, a target, actions: what makes this arm another than the rest."""

    name: Label
    set: dict[str, str] = field(default_factory=dict)
    url: str = ""
    before: tuple[str, ...] = ()


class FactorSection(Section, frozen=True, kw_only=True):
    """A knob and its values; several factors make a grid, an arm each."""

    knob: str
    values: Annotated[tuple[str, ...], Meta(min_length=1)]


class PassSection(Section, frozen=True, kw_only=True):
    """One of several runs in a row."""

    name: Label
    before: tuple[str, ...] = ()


class LookSection(Section, frozen=True, kw_only=True):
    """What is asked of a host before and after each run."""

    name: Label
    host: str
    command: Annotated[str, Meta(min_length=1)]
    counter: bool = False


class ShortSection(Section, frozen=True, kw_only=True):
    """What the short form has in place of the full one; `arms` are the names of those that it runs."""

    requests: int | str | None = None
    duration: Duration | None = None
    rate: Annotated[float, Meta(gt=0)] | None = None
    concurrency: Positive | None = None
    warmup: Duration | None = None
    repeats: Often | None = None
    runs: Often | None = None
    leave_out: Annotated[int, Meta(ge=0, le=1000)] | None = None
    settle: SettleSection | None = None
    rungs: tuple[Annotated[float, Meta(gt=0)], ...] | None = None
    arms: tuple[str, ...] | None = None
    takes: Duration | None = None
    warm_up: Duration | None = None


class StudySection(Section, frozen=True, kw_only=True):
    """The whole table."""

    arm: tuple[ArmSection, ...] = ()
    factor: tuple[FactorSection, ...] = ()
    passes: tuple[PassSection, ...] = ()
    rungs: tuple[Annotated[float, Meta(gt=0)], ...] = ()
    repeats: Often = 1
    order: Order = "alternate"
    seed: Seed = 1
    runs: Often | None = None
    leave_out: Annotated[int, Meta(ge=0, le=1000)] = 0
    settle: SettleSection | None = None
    after: tuple[str, ...] = ()
    look: tuple[LookSection, ...] = ()
    watch: tuple[str, ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    takes: Duration | None = None
    warm_up: Duration = 0.0
    short: ShortSection | None = None
