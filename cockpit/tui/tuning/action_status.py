"""The tuning panel's line of words, and the one thing at a time that it has done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

from textual.content import Content
from textual.widgets import Static

from cockpit.model.errors import CockpitError
from cockpit.model.text import neutral

if TYPE_CHECKING:
    from cockpit.tui.terminal.base_app import CockpitBase


class ActionStatus(Static):
    """`busy` says what is being done; empty when nothing is. `said` is what stands there."""

    busy = ""
    said = ""

    def tell(self, words: str, bad: bool = False) -> None:
        """Shows words, those of a failure in a colour of their own."""
        self.said = words
        self.set_class(bad, "-bad")
        self.update(Content(neutral(words)))

    def waits(self) -> bool:
        """Whether something is being done, which is then said."""
        if self.busy:
            self.tell(f"{self.busy} (one thing at a time)")
        return bool(self.busy)

    def start(
        self,
        words: str,
        work: Awaitable[None],
        done: str = "",
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Runs as work of the app, not of the panel: closing the panel must not break off a change half made.

        `done` are the words for its end; without any, those that the work itself said stay.
        """
        self.busy = words
        self.tell(words)
        self.app.run_worker(self._carry_out(words, work, done, failed))

    async def _carry_out(self, words: str, work: Awaitable[None], done: str, failed: Callable[[], None]) -> None:
        try:
            await work
        except CockpitError as error:
            failed()
            self.report(f"not done: {error}", bad=True)
        else:
            if done or self.said == words:
                self.report(done)
        finally:
            self.busy = ""

    def report(self, words: str, bad: bool = False) -> None:
        """Tells the end of something, in a notice where the panel has been closed meanwhile."""
        if self.is_attached:
            self.tell(words, bad)
        elif words:
            cast("CockpitBase[object]", self.app).tell(
                words, severity="error" if bad else "information", matter="tuning"
            )
