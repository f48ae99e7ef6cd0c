"""The changes of the session in the tuning panel, a line each, the newest first."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import OptionList

from cockpit.model.state import Change, State
from cockpit.tui.terminal.styled_line import fit
from cockpit.tui.tuning.changes import history_line


class History(OptionList):
    """Keeps the line that was chosen when others come on top of it."""

    def tell(self, state: State) -> None:
        """Shows what there is now."""
        room = max(20, self.size.width)
        lines = [fit(history_line(change, state), room).rstrip() for change in reversed(state.own_changes)]
        if len(lines) == self.option_count:
            for at, line in enumerate(lines):
                self.replace_option_prompt_at_index(at, Content(line))
            return
        chosen, grown = self.highlighted, len(lines) - self.option_count
        self.set_options([Content(line) for line in lines])
        self.highlighted = None if chosen is None else chosen + grown

    def change(self, state: State, line: int | None) -> Change | None:
        """The change on a line."""
        changes = state.own_changes
        return changes[-1 - line] if line is not None and line < len(changes) else None
