"""Whether a change is really in force: a new generation of workers, good replies, and what the server says of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused, TargetError
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.servers.registry import CHATTER, CORRECTION, ERROR_LOGS, FAILURE
from cockpit.tuning import files, pending, scripts
from cockpit.tuning.remote import Remote

# Asks the target once: "" for a good reply, else what is wrong with it. Raises TargetError where none came.
Probe = Callable[[], Awaitable[str]]

# Good replies in a row that are taken for a serving server.
GOOD_REPLIES = 3
# Seconds between two looks.
PACE = 0.2
# A line of an error log by which a server gives up a start or a reload.
_GAVE_UP = re.compile(FAILURE)
# A line of an error log, or of a command, about a value that was not taken as it is.
_CORRECTED = re.compile(f"({CORRECTION})", re.I)
_TELLS = re.compile(
    r"exceed|decreas|increas|lower|rais|not allowed during|ignor|reset|must be|changing|would|obsolete|deprecat"
    r"|can't have more",
    re.I,
)
_CHATTER = re.compile(CHATTER, re.I)


class _Log(NamedTuple):
    file: str
    size: str
    inode: str


class EffectWatch:
    """What is watched of one change, from before it is begun. `notes` are what the server said of its values."""

    def __init__(
        self, shell: Remote, knobs: Sequence[Knob], change: str, lease: int, seconds: float, probe: Probe | None
    ) -> None:
        self.notes: list[str] = []
        self._shell = shell
        self._change = change
        self._lease = lease
        self._seconds = seconds
        self._probe = probe
        self._workers = next((knob.workers for knob in knobs if knob.workers and (knob.reload or knob.live)), "")
        self._logs = _logs_of(knobs)
        self._log: _Log | None = None
        self._before: frozenset[str] = frozenset()

    async def begin(self) -> None:
        """Remembers the workers and the end of the log. To be called right before the reload."""
        self._before = await self._look() if self._workers else frozenset()
        self._log = await _log_end(self._shell, self._logs) if self._logs else None

    async def wait(self) -> str:
        """Returns "" once the change is in force, or why it is not after `seconds`."""
        if not self._workers and self._probe is None:
            return await self._gave_up()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        good = 0
        while True:
            now = await self._look()
            lingering = now & self._before
            fresh = bool(now - self._before) or not self._before
            wrong = await asked(self._probe)
            good = 0 if wrong else good + 1
            if fresh and not lingering and good >= GOOD_REPLIES:
                return "" if self._workers else await self._gave_up()
            if loop.time() >= deadline:
                return await self._verdict(fresh, len(lingering), wrong)
            await asyncio.sleep(PACE)

    async def listen(self) -> None:
        """Adds to the notes what the server's log says since `begin`."""
        self.hear(await self._logged())

    def hear(self, said: bytes) -> None:
        """Adds to the notes the lines that tell of a corrected or ignored value."""
        for note in corrections(said.decode("utf-8", "replace")):
            if note not in self.notes:
                self.notes.append(note)

    async def _logged(self) -> bytes:
        """The lines of the server's log since `begin`."""
        if self._log is None:
            return b""
        done = await files.run(self._shell, scripts.LOG_SINCE, self._log.file, self._log.size, self._log.inode)
        return done.stdout

    async def _gave_up(self) -> str:
        """Why the server dropped the new configuration, from its log; "" if it does not say so."""
        said = gave_up((await self._logged()).decode("utf-8", "replace"))
        return f"{self._log.file} says: {said}" if self._log and said else ""

    async def _look(self) -> frozenset[str]:
        return await pending.poll_workers(self._shell, self._change, self._lease, self._workers)

    async def _verdict(self, fresh: bool, lingering: int, wrong: str) -> str:
        if wrong or not fresh:
            missing = f"no new {self._workers} workers came within {self._seconds:g} s"
            return "; ".join(filter(None, (wrong or missing, await self._gave_up())))
        if lingering:
            self.notes.append(f"{lingering} workers from before still finish their requests, by the old values")
        return ""


async def asked(probe: Probe | None) -> str:
    """What is wrong with the target's reply; "" where it is good, or nothing is to be asked."""
    if probe is None:
        return ""
    try:
        return await probe()
    except TargetError as error:
        return str(error)


def corrections(text: str) -> list[str]:
    """The lines of a log that tell of a value the server did not take as it stands, without their time and place."""
    found = []
    for line in text.splitlines():
        match = _CORRECTED.search(line)
        if match and _TELLS.search(match[1]) and not _CHATTER.search(line):
            found.append(neutral(match[1].strip(), 400))
    return list(dict.fromkeys(found))


def gave_up(text: str) -> str:
    """The first line of a log by which a server gives up a start or a reload, without its time and place."""
    found = _GAVE_UP.search(text)
    reason = next(filter(None, found.groups()), "") if found else ""
    return neutral(reason.strip(), 400)


def _logs_of(knobs: Sequence[Knob]) -> tuple[str, ...]:
    """Where the server may write its errors; the first that can be read is taken."""
    named = tuple(knob.log for knob in knobs if knob.log)
    if named:
        return named
    return next((ERROR_LOGS[knob.kind] for knob in knobs if knob.kind in ERROR_LOGS), ())


async def _log_end(shell: Remote, logs: Sequence[str]) -> _Log | None:
    done = await files.run(shell, scripts.LOG_END, *logs)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.exit_status != 0 or len(lines) != 2:
        return None
    size, _, inode = lines[0].partition(" ")
    return _Log(lines[1], size, inode)


async def serving(probe: Probe | None, seconds: float) -> str:
    """Whether the target gives good replies within `seconds`: "" or what is wrong with them."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (wrong := await asked(probe)) and loop.time() < deadline:  # noqa: ASYNC110  (a server raises no events)
        await asyncio.sleep(PACE)
    return wrong


async def must_serve(probe: Probe | None) -> None:
    """Raises ChangeRefused where the target is not well before anything is touched."""
    if wrong := await asked(probe):
        raise ChangeRefused(f"before the change already: {wrong}; nothing was changed")
