"""The load to send, and the names under which failures are counted."""

from __future__ import annotations

import hashlib
from math import inf
from typing import Literal
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from cockpit.model.load_options import options_of

ErrorKind = Literal[
    "refused",
    "reset",
    "connect_timeout",
    "timeout",
    "unreachable",
    "name_not_found",
    "tls",
    "malformed",
    "closed_early",
    "closed_before_response",
    "tls_truncated",
    "no_local_ports",
    "no_file_descriptors",
]
TakeSource = Literal["header", "json", "regex"]

# Headers whose values may be recorded; any other may hold a secret, whatever it is called.
OPEN_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-type", "expect"),
        *("host", "if-modified-since", "if-none-match", "origin", "pragma", "range", "soapaction", "user-agent"),
    )
)
REDACTED = "(not recorded)"
# Seconds after a change under load by which a run is extended at most, unless the plan has another value.
EXTEND = 180.0
# The highest speed of a replayed log.
FASTEST = 1e6


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """The expected response. Another one is `unexpected`, counted once under the first kind that differs:
    status, length, contains, too_large, matches, digest. Fields left out are not checked, except `statuses`: left
    out, any below 400 is good. `matches` needs the whole body, of at most 256 KiB (too_large)."""

    statuses: tuple[int, ...] = ()
    contains: str | None = None
    matches: str | None = None
    length: int | None = None
    sha256: str | None = None


class Take(msgspec.Struct, frozen=True, kw_only=True):
    """A value to take from a response by its `expression`: the name of a header; a path in JSON as `items.0.id`; a
    regular expression, of whose match the first group is taken, or all without a group."""

    name: str
    source: TakeSource
    expression: str


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One of several requests of a plan. `url` is absolute; `name` is the group of its metrics;
    `binary` replaces a `body` that is not text. If one of them takes values, the requests are a chain: each user sends
    them in order, with `{name}` in path, headers and body replaced by the values taken before."""

    name: str
    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    weight: int = 1
    expect: Expect | None = None
    binary: bytes | None = None
    take: tuple[Take, ...] = ()

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return _content(self)


class PathList(msgspec.Struct, frozen=True, kw_only=True):
    """Many paths instead of the plan URL's one: `pattern` (`/img/{00001..15000}.jpg`) or `listed`.

    `order`: sequence and shuffle repeat for ever; once takes each at most once over all workers, shuffled by `seed`
    if that is not 0, and the run ends when none is left. Worker w of W takes every W-th from the w-th on.
    """

    pattern: str = ""
    listed: tuple[str, ...] = ()
    order: Literal["sequence", "shuffle", "once"] = "sequence"
    seed: int = 0


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A load level: `concurrency` (closed) or `rate` (open) for `duration` seconds."""

    duration: float
    concurrency: int | None = None
    rate: float | None = None


class ThinkTime(msgspec.Struct, frozen=True, kw_only=True):
    """Pause between a response and the next request of a connection: constant `seconds`; uniform, from `seconds` to
    `most`; or exponential with the mean `seconds`."""

    seconds: float
    distribution: Literal["constant", "uniform", "exponential"] = "constant"
    most: float = 0.0

    @property
    def mean(self) -> float:
        return (self.seconds + self.most) / 2 if self.distribution == "uniform" else self.seconds

    @property
    def words(self) -> str:
        """`0.5 s`, `0.2 s to 2 s` or `1 s exponential`."""
        ends = {"constant": "", "uniform": f" to {self.most:g} s", "exponential": " exponential"}
        return f"{self.seconds:g} s{ends[self.distribution]}"


class LogReplay(msgspec.Struct, frozen=True, kw_only=True):
    """The GET and HEAD requests of an access log, at its intervals divided by `speed`. `seconds` is the duration of the
    replay, None until the log has been read."""

    file: str
    speed: float = 1.0
    seconds: float | None = None


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of an https target: verified by the system's CAs, or by the file `ca`; `cert` and `key` are
    files of the client; `sni` is the server name to send if it is not the URL's."""

    verify: bool = True
    ca: str = ""
    cert: str = ""
    key: str = ""
    sni: str = ""


class RunTotals(msgspec.Struct, frozen=True, kw_only=True):
    """A run of which another `tool` reported totals only, without data per second. Its latencies are interpolated
    between the `percentiles` (0 to 100, ascending) that it reported; (): it reported none."""

    tool: str
    percentiles: tuple[float, ...] = ()

    def around(self, percent: float) -> tuple[float | None, float | None]:
        """Return the next reported percentiles below and above; None: there is none. One that was reported is both."""
        below = [one for one in self.percentiles if one <= percent]
        above = [one for one in self.percentiles if one >= percent]
        return max(below, default=None), min(above, default=None)


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The load to send.

    Closed (`rate` None): `concurrency` connections, each with one request in flight. Open: `rate` arrivals/s on an
    absolute schedule, even or Poisson by `seed`, whatever the server does; at most `max_in_flight` are in flight, and
    further arrivals are queued, counted, and sent in order. It ends after exactly `requests`
    requests or `duration` seconds, whichever comes first if both are set, or with the last of `stages`. Arrivals still
    queued then are never sent, and counted. The first `warmup` seconds are sent and not counted.
    `timeout` (s) is for a whole request from its send, connect included. `workers` processes share it exactly;
    worker i is pinned to `cpus[i % len(cpus)]` if cpus is not empty.
    `on_loss` of a worker its load is dealt to the others, where that is possible, or the run stops.
    `extend` (s) is the maximum extension of a run after a change under load, for the verdict; 0: none.
    `binary` replaces a `body` that is not text.
    `mix` in rotation by weight replaces url, method, headers, body and `expect`; `paths` replaces the URL's path.
    With `replay` the requests and their instants are those of a log.
    Sockets close after `requests_per_connection` requests; None: no limit. Under closed load each connection pauses for
    its `think_time` between a response and its next request.
    With `cookies`, each virtual user keeps those of its responses; it has `sockets_per_user` of the connections.
    `connect_to` (host:port) and `unix` (a socket's path) replace the address; `local_addresses` are source addresses.
    """

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    expect: Expect | None = None
    mix: tuple[Request, ...] = ()
    paths: PathList | None = None
    replay: LogReplay | None = None
    concurrency: int = 1
    rate: float | None = None
    arrivals: Literal["even", "poisson"] = "even"
    seed: int = 1
    max_in_flight: int = 8192
    requests: int | None = None
    duration: float | None = None
    stages: tuple[Stage, ...] = ()
    warmup: float = 0.0
    extend: float = EXTEND
    keepalive: bool = True
    requests_per_connection: int | None = None
    think_time: ThinkTime | None = None
    cookies: bool = False
    sockets_per_user: int = 1
    timeout: float = 30.0
    tls: Tls = Tls()
    connect_to: str = ""
    unix: str = ""
    local_addresses: tuple[str, ...] = ()
    workers: int = 1
    cpus: tuple[int, ...] = ()
    on_loss: Literal["deal", "stop"] = "deal"
    tick: float = 0.1
    binary: bytes | None = None

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return _content(self)

    @property
    def open(self) -> bool:
        """Return whether arrivals follow a schedule of their own."""
        scheduled = self.rate is not None or self.replay is not None
        return scheduled or any(stage.rate is not None for stage in self.stages)

    @property
    def chained(self) -> bool:
        """Return whether requests depend on the responses to others."""
        return any(request.take for request in self.mix)

    @property
    def seconds(self) -> float | None:
        """Planned length of a run with its warm-up (s), at most; None: it ends by count, or when it is stopped."""
        lasts = sum(stage.duration for stage in self.stages) if self.stages else self.duration
        if self.replay is not None and self.replay.seconds is not None:
            lasts = min(self.replay.seconds, inf if lasts is None else lasts)
        return None if lasts is None else self.warmup + lasts

    @property
    def extendable(self) -> bool:
        """Return whether more can be sent than planned: load levels change the load, a log ends, paths may be used only
        once."""
        return not self.stages and self.replay is None and not (self.paths is not None and self.paths.order == "once")

    def adjustable(self, other: LoadPlan) -> bool:
        """Return whether a run of this plan can follow the load of the other one."""
        fixed = self.stages or other.stages or self.replay or other.replay
        return self.open == other.open and not fixed

    def without_secrets(self) -> LoadPlan:
        """The plan as it may be recorded and shown: no password, no header that could be one, bodies as a digest."""
        mix = tuple(
            msgspec.structs.replace(
                one, url=url_without_password(one.url), headers=_redacted(one.headers), body=_digest(one), binary=None
            )
            for one in self.mix
        )
        return msgspec.structs.replace(
            self,
            url=url_without_password(self.url),
            headers=_redacted(self.headers),
            body=_digest(self),
            binary=None,
            mix=mix,
        )


# Options that a profile's [load] and a flag set: `# FIELD: KIND FLAGS`, the meaning of the key, and the flag's help if
# that differs. Keys, flags, checks, help and JSON Schema follow from here.
LOAD_OPTIONS = options_of(
    LoadPlan,
    """\
# method: method
request method
# concurrency: positive -c --concurrency N
closed load: connections, one request in flight on each (default 1)
connections, one request in flight on each (default 1); with -q the maximum in flight
# rate: rate -q --rate R
open load: arrivals/s
open load: requests/s over all connections, e.g. 500, 2k
# arrivals
open load: even (default), or poisson for random intervals
# seed: count
seed of random arrivals (default 1)
# max_in_flight: positive --max-in-flight N
open load: maximum in flight (default 8192); further arrivals are queued and counted
# requests: amount -n --requests N
number of requests, exact: 10000, or a text such as `10k`; with `duration` the load ends with whichever comes first
requests, exact, e.g. 200, 10k, 1m
# duration: seconds -z --duration T
duration of a run (default 10 s)
duration, e.g. 10s, 3m, 1h (default 10s); with -n the run ends with whichever comes first
# warmup: wait --warmup T
load before the measurement, not counted (default 0)
# extend: wait --extend T
after a change under load, extend the run until its verdict, at most by this (default `3m`; 0: never)
# keepalive: switch --disable-keepalive
false: open a new connection for each request (default true)
open a new connection for each request
# requests_per_connection: positive --requests-per-connection N
open a new connection after this number of requests
# cookies: switch --cookies
true: closed load: each connection is a user who keeps the cookies of its responses (default false)
each connection of closed load keeps the cookies of its responses
# sockets_per_user: positive --sockets-per-user N
connections that share the cookies of a user (default 1)
# timeout: seconds --timeout T
timeout of a request, connect to last byte (default 30 s)
# local_addresses
source addresses, used in turn
# workers: positive
load processes (default 1)
# cpus: cpus --cpus LIST
CPU numbers to pin the load processes to, e.g. 1,2
# on_loss
what happens when a load process or generator is lost: `deal` its load to the others (default), or `stop` the run
""",
)


def _redacted(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value if name.lower() in OPEN_HEADERS else REDACTED) for name, value in headers)


def _content(request: Request | LoadPlan) -> bytes:
    return (request.body or "").encode() if request.binary is None else request.binary


def _digest(request: Request | LoadPlan) -> str | None:
    if request.binary is None and (request.body is None or request.body.startswith("sha256:")):
        return request.body
    raw = request.content
    return f"sha256:{hashlib.sha256(raw).hexdigest()} ({len(raw)} bytes)"


def is_redirect(status: int) -> bool:
    """Return whether a browser would follow it to another URL."""
    return 300 <= status < 400 and status != 304


def redirect_target(url: str, location: str) -> str:
    """The URL to which a Location in a response from `url` leads, without a password."""
    try:
        return url_without_password(urljoin(url_without_password(url), location))
    except ValueError:
        return location


def url_without_password(url: str) -> str:
    """The URL without `user:password@`."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
