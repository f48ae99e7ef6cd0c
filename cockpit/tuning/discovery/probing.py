"""A probe of the target: one request, like those of the load plan."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.load.http.expect import Expectation
from cockpit.load.http.request import requests_of
from cockpit.load.preflight import preflight
from cockpit.model.load.plan import LoadPlan, url_without_password
from cockpit.tuning.effect import TargetCheck


def probe_of(plan: LoadPlan) -> TargetCheck:
    request = requests_of(plan)[0]
    single = replace(plan, concurrency=1, rate=None, burst=1, ramp_to=None, stages=(), workers=1, cpus=())

    async def probe() -> str:
        status = (await preflight(single)).status
        if status is None or status < 400 or Expectation(request.expect).allows(status):
            return ""
        return f"{url_without_password(request.url)} answers {status}"

    return probe
