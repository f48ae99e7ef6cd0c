"""The app of a session, as its screens use it."""

from __future__ import annotations

from cockpit.tui.draw_context import BaselineOf
from cockpit.tui.load_fields import LoadParser
from cockpit.tui.terminal.base_app import CockpitBase


class SessionApp(CockpitBase[object]):
    """`load_parser` parses the load form; None: no load form."""

    baseline_of: BaselineOf
    load_parser: LoadParser | None

    @property
    def leaving(self) -> bool:
        """Whether the app waits for the end of the session."""
        raise NotImplementedError
