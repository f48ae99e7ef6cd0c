"""Fixtures that make the screen independent of the machine's time zone and speed."""

import time
from collections.abc import Iterator

import pytest
from textual.notifications import Notification
from textual.screen import Screen

from cockpit.tui.dialogs import prompt


@pytest.fixture(autouse=True)
def no_notice_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep notices until a key dismisses them: on a busy machine they expire before a test reads them."""
    monkeypatch.setattr(Notification, "time_left", 3600.0)


@pytest.fixture(autouse=True)
def dialogs_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confirm a dialog that opens by itself without a delay."""
    monkeypatch.setattr(prompt, "UNSEEN", 0.0)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone to UTC: process lists show times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no pictures to the terminal, which takes a third of the CPU time: tests read the text of widgets."""

    def discard_picture(screen: Screen[object]) -> None:
        screen._dirty_widgets.clear()
        screen._compositor._dirty_regions.clear()
        screen.app._update_mouse_over(screen)

    monkeypatch.setattr(Screen, "_compositor_refresh", discard_picture)
