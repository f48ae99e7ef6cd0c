"""Metrics per request of a plan: one object for each name of a mix, or a single object without a mix."""

from __future__ import annotations

from typing import Any

import numpy as np

from cockpit.load.http.heads import ResponseHeads
from cockpit.load.http.request import IDEMPOTENT, requests_of
from cockpit.load.request_order import heads_of
from cockpit.model.counts import Group
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.load.plan import LoadPlan


def histogram(seconds: list[float]) -> Histogram:
    """Return a histogram of the latencies in a list (s), and clear the list."""
    if not seconds:
        return EMPTY
    nanoseconds = np.rint(np.array(seconds) * 1e9).astype(np.int64)
    seconds.clear()
    return Histogram.of(nanoseconds)


class RequestMetrics:
    """Counts and latencies (s) of one request of the plan.

    `whole`: latencies of responses that arrived in one piece, for both histograms (first byte and end). `firsts` and
    `ends`: latencies of all other responses. `interleaved`: from the first to the last byte of HTTP/2 responses between
    whose parts the connection carried those of others. `responses`: latencies from the intended send (open load).
    Responses in one piece are counted in `heads`; `received`, `body` and `statuses` count the others. `live` is False
    for the metrics of the warm-up once it is over: requests that began in the warm-up and end later are not counted.
    `idempotent`: the request may be retried (RFC 9110 section 9.2.2); `retries` counts that.
    """

    def __init__(self, name: str, heads: ResponseHeads, *, idempotent: bool) -> None:
        self.name = name
        self.heads = heads
        self.idempotent = idempotent
        self.live = True
        self.whole: list[float] = []
        self.firsts: list[float] = []
        self.ends: list[float] = []
        self.responses: list[float] = []
        self.interleaved: list[float] = []
        self.clear()

    def clear(self) -> None:
        self.sent = self.sent_bytes = self.received = self.body = self.length_mismatches = self.retries = 0
        self.statuses: dict[int, int] = {}
        self.errors: dict[str, int] = {}
        self.unexpected: dict[str, int] = {}
        self.first_byte = self.service = self.response = self.head_of_line = EMPTY

    def count_response(self, status: int, size: int, verdict: str) -> None:
        """Count a response that arrived in several pieces. `size`: of its body; `verdict`: unexpected kind, or ""."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.length_mismatches += self.heads.length_differs(size)
        if verdict:
            self.unexpected[verdict] = self.unexpected.get(verdict, 0) + 1

    def failed(self, kind: str) -> None:
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def flush_latencies(self) -> None:
        """Add the lists to the histograms, and clear them: memory stays bounded if no tick is taken."""
        whole, firsts, ends = histogram(self.whole), histogram(self.firsts), histogram(self.ends)
        self.first_byte = Histogram.merged((self.first_byte, whole, firsts))
        self.service = Histogram.merged((self.service, whole, ends))
        self.response += histogram(self.responses)
        self.head_of_line += histogram(self.interleaved)
        harvest = self.heads.harvest()
        add_counts(self.statuses, harvest.statuses)
        add_counts(self.unexpected, harvest.unexpected)
        self.received += harvest.received
        self.body += harvest.body
        self.length_mismatches += harvest.length_mismatches

    def group(self) -> Group:
        return Group(
            sent=self.sent,
            completed=sum(self.statuses.values()),
            statuses=self.statuses,
            errors=self.errors,
            unexpected=self.unexpected,
            service=self.service,
            response=self.response,
        )


def request_metrics_of(plan: LoadPlan) -> list[RequestMetrics]:
    """Return empty metrics for each request of a plan, in order."""
    return [
        RequestMetrics(request.name, heads_of(plan, request), idempotent=request.method in IDEMPOTENT)
        for request in requests_of(plan)
    ]


def add_counts(into: dict[Any, int], more: dict[Any, int]) -> None:
    """Add `more` to `into`, key by key."""
    for key, count in more.items():
        into[key] = into.get(key, 0) + count
