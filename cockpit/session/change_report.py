"""A change as events, from its request to its end."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.model.clock import Clock
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeEnded, ChangeStage, Outcome, Stage
from cockpit.model.knobs import Setting
from cockpit.tuning.plan import Plan
from cockpit.tuning.terms import Watch, whoami


class ChangeReport(Watch):
    """Reports one change of `host`: its begin once the diff is known, or once it failed before that.

    `letter` is its name from then on, made by `name`; `active` is whether it became active, and then `on_active` is
    called with the letter. `rounds` is the number of the rounds of which it is a set-up, 0: none. `planned` is the
    detail of its end if it is undone after it was active, "": the error's own words.
    """

    def __init__(
        self,
        clock: Clock,
        emit: Callable[[AnyEvent], None],
        name: Callable[[], str],
        host: str,
        settings: tuple[Setting, ...],
        *,
        undoes: str = "",
        rounds: int = 0,
        planned: str = "",
        on_active: Callable[[str], None] | None = None,
    ) -> None:
        self.letter = ""
        self.active = False
        self._clock = clock
        self._emit = emit
        self._name = name
        self._host = host
        self._settings = settings
        self._undoes = undoes
        self._rounds = rounds
        self._planned = planned
        self._on_active = on_active

    def begun(self, plan: Plan) -> None:
        inactive = tuple(knob.name for knob in plan.inactive)
        self._begin(plan.settings or self._settings, plan.diff, plan.cost, inactive)

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._emit(ChangeStage(t=self._clock.now(), change=self.letter, stage=stage, seconds=seconds))
        if stage == "in force":
            self.active = True
            if self._on_active is not None:
                self._on_active(self.letter)

    def end(self, outcome: Outcome, detail: str) -> None:
        """Report the end, also of a change that failed before it was worked out."""
        if not self.letter:
            self._begin(self._settings, "", "")
        if outcome == "restored" and self.active and self._planned:
            detail = self._planned
        self._emit(ChangeEnded(t=self._clock.now(), change=self.letter, outcome=outcome, detail=detail))

    def _begin(self, settings: tuple[Setting, ...], diff: str, cost: str, inactive: tuple[str, ...] = ()) -> None:
        self.letter = self._name()
        self._emit(
            ChangeBegun(
                t=self._clock.now(),
                change=self.letter,
                host=self._host,
                settings=settings,
                undoes=self._undoes,
                diff=diff,
                cost=cost,
                who=whoami(),
                inactive=inactive,
                rounds=self._rounds,
            )
        )


def letters(number: int) -> str:
    """Return the name of a change by its number: 0 is A, 25 is Z, 26 is AA."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
