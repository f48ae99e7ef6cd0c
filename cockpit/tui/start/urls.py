"""A URL as people type it."""

from __future__ import annotations

from cockpit.model.errors import UsageError
from cockpit.profiles.plan import Wrong, checked_url


def url_of(text: str) -> str:
    """Return the typed URL, with `http://` added if it is missing. Raises UsageError."""
    typed = text.strip()
    try:
        return checked_url(typed if "://" in typed else f"http://{typed}")
    except Wrong as error:
        raise UsageError(error.problem) from None
