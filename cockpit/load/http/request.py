"""The requests of a load plan as bytes to send: URL, headers, body. HTTP/1.1, RFC 9112."""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlsplit

from msgspec.structs import replace

from cockpit import __version__
from cockpit.load.paths import PLAIN
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, Request, url_without_password

_BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})
# Retried if a reused connection is lost before the first byte of the response (RFC 9110 section 9.2.2).
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
# Characters of a part of a name, RFC 1035.
_LONGEST_LABEL = 63
_PORTS = {"http": 80, "https": 443}


class RequestTarget(NamedTuple):
    """The parts of a URL: `host` and `port` to connect to, `authority` and `path` (with query) of the request.

    `zone` is the interface of a link-local IPv6 address, which is used to connect, and not sent (RFC 6874)."""

    host: str
    port: int
    authority: str
    path: str
    credentials: str
    secure: bool = False
    zone: str = ""


def target_of(url: str) -> RequestTarget:
    """Return the parts of an http or https URL. Raises UsageError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url.rpartition('@')[2]}: invalid URL: {error}") from None
    shown = url_without_password(url)
    if parts.scheme not in _PORTS:
        raise UsageError(f"{shown}: not an http or https URL; write it as http://localhost:8080/")
    if not host or port == 0:
        raise UsageError(f"{shown}: the URL has no host, or port 0; write it as http://localhost:8080/")
    name, zone = _without_zone(ascii_name(host, shown))
    path = quote(parts.path or "/", safe=PLAIN)
    if parts.query:
        path += "?" + quote(parts.query, safe=PLAIN)
    default_port = _PORTS[parts.scheme]
    bracketed = f"[{name}]" if ":" in name else name
    authority = bracketed if port in (None, default_port) else f"{bracketed}:{port}"
    userinfo = parts.netloc.rpartition("@")[0]
    return RequestTarget(name, port or default_port, authority, path, userinfo, parts.scheme == "https", zone)


def _without_zone(host: str) -> tuple[str, str]:
    """Split `fe80::1%25eth0` of a URL, or `fe80::1%eth0`, into address and zone; other names have no zone."""
    address, _, zone = host.partition("%")
    return (address, zone.removeprefix("25")) if ":" in address and zone.removeprefix("25") else (host, "")


def ascii_name(host: str, shown: str) -> str:
    """Return a host name as it is sent. Raises UsageError, with `shown` as its subject."""
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise UsageError(f"{shown}: invalid host name {host}") from None
    labels = name.removesuffix(".").split(".")
    if not name.isprintable() or " " in name or not all(0 < len(label) <= _LONGEST_LABEL for label in labels):
        raise UsageError(f"{shown}: invalid host name {host!r}")
    return name


def requests_of(plan: LoadPlan) -> tuple[Request, ...]:
    """Return the requests of a plan: of its mix, or the only one, with the name ""; for a replayed log GET and HEAD.

    Raises UsageError for requests to different targets.
    """
    if not plan.mix:
        only = Request(
            name="",
            url=plan.url,
            method=plan.method,
            headers=plan.headers,
            body=plan.body,
            binary=plan.binary,
            expect=plan.expect,
        )
        return (only,) if plan.replay is None else (only, replace(only, method="HEAD"))
    first = target_of(plan.mix[0].url)
    for request in plan.mix:
        target = target_of(request.url)
        if target._replace(path="", credentials="") != first._replace(path="", credentials=""):
            raise UsageError(
                f"request {request.name!r} has the target {target.authority}, {plan.mix[0].name!r} {first.authority};"
                " use the same target for all requests of a run"
            )
    return plan.mix


def target_of_plan(plan: LoadPlan) -> RequestTarget:
    """Return the target of all requests of a plan. Raises UsageError."""
    return target_of(requests_of(plan)[0].url)


def destination(plan: LoadPlan) -> tuple[str, int]:
    """Return host (with its zone) and port to connect to: `connect_to` if set, else the target. Raises UsageError."""
    target = target_of_plan(plan)
    if not plan.connect_to:
        return _with_zone(target.host, target.zone), target.port
    try:
        parts = urlsplit(f"//{plan.connect_to}")
        host, port = parts.hostname, parts.port
        valid = bool(host) and port != 0 and not (parts.path or parts.query or "@" in parts.netloc)
    except ValueError:
        host, port, valid = None, None, False
    if not host or not valid:
        raise UsageError(f"connect to {plan.connect_to!r}: not a host and a port, as in localhost:8080 or [::1]:8080")
    return _with_zone(*_without_zone(ascii_name(host, plan.connect_to))), port or target.port


def _with_zone(host: str, zone: str) -> str:
    return f"{host}%{zone}" if zone else host


def request_parts(request: Request, *, keepalive: bool) -> tuple[bytes, bytes, bytes]:
    """Return the bytes before the path, the path, and the bytes after it. Raises UsageError."""
    target = target_of(request.url)
    body = request.content
    given = {name.lower(): (name, value) for name, value in request.headers}
    defaults = {
        "Host": target.authority,
        "User-Agent": f"cockpit/{__version__}",
        "Accept": "*/*",
    }
    if target.credentials:
        secret = base64.b64encode(unquote_to_bytes(target.credentials)).decode("ascii")
        defaults["Authorization"] = f"Basic {secret}"
    if not keepalive:
        defaults["Connection"] = "close"
    if body or request.method not in _BODILESS:
        _check_length(given, len(body))
        defaults["Content-Length"] = str(len(body))
    lines = [" HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in defaults.items() if name.lower() not in given]
    lines += [f"{name}: {value}" for name, value in request.headers]
    rest = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
    return f"{request.method} ".encode("ascii"), target.path.encode("ascii"), rest


def _check_length(given: dict[str, tuple[str, str]], length: int) -> None:
    if "content-length" in given and given["content-length"][1].strip() != str(length):
        name, value = given["content-length"]
        raise UsageError(f"header {name}: {value}: the body has {length} bytes; leave the header out")
