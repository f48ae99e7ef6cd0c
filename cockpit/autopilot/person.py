"""The person who watches a search, on the screen or in a terminal, and what is asked of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from cockpit.autopilot.diagnosis import FoundLimit
from cockpit.autopilot.runner import Autopilot, SearchResult


class Person(Protocol):
    async def choose(self, found: Sequence[FoundLimit], knobs: Sequence[str], left_out: Sequence[str]) -> Sequence[str]:
        """Return which of the knobs are searched, after a look at what limits the server; at least one. `left_out` are
        lines about those that cannot be."""

    def began(self, pilot: Autopilot) -> None:
        """The search begins; it can be paused from now on."""

    async def approve(self, values: Mapping[str, str]) -> bool:
        """Return whether these values may be tried."""

    async def keep(self, found: SearchResult) -> bool:
        """Return whether the proposed values stay active, if they are better."""


# Searches as this person decides.
Search = Callable[[Person], Awaitable[SearchResult]]
