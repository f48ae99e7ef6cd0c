"""A search for better settings: its events, and its progress."""

from __future__ import annotations

from typing import Literal

import msgspec

from cockpit.model.event import Event


class SearchedKnob(msgspec.Struct, frozen=True):
    """A knob and the values that a search may give it. `ordered` of them, the first ones, increase; the others are
    apart, as a choice or a special value. `cost` is what a change takes, as Cost."""

    knob: str
    values: tuple[str, ...]
    ordered: int = 0
    cost: str = ""


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched: the largest (or least) `metric` that meets the `constraints`, thresholds as they are written.

    It takes at most `budget` seconds, the proof included; an evaluation has at least `seconds` of load that counts.
    With the same `seed` the same points are tried first. Only a difference of more than `margin` (a share) matters.
    """

    metric: str
    maximize: bool
    knobs: tuple[SearchedKnob, ...]
    constraints: tuple[str, ...] = ()
    budget: float
    seconds: float = 20.0
    seed: int = 1
    margin: float = 0.03


class AutopilotBegun(Event, frozen=True, tag="autopilot_begun"):
    """A search begins from the `original` values, by knob. `limits` are the findings of the diagnosis."""

    plan: SearchPlan
    original: dict[str, str]
    limits: tuple[str, ...] = ()


# original: the values of the start, measured again; spread: one of the first points, far apart; search: the most
# promising one; race: one of the best, measured again.
Purpose = Literal["original", "spread", "search", "race"]
# measured: a whole run; broken: stopped, as a constraint was broken badly; failed: not active, or without a result.
TrialOutcome = Literal["measured", "broken", "failed"]


class AutopilotTrial(Event, frozen=True, tag="autopilot_trial"):
    """An evaluation is over: these `values` were measured by `run` of the session (0: by none).

    `metric` is that of the plan, `margins` by how much each constraint holds (see search.margin_of). `expected` is how
    much more of the metric (a share) the next one is expected to bring; None: unknown. `detail`: why it has no result.
    """

    number: int
    purpose: Purpose
    values: dict[str, str]
    outcome: TrialOutcome
    run: int = 0
    metric: float | None = None
    margins: tuple[float, ...] = ()
    expected: float | None = None
    detail: str = ""


# better: proved; nothing: no better settings were found, or the proof did not confirm them.
AutopilotOutcome = Literal["better", "nothing", "stopped", "failed"]


class AutopilotEnded(Event, frozen=True, tag="autopilot_ended"):
    """A search is over, after `seconds`. `values` are the proposed ones, proved by the rounds of this `number` (0: none
    were run); `applied`: they are active, else the original ones. `detail` is why it ended so."""

    outcome: AutopilotOutcome
    seconds: float = 0.0
    values: dict[str, str] = msgspec.field(default_factory=dict)
    rounds: int = 0
    applied: bool = False
    detail: str = ""


AutopilotEvent = AutopilotBegun | AutopilotTrial | AutopilotEnded


class AutopilotState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a search; `ended` is None while it runs."""

    begun: AutopilotBegun
    trials: tuple[AutopilotTrial, ...] = ()
    ended: AutopilotEnded | None = None
