"""The changes of a session that can be undone."""

from __future__ import annotations

from cockpit.model.errors import ChangeRefused
from cockpit.tuning.applied import AppliedChange


class ActiveChanges(dict[str, AppliedChange]):
    """Active changes by letter, the newest last."""

    def undoable(self, letter: str) -> str:
        """Return the letter of an active change ("": of the newest). Raises ChangeRefused, also if a later change must
        be undone first."""
        if not self:
            raise ChangeRefused(
                "nothing to undo: no change of this session is active; for earlier changes: cockpit tune … undo"
            )
        letters = list(self)
        letter = letter or letters[-1]
        if letter not in self:
            raise ChangeRefused(f"{letter} is not active; changes that can be undone: {', '.join(letters)}")
        change = self[letter]
        for later in reversed(letters[letters.index(letter) + 1 :]):
            if (newer := self[later]).host == change.host and (both := change.knobs & newer.knobs):
                raise ChangeRefused(f"change {later} has set {', '.join(sorted(both))} since; undo {later} first")
        return letter
