"""Virtual users: connections that keep cookies, and values extracted from responses.

Their responses are parsed without the fast path, because the head and the start of the body are needed.
"""

from __future__ import annotations

from time import time

from cockpit.load.chain import extract_value
from cockpit.load.http.cookies import CookieJar
from cockpit.load.http.expect import Expectation
from cockpit.load.http.heads import ResponseHeads
from cockpit.load.http.idle_connection import LINE_END, RequestLimit
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http.request import target_of_plan
from cockpit.load.http.responses import ResponseReader
from cockpit.load.request_metrics import RequestMetrics
from cockpit.model.load.plan import Extraction, LoadPlan


class VirtualUser:
    """The state of one user. `jar` is None without cookies. In a chain: the index of the last request (`step`), the
    values that it extracts (`extractions`), whether it `succeeded`, and the `values` so far by name."""

    __slots__ = ("extractions", "jar", "step", "succeeded", "values")

    def __init__(self, jar: CookieJar | None) -> None:
        self.jar = jar
        self.step = -1
        self.succeeded = True
        self.extractions: tuple[Extraction, ...] = ()
        self.values: dict[bytes, bytes] = {}

    def extract_values(self, head: bytes, body: bytes) -> bool:
        """Extract the values of the last request from its response; return False if one is missing."""
        for extraction in self.extractions:
            value = extract_value(extraction, head, body)
            if value is None:
                return False
            self.values[extraction.name.encode()] = value
        return True

    def with_cookies(self, request: bytes, now: float) -> tuple[bytes, bytes]:
        """Return an HTTP/1 request with the user's cookies at `now` (s of time.time()), and its target."""
        target = request.split(b" ", 2)[1]
        if self.jar is not None:
            request = request.replace(LINE_END, LINE_END + self.jar.header(target, now), 1)
        return request, target

    def judge(
        self, verdict: str, status: int, expectation: Expectation, *, lines: bytes, target: bytes, start: bytes
    ) -> str:
        """Store cookies and values of a complete response with the head `lines` and the `start` of its body; return the
        verdict, or "extract" if a value is missing."""
        if self.jar is not None:
            self.jar.store(lines, target, time())
        if verdict or (status >= 400 and not expectation.allows(status)):
            # The user starts over. Without an expectation, an error status counts as failed anyway.
            return verdict
        self.succeeded = self.extract_values(lines, start)
        return "" if self.succeeded else "extract"


class UserResponse(ResponseReader):
    """A response to a user's request for `target`."""

    __slots__ = ("_user", "target")

    def __init__(self, heads: ResponseHeads, user: VirtualUser) -> None:
        super().__init__(heads)
        self._user = user
        self.target = b"/"

    def verdict(self) -> str:
        """Store cookies and values of the complete response; return the first kind that differs from the expectation,
        or "extract" if a value is missing."""
        assert self.head is not None
        status, expectation = self.head.status, self._heads.expectation
        return self._user.judge(
            super().verdict(), status, expectation, lines=self.lines, target=self.target, start=self.start
        )


class UserConnection(RequestLimit):
    """A connection of a user; a user may have several."""

    __slots__ = ("_user_response", "user")

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes, user: VirtualUser) -> None:
        super().__init__(load, counts, request)
        self.user = user
        self._response = self._user_response = UserResponse(counts.heads, user)
        # Without the fast path, which keeps neither heads nor bodies.
        self._on_response = self.on_more

    def _request_bytes(self) -> bytes:
        request, self._user_response.target = self.user.with_cookies(super()._request_bytes(), time())
        return request


class Users:
    """Creates the users of a plan: `next_user` for each connection, or each stream of HTTP/2. The streams of a
    connection share its user; in a chain, which waits for each response, each stream has a user of its own."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._target = target_of_plan(plan)
        self._shared_by = plan.connections_per_user * (1 if plan.chained else plan.streams)
        self._created = 0

    def next_user(self) -> VirtualUser:
        if self._created % self._shared_by == 0:
            jar = CookieJar(self._target.host, secure=self._target.secure) if self._plan.cookies else None
            self._user = VirtualUser(jar)
        self._created += 1
        return self._user


class UserConnections(Users):
    """Creates the connections of users."""

    def __call__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> UserConnection:
        return UserConnection(load, counts, request, self.next_user())
