"""Checks before the load: contact the target, and collect warnings about this machine.

The name is resolved here, once; workers get the address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.load import limits
from cockpit.load.failures import Malformed
from cockpit.load.http.expect import Expectation
from cockpit.load.http.heads import ResponseHeads
from cockpit.load.http.request import destination, requests_of, target_of_plan
from cockpit.load.http.responses import ResponseReader
from cockpit.load.http2.contact import FirstContact, contact
from cockpit.load.http2.requests import convert_request
from cockpit.load.log_share import LoggedOrder
from cockpit.load.request_order import RequestOrder, heads_of
from cockpit.model.errors import TargetError, UsageError
from cockpit.model.load.plan import HttpVersion, LoadPlan, Request, redirect_target, url_without_password

if TYPE_CHECKING:
    from cockpit.load.log_reader import LoggedLoad

# Timeout (s) of each step, as the user waits for it; a slower server counts as unreachable.
_TIMEOUT = 10.0
# Bytes per read.
_READ_SIZE = 65536
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Maximum number of addresses that a warning names.
_NAMED = 4
_MISDIRECTED = 421


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `address` is the socket address that workers connect to, one of the name's; `opposite` is that of the
    second of two variants.

    `http` is the version of the load; for "auto" the one that the server chose by ALPN.
    `status` is the status of the response, None if only a connection was opened because the request may have side
    effects (POST), or has a body in HTTP/2. `warnings` are one line each.
    """

    address: tuple[Any, ...]
    opposite: tuple[Any, ...] = ()
    http: HttpVersion = "1.1"
    status: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """The addresses as text, without their ports."""
        return tuple(dict.fromkeys(address_text(address) for address in (self.address, self.opposite) if address))


def address_text(address: tuple[Any, ...]) -> str:
    """Return the host of a socket address, with its zone; the path of a Unix socket."""
    host, _, zone = _scoped(address).partition("%")
    with contextlib.suppress(OSError, ValueError):
        zone = socket.if_indextoname(int(zone))
    return f"{host}%{zone}" if zone else host


def _scoped(address: tuple[Any, ...]) -> str:
    """Return the host of a socket address, with the number of its interface if there is one."""
    return f"{address[0]}%{address[3]}" if len(address) == 4 and address[3] else str(address[0])


def not_loaded(plan: LoadPlan, address: tuple[Any, ...], addresses: list[tuple[Any, ...]]) -> list[str]:
    """Return a warning if the name has several addresses of the family that is loaded: a run loads one of them.

    Addresses of the other family usually lead to the same servers.
    """
    others = [address_text(each) for each in addresses if each != address and len(each) == len(address)]
    if not others:
        return []
    host, _ = destination(plan)
    more = ", ".join(others[:_NAMED]) + (f" and {len(others) - _NAMED} more" if len(others) > _NAMED else "")
    return [f"{host}: only {address_text(address)} is loaded, not {more}; choose an address with --connect-to"]


async def resolve(plan: LoadPlan) -> list[tuple[Any, ...]]:
    """Return the socket addresses of the plan's target, in the resolver's order; (path,) for a Unix socket.

    Raises UsageError, TargetError.
    """
    host, port = destination(plan)
    if plan.unix:
        return [(plan.unix,)]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_TIMEOUT):
            entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise TargetError(f"{host}: name not resolved within {_TIMEOUT:.0f} s") from None
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else error
        raise TargetError(f"{host}: no such host: {reason}") from None
    return list(dict.fromkeys(entry[4] for entry in entries))


async def resolved(plan: LoadPlan, warnings: tuple[str, ...]) -> Preflight:
    """Return the addresses of a plan's targets without contacting them, with these warnings. Raises as `resolve`."""
    results = []
    for part in plan.parts:
        addresses = await resolve(part)
        lines = tuple(not_loaded(part, addresses[0], addresses))
        results.append(Preflight(address=addresses[0], http=part.http, warnings=lines))
    return _merged_result(results, warnings)


async def preflight(plan: LoadPlan, capacity: limits.Capacity | None = None) -> Preflight:
    """Check the plan, and send a request to its targets. `capacity`: of the generator machines (default: this one).

    Raises UsageError for an invalid plan or one beyond the capacity; TargetError for an unreachable target, an
    untrusted certificate, or a response that is not HTTP.
    """
    limits.check(plan, capacity)
    # This machine has no address of another one.
    here = plan if capacity is None or capacity.here else replace(plan, local_addresses=())
    log = None
    if plan.replay is not None:
        from cockpit.load.log_reader import read_log

        log = await asyncio.to_thread(read_log, plan)
    results = [await _contacted(part, log) for part in here.parts]
    return _merged_result(results, (*limits.fit_in_flight(plan, capacity)[1], *limits.warnings(plan, capacity)))


def _merged_result(results: list[Preflight], warnings: tuple[str, ...]) -> Preflight:
    """Return the result for the one or two targets of a plan; its status is the first target's. Raises UsageError if
    they chose different versions of HTTP."""
    if len({result.http for result in results}) > 1:
        raise UsageError("the variants chose different versions of HTTP; set http to 1.1 or 2 in place of auto")
    every = dict.fromkeys((*warnings, *(line for result in results for line in result.warnings)))
    return replace(results[0], opposite=results[1].address if len(results) > 1 else (), warnings=tuple(every))


async def _contacted(plan: LoadPlan, log: LoggedLoad | None) -> Preflight:
    """Send a request to the only target of a plan: the first one of the log, if the plan replays one."""
    planned = requests_of(plan)[0]
    addresses = await resolve(plan)
    time_limit = min(_TIMEOUT, plan.timeout)
    reader, writer, address = await _connect(plan, addresses, time_limit)
    try:
        chosen = _with_version(plan, writer)
        heads = heads_of(chosen, planned)
        # A body in HTTP/2 follows the server's windows.
        sends = planned.method in _SAFE and not (chosen.http2 and planned.content)
        sent = _order(chosen, log).next_request().request if sends else None
        contact = await _first_response(chosen, planned, sent, heads, reader, writer, time_limit)
    finally:
        # Do not wait for the rest of the response, nor for the peer to close.
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    notes = not_loaded(plan, address, addresses)
    status, location = contact.status, heads.location
    if contact.streams is not None and contact.streams < plan.streams:
        notes.append(
            f"{url_without_password(planned.url)} allows {contact.streams} streams per connection, not {plan.streams}:"
            " further requests wait for one"
        )
    if plan.http == "auto" and not chosen.http2:
        notes.append(f"{url_without_password(planned.url)}: the server chose HTTP/1.1")
    if status is not None and status >= 400 and not Expectation(planned.expect).allows(status):
        hint = "; the server has another name: set it with --sni, or its address with --connect-to"
        notes.append(
            f"{url_without_password(planned.url)} answers {status}: responses will count as failed"
            + (hint if status == _MISDIRECTED else "")
        )
    if location:
        shown, target = url_without_password(planned.url), redirect_target(planned.url, location)
        notes.append(f"{shown} answers {status}: redirects are not followed; load {target} instead")
    return Preflight(address=address, http=chosen.http, status=status, warnings=tuple(notes))


def _with_version(plan: LoadPlan, writer: asyncio.StreamWriter) -> LoadPlan:
    """Return the plan with the version of HTTP that the server chose; without TLS "auto" is HTTP/1.1. Raises
    TargetError if the server does not offer HTTP/2, UsageError if the plan needs it."""
    tls = writer.get_extra_info("ssl_object")
    offered = tls is not None and tls.selected_alpn_protocol() == "h2"
    shown = url_without_password(plan.url)
    if plan.http == "2" and tls is not None and not offered:
        raise TargetError(f"{shown}: the server does not offer HTTP/2 by ALPN; use --http auto, or leave HTTP/2 out")
    if plan.http != "auto":
        return plan
    if not offered and plan.streams > 1:
        raise UsageError(f"{shown}: the server chose HTTP/1.1, which has no streams; leave out -p")
    return replace(plan, http="2" if offered else "1.1")


def _order(plan: LoadPlan, log: LoggedLoad | None) -> RequestOrder | LoggedOrder:
    return RequestOrder(plan, 0, 1) if log is None else LoggedOrder(plan, log.share(0, log.total))


async def _connect(
    plan: LoadPlan, addresses: list[tuple[Any, ...]], time_limit: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[Any, ...]]:
    """Return streams to the first reachable address, and the address. Raises TargetError."""
    options = _options(plan)
    action = "finish a TLS handshake" if target_of_plan(plan).secure else "accept a connection"
    reasons = []
    for address in addresses:
        try:
            async with asyncio.timeout(time_limit):
                if plan.unix:
                    return *await asyncio.open_unix_connection(address[0], **options), address
                return *await asyncio.open_connection(_scoped(address), address[1], **options), address
        except TimeoutError:
            reasons.append(f"{address_text(address)} did not {action} within {time_limit:g} s")
        except OSError as error:
            _raise_if_tls(plan, error)
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            reasons.append(f"{address_text(address)}: {reason}{_zone_hint(address)}")
    host, port = destination(plan)
    where = f"socket {plan.unix}" if plan.unix else f"{host} port {port}"
    raise TargetError(f"{where} is unreachable: {'; '.join(reasons)}")


def _zone_hint(address: tuple[Any, ...]) -> str:
    if len(address) == 4 and not address[3] and ip_address(address[0]).is_link_local:
        return f" (link-local: name its interface, as in [{address[0]}%eth0])"
    return ""


def _options(plan: LoadPlan) -> dict[str, Any]:
    """Return the options of a connection as the run opens it: with TLS, and a source address."""
    options: dict[str, Any] = {}
    target = target_of_plan(plan)
    if target.secure:
        from cockpit.load.http.tls import alpn_of, context_of

        options |= {"ssl": context_of(plan.tls, alpn_of(plan.http)), "server_hostname": plan.tls.sni or target.host}

    if plan.local_addresses and not plan.unix:
        options["local_addr"] = (plan.local_addresses[0], 0)
    return options


def _raise_if_tls(plan: LoadPlan, error: OSError) -> None:
    """Raise TargetError for a TLS failure: other addresses of the name would fail, too."""
    target = target_of_plan(plan)
    if not target.secure:
        return
    import ssl

    if isinstance(error, ssl.SSLError | ConnectionResetError):
        from cockpit.load.http.tls import handshake_problem

        raise TargetError(f"https://{target.authority}: {handshake_problem(error)}") from None


async def _first_response(
    plan: LoadPlan,
    planned: Request,
    request: bytes | None,
    heads: Any,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    time_limit: float,
) -> FirstContact:
    """Send a request as in the run, or None; return the response. Raises TargetError."""
    shown = url_without_password(planned.url)
    try:
        async with asyncio.timeout(time_limit):
            if plan.http2:
                if plan.has_users and request is not None:
                    request = convert_request(request, target_of_plan(plan).secure)
                return await contact(reader, writer, request, heads)
            status = None if request is None else await _first_status(shown, request, heads, reader, writer)
            return FirstContact(status, None)
    except asyncio.IncompleteReadError as end:
        where = "within the head of the response" if end.partial else "without a response"
        raise TargetError(f"{shown}: the server closed the connection {where}") from None
    except TimeoutError:
        raise TargetError(f"{shown}: connected, but no response within {time_limit:g} s") from None
    except Malformed as fault:
        raise TargetError(f"{shown}: {fault}") from None
    except OSError as error:
        raise TargetError(f"{shown}: the server aborted the connection: {error.strerror or error}") from None


async def _first_status(
    shown: str, request: bytes, heads: ResponseHeads, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> int:
    """Return the status of the response to an HTTP/1 request. Raises TargetError, Malformed, OSError."""
    response, silent = ResponseReader(heads), True
    writer.write(request)
    while response.head is None:
        data = await reader.read(_READ_SIZE)
        if not data and silent:
            raise TargetError(f"{shown}: the server closed the connection without a response")
        if not data:
            raise TargetError(f"{shown}: the server closed the connection within the head of the response")
        silent = False
        response.feed(data)
    return response.head.status
