"""The options of a change: its requester, timeouts, confirmation and observer."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from cockpit.model.events import StageName
from cockpit.tuning.effect import Identify, TargetCheck
from cockpit.tuning.pending import TIMEOUTS, Timeouts
from cockpit.tuning.plan import Plan
from cockpit.tuning.server_check import FileReader


class ChangeObserver(Protocol):
    """Observes a change."""

    def begun(self, plan: Plan) -> None:
        """Report a planned change, before anything is touched. Raises ChangeRefused to prevent it."""

    def stage(self, stage: StageName, seconds: float | None = None) -> None:
        """Report that a stage was reached (see ChangeStage)."""


class Approval(NamedTuple):
    """The change is undone unless it is confirmed within `seconds` of becoming active.

    `given` waits and returns whether the change is confirmed. Not `asked`: cockpit confirms it, not the user.
    """

    seconds: float
    given: Callable[[], Awaitable[bool]]
    asked: bool = True


# Seconds without a message after which a host undoes a guarded change.
LEASE = 2


class Guard(NamedTuple):
    """The change is undone as soon as `exceeded` returns why a limit is exceeded, and by the host itself if the host
    gets no message for `lease` seconds. It waits without an end while the limits hold."""

    exceeded: Callable[[], Awaitable[str]]
    lease: int = LEASE


class ChangeOptions(NamedTuple):
    """Timeouts, probe of the target, confirmation, observer and requester of a change.

    `identify` finds the changed servers again after a restart. `readers` finds the servers that read the files of the
    knobs (None: not checked). `port` is the target's port if the target is on this host. `guard`: until the change is
    confirmed. `restores`: earlier values become active again, also if the target fails.
    """

    timeouts: Timeouts = TIMEOUTS
    probe: TargetCheck | None = None
    approval: Approval | None = None
    watch: ChangeObserver | None = None
    who: str = ""
    identify: Identify | None = None
    readers: Callable[[], Awaitable[Sequence[FileReader]]] | None = None
    port: int | None = None
    guard: Guard | None = None
    restores: bool = False

    def report(self, stage: StageName, seconds: float | None = None) -> None:
        if self.watch:
            self.watch.stage(stage, seconds)


class Failure(Exception):
    """A step of the change failed; the message is shown after the rollback."""


def whoami() -> str:
    """Return the user who runs cockpit, as `user@machine`; a user without a name is a number."""
    name = os.environ.get("USER", "")
    # Some containers set USER to the number.
    if not name or name.isdigit():
        name = str(os.getuid())
        with suppress(KeyError):
            name = pwd.getpwuid(os.getuid()).pw_name
    return f"{name}@{socket.gethostname()}"
