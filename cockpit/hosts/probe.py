"""The probe: a shell script that reads /proc on a host, one frame for each line it is sent.

Nothing is installed or left behind: the script is sent to standard input (see `program`), followed by ticks. It ends
with its input, or a minute after the last tick. If the host's awk is able to, one awk reads for the life of the probe
and prints only changes of processes; otherwise one `grep` per tick reads all files.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.hosts import parse
from cockpit.hosts.counters import CounterTable
from cockpit.hosts.frames import MARK, Frame, FrameReader
from cockpit.hosts.processes import ProcessTable
from cockpit.hosts.script import LINE_BYTES, script
from cockpit.hosts.shell import Channel, Shell
from cockpit.hosts.watchdog import idle_seconds
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig, HostFacts, HostReading, ProcessCounters
from cockpit.model.text import neutral

# Timeout (s) for the facts about the host.
START_TIMEOUT = 15.0
# Frames over which the probe's CPU time is averaged: its resolution is 10 ms.
COST_FRAMES = 30
# Bytes that a login shell may print before the probe begins.
NOISE_LIMIT = 1024 * 1024

# Number of clock readings at the start, of which the quickest counts, and their total time limit (s).
CLOCK_ASKED, CLOCK_TIME = 3, 0.5
# Maximum number of retries of a frame.
AGAIN = 5
_AGAIN = MARK + b"again"
_CLOCK = MARK + b"clock "


class _Clock(NamedTuple):
    """The host's wall clock minus this machine's (s), and its maximum error."""

    error: float
    offset: float


class Probe:
    """A probe that runs on a host. One frame at a time."""

    def __init__(self, name: str, channel: Channel, facts: HostFacts, has_port: bool = False) -> None:
        self.facts = facts
        self._name = name
        self._channel = channel
        self._frames = FrameReader()
        self._table = ProcessTable(facts.page, facts.hz, has_port)
        self._counters = CounterTable()
        self._number = 0
        self._taken = 0
        self._cut = True
        self._spent: float | None = None
        self._costs: deque[float] = deque(maxlen=COST_FRAMES)

    @classmethod
    async def start(cls, shell: Shell, config: HostConfig, port: int | None = None) -> Probe:
        """Start a probe and wait until it is ready. `port` is the target's if it is on this host. Raises HostError."""
        channel = await shell.open(script(config.processes, port, config.behind, idle_seconds(config.interval)))
        try:
            async with asyncio.timeout(START_TIMEOUT):
                facts = await _read_facts(config.name, channel)
                probe = cls(config.name, channel, facts, port is not None or bool(config.behind))
                await probe.compare_clocks()
                return probe
        except TimeoutError:
            channel.close()
            slow = f"{config.name}: the probe did not start within {START_TIMEOUT:g} s"
            raise HostError(slow) from None
        except BaseException:
            channel.close()
            raise

    async def compare_clocks(self) -> None:
        """Put the offset of the host's wall clock into the facts; None without a usable `date`."""
        begun = time.monotonic()
        found: list[_Clock] = []
        while len(found) < CLOCK_ASKED and time.monotonic() - begun < CLOCK_TIME:
            clock = await self._ask_clock()
            if clock is None:
                break
            found.append(clock)
        if found:
            best = min(found)
            self.facts = replace(self.facts, clock_offset=best.offset, clock_error=best.error)

    async def read(self) -> HostReading:
        """Take one reading. Raises HostError if the probe has ended or its frame is incomplete."""
        frame, processes = await self._read_frame()
        # Cutting may cost an extra process, so it is only on while there are lines to cut.
        self._cut = frame.longest >= LINE_BYTES
        try:
            read = parse.reading(frame, processes, self._cost(frame), self._table.pss, self._table.cpu_ticks)
        except (ValueError, IndexError) as error:
            raise self._invalid(error) from None
        table = self._counters
        left_out = self._table.left_out
        return replace(read, counters=table.counters, accept=table.accept, backlog=table.backlog, left_out=left_out)

    def close(self) -> None:
        self._channel.close()

    async def _read_frame(self) -> tuple[Frame, tuple[ProcessCounters, ...]]:
        """The frame of the next tick, with all processes, after any late frame."""
        retries = 0
        await self._tick()
        while line := await self._channel.readline():
            if line.startswith(_AGAIN):
                retries += 1
                if retries > AGAIN:
                    raise HostError(f"the probe cannot read /proc{self._stderr()}", subject=self._name)
                await self._tick()
            try:
                frame = self._frames.take(line)
            except ValueError as error:
                raise self._invalid(error) from None
            if frame:
                processes = self._take(frame)
                if frame.number == self._number:
                    # How fast the CPU is: its result comes with the next frame.
                    await _send(self._channel, b"loop\n")
                    return frame, processes
        raise HostError(f"the probe ended{self._stderr()}", subject=self._name)

    async def _tick(self) -> None:
        """Request a frame; a full one if the previous one never arrived."""
        extent = "changes" if self._taken == self._number else "all"
        self._number += 1
        await _send(self._channel, f"{self._number} {extent} {LINE_BYTES if self._cut else ''}\n".encode())

    def _take(self, frame: Frame) -> tuple[ProcessCounters, ...]:
        self._taken = frame.number
        try:
            self._counters.take(frame)
            return self._table.take(frame)
        except (ValueError, IndexError) as error:
            raise self._invalid(error) from None

    async def _ask_clock(self) -> _Clock | None:
        sent, since = time.time(), time.monotonic()
        await _send(self._channel, b"clock\n")
        while line := await self._channel.readline():
            if line.startswith(_CLOCK):
                trip = time.monotonic() - since
                with suppress(ValueError):
                    wall, error = parse.wall_clock(line[len(_CLOCK) :].decode("ascii", "replace"))
                    return _Clock(error=trip / 2 + error, offset=wall - (sent + trip / 2))
                return None
        raise HostError(f"the probe ended{self._stderr()}", subject=self._name)

    def _invalid(self, error: Exception) -> HostError:
        return HostError(f"invalid reading: {neutral(str(error), 200)}", subject=self._name)

    def _stderr(self) -> str:
        text = self._channel.stderr.decode("utf-8", "replace").strip()
        return f": {neutral(text, 200)}" if text else ""

    def _cost(self, frame: Frame) -> float:
        """Mean CPU time (s) per frame; a restarted awk has used less than the previous one."""
        before, self._spent = self._spent, parse.probe_seconds(frame, self.facts.hz)
        if before is not None:
            self._costs.append(max(0.0, self._spent - before))
        return sum(self._costs) / max(1, len(self._costs))


async def _send(channel: Channel, data: bytes) -> None:
    """Write to the probe. If that fails, the end of its output has the reason."""
    with suppress(HostError):
        await channel.write(data)


async def _read_facts(name: str, channel: Channel) -> HostFacts:
    found: dict[str, str] = {}
    last = ""
    noise = 0
    while line := await channel.readline():
        noise += len(line)
        if noise > NOISE_LIMIT:
            raise HostError(
                f"the login shell printed more than {NOISE_LIMIT // 1024} KiB; reduce its output", subject=name
            )
        text = line.decode("utf-8", "replace").strip()
        if not line.startswith(MARK):
            last = text or last
            continue
        match text.split(maxsplit=3)[1:]:
            case ["fact", key, value] if key in parse.FACTS:
                found[key] = value
            case ["foreign", *system]:
                named = neutral(" ".join(system), 80) or "unknown system"
                raise HostError(f"no /proc ({named}); hosts must run Linux", subject=name)
            case ["ready"]:
                return _facts(name, found)
    text = last or channel.stderr.decode("utf-8", "replace").strip()
    why = f": {neutral(text, 200)}" if text else ""
    raise HostError(f"the shell ended before the probe started{why}", subject=name)


def _facts(name: str, found: dict[str, str]) -> HostFacts:
    try:
        return parse.facts(found)
    except KeyError as error:
        raise HostError(f"the probe did not print the host's {error.args[0]}", subject=name) from None
    except ValueError as error:
        raise HostError(f"invalid facts: {neutral(str(error), 200)}", subject=name) from None
