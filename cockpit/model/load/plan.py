"""The load plan, and the kinds of errors."""

from __future__ import annotations

import hashlib
from math import inf
from typing import Literal
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec

from cockpit.model.recorded import Name, Url

ErrorKind = Literal[
    "refused",
    "reset",
    "connect_timeout",
    "timeout",
    "unreachable",
    "name_not_found",
    "tls",
    "not_http",
    "invalid_head",
    "head_too_large",
    "ambiguous_length",
    "invalid_chunks",
    "protocol_switch",
    "closed_early",
    "closed_before_response",
    "tls_truncated",
    "stream_reset",
    "refused_stream",
    "goaway",
    "flow_stalled",
    "http2_protocol",
    "http2_compression",
    "http2_flood",
    "no_local_ports",
    "no_file_descriptors",
]
HttpVersion = Literal["1.1", "2", "auto"]
ExtractionSource = Literal["header", "json", "regex"]

# Headers whose values may be recorded; any other header may contain a secret.
OPEN_HEADERS = frozenset(
    (
        *("accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-type", "expect"),
        *("host", "if-modified-since", "if-none-match", "origin", "pragma", "range", "soapaction", "user-agent"),
    )
)
REDACTED = "(not recorded)"
# Default maximum extension of a run after a change under load (s).
EXTEND = 180.0
# The highest speed of a replayed log.
FASTEST = 1e6


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """The expected response. Other responses are `unexpected`, each counted once, under the first difference: status,
    length, contains, too_large, matches, digest. Fields that are not set are not checked, except `statuses`: if empty,
    statuses below 400 are expected. `matches` needs the whole body, of at most 256 KiB (too_large)."""

    statuses: tuple[int, ...] = ()
    contains: str | None = None
    matches: str | None = None
    length: int | None = None
    sha256: str | None = None


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """A value to extract from a response by an `expression`: a header name; a path in JSON, e.g. `items.0.id`; or a
    regular expression: its first group, or the whole match if it has no group."""

    name: str
    source: ExtractionSource
    expression: str


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One of several requests of a plan. `url` is absolute; `name`: group of its metrics; `binary` replaces a `body`
    that is not text. If any request has `extract`, the requests are a chain: each user sends them in order, with
    `{name}` in path, headers and body replaced by the extracted values."""

    name: str
    url: Url
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    weight: int = 1
    expect: Expect | None = None
    binary: bytes | None = None
    extract: tuple[Extraction, ...] = ()

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return _content(self)


class PathList(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that replace the path of the plan's URL: `pattern` (`/img/{00001..15000}.jpg`) or `listed`.

    `order`: sequence and shuffle repeat forever; once uses each path at most once over all workers, shuffled by `seed`
    unless it is 0, and the run ends when no path is left. Worker w of W uses every W-th path, starting at the w-th.
    """

    pattern: str = ""
    listed: tuple[str, ...] = ()
    order: Literal["sequence", "shuffle", "once"] = "sequence"
    seed: int = 0


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A load level: `concurrency` (closed) or `rate` (open) for `duration` seconds; `ramp_to` as in a plan."""

    duration: float
    concurrency: int | None = None
    rate: float | None = None
    ramp_to: float | None = None


class ThinkTime(msgspec.Struct, frozen=True, kw_only=True):
    """The pause of a connection between a response and its next request: constant `seconds`; uniform, from `seconds` to
    `most`; or exponential with mean `seconds`."""

    seconds: float
    distribution: Literal["constant", "uniform", "exponential"] = "constant"
    most: float = 0.0

    @property
    def mean(self) -> float:
        return (self.seconds + self.most) / 2 if self.distribution == "uniform" else self.seconds

    @property
    def words(self) -> str:
        """The think time as text: `0.5 s`, `0.2 s to 2 s` or `1 s exponential`."""
        shape = {"constant": "", "uniform": f" to {self.most:g} s", "exponential": " exponential"}
        return f"{self.seconds:g} s{shape[self.distribution]}"


class LogReplay(msgspec.Struct, frozen=True, kw_only=True):
    """Replay of the GET and HEAD requests of an access log, at the logged intervals divided by `speed`. `seconds`:
    duration of the replay; None until the log has been read."""

    file: str
    speed: float = 1.0
    seconds: float | None = None


class AccessLog(msgspec.Struct, frozen=True, kw_only=True):
    """An access log on a watched host. `format`: a preset of its name, or the server's format; "": to be recognized."""

    host: Name
    file: str
    format: str = ""


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """TLS of an https target: verified with the system's CAs, or with the file `ca`; `cert` and `key`: files of the
    client certificate; `sni`: the server name to send, if it differs from the URL's. `resumption`: new connections
    resume the session of an earlier one, if the server allows it."""

    verify: bool = True
    ca: str = ""
    cert: str = ""
    key: str = ""
    sni: str = ""
    resumption: bool = True


class RunTotals(msgspec.Struct, frozen=True, kw_only=True):
    """A run of another `tool`, which reported totals without data per second. Its latencies are interpolated between
    the reported `percentiles` (0 to 100, ascending); (): none were reported."""

    tool: str
    percentiles: tuple[float, ...] = ()

    def around(self, percent: float) -> tuple[float | None, float | None]:
        """Return the nearest reported percentiles that are at most, and at least, `percent`; None: there is none."""
        below = [reported for reported in self.percentiles if reported <= percent]
        above = [reported for reported in self.percentiles if reported >= percent]
        return max(below, default=None), min(above, default=None)


# Between the names of the two targets of a duet.
VERSUS = " vs "


class TargetVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One of two targets that get the same load at the same time. `host`: the watched host of its server; "": none."""

    name: str
    url: Url
    host: str = ""


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The load to send.

    Closed load (`rate` None): `concurrency` connections, each with one request in flight. Open load: `rate` arrivals/s
    on an absolute schedule, even or Poisson (by `seed`), `burst` of them at once, independent of responses; at most
    `max_in_flight` requests are in flight, and further arrivals are queued, counted, and sent in order. A run ends
    after exactly `requests` requests or `duration` seconds, whichever comes first if both are set, or with the last of
    `stages`. With `ramp_to` the load, connections or arrivals/s, changes linearly to this value during the `duration`.
    Arrivals that are still queued at the end are counted, but never sent. The first `warmup` seconds of load are not
    counted.
    `timeout` (s): for a whole request from its send, connect included. `workers` processes share the load exactly;
    worker i is pinned to `cpus[i % len(cpus)]` unless `cpus` is empty. `on_loss`: if a worker is lost, redistribute its
    load to the others (where possible) or stop the run.
    `extend`: maximum extension (s) of a run after a change under load, for the verdict; 0: none.
    `binary` replaces a `body` that is not text.
    `mix`, in rotation by weight, replaces `url`, `method`, `headers`, `body` and `expect`; `paths` replaces the URL's
    path. `replay`: requests and their times are those of a log.
    `traffic`: no load is sent; the requests of users are counted from these logs, and arrive as they like.
    `http`: the protocol version; with HTTP/2 each connection has up to `streams` requests in flight, and `concurrency`
    counts connections. "auto" is the version that the server chooses by ALPN, until it is known.
    A connection closes after `requests_per_connection` requests; None: no limit. Under closed load each connection
    pauses for its `think_time` between a response and its next request.
    `cookies`: each virtual user keeps the cookies of its responses, and has `connections_per_user` connections.
    `variants`: none, or two, whose URLs replace `url`: each gets the whole load, at the same moments (a duet);
    `margin`: the equivalence margin of their comparison (share); None: that of each metric.
    `connect_to` (host:port) and `unix` (path of a socket) replace the address; `local_addresses`: source addresses.
    """

    url: Url
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    expect: Expect | None = None
    mix: tuple[Request, ...] = ()
    paths: PathList | None = None
    replay: LogReplay | None = None
    traffic: tuple[AccessLog, ...] = ()
    variants: tuple[TargetVariant, ...] = ()
    margin: float | None = None
    concurrency: int = 1
    rate: float | None = None
    ramp_to: float | None = None
    arrivals: Literal["even", "poisson"] = "even"
    burst: int = 1
    seed: int = 1
    max_in_flight: int = 8192
    requests: int | None = None
    duration: float | None = None
    stages: tuple[Stage, ...] = ()
    warmup: float = 0.0
    extend: float = EXTEND
    http: HttpVersion = "1.1"
    streams: int = 1
    keepalive: bool = True
    requests_per_connection: int | None = None
    think_time: ThinkTime | None = None
    cookies: bool = False
    connections_per_user: int = 1
    timeout: float = 30.0
    tls: Tls = Tls()
    connect_to: str = ""
    unix: str = ""
    local_addresses: tuple[str, ...] = ()
    workers: int = 1
    cpus: tuple[int, ...] = ()
    on_loss: Literal["redistribute", "stop"] = "redistribute"
    tick: float = 0.1
    binary: bytes | None = None

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return _content(self)

    @property
    def open(self) -> bool:
        """Return whether arrivals follow a schedule, independent of responses."""
        scheduled = self.rate is not None or self.replay is not None or bool(self.traffic)
        return scheduled or any(stage.rate is not None for stage in self.stages)

    @property
    def http2(self) -> bool:
        return self.http == "2"

    @property
    def has_users(self) -> bool:
        """Return whether requests depend on earlier responses to the same virtual user."""
        return self.cookies or self.chained

    @property
    def chained(self) -> bool:
        """Return whether requests depend on the responses to others."""
        return any(request.extract for request in self.mix)

    @property
    def seconds(self) -> float | None:
        """Maximum planned length of a run (s), warm-up included; None: it ends by count, or when it is stopped."""
        duration = sum(stage.duration for stage in self.stages) if self.stages else self.duration
        if self.replay is not None and self.replay.seconds is not None:
            duration = min(self.replay.seconds, inf if duration is None else duration)
        return None if duration is None else self.warmup + duration

    @property
    def extendable(self) -> bool:
        """Return whether a run can send more than planned: not with load levels, a ramp, a log, or paths that are used
        once."""
        once = self.paths is not None and self.paths.order == "once"
        return not self.stages and self.ramp_to is None and self.replay is None and not once

    def adjustable(self, requested: LoadPlan) -> bool:
        """Return whether an active run of this plan can change its load to the requested one."""
        fixed = self.stages or requested.stages or self.replay or requested.replay
        return self.open == requested.open and not fixed

    @property
    def parts(self) -> tuple[LoadPlan, ...]:
        """The plans of the targets that are loaded at the same time: those of the variants, else this plan alone."""
        alone = msgspec.structs.replace(self, variants=())
        return tuple(at_target(alone, variant.url) for variant in self.variants) or (self,)

    def without_secrets(self) -> LoadPlan:
        """Return the plan without secrets, for recordings and the screen: no password, headers that may contain one
        redacted, bodies as a digest."""
        mix = tuple(
            msgspec.structs.replace(
                request,
                url=url_without_password(request.url),
                headers=_redacted(request.headers),
                body=_digest(request),
                binary=None,
            )
            for request in self.mix
        )
        return msgspec.structs.replace(
            self,
            url=url_without_password(self.url),
            variants=tuple(
                msgspec.structs.replace(variant, url=url_without_password(variant.url)) for variant in self.variants
            ),
            headers=_redacted(self.headers),
            body=_digest(self),
            binary=None,
            mix=mix,
        )


def amount_words(load: LoadPlan | Stage, arrow: str = "→", digits: str = "g") -> str:
    """Return connections, or arrivals/s, as text: `20`, `2000/s`, or a ramp: `10→200`, `500→5000/s`."""
    first = load.concurrency if load.rate is None else load.rate
    amounts = [first or 0] if load.ramp_to is None else [first or 0, load.ramp_to]
    return f"{arrow.join(f'{amount:{digits}}' for amount in amounts)}{'' if load.rate is None else '/s'}"


def at_target(plan: LoadPlan, url: str) -> LoadPlan:
    """Return the plan with another target: its URL, and the same server in the requests of its mix."""
    to = urlsplit(url)
    urls = (urlsplit(request.url)._replace(scheme=to.scheme, netloc=to.netloc).geturl() for request in plan.mix)
    mix = tuple(msgspec.structs.replace(request, url=each) for request, each in zip(plan.mix, urls, strict=True))
    return msgspec.structs.replace(plan, url=url, mix=mix)


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
    """Return whether a browser would follow a response with this status to another URL."""
    return 300 <= status < 400 and status != 304


def redirect_target(url: str, location: str) -> str:
    """Return the URL that a Location header in a response from `url` points to, without a password."""
    try:
        return url_without_password(urljoin(url_without_password(url), location))
    except ValueError:
        return location


def url_without_password(url: str) -> str:
    """Return the URL without `user:password@`."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
