"""A live session of a profile with its recorder, for runs, changes, studies and the screen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from cockpit.hosts.ssh.prompts import PromptQueue
from cockpit.load.workers import WorkerLauncher
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import CONNECTED, HostCondition
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Listener, Recorder, Session

# Maximum wait (s) for the first reading of a host, and for its last reading after a run.
HOST_READY = 20.0
LAST_READING = 3.0


class LiveSession:
    """`source` emits the events, `session` records and folds them. As a context manager, the session runs until the end
    of the block; then the run is stopped, unconfirmed changes are undone, and the recording is completed.

    A screen runs `session` itself. For the options see LiveSource.
    """

    def __init__(
        self,
        profile: Profile,
        recorder: Recorder | None = None,
        *,
        ssh_config: Path | None = None,
        questions: PromptQueue | None = None,
        listen: Listener | None = None,
        check_target: bool = True,
        launcher: WorkerLauncher | None = None,
    ) -> None:
        self.profile = profile
        self.source = LiveSource(
            profile, Clock(), ssh_config=ssh_config, questions=questions, check_target=check_target, launcher=launcher
        )
        self.session = Session(self.source, recorder, listen)
        self.load = self.source.load
        self.tuning = self.source.tuning

    @property
    def state(self) -> State:
        return self.session.state

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.session.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.source.close()
        await self._running

    async def run_once(
        self, limit: float | None = None, stop_when: Callable[[State], bool] = lambda state: False
    ) -> State:
        """Run the plan once, at most `limit` seconds and until `stop_when` is true. Raises HostError, TargetError."""
        await self.hosts_read()
        await self.load.over()
        await self.load.start()
        run = self.load.runs
        await self._within(limit, lambda state: (state.runs >= run and state.running is None) or stop_when(state))
        if self.state.running is not None or self.state.runs < run:
            await self.load.stop()
        await self._hosts_read_after_run()
        return self.state

    async def search_once(
        self, until: str, longest: float, stop_when: Callable[[State], bool] = lambda state: False
    ) -> State:
        """Search the capacity within the limits `until` once, in a run of its own, at most `longest` seconds and until
        `stop_when` is true. Raises CockpitError."""
        await self.hosts_read()
        await self.load.over()
        search = asyncio.ensure_future(self.source.capacity.run(until, longest))
        stop = asyncio.ensure_future(self.session.until(stop_when))
        try:
            await asyncio.wait((search, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            self.source.capacity.stop()
            await asyncio.gather(stop, return_exceptions=True)
            await search
        run = self.load.runs
        await self.session.until(lambda state: state.runs >= run and state.running is None)
        await self._hosts_read_after_run()
        return self.state

    async def hosts_idle(self) -> None:
        """Wait for an idle reading of each host after the last run."""

        def read(state: State) -> bool:
            windows = state.segment.hosts if state.segment else {}
            up = (name for name, host in state.hosts.items() if host.condition == HostCondition.UP and name in windows)
            return all(windows[name].after for name in up)

        await self._within(LAST_READING, read)

    async def hosts_up(self, names: Iterable[str]) -> None:
        """Wait until these hosts are connected. Raises HostError, UsageError if a host cannot be reached."""
        await self._hosts(names, lambda state, name: state.hosts[name].condition in CONNECTED)

    async def knobs_read(self, host: str = "") -> None:
        """Wait until every knob of the host ("": of all hosts) has been read, or failed to be read."""

        def read(state: State) -> bool:
            knobs = (each for each in state.knobs.values() if host in ("", each.knob.host))
            return all(each.known or each.detail for each in knobs)

        await self.session.until(read)

    async def hosts_read(self) -> None:
        """Wait for a reading of every host. Raises HostError, UsageError if a host cannot be reached."""
        names = [config.name for config in self.profile.hosts]
        await self._hosts(names, lambda state, name: bool(state.hosts[name].points))

    async def _hosts(self, names: Iterable[str], ready: Callable[[State, str], bool]) -> None:
        names = tuple(names)

        def known(state: State) -> bool:
            return all(name in state.hosts and (ready(state, name) or self._failed(name)) for name in names)

        await self._within(HOST_READY, known)
        for name in names:
            if name in self.state.hosts and ready(self.state, name):
                continue
            failure = self.source.feeds[name].failure
            raise failure or HostError(f"no reading within {HOST_READY:.0f} s", subject=name)

    def _failed(self, name: str) -> bool:
        return self.state.hosts[name].condition in (HostCondition.LOST, HostCondition.REFUSED)

    async def _hosts_read_after_run(self) -> None:
        """Wait for a reading of each host after the run, so that its averages cover the whole run."""
        segment = self.state.segment
        if segment is None or segment.end is None:
            return
        end = segment.end

        def covered(state: State) -> bool:
            return all(host.condition != HostCondition.UP or (host.seen or 0.0) >= end for host in state.hosts.values())

        await self._within(LAST_READING, covered)

    async def _within(self, seconds: float | None, holds: Callable[[State], bool]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.session.until(holds)
