"""A screen whose text depends on neither the machine's time zone nor its speed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from textual.notifications import Notification


@pytest.fixture(autouse=True)
def no_notice_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep notices until a key takes them away: on a busy machine they expire before a test can see them."""
    monkeypatch.setattr(Notification, "time_left", 3600.0)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Process lists show times of day."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
