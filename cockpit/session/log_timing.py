"""Durations in the access logs of users' traffic: the change that adds them, and the logs as they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.model.errors import CockpitError
from cockpit.model.events import CONNECTED
from cockpit.model.state import State
from cockpit.profiles.profile import LogTiming
from cockpit.session.live_events import LiveEvents
from cockpit.session.live_load import LiveLoad

if TYPE_CHECKING:
    from cockpit.session.live_tuning import LiveTuning


class LogTimings:
    """Offers the `timings` of the logs in the plan of `load`, and counts each log in the format that it has."""

    def __init__(self, timings: Sequence[LogTiming], tuning: LiveTuning, load: LiveLoad, events: LiveEvents) -> None:
        self._timings = timings
        self._tuning = tuning
        self._load = load
        self._events = events
        self._original = load.plan.traffic
        self._counted: list[LogTiming] = []

    @property
    def next(self) -> LogTiming | None:
        """The first timing that is not active; None: all are."""
        active = self._active(self._events.state)
        return next((timing for timing in self._timings if timing not in active), None)

    async def add(self, timing: LogTiming, _: str = "") -> None:
        """Change the settings of a log, as any change on users' traffic. Raises CockpitError."""
        await self._tuning.apply(timing.values)

    async def follow(self) -> None:
        """Start to count again whenever a change, or its undo, gives a log another format. Until cancelled."""
        while True:
            state = await self._events.until(self._is_due)
            self._counted = self._active(state)
            running = self._load.running or self._load.starting
            await self._load.stop()
            timed = {timing.log.host: timing.log for timing in self._counted}
            logs = tuple(timed.get(log.host, log) for log in self._original)
            self._load.set_plan(replace(self._load.plan, traffic=logs))
            if running:
                # The reason of a failed start is shown.
                with suppress(CockpitError):
                    await self._load.start()

    def _is_due(self, state: State) -> bool:
        """Return whether a log has another format, and all hosts with logs are connected: lines that have become longer
        are counted in the old format too."""
        connected = all(state.hosts[log.host].condition in CONNECTED for log in self._original)
        return connected and self._active(state) != self._counted

    def _active(self, state: State) -> list[LogTiming]:
        """Return the timings whose settings have their values."""
        values = {name: knob.value for name, knob in state.knobs.items()}
        return [timing for timing in self._timings if timing.values.items() <= values.items()]


def question_words(timing: LogTiming) -> str:
    """Return the question before the change."""
    settings = "; ".join(f"{name}: {value}" for name, value in timing.values.items())
    return f"{timing.log.host}: log the durations of requests to {timing.log.file}? Enter: test and reload {settings}"
