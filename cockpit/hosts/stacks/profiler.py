"""The profiler of one host: runs its program while it is switched on, and emits the slices in session time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

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
_ROOT = "log in as root, set sudo = true in [[host]], or"
_PERMISSION = f"perf is not permitted: {_ROOT} run there: sysctl kernel.perf_event_paranoid=0"


class _Language(NamedTuple):
    """A language whose functions perf does not know: how to install its profiler, and how to permit it."""

    name: str
    install: str
    permit: str


# By profiler.
_LANGUAGES = {
    "py-spy": _Language("Python", "pip install py-spy", f"{_ROOT} run there: sysctl kernel.yama.ptrace_scope=0"),
    "asprof": _Language("Java", "unpack a release of async-profiler", f"{_ROOT} log in as the user of the server"),
}


class Profiler:
    """Profiles a host while `active`; its events go to `emit`."""

    def __init__(self, feed: HostFeed, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._clock = clock
        self._emit = emit
        self._on, self._off, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._reported: tuple[ProfilerCondition, str] | None = None
        # Why the profile has no functions of the server's language.
        self._native = ""
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
                self._report("stopped", self._native)
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
        with suppress(HostError):
            await channel.write(b"\n")
        await asyncio.wait([slices], timeout=LAST_SLICE)
        slices.cancel()
        channel.close()

    async def _read(self, channel: Channel) -> str:
        """Emit the slices until the program ends; return the reason."""
        reader, name = SliceReader(), "perf"
        try:
            while line := await channel.readline():
                if line.startswith(MARK + b"failed"):
                    return _FAILURES.get(line.split()[-1].decode("ascii", "replace"), "perf cannot be used")
                if line.startswith(MARK + b"again"):
                    return ""
                if line.startswith(MARK + b"recording"):
                    name, *native = line.decode("utf-8", "replace").split()[2:]
                    self._native = _native_words(*native)
                    self._report("running", self._native)
                if complete := reader.feed(line):
                    self._emit_slice(complete)
            return _reason(name, channel.stderr)
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


def _reason(profiler: str, stderr: bytes) -> str:
    name, text = sanitize(profiler, 20), stderr.decode("utf-8", "replace")
    words = ("perf_event_paranoid", "Permission denied", "Operation not permitted", "EACCES")
    if name == "perf" and any(word in text for word in words):
        return _PERMISSION
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{name} ended: {sanitize(lines[-1], 200)}" if lines else f"{name} ended"


def _native_words(profiler: str = "", *reason: str) -> str:
    """Return why perf has no functions of a language, and how to get them; "" without a `profiler` that has them."""
    if profiler not in _LANGUAGES:
        return ""
    language, text = _LANGUAGES[profiler], sanitize(" ".join(reason), 200)
    if text == "missing":
        why = f"{profiler} is not on the PATH there: {language.install}"
    elif text == "mixed":
        why = f"{profiler} profiles all processes of a [[host]]; add a [[host]] for the others"
    elif "ermission" in text or "not permitted" in text:
        why = f"{profiler} is not permitted: {language.permit}"
    else:
        why = f"{profiler} cannot be used: {text}"
    return f"no functions of {language.name}: {why}"
