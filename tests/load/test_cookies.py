"""Cookies of virtual users: storage, sending, and limits against hostile servers."""

from __future__ import annotations

from collections import Counter, defaultdict
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load.cookies import LONGEST, MOST_BYTES, MOST_COOKIES, CookieJar
from cockpit.model.load import ThinkTime
from tests.load.servers import POLLERS, ClientConnection, always, engine_load, plan, serving

NOW = 1_800_000_000.0
PAST, FUTURE = formatdate(NOW - 60, usegmt=True), formatdate(NOW + 60, usegmt=True)


def cookie_line(
    *lines: str, target: bytes = b"/shop/cart", to: bytes = b"/shop/x?y=/", later: float = 0, **values: Any
) -> str:
    """Return the Cookie line after a response with these Set-Cookie lines."""
    jar = CookieJar(values.get("host", "www.example.org"), secure=values.get("secure", False))
    head = "".join(f"Set-Cookie: {line}\r\n" for line in lines)
    jar.take(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode("latin-1"), target, NOW)
    return jar.header(to, NOW + later).decode("latin-1").removeprefix("Cookie: ").removesuffix("\r\n")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("a=1",), "a=1"),
        (("a=1", "b=2; HttpOnly; SameSite=Lax"), "a=1; b=2"),
        ((" a = x=y ; Path=/",), "a=x=y"),
        (('a="q, r"', "a=2"), "a=2"),
        (("a=",), "a="),
        (("a=1; Path=/shop",), "a=1"),
        (("a=1; Path=/shop/",), "a=1"),
        (("a=1; Path=/sho",), ""),
        (("a=1; Path=/shop/x/y",), ""),
        (("a=1; Path=nonsense",), "a=1"),
        (("a=1; Path=/", "a=2; Path=/shop"), "a=2; a=1"),
        (("a=1; Max-Age=5",), "a=1"),
        (("a=1", "a=2; Max-Age=0"), ""),
        (("a=1", "a=2; Max-Age=-5"), ""),
        (("a=1; Max-Age=often",), "a=1"),
        ((f"a=1; Expires={FUTURE}",), "a=1"),
        (("a=1", f"a=; Expires={PAST}"), ""),
        ((f"a=1; Expires={PAST}; Max-Age=60",), "a=1"),
        (("a=1; Expires=then",), "a=1"),
        (("a=1; Domain=example.org", "b=2; domain=.www.example.org"), "a=1; b=2"),
        (("a=1; Domain=ample.org", "b=2; Domain=elsewhere.org"), ""),
        (("a=1; Secure",), ""),
        (("novalue", "=x", "a b=1", "a=\x01", ""), ""),
        (("a=1\x00",), ""),
    ],
)
def test_cookies_are_stored_as_in_browsers(lines: tuple[str, ...], expected: str) -> None:
    assert cookie_line(*lines) == expected


@pytest.mark.parametrize(
    ("line", "values", "expected"),
    [
        ("a=1; Max-Age=5", {"later": 4}, "a=1"),
        ("a=1; Max-Age=5", {"later": 5}, ""),
        ("a=1; Secure", {"secure": True}, "a=1"),
        # The default path is the directory of the request.
        ("a=1", {"target": b"/shop/cart?x=/y", "to": b"/shop"}, "a=1"),
        ("a=1", {"target": b"/shop/cart", "to": b"/shopping"}, ""),
        ("a=1", {"target": b"/cart", "to": b"/anything"}, "a=1"),
    ],
)
def test_cookies_are_sent_as_in_browsers(line: str, values: dict[str, Any], expected: str) -> None:
    assert cookie_line(line, **values) == expected


def test_cookies_are_limited_in_number_and_bytes() -> None:
    many = cookie_line(*(f"c{number}=x; Path=/" for number in range(500)))
    assert many.count(";") == MOST_COOKIES - 1 and many.endswith("c499=x")
    assert cookie_line(f"a={'x' * LONGEST}") == ""
    assert len(cookie_line(*(f"c{number}={'x' * 1000}; Path=/" for number in range(40)))) < MOST_BYTES


@given(st.binary(max_size=200), st.binary(min_size=1, max_size=50))
def test_arbitrary_bytes_give_valid_cookie_header_or_none(value: bytes, path: bytes) -> None:
    jar = CookieJar("a", secure=False)
    jar.take(
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1;" + value + b"\r\nset-cookie:" + value + b"\r\n\r\n", b"/" + path, NOW
    )
    line = jar.header(b"/" + path, NOW)
    assert line == b"" or (line.startswith(b"Cookie: ") and line.count(b"\r") == line.count(b"\n") == 1)


# --- against a server ---


class Sessions:
    """A server that starts a session for each client without a cookie, and counts requests per session."""

    def __init__(self, *, chunked: bool = False) -> None:
        self.requests: Counter[str] = Counter()
        self.connections: defaultdict[str, set[int]] = defaultdict(set)
        self._chunked = chunked

    async def __call__(self, client: ClientConnection) -> None:
        while True:
            head = (await client.request()).decode()
            found = [line for line in head.split("\r\n") if line.startswith("Cookie: ")]
            session = found[0].removeprefix("Cookie: sid=") if found else ""
            fresh = session or f"secret{len(self.requests)}"
            self.requests[fresh] += 1
            self.connections[fresh].add(id(client))
            cookie = "" if session else f"Set-Cookie: sid={fresh}; Path=/; HttpOnly\r\n"
            if self._chunked:
                body = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            else:
                body = "Content-Length: 5\r\n\r\nhello"
            text = f"HTTP/1.1 200 OK\r\n{cookie}{body}".encode()
            await client.send(text[:30], text[30:])


VARIANTS: dict[str, dict[str, Any]] = {
    "kept": {},
    "reconnecting": {"requests_per_connection": 3},
    "new connection each": {"keepalive": False},
    "think time": {"think_time": ThinkTime(seconds=0.001)},
}


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("poller", POLLERS)
async def test_users_keep_their_session_over_connections(values: dict[str, Any], poller: str) -> None:
    sessions = Sessions(chunked=poller == "best")
    async with serving(sessions) as server:
        outcome = await engine_load(plan(server.url, requests=80, concurrency=4, cookies=True, **values), poller)
    assert outcome.total("completed") == sessions.requests.total() == 80
    assert outcome.total("body_bytes") == 80 * 5
    assert outcome.errors == outcome.unexpected == {}
    # Four users, each starting without a session.
    assert len(sessions.requests) == 4
    assert outcome.merged("service").count == outcome.merged("first_byte").count == 80


async def test_values_of_users_are_not_recorded() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /secret\r\nSet-Cookie: a=secret\r\nContent-Length: 0\r\n\r\n"
    async with serving(always(moved)) as server:
        outcome = await engine_load(plan(server.url, requests=5, cookies=True))
        assert outcome.statuses == {302: 5} and "secret" not in repr(outcome.events)
        # Without cookies, the location is recorded.
        assert "secret" in repr((await engine_load(plan(server.url, requests=5))).events)


async def test_cookies_are_off_by_default() -> None:
    sessions = Sessions()
    async with serving(sessions) as server:
        await engine_load(plan(server.url, requests=20, concurrency=2))
    assert len(sessions.requests) == 20


async def test_connections_of_user_share_session() -> None:
    """Each socket may send its first request before the response to another request sets the session."""
    sessions = Sessions()
    async with serving(sessions) as server:
        await engine_load(plan(server.url, requests=200, concurrency=6, cookies=True, connections_per_user=3))
    active = [sid for sid, count in sessions.requests.items() if count > 1]
    assert 2 <= len(sessions.requests) <= 6
    assert any(len(sessions.connections[sid]) > 1 for sid in active)
