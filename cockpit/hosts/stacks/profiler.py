"""The profiler of one host: runs its program while it is switched on, and emits the slices in session time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.internal_error import internal_error
from cockpit.hosts.shell import Channel, Shell
from cockpit.hosts.stacks.parse import MARK, HostSlice, SliceReader
from cockpit.hosts.stacks.script import script
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent
from cockpit.model.host.samples import HostReading
from cockpit.model.stacks import DEFAULT_HZ, ProfilerChanged, ProfilerCondition
from cockpit.model.text import sanitize

# perf is restarted after this time (s), which bounds its memory and reads new maps of just-in-time compilers.
RESTART = 300.0
# Pauses (s) before another attempt after a failure, and timeout (s) for the last slice after the end.
PAUSES, PAUSE, LAST_SLICE = 30, 1.0, 3.0
# A slice that ends later than its arrival, or more than this time (s) before it, has an unusable clock.
_STALE = 60.0
_FAILURES = {
    "missing": "perf is not installed: apt install linux-perf (Debian), linux-tools-generic (Ubuntu), dnf install perf",
    "unsupported": "this kernel has no perf events",
    "processes": "this user can profile its own processes only, and the server has none of them; log in as root, set "
    "sudo = true in [[host]], or run there: sysctl kernel.perf_event_paranoid=0",
}
_PERMISSION = "perf is not permitted: log in as root, set sudo = true in [[host]], or run there: sysctl "
_PERMISSION += "kernel.perf_event_paranoid=0"


class Profiler:
    """Profiles a host while `active`; its events go to `emit`."""

    def __init__(self, feed: HostFeed, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._clock = clock
        self._emit = emit
        self._on, self._off, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._reported: tuple[ProfilerCondition, str] | None = None
        self.switch(bool(feed.config.profile))

    @property
    def active(self) -> bool:
        return self._on.is_set()

    def switch(self, active: bool) -> None:
        """Switch the profiler on or off."""
        now, before = (self._on, self._off) if active else (self._off, self._on)
        now.set()
        before.clear()

    async def run(self) -> None:
        """Profile until cancelled. Failures are reported, and retried while it is switched on."""
        while True:
            await self._on.wait()
            shell, reading = await self._feed.reading()
            self._idle.clear()
            try:
                failure = await self._profile(shell, reading)
            finally:
                self._idle.set()
            if self._off.is_set():
                self._report("stopped")
            elif failure:
                self._report("failed", failure)
                await self._pause(shell)

    async def _pause(self, shell: Shell) -> None:
        """Wait before the next attempt: shorter if the host has a new connection, or the profiler is switched off."""
        for _ in range(PAUSES):
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    await self._off.wait()
                    return
            with suppress(HostError):
                if await self._feed.shell() is not shell:
                    return

    async def close(self) -> None:
        """Switch the profiler off, and wait for its last slice."""
        self.switch(False)
        await self._idle.wait()

    async def _profile(self, shell: Shell, reading: HostReading) -> str:
        """Run the program once; return why it failed, "" if it did not."""
        try:
            channel = await shell.open(script(self._feed.config, reading))
        except HostError as error:
            return error.problem
        slices = asyncio.ensure_future(self._read(channel))
        off = asyncio.ensure_future(self._off.wait())
        try:
            await asyncio.wait((slices, off), timeout=RESTART, return_when=asyncio.FIRST_COMPLETED)
            return await slices if slices.done() else ""
        finally:
            off.cancel()
            await asyncio.shield(self._finish(channel, slices))

    async def _finish(self, channel: Channel, slices: asyncio.Future[str]) -> None:
        """End the program, and wait for its last slice."""
        with suppress(HostError):
            await channel.write(b"\n")
        await asyncio.wait([slices], timeout=LAST_SLICE)
        slices.cancel()
        channel.close()

    async def _read(self, channel: Channel) -> str:
        """Emit the slices until the program ends; return the reason."""
        reader = SliceReader()
        try:
            while line := await channel.readline():
                if line.startswith(MARK + b"failed"):
                    return _FAILURES.get(line.split()[-1].decode("ascii", "replace"), "perf cannot be used")
                if line.startswith(MARK + b"recording"):
                    self._report("running")
                if complete := reader.feed(line):
                    self._emit_slice(complete)
            return _reason(channel.stderr)
        except HostError as error:
            return error.problem
        except ValueError as error:
            return f"invalid stacks: {sanitize(str(error), 120)}"
        except Exception as error:
            return internal_error(error)

    def _emit_slice(self, part: HostSlice) -> None:
        now = self._clock.now()
        end = self._feed.session_time(part.end)
        if end is None or not now - _STALE <= end <= now:
            end = now - max(0.0, min(_STALE, part.uptime - part.end))
        hz = self._feed.config.profile or DEFAULT_HZ
        if end > part.end - part.start:
            self._emit(part.event(self._feed.config.name, hz, end))

    def _report(self, condition: ProfilerCondition, detail: str = "") -> None:
        if self._reported == (condition, detail):
            return
        self._reported = condition, detail
        host = self._feed.config.name
        self._emit(ProfilerChanged(t=self._clock.now(), host=host, condition=condition, detail=detail))


def _reason(stderr: bytes) -> str:
    text = stderr.decode("utf-8", "replace")
    if any(word in text for word in ("perf_event_paranoid", "Permission denied", "Operation not permitted", "EACCES")):
        return _PERMISSION
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"perf ended: {sanitize(lines[-1], 200)}" if lines else "perf ended"
