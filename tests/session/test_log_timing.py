"""Logs whose format changes: when counting starts again."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from cockpit.model.clock import Clock
from cockpit.model.events import HostCondition
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostState
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.state import KnobState, State
from cockpit.profiles.profile import LogTiming
from cockpit.session.live_events import LiveEvents
from cockpit.session.log_timing import LogTimings

LOGS = tuple(AccessLog(host=host, file="/log", format="%s") for host in ("web1", "web2"))


def state_of(value: str, **conditions: HostCondition) -> State:
    hosts: Mapping[str, Any] = {
        name: HostState(config=HostConfig(name=name), condition=condition) for name, condition in conditions.items()
    }
    knob = Knob(name="format", host="web1", kind="command", get="true", set="true")
    return replace(State(), hosts=hosts, knobs={"format": KnobState(knob=knob, value=value)})


async def test_counting_starts_again_once_all_hosts_are_connected() -> None:
    calls: list[str] = []

    async def call(name: str) -> None:
        calls.append(name)

    load: Any = SimpleNamespace(
        plan=LoadPlan(url="http://127.0.0.1:9/", traffic=LOGS),
        running=False,
        starting=True,
        stop=lambda: call("stop"),
        start=lambda: call("start"),
        set_plan=lambda plan: calls.append(plan.traffic[0].format),
    )
    events = LiveEvents(Clock(), lambda _: None)
    events.update(0, state_of("old", web1=HostCondition.UP, web2=HostCondition.LOST))
    timing = LogTiming({"format": "new"}, replace(LOGS[0], format="%s %D"))
    timings = LogTimings([timing], SimpleNamespace(), load, events)  # type: ignore[arg-type]
    following = asyncio.create_task(timings.follow())
    for state in (
        state_of("new", web1=HostCondition.UP, web2=HostCondition.LOST),
        state_of("new", web1=HostCondition.UP, web2=HostCondition.UP),
        state_of("new", web1=HostCondition.UP, web2=HostCondition.UP),
    ):
        assert not calls
        events.update(0, state)
        for _ in range(5):
            await asyncio.sleep(0)
        if state.hosts["web2"].condition is HostCondition.UP:
            break
    assert calls == ["stop", "%s %D", "start"]
    following.cancel()
