"""The options of a change: who asked for it, how long things may take, who confirms it, who watches it."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from cockpit.model.events import Stage
from cockpit.tuning.effect import Probe
from cockpit.tuning.plan import Plan


class Patience(NamedTuple):
    """Seconds: for a command of the profile, for reaching a lost host again, for the effect to show, and for the host
    to wait without a word before it undoes the change."""

    command: float = 60.0
    reach: float = 45.0
    effect: float = 30.0
    lease: int = 30


PATIENCE = Patience()


class Watch(Protocol):
    """Is told how a change goes on."""

    def begun(self, plan: Plan) -> None:
        """What is going to be done is known; nothing has been touched."""

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        """A stage was reached (see ChangeStage)."""


class Approval(NamedTuple):
    """A person confirms the change within `seconds` of its coming into force, or it is undone. `given` returns whether
    it was confirmed. Not `asked`: no person is waited for, the change is only held."""

    seconds: float
    given: Callable[[], Awaitable[bool]]
    asked: bool = True


class ChangeOptions(NamedTuple):
    """How a change is carried out: what is asked for good replies, who confirms it, who watches, who asked for it."""

    patience: Patience = PATIENCE
    probe: Probe | None = None
    approval: Approval | None = None
    watch: Watch | None = None
    who: str = ""

    def report(self, stage: Stage, seconds: float | None = None) -> None:
        if self.watch:
            self.watch.stage(stage, seconds)


class Failure(Exception):
    """A step of the change failed; the message goes to the user after everything is back."""


def whoami() -> str:
    """Who sits at this cockpit, as `user@machine`; a user without a name is a number."""
    name = os.environ.get("USER", "")
    # Some containers put the number there.
    if not name or name.isdigit():
        name = str(os.getuid())
        with suppress(KeyError):
            name = pwd.getpwuid(os.getuid()).pw_name
    return f"{name}@{socket.gethostname()}"
