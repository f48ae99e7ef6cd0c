"""Detect whether a change is active: new workers, good responses, and messages of the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused, TargetError
from cockpit.model.knobs import Knob
from cockpit.model.text import count_text, sanitize
from cockpit.servers.registry import CHATTER, CORRECTION, ERROR_LOGS, FAILURE
from cockpit.servers.startup import Instance
from cockpit.tuning import files, scripts
from cockpit.tuning.generation import Generation, ServerProcess
from cockpit.tuning.pending import PendingChange
from cockpit.tuning.remote import Remote

# Requests the target once; returns "" for a good response, else the problem. Raises TargetError without a response.
TargetCheck = Callable[[], Awaitable[str]]
# Returns the servers that certainly read the knobs' files, by knob name. The argument is the set of PIDs of
# servers that do not read them.
Identify = Callable[[frozenset[int]], Awaitable[Mapping[str, Instance]]]

# Number of consecutive good responses after which a server counts as serving.
GOOD_RESPONSES = 3
# Seconds between two checks.
PACE = 0.2
# A line of an error log about a failed start or reload.
_FAILED = re.compile(FAILURE)
# A line of an error log, or of a command's output, about a corrected value, and a word that it must have.
_CORRECTED = re.compile(f"({CORRECTION})", re.I)
_CORRECTION_WORDS = re.compile(
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
    """Watches the effect of one change.

    `notes` are messages of the server about its values. `has_old_workers`: old workers are still finishing requests.
    `generations` are the servers whose workers the change replaces. `identify` finds these servers after a
    restart, by knob name. `restores`: a target that fails is only noted.
    """

    def __init__(
        self,
        change: PendingChange,
        knobs: Sequence[Knob],
        probe: TargetCheck | None,
        generations: Sequence[Generation] = (),
        identify: Identify | None = None,
        *,
        restores: bool = False,
    ) -> None:
        self.notes: list[str] = []
        self.has_old_workers = False
        self._change = change
        self._seconds = change.timeouts.effect
        self._probe = probe
        self._generations = generations
        self._identify = identify
        self._restores = restores
        self._search: asyncio.Task[Mapping[str, Instance]] | None = None
        self._logs = _logs_of(knobs)
        self._log: _Log | None = None

    async def begin(self) -> None:
        """Record the current workers and the size of the log; call right before the reload."""
        for generation in self._generations:
            generation.begin(await self._poll(generation))
        self._log = await _log_end(self._change.shell, self._logs) if self._logs else None

    async def wait(self) -> str:
        """Wait until the change is active; return "", or the reason if it is not active after `seconds`."""
        if not self._generations and self._probe is None:
            return await self._logged_failure()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        good = 0
        try:
            while True:
                await self._update(loop.time() < deadline)
                wrong = await problem_of(self._probe)
                good = 0 if wrong else good + 1
                if good >= GOOD_RESPONSES and all(
                    generation.is_fresh and not generation.old_workers for generation in self._generations
                ):
                    self._note_names()
                    return "" if self._generations else await self._logged_failure()
                if loop.time() >= deadline and self._search is None:
                    return await self._verdict(wrong)
                await asyncio.sleep(PACE)
        finally:
            if self._search:
                self._search.cancel()
                await asyncio.gather(self._search, return_exceptions=True)

    @property
    def sees_workers(self) -> bool:
        """Whether new workers prove the reload."""
        return bool(self._generations)

    @property
    def log(self) -> str:
        """The server's log; "" if none can be read."""
        return self._log.file if self._log else ""

    async def logs(self, pattern: re.Pattern[str]) -> bool:
        """Wait until a line logged since `begin` matches; return whether one does within `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        while not pattern.search((await self._logged()).decode("utf-8", "replace")):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(PACE)
            await self._change.poll()
        return True

    async def listen(self) -> None:
        """Add the server's messages logged since `begin` to the notes."""
        self.note_corrections(await self._logged())

    def note_corrections(self, output: bytes) -> None:
        """Add lines about corrected or ignored values to the notes."""
        for note in corrections(output.decode("utf-8", "replace")):
            if note not in self.notes:
                self.notes.append(note)

    async def _logged(self) -> bytes:
        """Return the bytes written to the server's log since `begin`."""
        if self._log is None:
            return b""
        done = await files.run(self._change.shell, scripts.LOG_SINCE, self._log.file, self._log.size, self._log.inode)
        return done.stdout

    async def _logged_failure(self) -> str:
        """Return the server's reason, from its log, for rejecting the new configuration; "" if unknown."""
        why = failure_line((await self._logged()).decode("utf-8", "replace"))
        return f"{self._log.file} reports: {why}" if self._log and why else ""

    async def _poll(self, generation: Generation) -> frozenset[ServerProcess]:
        return await self._change.poll(generation.pattern, generation.master)

    async def _update(self, may_search: bool) -> None:
        """Read the processes and renew the lease; start a search for the successors of ended masters."""
        if not self._generations:
            await self._change.poll()
        if self._search and self._search.done():
            servers, self._search = self._search.result(), None
            for generation in self._generations:
                server = servers.get(generation.knob) if generation.is_lost else None
                generation.adopt(str(server.process.pid) if server else "")
        for generation in self._generations:
            generation.update(await self._poll(generation))
        lost = [generation for generation in self._generations if generation.is_lost]
        if self._search is None and self._identify and may_search and lost:
            # As a task, because the search may take longer than the lease, which the next update renews.
            others = frozenset.intersection(*(generation.others for generation in lost))
            self._search = asyncio.ensure_future(self._identify(others))

    def _note_names(self) -> None:
        for generation in self._generations:
            if generation.same_named:
                self.notes.append(
                    f"{generation.same_named} servers have processes named {generation.pattern}; new workers were "
                    "recognized by this name alone, so the changed server is not certain"
                )

    async def _missing(self, generation: Generation) -> str:
        """Return the reason why a server has no new workers."""
        if generation.is_lost:
            return "the server exited, and no server with the same main configuration file replaced it"
        others = ", ".join(generation.others_with_new_workers(await self._poll(generation)))
        if others:
            return f"another server (PID {others}) got new workers, not PID {generation.master}"
        return f"no new {generation.pattern} workers appeared within {self._seconds:g} s"

    async def _verdict(self, wrong: str) -> str:
        if wrong and self._restores:
            self.notes.append(f"the target fails: {wrong}")
            wrong = ""
        stale = next((generation for generation in self._generations if not generation.is_fresh), None)
        failure = await self._logged_failure() if wrong or stale or not self._generations else ""
        if wrong or stale or failure:
            missing = await self._missing(stale) if stale else ""
            return "; ".join(filter(None, (wrong or missing, failure)))
        self._note_names()
        if lingering := sum(generation.old_workers for generation in self._generations):
            self.has_old_workers = True
            self.notes.append(f"{count_text(lingering, 'old worker')} still serving requests with the old values")
        return ""


async def problem_of(probe: TargetCheck | None) -> str:
    """Return the problem of the target's response; "" if the response is good, or without a probe."""
    if probe is None:
        return ""
    try:
        return await probe()
    except TargetError as error:
        return str(error)


def corrections(text: str) -> list[str]:
    """Return the lines of a log about corrected values, without timestamp and source."""
    lines = []
    for line in text.splitlines():
        match = _CORRECTED.search(line)
        if match and _CORRECTION_WORDS.search(match[1]) and not _CHATTER.search(line):
            lines.append(sanitize(match[1].strip(), 400))
    return list(dict.fromkeys(lines))


def failure_line(text: str) -> str:
    """Return the first line of a log about a failed start or reload, without timestamp and source; "" without one."""
    match = _FAILED.search(text)
    reason = next(filter(None, match.groups()), "") if match else ""
    return sanitize(reason.strip(), 400)


def _logs_of(knobs: Sequence[Knob]) -> tuple[str, ...]:
    """Return the possible error logs of the server, of which the first readable one is used."""
    logs = tuple(knob.log for knob in knobs if knob.log)
    if logs:
        return logs
    return next((ERROR_LOGS[knob.kind] for knob in knobs if knob.kind in ERROR_LOGS), ())


async def _log_end(shell: Remote, logs: Sequence[str]) -> _Log | None:
    done = await files.run(shell, scripts.LOG_END, *logs)
    lines = done.lines
    if done.exit_status != 0 or len(lines) != 2:
        return None
    size, _, inode = lines[0].partition(" ")
    return _Log(lines[1], size, inode)


async def wait_for_good_responses(probe: TargetCheck | None, seconds: float, count: int = 1) -> str:
    """Wait at most `seconds` for good responses of the target in a row; return "", or the problem of the last one."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    good = 0
    while good < count:
        wrong = await problem_of(probe)
        good = 0 if wrong else good + 1
        if wrong:
            if loop.time() >= deadline:
                return wrong
            await asyncio.sleep(PACE)
    return ""


async def require_good_response(probe: TargetCheck | None) -> None:
    """Raise ChangeRefused if the target gives no good response before the change."""
    if wrong := await problem_of(probe):
        raise ChangeRefused(f"the target fails without the change: {wrong}; nothing was changed")
