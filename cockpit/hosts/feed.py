"""The feed of one host: connects, polls the probe, emits events, and reconnects after a loss."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from cockpit.hosts.internal_error import internal_error
from cockpit.hosts.pauses import PauseDetector
from cockpit.hosts.probe.host_clock import HostClock
from cockpit.hosts.probe.poll_interval import PollInterval
from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.shell import SILENCE, Shell
from cockpit.hosts.ssh.prompts import HostPrompter, Keyring, Prompter
from cockpit.hosts.target_host import port_here
from cockpit.hosts.transport import open_shell
from cockpit.model.clock import Clock
from cockpit.model.errors import (
    AuthRefused,
    CockpitError,
    CredentialsRequired,
    HostError,
    HostKeyChanged,
    HostKeyUnknown,
    UsageError,
)
from cockpit.model.events import CONNECTED, AnyEvent, HostChanged, HostCondition, HostSample
from cockpit.model.host.samples import HostConfig, HostFacts, HostReading
from cockpit.model.load.plan import LoadPlan

# A host is slow if it has not answered for this time (s), or for the interval if that is longer.
OVERDUE = 1.5
# A silent probe on a live connection is given up after this time (s), or three intervals if that is longer. Keepalives
# end a dead connection sooner.
TIMEOUT = 15.0
# Delays (s) before reconnecting to a lost host: first, maximum.
FIRST_RETRY, LAST_RETRY = 1.0, 2.5
# Delays (s) before retrying a refused host: short after a key error, which the user may fix; long after a failed login,
# since servers lock out frequent attempts.
KEY_RETRY, LOGIN_RETRY = 15.0, 300.0
# Maximum interval (s) between two checks whether cockpit itself was paused.
CHECK_INTERVAL = 1.0


class HostFeed:
    """Watches one host; its events go to `emit`, in session time.

    `asker` prompts for passphrases, passwords and unknown host keys; None: a host that needs them is refused.
    `keyring` has the unlocked keys of the session. `plan` has the target: on the target's host, processes of other
    servers with the same name are left out.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        *,
        ssh_config: Path | None = None,
        asker: Prompter | None = None,
        keyring: Keyring | None = None,
        plan: LoadPlan | None = None,
    ) -> None:
        self.config = config
        self._plan = plan
        self._clock = clock
        self._emit = emit
        self.ssh_config = ssh_config
        self._asking = HostPrompter(asker, self._report) if asker else None
        self._keyring = keyring or Keyring()
        self._shell: Shell | None = None
        self._outside: Shell | None = None
        self._opening = asyncio.Lock()
        self._outside_closed: asyncio.Future[None] | None = None
        self._ended = False
        self._connected = asyncio.Event()
        # The last error while the host is not up.
        self.failure: CockpitError | None = None
        self._reported: tuple[HostCondition, str] | None = None
        self._interval = PollInterval(config.interval)
        self._host_clock = HostClock()
        self._pauses = PauseDetector(CHECK_INTERVAL)
        self._uptime = 0.0
        # The last reading of the current connection.
        self._reading: HostReading | None = None
        self._has_read = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled, then close the probe and the connection.

        After invalid data from the host or an internal error, the host is lost, and the feed reconnects.
        """
        self._report(HostCondition.CONNECTING)
        try:
            await self._keep_watching()
        finally:
            self._ended = True
            await self._close_outside()

    async def _keep_watching(self) -> NoReturn:
        waits = retries()
        while True:
            try:
                await self._watch()
            except (HostKeyUnknown, HostKeyChanged, UsageError) as error:
                self._fail(HostCondition.REFUSED, error)
                await self._pause_after_refusal(error, KEY_RETRY)
            except AuthRefused as error:
                self._fail(HostCondition.REFUSED, error)
                await self._pause_after_refusal(error, LOGIN_RETRY)
            except HostError as error:
                waits = retries() if self._was_up() else waits
                self._fail(HostCondition.LOST, error)
                await asyncio.sleep(next(waits))
            except Exception as error:
                self._report(HostCondition.LOST, internal_error(error))
                await asyncio.sleep(LAST_RETRY)

    async def shell(self) -> Shell:
        """Return the probe's connection, which others may share. Raises HostError if the host is not up."""
        if self._shell is None:
            condition, detail = self._reported or ("not watched", "")
            raise HostError(f"{self.config.name} is {condition}{': ' + detail if detail else ''}")
        return self._shell

    async def outside(self) -> Shell:
        """Return a separate connection to the machine from which the host is reached. It survives a restart of the
        host, such as a container. Raises HostError, UsageError."""
        async with self._opening:
            if self._outside is None or self._outside_closed is None or self._outside_closed.done():
                # Its jump hosts may still be connected.
                await self._close_outside()
                self._outside = await open_shell(self.config.outside, self.ssh_config, self._asking, self._keyring)
                self._outside_closed = asyncio.ensure_future(self._outside.wait_closed())
                if self._ended:
                    await self._close_outside()
                    raise HostError("the host is no longer watched", subject=self.config.name)
            return self._outside

    async def _close_outside(self) -> None:
        if self._outside is not None and self._outside_closed is not None:
            await _cancel(self._outside_closed)
            await self._outside.close()

    def target_port(self) -> int | None:
        """Return the target's port; None if the target is on another host. Raises UsageError for an invalid
        ssh_config."""
        return port_here(self._plan, self.config, self.ssh_config) if self._plan else None

    def session_time(self, uptime: float) -> float | None:
        """Return the session time (s) of an uptime of the host; None before its first reading."""
        return self._host_clock.session_time(uptime)

    async def up(self) -> Shell:
        """Wait until the host is up; return the probe's connection."""
        while self._shell is None:
            await self._connected.wait()
        return self._shell

    async def reading(self) -> tuple[Shell, HostReading]:
        """Wait for a reading of the host; return the probe's connection and the last reading."""
        while self._shell is None or self._reading is None:
            await self._has_read.wait()
        return self._shell, self._reading

    async def _watch(self) -> NoReturn:
        shell = await open_shell(self.config, self.ssh_config, self._asking, self._keyring)
        try:
            # ssh -G may take long.
            port = await asyncio.to_thread(self.target_port)
            probe = await Probe.start(shell, self.config, port)
            try:
                self._shell = shell
                self._connected.set()
                self.failure = None
                self._report(HostCondition.UP, facts=probe.facts)
                if self._asking:
                    self._asking.quiet()
                self._pauses.begin()
                await self._sample(shell, probe)
            finally:
                self._shell = None
                self._connected.clear()
                self._reading = None
                self._has_read.clear()
                probe.close()
        finally:
            await shell.close()

    async def _sample(self, shell: Shell, probe: Probe) -> NoReturn:
        """Sample at every multiple of the current interval; missed samples are skipped."""
        start = self._clock.now()
        closed = asyncio.ensure_future(shell.wait_closed())
        try:
            while True:
                await self._read(probe)
                interval = self._interval.interval
                due = start + (math.floor((self._clock.now() - start) / interval) + 1) * interval
                await self._tick(closed, due)
        finally:
            await _cancel(closed)

    async def _tick(self, closed: asyncio.Future[None], due: float) -> None:
        """Wait for the next tick. Raises HostError if the connection ends first."""
        while not closed.done():
            if self._clock.now() >= due or await self._wait(closed, due):
                return
        raise HostError("connection lost", subject=self.config.name)

    async def _read(self, probe: Probe) -> None:
        """Read and emit a sample; if cockpit itself was paused, emit none. Raises HostError without an answer."""
        sent = self._clock.now()
        answer = asyncio.ensure_future(probe.read())
        try:
            paused = await self._wait_for_answer(answer)
            reading = await answer
        finally:
            await _cancel(answer)
        received = self._clock.now()
        self._check_reboot(reading)
        self._reading = reading
        self._has_read.set()
        self._report(HostCondition.UP)
        if paused:
            return
        self._interval.took(received - sent)
        self._emit(
            HostSample(
                t=self._host_clock.place(sent, received, reading.uptime),
                host=self.config.name,
                round_trip=received - sent,
                reading=reading,
                interval=self._interval.interval,
            )
        )

    async def _wait_for_answer(self, answer: asyncio.Future[HostReading]) -> bool:
        """Wait for the answer, and report if it is overdue; return whether cockpit itself was paused."""
        overdue, timeout = max(OVERDUE, self._interval.interval), max(TIMEOUT, 3 * self._interval.interval)
        since, paused = self._clock.now(), False
        while not answer.done():
            waited = self._clock.now() - since
            if waited >= overdue:
                self._report(HostCondition.SLOW, _slow(waited))
            if waited >= timeout:
                raise HostError(f"connected, but no answer for {timeout:g} s", subject=self.config.name)
            next_report = min(at for at in (overdue, SILENCE + CHECK_INTERVAL, timeout) if at > waited)
            if await self._wait(answer, since + next_report):
                since, paused = self._clock.now(), True
        return paused

    async def _wait(self, future: asyncio.Future[Any], until: float) -> bool:
        """Wait for the future, at most until a session time or CHECK_INTERVAL; return whether cockpit was paused."""
        left = until - self._clock.now()
        await asyncio.wait([future], timeout=max(0.0, min(CHECK_INTERVAL, left)))
        paused = self._pauses.paused_seconds()
        if paused:
            self._report(HostCondition.LOST, f"cockpit itself was paused for {paused:.0f} s")
        return paused > 0

    async def _pause_after_refusal(self, error: CockpitError, seconds: float) -> None:
        """Wait before the next attempt; if the user can answer a question, at most until the user wants to."""
        if self._asking is None or not isinstance(error, HostKeyUnknown | CredentialsRequired):
            await asyncio.sleep(seconds)
            return
        allowed = asyncio.ensure_future(self._asking.wait_until_allowed(self.config.name))
        try:
            await asyncio.wait([allowed], timeout=seconds)
        finally:
            await _cancel(allowed)

    def _check_reboot(self, reading: HostReading) -> None:
        if reading.uptime < self._uptime:
            self._report(HostCondition.LOST, f"rebooted {reading.uptime:.0f} s ago")
        self._uptime = reading.uptime

    def _was_up(self) -> bool:
        return self._reported is not None and self._reported[0] in CONNECTED

    def _fail(self, condition: HostCondition, error: CockpitError) -> None:
        self.failure = error
        self._report(condition, error.problem)

    def _report(self, condition: HostCondition, detail: str = "", facts: HostFacts | None = None) -> None:
        """Emit the condition if it changed, so that `lost` keeps its start time during retries."""
        if self._reported == (condition, detail):
            return
        self._reported = (condition, detail)
        self._emit(
            HostChanged(t=self._clock.now(), host=self.config.name, condition=condition, detail=detail, facts=facts)
        )


def retries() -> Iterator[float]:
    """Yield the delays (s) before each attempt to reconnect to a lost host."""
    wait = FIRST_RETRY
    while True:
        yield wait
        wait = min(2 * wait, LAST_RETRY)


def _slow(waited: float) -> str:
    """Describe a late answer. After SILENCE, keepalives would have closed a dead connection, so the probe is late."""
    return "connected, but the probe does not answer" if waited > SILENCE else "answer overdue"


async def _cancel(future: asyncio.Future[Any]) -> None:
    future.cancel()
    await asyncio.wait([future])
    if not future.cancelled():
        future.exception()


async def check_host(config: HostConfig, ssh_config: Path | None = None) -> HostFacts:
    """Connect, read once, disconnect; return the facts. Raises CockpitError if the host cannot be watched."""
    shell = await open_shell(config, ssh_config)
    try:
        probe = await Probe.start(shell, config)
        try:
            async with asyncio.timeout(max(TIMEOUT, 3 * config.interval)):
                await probe.read()
        except TimeoutError:
            raise HostError("the probe started but does not answer", subject=config.name) from None
        finally:
            probe.close()
        return probe.facts
    finally:
        await shell.close()
