"""Cookies of a virtual user (RFC 6265): stored from the responses of one host, and sent with requests to it."""

from __future__ import annotations

import re
from math import inf
from typing import NamedTuple

# Limits per user: number of cookies, bytes of a cookie, bytes of all cookies.
MOST_COOKIES = 50
LONGEST = 4096
MOST_BYTES = 8192
_NAME = re.compile(rb"[!-:<>-~]+")
_VALUE = re.compile(rb"[ -:<-~\x80-\xff]*")
_AGE = re.compile(rb"-?\d{1,10}")


class Cookie(NamedTuple):
    """A cookie; `expires` is in s of time.time(), infinite for a session cookie."""

    name: bytes
    value: bytes
    path: bytes
    expires: float = inf

    def matches(self, path: bytes) -> bool:
        """Whether the cookie is sent with a request for this path."""
        if path == self.path:
            return True
        return path.startswith(self.path) and (self.path.endswith(b"/") or path[len(self.path)] == ord("/"))


class CookieJar:
    """The cookies of one user for a single target: `host`, over TLS if `secure`."""

    __slots__ = ("_cookies", "_host", "_secure")

    def __init__(self, host: str, *, secure: bool) -> None:
        self._host = host.lower().encode()
        self._secure = secure
        self._cookies: dict[tuple[bytes, bytes], Cookie] = {}

    def store(self, head: bytes, target: bytes, now: float) -> None:
        """Apply the Set-Cookie lines in the head of a response for `target`; `now` is in s of time.time()."""
        for line in head.splitlines():
            name, _, value = line.partition(b":")
            if name.lower() == b"set-cookie":
                cookie = self._parse_cookie(value, target.partition(b"?")[0], now)
                if cookie is not None:
                    self._keep(cookie, now)

    def header(self, target: bytes, now: float) -> bytes:
        """Return the Cookie line of a request for `target`, with its line end; b"" without a cookie."""
        path = target.partition(b"?")[0]
        sent = [cookie for cookie in self._cookies.values() if cookie.expires > now and cookie.matches(path)]
        if not sent:
            return b""
        sent.sort(key=lambda cookie: -len(cookie.path))
        return b"Cookie: " + b"; ".join(cookie.name + b"=" + cookie.value for cookie in sent) + b"\r\n"

    def _keep(self, cookie: Cookie, now: float) -> None:
        self._cookies.pop((cookie.name, cookie.path), None)
        if cookie.expires <= now:
            return
        self._cookies[cookie.name, cookie.path] = cookie
        while len(self._cookies) > MOST_COOKIES or sum(map(_size, self._cookies.values())) > MOST_BYTES:
            del self._cookies[next(iter(self._cookies))]

    def _parse_cookie(self, text: bytes, path: bytes, now: float) -> Cookie | None:
        """Return the cookie of a Set-Cookie value; None if it is malformed, too long, or for another host."""
        pair, _, attributes = text.partition(b";")
        name, equals, value = (part.strip() for part in pair.partition(b"="))
        if not equals or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value) or len(name) + len(value) > LONGEST:
            return None
        given = dict(_attribute(each) for each in attributes.split(b";"))
        domain = given.get(b"domain", b"").lower().removeprefix(b".")
        if domain and domain != self._host and not self._host.endswith(b"." + domain):
            return None
        if b"secure" in given and not self._secure:
            return None
        own = given.get(b"path", b"")
        default = path[: path.rfind(b"/")] or b"/"
        return Cookie(name, value, own if own.startswith(b"/") else default, _expiry(given, now))


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value) + len(cookie.path)


def _attribute(text: bytes) -> tuple[bytes, bytes]:
    name, _, value = text.partition(b"=")
    return name.strip().lower(), value.strip()[:LONGEST]


def _expiry(attributes: dict[bytes, bytes], now: float) -> float:
    age = attributes.get(b"max-age", b"")
    if _AGE.fullmatch(age):
        return now + int(age) if int(age) > 0 else -inf
    if b"expires" not in attributes:
        return inf
    # Imported here: takes 20 ms, and most workers do not need it.
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(attributes[b"expires"][:64].decode("latin-1")).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return inf
