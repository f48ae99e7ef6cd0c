"""Fixtures that make the screen independent of the machine's time zone and speed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.notifications import Notification


@pytest.fixture(autouse=True)
def no_notice_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep notices until a key dismisses them: on a busy machine they expire before a test reads them."""
    monkeypatch.setattr(Notification, "time_left", 3600.0)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone to UTC: process lists show times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
