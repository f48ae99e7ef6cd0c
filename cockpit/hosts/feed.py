"""The feed of one host: connects, has the probe read at its pace, tells what comes of it, begins again by itself."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from cockpit.hosts.fault import fault
from cockpit.hosts.host_clock import HostClock
from cockpit.hosts.keyring import Keyring
from cockpit.hosts.pauses import PauseDetector
from cockpit.hosts.poll_interval import PollInterval
from cockpit.hosts.probe import Probe
from cockpit.hosts.prompts import Asker, AskingForHost
from cockpit.hosts.shell import SILENCE, Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.clock import Clock
from cockpit.model.errors import (
    AuthRefused,
    CockpitError,
    HostError,
    HostKeyChanged,
    HostKeyUnknown,
    Unanswered,
    UsageError,
)
from cockpit.model.events import AnyEvent, HostChanged, HostCondition, HostSample
from cockpit.model.hosts import HostConfig, HostFacts, HostReading

# Seconds, or the interval where that is longer, after which a host that has not answered is slow.
OVERDUE = 1.5
# Seconds, or three intervals where that is longer, after which a probe that does not answer on a connection that
# stands is given up. One that does not stand is gone sooner, by its keepalives.
PATIENCE = 15.0
# Seconds before a host that was lost is tried again: at first, at most.
FIRST_RETRY, LAST_RETRY = 1.0, 2.5
# A refused key is looked at again, since the user may put it right meanwhile; a refused login seldom, since servers
# lock out those who try too often.
KEY_RETRY, LOGIN_RETRY = 15.0, 300.0
# The cockpit looks at least this often (s) whether it has stood still itself.
LOOK = 1.0


class HostFeed:
    """Watches one host; its events go to `emit`, on the cockpit's clock.

    `asker` is who may be asked for passphrases, passwords and unknown host keys; None: whatever needs an answer is
    refused. `keyring` holds what keys were unlocked, for all hosts of a session.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        *,
        ssh_config: Path | None = None,
        asker: Asker | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        self._emit = emit
        self._ssh_config = ssh_config
        self._asking = AskingForHost(asker, self._say) if asker else None
        self._keyring = keyring or Keyring()
        self._shell: Shell | None = None
        self._standing = asyncio.Event()
        # Why the host is not up, if an error was the reason.
        self.failure: CockpitError | None = None
        self._said: tuple[HostCondition, str] | None = None
        self._pace = PollInterval(config.interval)
        self._placing = HostClock()
        self._standstill = PauseDetector(LOOK)
        self._uptime = 0.0

    async def run(self) -> None:
        """Watch until cancelled; then the probe and the connection are closed.

        Neither what the host sends nor an error of cockpit's own ends this: the host is lost and soon tried again.
        """
        self._say("connecting")
        waits = retries()
        while True:
            try:
                await self._watch()
            except (HostKeyUnknown, HostKeyChanged, UsageError) as error:
                self._fail("refused", error)
                await self._pause_after_refusal(error, KEY_RETRY)
            except AuthRefused as error:
                self._fail("refused", error)
                await self._pause_after_refusal(error, LOGIN_RETRY)
            except HostError as error:
                waits = retries() if self._was_up() else waits
                self._fail("lost", error)
                await asyncio.sleep(next(waits))
            except Exception as error:
                self._say("lost", fault(error))
                await asyncio.sleep(LAST_RETRY)

    async def shell(self) -> Shell:
        """The connection that the probe uses, for others to use too. Raises HostError when the host is not up."""
        if self._shell is None:
            condition, detail = self._said or ("not watched", "")
            raise HostError(f"{self.config.name} is {condition}{': ' + detail if detail else ''}")
        return self._shell

    async def up(self) -> Shell:
        """The connection that the probe uses, as soon as there is one."""
        while self._shell is None:
            await self._standing.wait()
        return self._shell

    async def _watch(self) -> NoReturn:
        shell = await open_shell(self.config, self._ssh_config, self._asking, self._keyring)
        try:
            probe = await Probe.start(shell, self.config)
            try:
                self._shell = shell
                self._standing.set()
                self.failure = None
                self._say("up", facts=probe.facts)
                if self._asking:
                    self._asking.quiet()
                self._standstill.begin()
                await self._sample(shell, probe)
            finally:
                self._shell = None
                self._standing.clear()
                probe.close()
        finally:
            await shell.close()

    async def _sample(self, shell: Shell, probe: Probe) -> NoReturn:
        """A sample at every multiple of the interval in force; those that were missed are left out."""
        begun = self._clock.now()
        gone = asyncio.ensure_future(shell.wait_closed())
        try:
            while True:
                await self._read(probe)
                interval = self._pace.interval
                due = begun + (math.floor((self._clock.now() - begun) / interval) + 1) * interval
                await self._tick(gone, due)
        finally:
            await _drop(gone)

    async def _tick(self, gone: asyncio.Future[None], due: float) -> None:
        """Waits for the next tick. Raises HostError when the connection goes meanwhile."""
        while not gone.done():
            if self._clock.now() >= due or await self._look(gone, due):
                return
        raise HostError("connection lost", subject=self.config.name)

    async def _read(self, probe: Probe) -> None:
        """One sample; none where the cockpit stood still meanwhile. Raises HostError where no answer comes."""
        sent = self._clock.now()
        asked = asyncio.ensure_future(probe.read())
        try:
            stood = await self._answer(asked)
            reading = await asked
        finally:
            await _drop(asked)
        received = self._clock.now()
        self._see_restart(reading)
        self._say("up")
        if stood:
            return
        self._pace.took(received - sent)
        self._emit(
            HostSample(
                t=self._placing.place(sent, received, reading.uptime),
                host=self.config.name,
                round_trip=received - sent,
                reading=reading,
                interval=self._pace.interval,
            )
        )

    async def _answer(self, asked: asyncio.Future[HostReading]) -> bool:
        """Returns when the answer is there: whether the cockpit stood still meanwhile. Says where it is overdue."""
        overdue, patience = max(OVERDUE, self._pace.interval), max(PATIENCE, 3 * self._pace.interval)
        since, stood = self._clock.now(), False
        while not asked.done():
            waited = self._clock.now() - since
            if waited >= overdue:
                self._say("slow", _slow(waited))
            if waited >= patience:
                raise HostError(f"the connection stands, but no answer for {patience:g} s", subject=self.config.name)
            next_word = min(at for at in (overdue, SILENCE + LOOK, patience) if at > waited)
            if await self._look(asked, since + next_word):
                since, stood = self._clock.now(), True
        return stood

    async def _look(self, waited_for: asyncio.Future[Any], until: float) -> bool:
        """Waits until then (session time), but LOOK seconds at most; whether the cockpit itself stood still in that."""
        left = until - self._clock.now()
        await asyncio.wait([waited_for], timeout=max(0.0, min(LOOK, left)))
        stood = self._standstill.paused_seconds()
        if stood:
            self._say("lost", f"the cockpit itself did not run for {stood:.0f} s")
        return stood > 0

    async def _pause_after_refusal(self, error: CockpitError, seconds: float) -> None:
        """Waits, but no longer than until the person wants to be asked where an answer would help."""
        if self._asking is None or not isinstance(error, HostKeyUnknown | Unanswered):
            await asyncio.sleep(seconds)
            return
        wanted = asyncio.ensure_future(self._asking.wanted(self.config.name))
        try:
            await asyncio.wait([wanted], timeout=seconds)
        finally:
            await _drop(wanted)

    def _see_restart(self, reading: HostReading) -> None:
        """Uptime falls only where a host was started anew."""
        if reading.uptime < self._uptime:
            self._say("lost", f"it was started anew {reading.uptime:.0f} s ago")
        self._uptime = reading.uptime

    def _was_up(self) -> bool:
        return self._said is not None and self._said[0] in ("up", "slow")

    def _fail(self, condition: HostCondition, error: CockpitError) -> None:
        self.failure = error
        self._say(condition, error.problem)

    def _say(self, condition: HostCondition, detail: str = "", facts: HostFacts | None = None) -> None:
        """Tells the condition where it is news, so that `lost` goes on counting while the host is tried again."""
        if self._said == (condition, detail):
            return
        self._said = (condition, detail)
        self._emit(
            HostChanged(t=self._clock.now(), host=self.config.name, condition=condition, detail=detail, facts=facts)
        )


def retries() -> Iterator[float]:
    """Seconds to wait before each further attempt to reach a host that was lost."""
    wait = FIRST_RETRY
    while True:
        yield wait
        wait = min(2 * wait, LAST_RETRY)


def _slow(waited: float) -> str:
    """A connection that does not stand is gone by its keepalives after a time; until then it may be either."""
    return "the connection stands, the probe does not answer" if waited > SILENCE else "its answer is overdue"


async def _drop(future: asyncio.Future[Any]) -> None:
    """Cancels what nobody waits for any longer; what it failed with is known already, or of no use."""
    future.cancel()
    await asyncio.wait([future])
    if not future.cancelled():
        future.exception()


async def check_host(config: HostConfig, ssh_config: Path | None = None) -> HostFacts:
    """Whether a host can be watched: connects, reads once, lets go. Raises what stands in the way, for exit code 3."""
    shell = await open_shell(config, ssh_config)
    try:
        probe = await Probe.start(shell, config)
        try:
            async with asyncio.timeout(max(PATIENCE, 3 * config.interval)):
                await probe.read()
        except TimeoutError:
            raise HostError("the probe started but does not answer", subject=config.name) from None
        finally:
            probe.close()
        return probe.facts
    finally:
        await shell.close()
