"""The options of a change: its requester, timeouts, confirmation and observer."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from cockpit.model.events import Stage
from cockpit.tuning.effect import Identify, Probe
from cockpit.tuning.plan import Plan
from cockpit.tuning.server_check import ReadBy


class Patience(NamedTuple):
    """Timeouts (s): of a command of the profile, for reaching a lost host again, for the effect, and of the silence
    after which the host undoes the change."""

    command: float = 60.0
    reach: float = 45.0
    effect: float = 30.0
    lease: int = 30


PATIENCE = Patience()


class Watch(Protocol):
    """Observes a change."""

    def begun(self, plan: Plan) -> None:
        """The change is planned; nothing has been touched."""

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        """A stage was reached (see ChangeStage)."""


class Approval(NamedTuple):
    """The change is undone unless it is confirmed within `seconds` of becoming active. `given` returns whether it was
    confirmed. Not `asked`: no person is asked, the change is only held."""

    seconds: float
    given: Callable[[], Awaitable[bool]]
    asked: bool = True


class ChangeOptions(NamedTuple):
    """Timeouts, the probe of the target, the confirmation, the observer and the requester of a change.

    `identify` finds its servers again after a restart. `readers` finds the servers that read the files of its knobs
    (None: it cannot be asked), `port` is the target's if it is on the host."""

    patience: Patience = PATIENCE
    probe: Probe | None = None
    approval: Approval | None = None
    watch: Watch | None = None
    who: str = ""
    identify: Identify | None = None
    readers: Callable[[], Awaitable[Sequence[ReadBy]]] | None = None
    port: int | None = None

    def report(self, stage: Stage, seconds: float | None = None) -> None:
        if self.watch:
            self.watch.stage(stage, seconds)


class Failure(Exception):
    """A step of the change failed; the message is shown after the rollback."""


def whoami() -> str:
    """The user of this cockpit, as `user@machine`; a user without a name is a number."""
    name = os.environ.get("USER", "")
    # Some containers put the number there.
    if not name or name.isdigit():
        name = str(os.getuid())
        with suppress(KeyError):
            name = pwd.getpwuid(os.getuid()).pw_name
    return f"{name}@{socket.gethostname()}"
