"""Virtual users: cookies, and chains whose values are extracted from a response and sent in the next requests."""

import json
from collections import Counter, defaultdict
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.load.chain import RequestTemplate, extract_value
from cockpit.load.http.cookies import LONGEST, MOST_BYTES, MOST_COOKIES, CookieJar
from cockpit.model.load.plan import Expect, Extraction, Request, ThinkTime
from tests.data import data_of
from tests.load.servers import POLLERS, ClientConnection, always, engine_load, engine_run, load, plan, serving

DATA = data_of(__file__)

NOW = 1_800_000_000.0
PAST, FUTURE = formatdate(NOW - 60, usegmt=True), formatdate(NOW + 60, usegmt=True)


def cookie_line(
    *lines: str, target: bytes = b"/shop/cart", to: bytes = b"/shop/x?y=/", later: float = 0, **values: Any
) -> str:
    """Return the Cookie line after a response with these Set-Cookie lines."""
    jar = CookieJar(values.get("host", "www.example.org"), secure=values.get("secure", False))
    head = "".join(f"Set-Cookie: {line}\r\n" for line in lines)
    jar.store(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode("latin-1"), target, NOW)
    return jar.header(to, NOW + later).decode("latin-1").removeprefix("Cookie: ").removesuffix("\r\n")


@pytest.mark.parametrize(("lines", "expected"), DATA["cookies_are_stored_as_in_browsers"])
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
    jar.store(
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
    outcome, _ = await engine_run(sessions, poller, requests=80, concurrency=4, cookies=True, **values)
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


async def test_connections_of_user_share_session() -> None:
    """Each socket may send its first request before the response to another request sets the session."""
    sessions = Sessions()
    async with serving(sessions) as server:
        await engine_load(plan(server.url, requests=200, concurrency=6, cookies=True, connections_per_user=3))
    active = [sid for sid, count in sessions.requests.items() if count > 1]
    assert 2 <= len(sessions.requests) <= 6
    assert any(len(sessions.connections[sid]) > 1 for sid in active)


HEAD = b'HTTP/1.1 200 OK\r\nETag:  "v7" \r\nX-Empty:\r\nContent-Length: 5\r\n\r\n'
BODY = json.dumps(
    {"session": {"token": "a b/ä"}, "items": [{"id": 17, "price": 2.5, "new": True, "note": None}], "line": "x\ny"}
).encode()


@pytest.mark.parametrize(
    ("source", "expression", "value"),
    [
        ("header", "etag", b'"v7"'),
        ("header", "X-Empty", None),
        ("header", "X-Other", None),
        ("json", "session.token", "a b/ä".encode()),
        ("json", "items.0.id", b"17"),
        ("json", "items.0.price", b"2.5"),
        ("json", "items.0.new", b"true"),
        ("json", "items.0.note", None),
        ("json", "items.0", None),
        ("json", "items.1.id", None),
        ("json", "items.x", None),
        ("json", "session.token.x", None),
        ("json", "line", None),
        ("regex", r'"id": (\d+)', b"17"),
        ("regex", r"\d\.\d", b"2.5"),
        ("regex", "nowhere", None),
        ("regex", "(x)?session", None),
    ],
)
def test_values_are_taken_from_header_json_and_text(source: Any, expression: str, value: bytes | None) -> None:
    assert extract_value(Extraction(name="x", source=source, expression=expression), HEAD, BODY) == value


def test_values_that_cannot_be_sent_are_not_taken() -> None:
    extraction = Extraction(name="x", source="regex", expression="(?s).+")
    assert extract_value(extraction, HEAD, b"x" * 4096) == b"x" * 4096
    for body in (b"x" * 4097, b"a\r\nInjected: 1", b"a\0", b""):
        assert extract_value(extraction, HEAD, body) is None
    assert extract_value(Extraction(name="x", source="json", expression="a"), HEAD, b"{" * 60_000) is None
    assert extract_value(Extraction(name="x", source="json", expression="0"), HEAD, b"[" * 60_000) is None


def test_values_are_filled_into_path_headers_and_body() -> None:
    request = Request(
        name="a",
        url="http://a/{id}/{other}?t={token}",
        method="PUT",
        headers=(("X-Token", "<{token}>"),),
        body='{"id": {id}}',
    )
    template = RequestTemplate(request, ("id", "token"), keepalive=True)
    head, _, body = template.filled({b"id": b"1234", b"token": b"a b&c=\\1"}).partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert first == b"PUT /1234/%7Bother%7D?t=a%20b%26c%3D%5C1 HTTP/1.1"
    assert b"X-Token: <a b&c=\\1>" in lines
    assert body == b'{"id": 1234}' and b"Content-Length: 12" in lines
    unchanged = RequestTemplate(request, (), keepalive=True)
    assert unchanged.filled({}) == unchanged.whole


# --- against a server ---


class Shop:
    """A server that issues a token per login and an order per token, and counts the requests."""

    def __init__(self, *, tokenless: int = 0) -> None:
        """Every `tokenless`-th login gets no token; 0: all logins get a token."""
        self.seen: Counter[str] = Counter()
        self._tokenless = tokenless
        self._ordered: set[str] = set()

    async def __call__(self, client: ClientConnection) -> None:
        while True:
            response = self._response((await client.request()).decode())
            await client.send(response[:20], response[20:])

    def _response(self, request: str) -> bytes:
        head, _, body = request.partition("\r\n\r\n")
        path = head.split(" ")[1]
        if path == "/login":
            self.seen["login"] += 1
            number = self.seen["login"]
            without = self._tokenless and number % self._tokenless == 0
            return _page("no" if without else json.dumps({"token": f"secret-{number}"}))
        if path == "/order" and body.startswith("token=secret-"):
            token = body.removeprefix("token=")
            self._ordered.add(token)
            self.seen["order"] += 1
            return _page("", f"Location: /orders/{token}/o\r\n")
        token = next((line[9:] for line in head.split("\r\n") if line.startswith("X-Token: ")), "")
        if token in self._ordered and path == f"/orders/{token}/o":
            self.seen["show"] += 1
            return _page("shown")
        self.seen["wrong"] += 1
        return _page("", status="403 Forbidden")


def _page(body: str, header: str = "", status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\n{header}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def chain(url: str) -> tuple[Request, ...]:
    base = url.removesuffix("/x")
    token = (Extraction(name="token", source="json", expression="token"),)
    order = (Extraction(name="order", source="header", expression="Location"),)
    return (
        Request(name="login", url=f"{base}/login", extract=token),
        Request(name="order", url=f"{base}/order", method="POST", body="token={token}", extract=order),
        Request(
            name="show", url=f"{base}/orders/{{token}}/o", headers=(("X-Token", "{token}"), ("X-Order", "{order}"))
        ),
    )


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("poller", POLLERS)
async def test_users_send_chain_in_order_with_own_values(values: dict[str, Any], poller: str) -> None:
    shop = Shop()
    async with serving(shop) as server:
        outcome = await engine_load(
            plan(
                server.url, mix=chain(server.url), requests=90, concurrency=3, cookies="think_time" in values, **values
            ),
            poller,
        )
    assert shop.seen["wrong"] == 0
    assert outcome.total("completed") == shop.seen.total() == 90
    assert shop.seen["login"] >= shop.seen["order"] >= shop.seen["show"] >= shop.seen["login"] - 3
    assert outcome.unexpected == outcome.errors == {}
    sent = {name: sum(group.sent for group in found) for name, found in outcome.groups.items()}
    assert sent == dict(shop.seen)


async def test_missing_value_is_counted_and_restarts_chain() -> None:
    shop = Shop(tokenless=3)
    async with serving(shop) as server:
        outcome = await load(plan(server.url, mix=chain(server.url), requests=28, concurrency=1))
    # Two complete chains of three requests, then a login without a token.
    assert shop.seen == {"login": 12, "order": 8, "show": 8}
    assert outcome.unexpected == {"extract": 4}
    assert sum(group.unexpected.get("extract", 0) for group in outcome.groups["login"]) == 4
    assert outcome.total("completed") == 28
    assert "secret" not in repr(outcome.events)


async def test_failed_request_restarts_chain() -> None:
    """The second request fails by its status: no value is taken from its response."""
    seen: Counter[str] = Counter()

    async def behave(client: ClientConnection) -> None:
        while True:
            path = (await client.request()).split(b" ")[1].decode()
            seen[path] += 1
            await client.send(_page('{"token": "t"}') if path == "/login" else _page("", status="500 Oh"))

    async with serving(behave) as server:
        outcome = await engine_load(plan(server.url, mix=chain(server.url), requests=20, concurrency=1))
    assert seen == {"/login": 10, "/order": 10}
    assert outcome.unexpected == {} and outcome.statuses == {200: 10, 500: 10}


async def test_unexpected_response_takes_precedence_over_missing_value() -> None:
    expect = Expect(contains="welcome")
    extractions = (Extraction(name="token", source="regex", expression="token=(.)"),)

    async def behave(client: ClientConnection) -> None:
        for body in ("welcome", "token=1", "welcome token=1", "welcome token=2"):
            await client.request()
            await client.send(_page(body))

    async with serving(behave) as server:
        mix = (Request(name="a", url=server.url, extract=extractions, expect=expect), Request(name="b", url=server.url))
        outcome = await engine_load(plan(server.url, mix=mix, requests=4, concurrency=1))
    assert outcome.unexpected == {"extract": 1, "contains": 1}
    assert {name: sum(group.sent for group in found) for name, found in outcome.groups.items()} == {"a": 3, "b": 1}


async def test_value_is_searched_in_first_64_kib_of_body() -> None:
    async def behave(client: ClientConnection) -> None:
        for filler in (65_000, 66_000):
            await client.request()
            await client.send(_page("." * filler + "token=7"))

    async with serving(behave) as server:
        extractions = (Extraction(name="token", source="regex", expression=r"token=(\d)"),)
        mix = (Request(name="a", url=server.url, extract=extractions),)
        outcome = await engine_load(plan(server.url, mix=mix, requests=2, concurrency=1))
    assert outcome.total("completed") == 2
    assert outcome.unexpected == {"extract": 1}
