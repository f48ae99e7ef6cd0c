"""Closed load with think time: each connection pauses between a response and its next request.

Latencies do not include the pause. Connections that are added together start evenly spread over one think time, so that
they do not send in bursts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from random import Random
from time import monotonic
from typing import Any

from cockpit.load.closed_load import PAUSE, ClosedLoad
from cockpit.load.engine import Hooks
from cockpit.load.http.protocol import Assignment
from cockpit.load.poller import Poll, Poller
from cockpit.load.slots import RequestSlot
from cockpit.model.load.plan import ThinkTime


def pauses_of(think_time: ThinkTime, draw: Random) -> Callable[[], float]:
    """Return a function that draws one think time (s)."""
    if think_time.distribution == "uniform":
        return partial(draw.uniform, think_time.seconds, think_time.most)
    if think_time.distribution == "exponential":
        return partial(draw.expovariate, 1 / think_time.seconds)
    return lambda: think_time.seconds


class ThinkTimeLoad(ClosedLoad):
    """Engine for closed load with think time."""

    def __init__(self, assignment: Assignment, poller: Poller, hooks: Hooks) -> None:
        super().__init__(assignment, poller, hooks)
        plan = assignment.plan
        assert plan.think_time is not None
        self._pause = pauses_of(plan.think_time, Random(f"{plan.seed} {assignment.worker}"))

    def next(self, connection: Any) -> None:
        if self._issued >= self._limit or self._surplus:
            # No think time before the connection ends.
            self.proceed(connection)
            return
        connection.enter_idle()
        self._wait(connection, monotonic() + self._pause())

    def waits(self) -> Poll:
        return self.poller.poll_exactly

    def _retry_pause(self) -> float:
        return max(PAUSE, self._pause())

    def _first_pause(self, number: int, of: int) -> float:
        return max(super()._first_pause(number, of), self._pause() * number / of)

    def _set_concurrency(self, count: int, now: float) -> None:
        super()._set_concurrency(count, now)
        retiring = [entry for entry in sorted(self._waiting) if self._retires(entry[2])][: self._surplus]
        for entry in retiring:
            self._waiting.remove(entry)
            self._retire(entry[2])
        heapq.heapify(self._waiting)

    def _retire(self, connection: RequestSlot) -> None:
        if not connection.counts.live:
            self._count_connection(connection)
        super()._retire(connection)
