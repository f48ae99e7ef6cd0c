"""The events of one change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import ChangeBegun, ChangeEnded, ChangeOutcome, ChangeStage, StageName
from cockpit.model.knobs import SECRET, Setting
from cockpit.session.live_events import LiveEvents
from cockpit.tuning.applied import AppliedChange, ChangeFailed
from cockpit.tuning.change_options import ChangeObserver, whoami
from cockpit.tuning.files import CHANGED_SINCE
from cockpit.tuning.plan import Plan

# Detail of the undo of a trial change.
_PLANNED_UNDO = "undone as planned"


@dataclass
class ChangeReport(ChangeObserver):
    """Emits the events of the change `letter` of `host`. It begins once the diff is known, or if it fails before that.

    `settings`: its settings as far as known before the diff. `trial`: it is made only for a measurement and undone
    after it; `is_complete`: after the whole of it. `active`: it became active; `on_active` is then called with the
    letter. `exceeded`: the limit that was exceeded. `expected`: values that the knobs must have before the change.
    """

    events: LiveEvents
    letter: str
    host: str
    settings: tuple[Setting, ...]
    _: KW_ONLY
    undoes: str = ""
    trial: bool = False
    on_active: Callable[[str], None] = lambda _: None
    active: bool = False
    is_complete: bool = False
    exceeded: str = ""
    expected: Mapping[str, str | None] = field(default_factory=dict)
    has_begun: bool = False

    async def observe(self, change: Awaitable[AppliedChange]) -> AppliedChange:
        """Await the change, and report its end."""
        try:
            applied = await change
        except (CockpitError, asyncio.CancelledError) as error:
            detail = "interrupted" if isinstance(error, asyncio.CancelledError) else str(error)
            if self.is_complete and not isinstance(error, ChangeFailed):
                detail = _PLANNED_UNDO
            self._end("failed" if isinstance(error, ChangeFailed) else "rolled back", detail)
            raise
        self._end(applied.outcome, "; ".join(applied.notes))
        return applied

    def begun(self, plan: Plan) -> None:
        self.settings = plan.settings or self.settings
        self._begin(plan.diff, plan.cost, tuple(knob.name for knob in plan.inactive))
        for setting in self.settings:
            if self.expected.get(setting.knob, setting.old) not in (setting.old, SECRET):
                raise ChangeRefused(f"{setting.knob}: {CHANGED_SINCE}; nothing was changed")

    def stage(self, stage: StageName, seconds: float | None = None) -> None:
        self.events.emit(ChangeStage(t=self.events.now(), change=self.letter, stage=stage, seconds=seconds))
        if stage == "active":
            self.active = True
            self.on_active(self.letter)

    def _end(self, outcome: ChangeOutcome, detail: str) -> None:
        if not self.has_begun:
            self._begin()
        self.events.emit(
            ChangeEnded(t=self.events.now(), change=self.letter, outcome=outcome, detail=detail, exceeded=self.exceeded)
        )

    def _begin(self, diff: str = "", cost: str = "", inactive: tuple[str, ...] = ()) -> None:
        self.has_begun = True
        self.events.emit(
            ChangeBegun(
                t=self.events.now(),
                change=self.letter,
                host=self.host,
                settings=self.settings,
                undoes=self.undoes,
                diff=diff,
                cost=cost,
                who=whoami(),
                inactive=inactive,
                trial=self.trial,
            )
        )


def letters(number: int) -> str:
    """Return the letter of a change by its number: 0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
