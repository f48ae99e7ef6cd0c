"""Decisions of the user during a search, made on the screen or in a terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from cockpit.autopilot.diagnosis import Bottleneck
from cockpit.autopilot.runner import Autopilot, SearchResult


class SearchDecisions(Protocol):
    async def choose(
        self, bottlenecks: Sequence[Bottleneck], knobs: Sequence[str], excluded: Sequence[str]
    ) -> Sequence[str]:
        """Return the knobs to search, at least one. `found`: bottlenecks of the server; `excluded`: a line per knob
        that cannot be searched."""

    def search_started(self, pilot: Autopilot) -> None:
        """Take the search when it starts; from now on it can be paused."""

    async def approve(self, values: Mapping[str, str]) -> bool:
        """Return whether these values may be tried."""

    async def keep(self, result: SearchResult) -> bool:
        """Return whether the proposed values stay active, if they are better."""


# Runs a search with the decisions of this user.
RunSearch = Callable[[SearchDecisions], Awaitable[SearchResult]]
