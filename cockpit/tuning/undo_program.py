"""The sh programs that undo a change on its host; they are armed there before anything is touched.

`guard` waits on the host, independent of the connection, and runs `undo` when the lease expires. `undo` restores files
and values that nobody else changed, tests, reloads, and writes its report to `outcome`; it can be repeated, also by
hand. After a reboot it always reloads, because the server may have started with the new files. The host is locked for
one change at a time: `lock` in the base directory is a link to the `owner` of the change.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.tuning.scripts import GIVE, program, sweep

# Why the guard undoes a change, as in sh/guard.sh.
EXPIRED = "not confirmed in time"
GUARD = program("process", "phase", "guard")
ARM = program("login", "lease", "flush", "process", "phase", "detach", "arm")
CONFIRM = program("login", "flush", "process", "phase", "detach", "confirm")
FIRE = program("login", "lease", "process", "machine", "phase", "detach", "fire")
KEEP = program("keep")
DISCARD = program("login", "process", "phase", "detach", "discard")


def undo(
    change: str,
    jobs: Sequence[Sequence[str]],
    values: Sequence[tuple[str, str, str, str, str]],
    tests: Sequence[str],
    reloads: Sequence[str],
    seconds: int,
) -> str:
    """Return the undo program.

    A job is NUMBER FILE REAL WAS SOURCE BECOMES (see sh/replace.sh). A value is NUMBER, the commands that get and set
    it, OLD and NEW. `seconds` is the timeout of a command.
    """
    steps = [shlex.join(("back", *job)) for job in jobs]
    steps += [shlex.join(("revert", *value)) for value in reversed(values)]
    return "\n".join(
        (
            program("login", "process", "machine", "phase", "detach", "paths", "flush", "mounted", "replace"),
            f"change={shlex.quote(change)} seconds={seconds}",
            GIVE,
            'here "$change"',
            program("undo"),
            _function("tests", "test", tests),
            _function("reloads", "reload", reloads),
            sweep(jobs),
            "claim",
            'rm -f -- "$change/reserve" "$change/outcome" "$change/outcome.part"',
            "trap sweep EXIT\nquiet\nsweep",
            'why=\n{ read -r why <"$change/why"; } 2>/dev/null\nnote "undo: ${why:-requested}"',
            *steps,
            program("undo_end"),
        )
    )


def _function(name: str, word: str, commands: Sequence[str]) -> str:
    calls = "; ".join(shlex.join(("try", word, str(number), command)) for number, command in enumerate(commands))
    return f"{name}() {{ :; {calls}{';' if calls else ''} }}"
