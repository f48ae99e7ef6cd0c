"""Virtual users: connections that keep cookies, and values extracted from responses.

Their responses are parsed without the fast path, because the head and the start of the body are needed.
"""

from __future__ import annotations

from time import time

from cockpit.load.chain import extract_value
from cockpit.load.http.connection import FIRST_READ
from cockpit.load.http.cookies import CookieJar
from cockpit.load.http.idle_connection import LINE_END, RequestLimit
from cockpit.load.http.load_socket import ConnectionOwner
from cockpit.load.http.request import target_of_plan
from cockpit.load.http.responses import HeadCache, ResponseReader
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


class UserResponse(ResponseReader):
    """A response to a user's request for `target`."""

    __slots__ = ("_user", "target")

    def __init__(self, heads: HeadCache, user: VirtualUser) -> None:
        super().__init__(heads)
        self._user = user
        self.target = b"/"

    def verdict(self) -> str:
        """Store cookies and values of the complete response; return the first kind that differs from the expectation,
        or "extract" if a value is missing."""
        assert self.head is not None
        user, status = self._user, self.head.status
        if user.jar is not None:
            user.jar.store(self.lines, self.target, time())
        verdict = super().verdict()
        if verdict or (status >= 400 and not self.expects(status)):
            # The user starts over. Without an expectation, an error status counts as failed anyway.
            return verdict
        user.succeeded = user.extract_values(self.lines, self.start)
        return "" if user.succeeded else "extract"


class UserConnection(RequestLimit):
    """A connection of a user; a user may have several."""

    __slots__ = ("_user_response", "user")

    def __init__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes, user: VirtualUser) -> None:
        super().__init__(load, counts, request)
        self.user = user
        self._response = self._user_response = UserResponse(counts.heads, user)

    def on_response(self, mask: int, now: float) -> None:
        """Read the start of a response, without the fast path of Connection."""
        try:
            data = self._socket.recv(FIRST_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._transfer_failed(error)
            return
        self._read_rest(data, mask | self._drain, now)

    def _request_bytes(self) -> bytes:
        request = super()._request_bytes()
        self._user_response.target = target = request.split(b" ", 2)[1]
        if self.user.jar is None:
            return request
        return request.replace(LINE_END, LINE_END + self.user.jar.header(target, time()), 1)


class UserConnections:
    """Creates the connections of users, `connections_per_user` for each."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._target = target_of_plan(plan)
        self._created = 0

    def __call__(self, load: ConnectionOwner, counts: RequestMetrics, request: bytes) -> UserConnection:
        if self._created % self._plan.connections_per_user == 0:
            jar = CookieJar(self._target.host, secure=self._target.secure) if self._plan.cookies else None
            self._user = VirtualUser(jar)
        self._created += 1
        return UserConnection(load, counts, request, self._user)
