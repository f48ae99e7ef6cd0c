"""The limits of a session under which settings may be changed while users are served."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cockpit.analysis.guard import BLIND, exceeded, newest_count, parse_guard
from cockpit.analysis.thresholds import ThresholdResult
from cockpit.analysis.words.thresholds import found_words
from cockpit.model.errors import ChangeRefused
from cockpit.model.state import State
from cockpit.session.change_report import ChangeReport
from cockpit.session.live_events import LiveEvents
from cockpit.tuning.change_options import Guard

# Session seconds between two checks.
_EVERY = 0.2


class SessionGuard:
    """Checks the limits `guard` (expressions). `required`: nothing may be changed without a limit."""

    def __init__(self, guard: Sequence[str], required: bool, events: LiveEvents) -> None:
        self._limits = tuple(limit for text in guard for limit in parse_guard(text))
        self.required = required
        self._events = events

    def of_change(self, report: ChangeReport) -> Guard | None:
        """Return the guard of a change that starts now; None: it needs none. Raises ChangeRefused if a limit is
        missing, or exceeded before the change."""
        if not self._limits:
            if self.required:
                raise ChangeRefused(
                    "nothing is changed on users' traffic without a limit; add --guard 'errors < 2%, p99 < 500ms'"
                )
            return None
        state = self._events.state
        if state.running is None:
            if self.required:
                raise ChangeRefused("the traffic is not counted, so no limit can be checked; start to watch it first")
            return None
        if failed := exceeded(state, self._limits, 0.0):
            raise ChangeRefused(f"{_words(failed)}, before any change; give another limit")
        return Guard(partial(self._exceeded, state.t, report))

    async def _exceeded(self, since: float, report: ChangeReport) -> str:
        """Wait until a limit is exceeded, and return which; also for the report."""
        checked, counted, failed = 0.0, since, None

        def is_exceeded(state: State) -> bool:
            nonlocal checked, counted, failed
            if state.t >= checked + _EVERY:
                checked, failed = state.t, exceeded(state, self._limits, since)
                # A run of users' requests may end while the next one starts, as when the change gives the log another
                # format. Without generated load no limit is needed.
                is_over = not self.required and state.running is None
                counted = checked if is_over else max(counted, newest_count(state, report.host))
            return failed is not None or checked - counted > BLIND

        await self._events.until(is_exceeded)
        report.exceeded = _words(failed) if failed else "requests are no longer counted, so no limit can be checked"
        return report.exceeded


def _words(failed: ThresholdResult) -> str:
    return f"limit {failed.threshold.text}: {found_words(failed)}"
