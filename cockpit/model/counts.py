"""Counts and latencies of load, and how they add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.tls import TlsParameters

T = TypeVar("T", bound=msgspec.Struct)


class HandshakeCounts(NamedTuple):
    full: int
    resumed: int


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of the requests with one name in a mix; fields as in LoadCounts."""

    sent: int = 0
    completed: int = 0
    statuses: dict[int, int] = {}
    errors: dict[str, int] = {}
    unexpected: dict[str, int] = {}
    service: Histogram = EMPTY
    response: Histogram = EMPTY


class LoadCounts(Group, frozen=True, kw_only=True, omit_defaults=True):
    """Counts and latencies of load over a time range.

    `sent`: requests started; `completed`: complete responses; `errors`: failed requests by kind, timeouts included;
    `abandoned`: requests in flight at the end of the run, neither completed nor errors. `unexpected`: complete
    responses that differ from the expectation, by kind; `length_mismatches`: responses of another length than the first
    response from the same resource, which is no failure. `body_bytes` excludes heads and framing.

    `queued`: arrivals that were due while `max_in_flight` requests were in flight; they count as `sent` once sent.
    `unsent`: arrivals still queued at the end of the run, or of the warm-up (then they are sent and not counted
    elsewhere). `dropped`: arrivals never sent because their worker's queue was full (1 million).

    `reconnects`: keep-alive connections lost between two responses. `retries`: idempotent requests sent again because a
    keep-alive connection was lost before the first byte of the response, and requests that an HTTP/2 server refused
    without processing them: the server may have received up to `sent` + `retries` requests. `unclosed`: connections
    that the server had announced to close and the client closed. `redirect`: Location of the first unexpected redirect,
    as sent by the server.

    `full_handshakes` and `resumed_handshakes`: TLS handshakes by TlsParameters.key; `tls` and `tls_resumed`: their
    durations.

    `connect`: per connection; `first_byte` and `service`: per request, from its first byte sent (or the start of its
    connect) to the first and the last byte of the response. `response`: from the intended send;
    empty under closed load, where it equals the service time. A timeout counts in `service` and `response` with the
    time until it was given up. `head_of_line`: from the first to the last byte of HTTP/2 responses between whose parts
    the connection carried parts of others. `lag`: delay of the worker in starting due requests (queued requests: since
    there was room in flight), in buckets of 6%. `cpu`: CPU seconds.

    Of users' traffic: `invalid_lines` of the access log have another format; `rotations`: files that ended; `unread`:
    time (s) in which the log was not read.
    """

    abandoned: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    body_bytes: int = 0
    cpu: float = 0.0
    queued: int = 0
    unsent: int = 0
    dropped: int = 0
    length_mismatches: int = 0
    retries: int = 0
    reconnects: int = 0
    unclosed: int = 0
    invalid_lines: int = 0
    rotations: int = 0
    unread: float = 0.0
    redirect: str = ""
    groups: dict[str, Group] = {}
    full_handshakes: dict[str, int] = {}
    resumed_handshakes: dict[str, int] = {}
    connect: Histogram = EMPTY
    tls: Histogram = EMPTY
    tls_resumed: Histogram = EMPTY
    first_byte: Histogram = EMPTY
    head_of_line: Histogram = EMPTY
    lag: Histogram = EMPTY


# The fields with histograms: latencies, and the lag.
HISTOGRAMS = tuple(field.name for field in msgspec.structs.fields(LoadCounts) if field.default is EMPTY)


class LogCounts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The traffic in one access log; fields as in LoadCounts."""

    completed: int = 0
    groups: dict[str, Group] = {}
    service: Histogram = EMPTY
    invalid_lines: int = 0
    rotations: int = 0
    unread: float = 0.0

    @classmethod
    def of(cls, counts: LoadCounts) -> LogCounts:
        return cls(**{name: getattr(counts, name) for name in cls.__struct_fields__})

    def rate(self, seconds: float) -> float:
        """Return the requests/s over the part of `seconds` in which the log was read."""
        return self.completed / (seconds - self.unread) if seconds > self.unread else 0.0


def log_rate(logs: Mapping[str, LogCounts], seconds: float) -> float:
    """Return the requests/s of all logs, each over the part of `seconds` in which it was read."""
    return sum(log.rate(seconds) for log in logs.values())


class Counts(LoadCounts, frozen=True, kw_only=True):
    """Sum of ticks over workers and time. `refused`: responses with status 400 or higher to requests without an
    expectation."""

    refused: int = 0

    @property
    def failed(self) -> int:
        """The number of failed requests: without a complete response, or with an unexpected or refused response."""
        return sum(self.errors.values()) + sum(self.unexpected.values()) + self.refused

    @property
    def ended(self) -> int:
        return self.completed + sum(self.errors.values())

    @property
    def all_failed(self) -> bool:
        return 0 < self.ended <= self.failed

    @property
    def handshakes(self) -> dict[TlsParameters, HandshakeCounts]:
        """TLS handshakes by their parameters, the most frequent ones first."""
        full, resumed = self.full_handshakes, self.resumed_handshakes
        each = {key: HandshakeCounts(full.get(key, 0), resumed.get(key, 0)) for key in (*full, *resumed)}
        ordered = sorted(each.items(), key=lambda item: (-sum(item[1]), item[0]))
        return {TlsParameters.of_key(key): counts for key, counts in ordered}

    @property
    def latency(self) -> Histogram:
        """Response time since the intended send; the service time under closed load."""
        return self.response if self.response.count else self.service

    @property
    def latency_name(self) -> str:
        return "response" if self.response.count else "service"


def add(left: T, right: T) -> T:
    """Return the sum, field by field; of two texts the first non-empty one."""
    return replace(left, **sums(left, right))


def sums(left: Any, right: Any) -> dict[str, Any]:
    """Return the sums of the fields that are not empty in `right`."""
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
    """Return the sum rounded to nanoseconds: independent of the order of ticks, so that a recording folds to the live
    state."""
    return round(sum(seconds), 9)
