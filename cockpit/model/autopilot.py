"""Search for better settings: events and progress."""

from __future__ import annotations

from typing import Literal

import msgspec

from cockpit.model.event import Event


class SearchedKnob(msgspec.Struct, frozen=True):
    """A knob with the values that a search may try. The first `ordered` values increase; the others have no order,
    e.g. a choice or a special value. `cost` of a change: see Cost."""

    knob: str
    values: tuple[str, ...]
    ordered: int = 0
    cost: str = ""


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The objective and the limits of a search: maximize (or minimize) `metric` subject to `constraints`, which are
    threshold expressions. If the metric is the capacity, the constraints limit the search for it.

    `budget`: maximum duration (s), confirming rounds included; `seconds`: minimum measured load per evaluation (s),
    or maximum time of a capacity search.
    `seed` determines the initial points. `margin`: smallest difference that matters (share).
    """

    metric: str
    maximize: bool
    knobs: tuple[SearchedKnob, ...]
    constraints: tuple[str, ...] = ()
    budget: float
    seconds: float = 20.0
    seed: int = 1
    margin: float = 0.03

    @property
    def searches_capacity(self) -> bool:
        return self.metric == "capacity"


class AutopilotBegun(Event, frozen=True, tag="autopilot_begun"):
    """A search starts from the `original` values, by knob. `limits`: findings of the diagnosis."""

    plan: SearchPlan
    original: dict[str, str]
    limits: tuple[str, ...] = ()


# original: initial values, measured again; spread: space-filling initial point; search: most promising point; race: one
# of the best points, measured again.
TrialPurpose = Literal["original", "spread", "search", "race"]
# measured: complete run; infeasible: stopped early because it clearly failed a constraint; failed: values not active,
# or no result.
TrialOutcome = Literal["measured", "infeasible", "failed"]


class AutopilotTrial(Event, frozen=True, tag="autopilot_trial"):
    """An evaluation ended: run `run` of the session measured `values` (0: no run).

    `metric`: value of the plan's metric; `interval`: 95% interval of a capacity; `margins`: distance from each
    constraint's limit (see search.margin_of). `expected`: expected improvement by the next evaluation (share); None:
    unknown. `detail`: why there is no result.
    """

    number: int
    purpose: TrialPurpose
    values: dict[str, str]
    outcome: TrialOutcome
    run: int = 0
    metric: float | None = None
    interval: tuple[float, float] | None = None
    margins: tuple[float, ...] = ()
    expected: float | None = None
    detail: str = ""


# better: confirmed by rounds; nothing: no better settings found, or rounds did not confirm them.
AutopilotOutcome = Literal["better", "nothing", "stopped", "failed"]


class AutopilotEnded(Event, frozen=True, tag="autopilot_ended"):
    """A search ended after `seconds`. `values`: proposed values; `rounds`: number of the rounds that tested them (0: no
    rounds); `applied`: the proposed values are active, else the original values. `detail`: reason for the outcome."""

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
