"""A change under way on its host: arm its undo there, run commands, confirm or undo."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from cockpit.hosts.shell import Completed
from cockpit.model.errors import ChangeRefused, HostError
from cockpit.model.text import sanitize
from cockpit.tuning import files, scripts, undo_program
from cockpit.tuning.applied import AppliedChange
from cockpit.tuning.files import sha256
from cockpit.tuning.generation import ServerProcess
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Remote


class ConfirmationLost(HostError):
    """The connection was lost during the confirmation, which may have reached the host."""


class CommandResult(NamedTuple):
    """The result of a command: `why` is the reason of a failure ("": success)."""

    why: str
    output: bytes


class UndoOutcome(NamedTuple):
    """The report of an undo.

    `files` and `values` are reports by number, `failed` commands are (test or reload, number, message). `ended` is the
    end of the change before the undo, `confirmed` or `dropped` ("": it had not ended).
    """

    ended: str
    files: dict[str, str]
    values: dict[str, str]
    failed: tuple[tuple[str, int, str], ...]
    reloaded: bool


class Timeouts(NamedTuple):
    """Timeouts (s).

    `command`: of a command in the profile; `reach`: to reconnect to a lost host; `effect`: until the change must be
    active; `lease`: the host undoes the change if it gets no message for this time.
    """

    command: float = 60.0
    reach: float = 45.0
    effect: float = 30.0
    lease: int = 30


TIMEOUTS = Timeouts()


class PendingChange(NamedTuple):
    """A change on its host, with its `directory` there. Methods raise HostError if the host cannot be reached.

    After `arm`, the host undoes the change by itself when its lease (plus the time of a running command) expires
    without a renewal.
    """

    shell: Remote
    directory: str
    timeouts: Timeouts

    async def arm(self, undo: str, owner: str, facts: bytes) -> None:
        """Lock the host for this change and start its guard with the undo program; `facts` is one line.

        Raises ChangeRefused if another change is under way there or was interrupted.
        """
        data = undo.encode("utf-8", "surrogateescape")
        arguments = (str(self.timeouts.lease), sha256(data), owner, undo_program.GUARD)
        await self._require(undo_program.ARM, *arguments, input=facts + b"\n" + data)

    async def run(self, command: str, value: str = "", mark: str = "") -> CommandResult:
        """Run a command of the profile by sh on the host.

        `value` is its "$1", sent on stdin so that it is in no argv. The file `mark` is first created in the change's
        directory.
        """
        seconds, lease = self.timeouts.command, self.timeouts.lease
        arguments = (f"{seconds:g}", str(math.ceil(seconds) + lease), str(lease), command, mark)
        data = f"{value}\n".encode("utf-8", "surrogateescape")
        done = await files.run(self.shell, scripts.RUN, self.directory, *arguments, input=data, seconds=seconds + 30)
        output = done.stderr + b"\n" + done.stdout
        if done.exit_status == 0:
            return CommandResult("", output)
        if done.exit_status == 124:
            return CommandResult(f"it did not end within {seconds:g} s", output)
        return CommandResult(_problem(done), output)

    async def poll(self, pattern: str = "", master: str = "", lease: int | None = None) -> frozenset[ServerProcess]:
        """Renew the lease; return the processes whose name matches the pattern, and the process with the PID `master`.

        Raises ChangeRefused if the change has ended.
        """
        lease = self.timeouts.lease if lease is None else lease
        done = await self._require(scripts.PROCESSES, str(lease), pattern, master)
        rows = (row.split(":") for row in done.stdout.decode("ascii", "replace").split())
        return frozenset(ServerProcess(*row) for row in rows if len(row) == len(ServerProcess._fields))

    async def confirm(self, applied: AppliedChange) -> None:
        """Confirm the change and store its record. Raises ChangeRefused if the host has rolled it back."""
        data = msgspec.json.encode(applied)
        await self._require(undo_program.CONFIRM, sha256(data), input=data)

    async def undo(self, seconds: int, why: str) -> UndoOutcome:
        """Have the host undo the change; return the outcome, also of an earlier undo.

        Raises ChangeRefused if the undo does not end within `seconds`.
        """
        reason = f"{sanitize(why, 400)}\n".encode("utf-8", "replace")
        return outcome(
            (await self._require(undo_program.FIRE, str(seconds), input=reason, seconds=seconds + 30)).stdout
        )

    async def discard(self) -> None:
        await files.run(self.shell, undo_program.DISCARD, self.directory)

    async def _require(self, script: str, *arguments: str, input: bytes = b"", seconds: float = 30) -> Completed:
        done = await files.run(self.shell, script, self.directory, *arguments, input=input, seconds=seconds)
        if done.exit_status != 0:
            raise ChangeRefused(files.error_reason(done))
        return done


async def get(shell: Remote, command: str, keep: str = "") -> str:
    """Return the output of a command, one line with single spaces; also write it to the file `keep` on the host.

    Raises ChangeRefused if the command fails, or does not print exactly one line.
    """
    done = await files.run(shell, scripts.GET, command, keep, seconds=60)
    if done.exit_status != 0:
        raise ChangeRefused(_problem(done))
    lines = done.stdout.decode("utf-8", "backslashreplace").strip().split("\n")
    if len(lines) != 1 or not lines[0]:
        raise ChangeRefused(
            "the command prints nothing" if not lines[0] else f"the command prints {len(lines)} lines, not one"
        )
    return " ".join(lines[0].split())


def _problem(done: Completed) -> str:
    return useful_line(done.stderr, done.stdout) or f"exit status {done.exit_status}, no message"


async def record(shell: Remote, host: str, change: str) -> AppliedChange:
    """Read the record of a confirmed change. Raises ChangeRefused if it cannot be read."""
    kept = await files.read(shell, host, f"{change}/applied")
    try:
        return msgspec.json.decode(kept.data, type=AppliedChange)
    except msgspec.MsgspecError as error:
        raise ChangeRefused(f"{kept.file} cannot be read: {error}", subject=host) from None


def outcome(text: bytes) -> UndoOutcome:
    rows = [line.split(" ", 2) for line in text.decode("utf-8", "replace").split("\n")]
    by_word: dict[str, dict[str, str]] = {"file": {}, "value": {}, "test": {}, "reload": {}}
    for row in rows:
        if len(row) == 3 and row[0] in by_word:
            by_word[row[0]][row[1]] = row[2]
    failed = [
        (word, _place(number), failure_reason(words))
        for word in ("test", "reload")
        for number, words in by_word[word].items()
    ]
    ended = next((row[0] for row in rows if row[0] in ("confirmed", "dropped")), "")
    return UndoOutcome(ended, by_word["file"], by_word["value"], tuple(failed), ["reloaded"] in rows)


def _place(number: str) -> int:
    """Parse the number of a command; 0 if it is invalid."""
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def failure_reason(text: str) -> str:
    status, _, words = text.partition(" ")
    if status == "124":
        return "it did not end in time"
    return useful_line(words.replace("\x1e", "\n").encode()) or f"exit status {status}, no message"
