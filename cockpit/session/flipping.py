"""A change made and taken back again and again under a run of its own (A-B-A-B), so that drift cannot pass for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from cockpit.analysis.steady import GUARD
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused
from cockpit.session.controls import Flipped
from cockpit.session.live_load import LiveLoad

# What a change may take before it is in force or back (s), for the length of the run alone.
_TRANSITION = 180.0
# Seconds for which the host waits beyond a window before it takes the change back by itself.
SPARE = 30.0
# Seconds of a window beyond those that count: its guard, and its cut ends.
UNCOUNTED = GUARD + 1.0
# Holds a change for as long as it is told to; returns once the host is as it was.
Hold = Callable[[], Awaitable[None]]
MakeAndTakeBack = Callable[[float, Hold], Awaitable[None]]


class Flips:
    """One such series at a time. `words` say where it stands; they are empty while there is none."""

    def __init__(self, load: LiveLoad, clock: Clock) -> None:
        self._load = load
        self._clock = clock
        self._stopping = asyncio.Event()
        self._window = ""
        self._until = 0.0

    @property
    def words(self) -> str:
        if not self._window:
            return ""
        left = self._until - self._clock.now()
        return f"A-B-A-B: {self._window}, {f'{left:.0f} s left' if left > 0 else 'changing'}"

    def stop(self) -> None:
        """Ends it: what is changed is taken back at once."""
        self._stopping.set()

    def check(self) -> None:
        """Raises ChangeRefused where no series can begin."""
        if self._load.running or self._load.starting:
            raise ChangeRefused("stop the load first: A-B-A-B begins a run of its own, as long as it takes")
        if self._load.plan.stages:
            raise ChangeRefused("this load climbs a ladder: A-B-A-B needs one load that stays")

    async def run(self, change: MakeAndTakeBack, pairs: int, seconds: float) -> Flipped:
        """`pairs` times a window as it is and one with the change, each of `seconds` that count.

        Whatever happens, the change is taken back: by this, or by the host. Raises what `change` and the load raise.
        """
        self.check()
        self._stopping.clear()
        whole = seconds + UNCOUNTED
        longest = 2 * pairs * (whole + _TRANSITION)
        done = 0
        self._window = "asking the target"
        try:
            await self._load.start(replace(self._load.plan, requests=None, duration=longest))
            run = self._load.runs
            while done < pairs and await self._hold(f"window {2 * done + 1} of {2 * pairs} (as it was)", whole):
                name, last = f"window {2 * done + 2} of {2 * pairs} (changed)", done + 1 == pairs
                lasted = False

                async def hold(name: str = name, last: bool = last) -> None:
                    nonlocal lasted
                    lasted = await self._hold(name, whole)
                    if last or not lasted:
                        await self._load.stop()

                await change(whole + SPARE, hold)
                done += lasted
                if not lasted:
                    break
        finally:
            self._window = ""
            await self._load.stop()
        why = "" if done == pairs else "it was stopped" if self._stopping.is_set() else "the load ended before"
        return Flipped(run, done, why)

    async def _hold(self, window: str, seconds: float) -> bool:
        """Whether the window lasted: neither was it stopped, nor did the load end."""
        self._window, self._until = window, self._clock.now() + seconds
        ends = [asyncio.ensure_future(self._load.over()), asyncio.ensure_future(self._stopping.wait())]
        try:
            done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
        self._until = 0.0
        return not done
