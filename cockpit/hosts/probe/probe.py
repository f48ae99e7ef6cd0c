"""The probe: a shell script that reads /proc on a host and prints one frame per input line (tick).

Nothing is installed on the host: the script is sent to standard input (see `program`), followed by ticks. It ends with
its input, or a minute after the last tick. If the host's awk is suitable, one awk process reads as long as the probe
runs and prints only changes of processes; otherwise one `grep` per tick reads all files.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.hosts.probe import parse
from cockpit.hosts.probe.counters import CounterTable
from cockpit.hosts.probe.frames import MARK, Frame, FrameReader
from cockpit.hosts.probe.processes import ProcessTable
from cockpit.hosts.probe.script import LINE_BYTES, script
from cockpit.hosts.shell import Channel, Shell
from cockpit.hosts.watchdog import idle_seconds
from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig, HostFacts, HostReading, ProcessCounters
from cockpit.model.text import sanitize

# Timeout (s) for the facts about the host.
START_TIMEOUT = 15.0
# Frames over which the probe's CPU time is averaged: its resolution is 10 ms.
COST_FRAMES = 30
# Maximum bytes that a login shell may print before the probe starts.
NOISE_LIMIT = 1024 * 1024

# Number of clock readings at the start, of which the fastest is used, and their total timeout (s).
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
    """A running probe of a host. Reads one frame at a time."""

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
        """Start a probe and wait until it is ready. `port` is the target's, if the target is on this host. Raises
        HostError."""
        channel = await shell.open(script(config.processes, port, config.upstreams, idle_seconds(config.interval)))
        try:
            async with asyncio.timeout(START_TIMEOUT):
                facts = await _read_facts(config.name, channel)
                probe = cls(config.name, channel, facts, port is not None or bool(config.upstreams))
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
        """Set the offset of the host's wall clock in the facts; it stays None without a usable `date`."""
        start = time.monotonic()
        clocks: list[_Clock] = []
        while len(clocks) < CLOCK_ASKED and time.monotonic() - start < CLOCK_TIME:
            clock = await self._ask_clock()
            if clock is None:
                break
            clocks.append(clock)
        if clocks:
            best = min(clocks)
            self.facts = replace(self.facts, clock_offset=best.offset, clock_error=best.error)

    async def read(self) -> HostReading:
        """Take one reading. Raises HostError if the probe has ended or its frame is incomplete."""
        frame, processes = await self._read_frame()
        # Cutting may cost an extra process, so it is only on while lines are too long.
        self._cut = frame.longest >= LINE_BYTES
        try:
            reading = parse.reading(frame, processes, self._cost(frame), self._table.pss, self._table.cpu_ticks)
        except (ValueError, IndexError) as error:
            raise self._invalid(error) from None
        table = self._counters
        excluded = self._table.excluded
        return replace(reading, counters=table.counters, accept=table.accept, backlog=table.backlog, excluded=excluded)

    def close(self) -> None:
        self._channel.close()

    async def _read_frame(self) -> tuple[Frame, tuple[ProcessCounters, ...]]:
        """Request a frame; return it with all processes. Late frames of earlier ticks are taken first."""
        retries = 0
        await self._tick()
        while line := await self._channel.readline():
            if line.startswith(_AGAIN):
                retries += 1
                if retries > AGAIN:
                    raise HostError(f"the probe cannot read /proc{self._stderr()}", subject=self._name)
                await self._tick()
            try:
                frame = self._frames.feed(line)
            except ValueError as error:
                raise self._invalid(error) from None
            if frame:
                processes = self._feed(frame)
                if frame.number == self._number:
                    # Measure the speed of the CPU; the next frame has the result.
                    await _send(self._channel, b"loop\n")
                    return frame, processes
        raise HostError(f"the probe ended{self._stderr()}", subject=self._name)

    async def _tick(self) -> None:
        """Request a frame; a full one if the previous one never arrived."""
        extent = "changes" if self._taken == self._number else "all"
        self._number += 1
        await _send(self._channel, f"{self._number} {extent} {LINE_BYTES if self._cut else ''}\n".encode())

    def _feed(self, frame: Frame) -> tuple[ProcessCounters, ...]:
        self._taken = frame.number
        try:
            self._counters.feed(frame)
            return self._table.feed(frame)
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
        return HostError(f"invalid reading: {sanitize(str(error), 200)}", subject=self._name)

    def _stderr(self) -> str:
        text = self._channel.stderr.decode("utf-8", "replace").strip()
        return f": {sanitize(text, 200)}" if text else ""

    def _cost(self, frame: Frame) -> float:
        """Return the mean CPU time (s) per frame; the counter of a restarted awk starts at 0 again."""
        before, self._spent = self._spent, parse.probe_seconds(frame, self.facts.hz)
        if before is not None:
            self._costs.append(max(0.0, self._spent - before))
        return sum(self._costs) / max(1, len(self._costs))


async def _send(channel: Channel, data: bytes) -> None:
    """Write to the probe. The reason of a failure is at the end of its output."""
    with suppress(HostError):
        await channel.write(data)


async def _read_facts(name: str, channel: Channel) -> HostFacts:
    facts: dict[str, str] = {}
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
                facts[key] = value
            case ["foreign", *system]:
                named = sanitize(" ".join(system), 80) or "unknown system"
                raise HostError(f"no /proc ({named}); hosts must run Linux", subject=name)
            case ["ready"]:
                return _parsed_facts(name, facts)
    text = last or channel.stderr.decode("utf-8", "replace").strip()
    why = f": {sanitize(text, 200)}" if text else ""
    raise HostError(f"the shell ended before the probe started{why}", subject=name)


def _parsed_facts(name: str, facts: dict[str, str]) -> HostFacts:
    try:
        return parse.facts(facts)
    except KeyError as error:
        raise HostError(f"the probe did not print the host's {error.args[0]}", subject=name) from None
    except ValueError as error:
        raise HostError(f"invalid facts: {sanitize(str(error), 200)}", subject=name) from None
