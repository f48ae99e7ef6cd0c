"""A change under way on its host: arm its undo there, run commands, confirm or undo.

Every function raises HostError if the host cannot be reached. After `arm`, the host undoes the change by itself when
its lease (s, plus the time of a running command) expires without a renewal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from cockpit.hosts.shell import Completed
from cockpit.model.errors import ChangeRefused
from cockpit.model.text import sanitize
from cockpit.tuning import files, scripts, undo_program
from cockpit.tuning.applied import AppliedChange
from cockpit.tuning.files import sha256
from cockpit.tuning.generation import ServerProcess
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Remote


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


async def arm(shell: Remote, change: str, lease: int, undo: str, owner: str, facts: bytes) -> None:
    """Lock the host for this change and start its guard with the undo program; `facts` is one line.

    Raises ChangeRefused if another change is under way there or was interrupted.
    """
    data = undo.encode("utf-8", "surrogateescape")
    done = await files.run(
        shell, undo_program.ARM, change, str(lease), sha256(data), owner, undo_program.GUARD, input=facts + b"\n" + data
    )
    if done.exit_status != 0:
        raise ChangeRefused(files.error_reason(done))


async def run(
    shell: Remote, change: str, lease: int, command: str, seconds: float, value: str = "", mark: str = ""
) -> CommandResult:
    """Run a command of the profile by sh on the host, for at most `seconds`.

    `value` is its "$1", sent on stdin so that it is in no argv. The file `mark` is first created in the change's
    directory.
    """
    longest = math.ceil(seconds)
    leases = (str(longest + lease), str(lease))
    done = await files.run(
        shell,
        scripts.RUN,
        change,
        f"{seconds:g}",
        *leases,
        command,
        mark,
        input=f"{value}\n".encode("utf-8", "surrogateescape"),
        seconds=seconds + 30,
    )
    output = done.stderr + b"\n" + done.stdout
    if done.exit_status == 0:
        return CommandResult("", output)
    if done.exit_status == 124:
        return CommandResult(f"it did not end within {seconds:g} s", output)
    return CommandResult(_problem(done), output)


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


async def poll(shell: Remote, change: str, lease: int, pattern: str = "", master: str = "") -> frozenset[ServerProcess]:
    """Renew the lease; return the processes whose name matches the pattern, and the process with the PID `master`.

    Raises ChangeRefused if the change has ended.
    """
    done = await files.run(shell, scripts.PROCESSES, change, str(lease), pattern, master)
    if done.exit_status != 0:
        raise ChangeRefused(files.error_reason(done))
    rows = (row.split(":") for row in done.stdout.decode("ascii", "replace").split())
    return frozenset(ServerProcess(*row) for row in rows if len(row) == len(ServerProcess._fields))


async def confirm(shell: Remote, change: str, applied: bytes) -> None:
    """Confirm the change and store its record `applied`. Raises ChangeRefused if the host has rolled it back."""
    done = await files.run(shell, undo_program.CONFIRM, change, sha256(applied), input=applied)
    if done.exit_status != 0:
        raise ChangeRefused(files.error_reason(done))


async def record(shell: Remote, host: str, change: str) -> AppliedChange:
    """Read the record of a confirmed change. Raises ChangeRefused if it cannot be read."""
    kept = await files.read(shell, host, f"{change}/applied")
    try:
        return msgspec.json.decode(kept.data, type=AppliedChange)
    except msgspec.MsgspecError as error:
        raise ChangeRefused(f"{kept.file} cannot be read: {error}", subject=host) from None


async def request_undo(shell: Remote, change: str, seconds: int, why: str) -> UndoOutcome:
    """Have the host undo the change; return the outcome, also of an earlier undo.

    Raises ChangeRefused if the undo does not end within `seconds`.
    """
    reason = f"{sanitize(why, 400)}\n".encode("utf-8", "replace")
    done = await files.run(shell, undo_program.FIRE, change, str(seconds), input=reason, seconds=seconds + 30)
    if done.exit_status != 0:
        raise ChangeRefused(files.error_reason(done))
    return outcome(done.stdout)


async def discard(shell: Remote, change: str) -> None:
    await files.run(shell, undo_program.DISCARD, change)


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
