"""The feed of one host: connects, has the probe read at its pace, tells what comes of it, begins again by itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from cockpit.hosts.probe import Probe
from cockpit.hosts.reach import open_shell
from cockpit.hosts.shell import Shell
from cockpit.model.clock import Clock
from cockpit.model.errors import AuthRefused, CockpitError, HostError, HostKeyChanged, HostKeyUnknown, UsageError
from cockpit.model.events import AnyEvent, HostChanged, HostCondition, HostSample
from cockpit.model.hosts import HostConfig, HostFacts

# A host is given up after so many seconds without an answer, or three intervals where that is longer.
PATIENCE = 5.0
# Seconds before a host that was lost is tried again: at first, at most.
FIRST_RETRY, LAST_RETRY = 1.0, 5.0
# A refused key is looked at again, since the user may put it right meanwhile; a refused login seldom, since servers
# lock out those who try too often.
KEY_RETRY, LOGIN_RETRY = 15.0, 300.0


class HostFeed:
    """Watches one host; its events go to `emit`, on the cockpit's clock."""

    def __init__(
        self,
        config: HostConfig,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        *,
        ssh_config: Path | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        self._emit = emit
        self._ssh_config = ssh_config
        self._shell: Shell | None = None
        self._said: tuple[HostCondition, str] | None = None
        self._patience = _patience(config)

    async def run(self) -> None:
        """Watches until cancelled; then the probe and the connection are gone."""
        self._say("connecting")
        retry = FIRST_RETRY
        while True:
            try:
                await self._watch()
            except (HostKeyUnknown, HostKeyChanged, UsageError) as error:
                self._say("refused", self._detail(error))
                await asyncio.sleep(KEY_RETRY)
            except AuthRefused as error:
                self._say("refused", self._detail(error))
                await asyncio.sleep(LOGIN_RETRY)
            except HostError as error:
                retry = FIRST_RETRY if self._was_up() else min(2 * retry, LAST_RETRY)
                self._say("lost", self._detail(error))
                await asyncio.sleep(retry)

    async def shell(self) -> Shell:
        """The connection that the probe uses, for others to use too. Raises HostError when the host is not up."""
        if self._shell is None:
            condition, detail = self._said or ("not watched", "")
            raise HostError(f"{self.config.name} is {condition}{': ' + detail if detail else ''}")
        return self._shell

    async def _watch(self) -> NoReturn:
        shell = await open_shell(self.config, self._ssh_config)
        try:
            probe = await Probe.start(shell, self.config)
            try:
                self._shell = shell
                self._say("up", facts=probe.facts)
                await self._sample(shell, probe)
            finally:
                self._shell = None
                probe.close()
        finally:
            await shell.close()

    async def _sample(self, shell: Shell, probe: Probe) -> NoReturn:
        """A sample at every multiple of the interval since now; those that were missed are left out."""
        begun = self._clock.now()
        while True:
            await self._read(probe)
            elapsed = self._clock.now() - begun
            due = begun + (math.floor(elapsed / self.config.interval) + 1) * self.config.interval
            await self._wait(shell, due - self._clock.now())

    async def _read(self, probe: Probe) -> None:
        sent = self._clock.now()
        try:
            async with asyncio.timeout(self._patience):
                reading = await probe.read()
        except TimeoutError:
            raise HostError(f"{self.config.name}: no answer for {self._patience:g} s") from None
        received = self._clock.now()
        self._emit(
            HostSample(
                t=(sent + received) / 2,
                host=self.config.name,
                round_trip=received - sent,
                reading=reading,
            )
        )

    async def _wait(self, shell: Shell, seconds: float) -> None:
        """Waits for the next tick, or until the connection is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await shell.wait_closed()
            raise HostError(f"{self.config.name}: connection lost")

    def _was_up(self) -> bool:
        return self._said is not None and self._said[0] == "up"

    def _detail(self, error: CockpitError) -> str:
        """The error's line without the host's name, which the event has already."""
        return str(error).removeprefix(f"{self.config.name}: ")

    def _say(self, condition: HostCondition, detail: str = "", facts: HostFacts | None = None) -> None:
        """Tells the condition where it is news, so that `lost` goes on counting while the host is tried again."""
        if self._said == (condition, detail):
            return
        self._said = (condition, detail)
        self._emit(
            HostChanged(t=self._clock.now(), host=self.config.name, condition=condition, detail=detail, facts=facts)
        )


def _patience(config: HostConfig) -> float:
    return max(3 * config.interval, PATIENCE)


async def check_host(config: HostConfig, ssh_config: Path | None = None) -> HostFacts:
    """Whether a host can be watched: connects, reads once, lets go. Raises what stands in the way, for exit code 3."""
    shell = await open_shell(config, ssh_config)
    try:
        probe = await Probe.start(shell, config)
        try:
            async with asyncio.timeout(_patience(config)):
                await probe.read()
        except TimeoutError:
            raise HostError(f"{config.name}: the probe started but does not answer") from None
        finally:
            probe.close()
        return probe.facts
    finally:
        await shell.close()
