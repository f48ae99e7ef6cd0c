"""How a run's kept connections fared, in words."""

from __future__ import annotations

from cockpit.model.state import Counts


def connection_words(counts: Counts) -> str:
    """Reconnects and retries; empty if there were none."""
    words = []
    if counts.reconnects:
        words.append(f"{counts.reconnects} kept connections closed by the server")
    if counts.retries:
        words.append(f"{counts.retries} requests sent a second time: the server may have received both")
    return ", ".join(words)
