"""Asking the target of a load plan for one good reply, from here, as the load would ask."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.load.expect import Expectation
from cockpit.load.preflight import preflight
from cockpit.load.request import requests_of
from cockpit.model.load import LoadPlan, url_without_password
from cockpit.tuning.effect import Probe


def probe_of(plan: LoadPlan) -> Probe:
    """What says "" while the plan's target replies well, else what is wrong. It raises TargetError."""
    asked = requests_of(plan)[0]
    one = replace(plan, concurrency=1, rate=None, stages=(), workers=1, cpus=())

    async def probe() -> str:
        status = (await preflight(one)).status
        if status is None or status < 400 or Expectation(asked.expect).allows(status):
            return ""
        return f"{url_without_password(asked.url)} answers {status}"

    return probe
