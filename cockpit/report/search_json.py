"""The result of a search as the JSON of `cockpit autopilot --json`."""

from __future__ import annotations

import msgspec

from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.model.autopilot import (
    AutopilotEnded,
    AutopilotOutcome,
    AutopilotState,
    SearchPlan,
    TrialOutcome,
    TrialPurpose,
)
from cockpit.report.encoding import struct_from
from cockpit.report.verdicts import VerdictJson, verdict_json


class TrialJson(msgspec.Struct, kw_only=True):
    """An evaluation; see model.autopilot.AutopilotTrial."""

    t: float
    number: int
    purpose: TrialPurpose
    values: dict[str, str]
    outcome: TrialOutcome
    run: int
    metric: float | None
    interval: tuple[float, float] | None
    margins: tuple[float, ...]
    expected: float | None
    detail: str


class SearchJson(msgspec.Struct, kw_only=True):
    """A search. `original` and `values`: the initial and the proposed values; `seconds`: its duration."""

    plan: SearchPlan
    original: dict[str, str]
    limits: tuple[str, ...]
    evaluations: list[TrialJson]
    outcome: AutopilotOutcome
    values: dict[str, str]
    applied: bool
    detail: str
    seconds: float
    verdict: VerdictJson | None


def search_json(state: AutopilotState, ended: AutopilotEnded, verdict: Verdict | None) -> SearchJson:
    return struct_from(
        SearchJson,
        ended,
        plan=state.begun.plan,
        original=state.begun.original,
        limits=state.begun.limits,
        evaluations=[struct_from(TrialJson, trial) for trial in state.trials],
        verdict=None if verdict is None else verdict_json(verdict),
    )
