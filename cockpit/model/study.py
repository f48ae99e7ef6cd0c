"""A planned series of runs: its arms, its rungs, its passes, and how often each is run."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
from msgspec.structs import replace

from cockpit.model.load import REDACTED, LoadPlan, url_without_password

Order = Literal["alternate", "blocks", "shuffle"]


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """Run again until the last `runs` lie within `within` (a share) of their median; after `at_most`: not steady."""

    runs: int = 3
    within: float = 0.05
    at_most: int = 10


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """A way to set things up. `set` gives knobs values; every other knob of the study keeps the value it had at first.

    `url` is the target in place of the load's. `before` are actions that are done once the values are in force.
    """

    name: str
    set: tuple[tuple[str, str], ...] = ()
    url: str = ""
    before: tuple[str, ...] = ()


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs that follow each other, as cold and warm. `before` are actions that are done before it."""

    name: str = ""
    before: tuple[str, ...] = ()


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A command run on a host before and after each run. A `counter` prints a number; its growth is what counts."""

    name: str
    host: str
    command: str
    counter: bool = False


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """What is run under what, how often, and what is compared.

    A step is an arm on a rung in a round: `leave_out` runs that are not counted, then `runs` that are, or runs until
    they `settle`; each run is all `passes`, one after the other. `rungs` are connections, or arrivals a second where
    the load is open; none: as the plan has it. `order` is that of the arms within the `repeats` rounds. `after` are
    actions at the end. `watch` are figures for the table, `compare` pairs of arms to judge. `takes` is about how long a
    run lasts (s) where the plan does not say. `warm_up` seconds of load on the highest rung come before the first step
    after something was set up; they are never counted. `addresses` tell where names of URLs are reached.
    `secret` are the knobs whose values must not be recorded.
    """

    plan: LoadPlan
    form: str = "full"
    arms: tuple[Arm, ...] = (Arm(name="as it is"),)
    passes: tuple[Pass, ...] = (Pass(),)
    rungs: tuple[float, ...] = ()
    repeats: int = 1
    order: Order = "alternate"
    seed: int = 1
    runs: int = 1
    leave_out: int = 0
    settle: Settle | None = None
    after: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()
    watch: tuple[str, ...] = ()
    compare: tuple[tuple[str, str], ...] = ()
    takes: float | None = None
    warm_up: float = 0.0
    addresses: tuple[tuple[str, str], ...] = ()
    secret: tuple[str, ...] = ()

    @property
    def knobs(self) -> tuple[str, ...]:
        """Names of the knobs that any arm sets, in order of their first use."""
        return tuple(dict.fromkeys(name for arm in self.arms for name, _ in arm.set))

    @property
    def fingerprint(self) -> str:
        """The same for studies of which one can go on where the other stopped."""
        told = msgspec.json.encode(replace(self.without_secrets(), addresses=()))
        return hashlib.sha256(told).hexdigest()[:16]

    def without_secrets(self) -> Study:
        """As it may be recorded."""
        arms = tuple(
            replace(
                arm,
                url=url_without_password(arm.url),
                set=tuple((knob, REDACTED if knob in self.secret else value) for knob, value in arm.set),
            )
            for arm in self.arms
        )
        return replace(self, plan=self.plan.without_secrets(), arms=arms)
