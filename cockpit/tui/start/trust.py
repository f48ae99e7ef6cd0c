"""Ask whether to trust a profile: list everything it would run, contact, read and write, before it does."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.profiles.trust import accept
from cockpit.profiles.uses import listing, owners, summary, uses_of
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import close_binding, key_hints
from cockpit.tui.key_table import DialogKey


class TrustScreen(Dialog[bool]):
    """Ends with True if the user trusts the profile, else False."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(DialogKey.YES.key, "accept", "trust it"),
        close_binding(action="refuse", description="do not trust it"),
    ]
    DEFAULT_CSS = """
    TrustScreen > Vertical { width: 108; height: 90%; border: solid $cockpit-warn; }
    TrustScreen VerticalScroll { height: 1fr; scrollbar-size: 1 1; }
    TrustScreen Static { width: 1fr; height: auto; }
    TrustScreen #question { text-style: bold; }
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self.profile = profile

    def compose(self) -> ComposeResult:
        uses = uses_of(self.profile)
        with Vertical() as room:
            room.border_title = Content(f"{sanitize(self.profile.name)}: new or edited since it was trusted")
            room.border_subtitle = key_hints(
                ("↑ ↓", " scroll"), (DialogKey.YES, " trust it"), (DialogKey.CLOSE, " do not")
            )
            with VerticalScroll():
                yield Static(Content("\n".join((*listing(uses), *owners(self.profile)))), id="uses")
            keys = f"{DialogKey.YES}: trust it, {DialogKey.CLOSE}: do not"
            yield Static(Content(f"Trust it ({sanitize(summary(uses))})? {keys}"), id="question")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()

    def action_accept(self) -> None:
        """Trust the profile and continue."""
        try:
            accept(self.profile)
        except UsageError as error:
            self.query_one("#question", Static).update(Content(sanitize(str(error), 1000)))
        else:
            self.dismiss(True)

    def action_refuse(self) -> None:
        """Go back; nothing is run."""
        self.dismiss(False)
