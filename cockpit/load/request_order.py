"""The order of the requests of a plan."""

from __future__ import annotations

import math
from typing import NamedTuple

from cockpit.load.http.expect import Expectation
from cockpit.load.http.heads import ResponseHeads
from cockpit.load.http.request import request_parts, requests_of, target_of
from cockpit.load.http.responses import HeadCache
from cockpit.load.paths import Paths, count_of
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, Request

# Maximum size (bytes) of the start of a body in which values are searched.
EXTRACT_LIMIT = 64 * 1024
# Maximum length of the rotation of weighted requests.
_ROTATION_LIMIT = 100_000


class PlannedRequest(NamedTuple):
    """The bytes of a request, and its number in the plan."""

    number: int
    request: bytes


def check(plan: LoadPlan) -> None:
    """Check that the requests of a plan can be made. Raises UsageError."""
    requests = requests_of(plan)
    for request in requests:
        request_parts(request, keepalive=plan.keepalive)
        if plan.http2:
            _check_fields(request)
    rotation([request.weight for request in requests])
    if plan.paths is None:
        return
    paths = count_of(plan.paths)
    if plan.paths.order != "once":
        return
    if plan.requests is not None and plan.requests > paths:
        raise UsageError(f"{plan.requests} requests for {paths} paths, each used once; set at most {paths} requests")


def heads_of(plan: LoadPlan, request: Request) -> ResponseHeads:
    """Return the interpreter of the heads of responses to a request of the plan."""
    if plan.http2:
        # Imported here: most loads are HTTP/1.
        from cockpit.load.http2.heads import Http2Heads

    return (Http2Heads if plan.http2 else HeadCache)(
        bodiless=request.method == "HEAD",
        keepalive=plan.keepalive,
        expectation=Expectation(request.expect, keep=EXTRACT_LIMIT if request.extract else 0),
        private=plan.has_users,
        one_length=plan.paths is None and plan.replay is None,
    )


def rotation(weights: list[int]) -> list[int]:
    """Return a weighted round-robin order: indices of `weights`, each as often as its weight, spread evenly.

    Raises UsageError if the rotation is too long.
    """
    divisor = math.gcd(*weights)
    shares = [weight // divisor for weight in weights]
    total = sum(shares)
    if total > _ROTATION_LIMIT:
        raise UsageError(
            f"weights {', '.join(map(str, weights))}: the order repeats only after {total} requests, the maximum is"
            f" {_ROTATION_LIMIT}; use smaller weights"
        )
    credit = [0] * len(shares)
    turns = []
    for _ in range(total):
        credit = [have + share for have, share in zip(credit, shares, strict=True)]
        chosen = credit.index(max(credit))
        credit[chosen] -= total
        turns.append(chosen)
    return turns


class RequestForm:
    """A request of a plan as it is sent, for any path. Requests of users are HTTP/1 until they are sent: cookies and
    values are inserted into them."""

    def __init__(self, plan: LoadPlan, request: Request) -> None:
        self._before, self._path, self._after = request_parts(request, keepalive=plan.keepalive)
        self._join = _join
        if plan.http2 and not plan.has_users:
            from cockpit.load.http2.requests import split_request, with_path

            self._before, self._after = split_request(self._before, self._after, target_of(request.url).secure)
            self._join = with_path

    def request(self, path: bytes = b"") -> bytes:
        """Return the bytes of the request with this path, or with its own."""
        return self._join(path or self._path, self._before, self._after)


def _join(path: bytes, before: bytes, after: bytes) -> bytes:
    return before + path + after


def _check_fields(request: Request) -> None:
    """Raise UsageError for a header that HTTP/2 does not have."""
    from cockpit.load.http2.requests import CONNECTION_FIELDS

    for name, _ in request.headers:
        if name.lower() in CONNECTION_FIELDS:
            raise UsageError(f'header {name}: HTTP/2 has none; remove it, or use http = "1.1"')


class RequestOrder:
    """The requests of one worker in order. `largest` is the size of the largest request (bytes); `only` is the request
    of a plan with a single one, else None."""

    def __init__(self, plan: LoadPlan, worker: int, workers: int) -> None:
        forms = [RequestForm(plan, request) for request in requests_of(plan)]
        self._planned = [PlannedRequest(number, form.request()) for number, form in enumerate(forms)]
        self.largest = max(len(planned.request) for planned in self._planned)
        self._with_path = forms[0].request
        self._paths = None if plan.paths is None else Paths(plan.paths, worker, workers)
        turns = rotation([request.weight for request in requests_of(plan)])
        # Workers start at different points of the rotation, so that they do not send the same request at the same time.
        start = worker * len(turns) // workers
        self._turns = turns[start:] + turns[:start]
        self._turn = 0
        self.only = self._planned[0] if len(self._planned) == 1 and self._paths is None else None

    def next_request(self, connection: object = None) -> PlannedRequest:
        if self._paths is not None:
            return PlannedRequest(0, self._with_path(self._paths.next()))
        turn = self._turn
        self._turn = turn + 1 if turn + 1 < len(self._turns) else 0
        return self._planned[self._turns[turn]]
