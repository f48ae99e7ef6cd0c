"""Counts and latencies of load, and their sums."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from cockpit.model.histogram import EMPTY, Histogram

T = TypeVar("T", bound=msgspec.Struct)


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The requests of one name of a mix; the fields are as in LoadCounts."""

    sent: int = 0
    completed: int = 0
    statuses: dict[int, int] = {}
    errors: dict[str, int] = {}
    unexpected: dict[str, int] = {}
    service: Histogram = EMPTY
    response: Histogram = EMPTY


class LoadCounts(Group, frozen=True, kw_only=True, omit_defaults=True):
    """Counts and latencies of load over some time.

    `sent` requests were begun; `completed` responses were read completely; `errors` by kind (a timeout is one);
    `abandoned` requests were in flight at the end of the run and count neither as completed nor as errors.
    `unexpected` responses were complete and differed from the expectation, by kind; `varied` ones had another length
    than the first of their kind, which is no failure. `body_bytes` leaves out heads and framing.

    `queued` arrivals were due, found `max_in_flight` requests in flight and were queued; they are among `sent` once
    they are sent. `unsent` ones were still queued at the end of the run, or of the warm-up (those are then sent, and
    counted nowhere). `dropped` arrivals found a million others queued in their worker, and were never sent.
    `reconnects` counts kept connections lost between two responses. `retries` counts idempotent requests sent a second
    time because a kept connection was lost before a byte of the response: the server may have received `sent` and
    `retries` together. `unclosed` connections were closed by the client after the server had announced to close them.
    `redirect` is the Location of the first redirect that was not expected, as the server sent it.

    `connect` is per connection, `tls` per handshake, `first_byte` and `service` per request: from its first byte sent
    (or its connect begun) to its last byte read; a timeout is in `service` and `response` with the time at which it was
    given up. `response` is from the intended send; empty under closed load, where it is the service time. `lag` is how
    late the worker started requests that were due or, of queued ones, that had room, in buckets of 6%. `cpu` is CPU
    seconds.
    """

    abandoned: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    body_bytes: int = 0
    cpu: float = 0.0
    queued: int = 0
    unsent: int = 0
    dropped: int = 0
    varied: int = 0
    retries: int = 0
    reconnects: int = 0
    unclosed: int = 0
    redirect: str = ""
    groups: dict[str, Group] = {}
    connect: Histogram = EMPTY
    tls: Histogram = EMPTY
    first_byte: Histogram = EMPTY
    lag: Histogram = EMPTY


class Counts(LoadCounts, frozen=True, kw_only=True):
    """Ticks added up over workers and time. `refused` are responses of 400 and above if the plan expects nothing."""

    refused: int = 0

    @property
    def failed(self) -> int:
        """Return the failed requests: without a complete response, or with an unexpected one."""
        return sum(self.errors.values()) + sum(self.unexpected.values()) + self.refused

    @property
    def ended(self) -> int:
        return self.completed + sum(self.errors.values())

    @property
    def latency(self) -> Histogram:
        """Response time: from the intended send; under closed load that is the service time."""
        return self.response if self.response.count else self.service

    @property
    def latency_name(self) -> str:
        return "response" if self.response.count else "service"


def add(left: T, right: T) -> T:
    """Return the sum, field by field; of two texts the first."""
    return replace(left, **sums(left, right))


def sums(left: Any, right: Any) -> dict[str, Any]:
    """Return the fields of `left` to which `right` adds anything."""
    return {name: _sum(getattr(left, name), value) for name, value in asdict(right).items() if value}


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, int | Histogram):
        return left + right
    if isinstance(left, dict):
        return left | {key: _sum(left[key], value) if key in left else value for key, value in right.items()}
    if isinstance(left, float):
        return total(left, right)
    return add(left, right) if isinstance(left, Group) else left or right


def total(*seconds: float) -> float:
    """Return the sum to a nanosecond: the same in any order of ticks, so that a recording folds to the live state."""
    return round(sum(seconds), 9)
