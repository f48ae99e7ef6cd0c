"""Load options: values of a plan that are set by profile keys and flags."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from cockpit.model.load.plan import HttpVersion, LoadPlan

# The longest duration (s): 7 days.
LONGEST = 7 * 86400.0
# A request method, e.g. GET or M-SEARCH.
METHOD = r"^[A-Z]+(-[A-Z]+)*$"
_FIELDS = {field.name: field for field in msgspec.structs.fields(LoadPlan)}


class OptionKind(NamedTuple):
    """The values of an option. `limits`: their type in a plan; `key`: their type in a profile, if it may be text to
    parse; `parser`: parser of a flag's value in cli.values ("": none), which the help names `metavar`."""

    limits: Any
    key: Any = None
    parser: str = ""
    metavar: str = ""


POSITIVE = OptionKind(Annotated[int, Meta(gt=0)], parser="positive", metavar="N")
CONNECTIONS = OptionKind(
    Annotated[int, Meta(gt=0)], key=Annotated[int, Meta(gt=0)] | str, parser="connections", metavar="N[:M]"
)
AMOUNT = OptionKind(Annotated[int, Meta(gt=0)], key=int | str, parser="positive", metavar="N")
COUNT = OptionKind(Annotated[int, Meta(ge=0)], parser="count", metavar="N")
RATE = OptionKind(Annotated[float, Meta(gt=0)], key=Annotated[float, Meta(gt=0)] | str, parser="rate", metavar="R[:S]")
SECONDS = OptionKind(Annotated[float, Meta(gt=0, le=LONGEST)], key=float | str, parser="seconds", metavar="T")
WAIT = OptionKind(Annotated[float, Meta(ge=0, le=LONGEST)], key=float | str, parser="wait", metavar="T")
CPUS = OptionKind(tuple[Annotated[int, Meta(ge=0)], ...], parser="cpus", metavar="LIST")
SWITCH = OptionKind(bool)


class LoadOption(NamedTuple):
    """A load option; `name` is its field of the plan and its profile key. `meaning` describes the key, `help` the flag
    ("": the same); `flags`: names of the flag, "" if the option has none in the table."""

    name: str
    kind: OptionKind
    meaning: str
    flags: str = ""
    help: str = ""

    @property
    def default(self) -> Any:
        return _FIELDS[self.name].default

    @property
    def limits(self) -> Any:
        """The type of its values in a plan."""
        return self._optional(self.kind.limits)

    @property
    def key(self) -> Any:
        """The type of its values in a profile."""
        return self._optional(self.kind.key or self.kind.limits)

    def _optional(self, kind: Any) -> Any:
        return kind | None if self.default is None else kind


_OPTIONS = (
    LoadOption("method", OptionKind(Annotated[str, Meta(pattern=METHOD)]), "request method"),
    LoadOption(
        "concurrency",
        CONNECTIONS,
        "closed load: connections, one request in flight on each (default 1), or a ramp such as `10:200`",
        "-c --concurrency",
        "connections, one request in flight on each (default 1), or a ramp, e.g. 10:200; with -q the maximum in flight",
    ),
    LoadOption(
        "rate",
        RATE,
        "open load: arrivals/s, or a ramp such as `500:5000`",
        "-q --rate",
        "open load: requests/s over all connections, e.g. 500, 2k, or a ramp, e.g. 500:5k",
    ),
    LoadOption(
        "arrivals", OptionKind(_FIELDS["arrivals"].type), "open load: even (default), or poisson for random intervals"
    ),
    LoadOption("burst", POSITIVE, "open load: requests that arrive at once (default 1), at the same rate in total"),
    LoadOption("seed", COUNT, "seed of random arrivals (default 1)"),
    LoadOption(
        "max_in_flight",
        POSITIVE,
        "open load: maximum in flight (default 8192); further arrivals are queued and counted",
        "--max-in-flight",
    ),
    LoadOption(
        "requests",
        AMOUNT,
        "exact number of requests: 10000, or text such as `10k`; with `duration` a run ends at whichever comes first",
        "-n --requests",
        "requests, exact, e.g. 200, 10k, 1m",
    ),
    LoadOption(
        "duration",
        SECONDS,
        "duration of a run (default 10 s)",
        "-z --duration",
        "duration, e.g. 10s, 3m, 1h (default 10s); with -n a run ends at whichever comes first",
    ),
    LoadOption("warmup", WAIT, "load before the measurement, not counted (default 0)", "--warmup"),
    LoadOption(
        "extend",
        WAIT,
        "maximum extension of a run until the verdict on a change under load (default `3m`; 0: none)",
        "--extend",
    ),
    LoadOption(
        "http",
        OptionKind(HttpVersion),
        "version of HTTP: `1.1` (default), `2` (by ALPN over TLS, without upgrade over TCP), or `auto`: chosen by ALPN",
    ),
    LoadOption(
        "streams",
        POSITIVE,
        "HTTP/2: requests in flight per connection (default 1)",
        "-p --streams",
    ),
    LoadOption(
        "keepalive",
        SWITCH,
        "false: open a new connection for each request (default true)",
        "--disable-keepalive",
        "open a new connection for each request",
    ),
    LoadOption(
        "requests_per_connection",
        POSITIVE,
        "open a new connection after this number of requests",
        "--requests-per-connection",
    ),
    LoadOption(
        "cookies",
        SWITCH,
        "true: each connection of closed load is a user that keeps the cookies of its responses (default false)",
        "--cookies",
        "each connection of closed load keeps the cookies of its responses",
    ),
    LoadOption(
        "connections_per_user",
        POSITIVE,
        "connections that share the cookies of a user (default 1)",
        "--connections-per-user",
    ),
    LoadOption("timeout", SECONDS, "timeout of a request, connect to last byte (default 30 s)", "--timeout"),
    LoadOption("local_addresses", OptionKind(_FIELDS["local_addresses"].type), "source addresses, used in turn"),
    LoadOption("workers", POSITIVE, "load processes (default 1)"),
    LoadOption("cpus", CPUS, "CPU numbers to pin the load processes to, e.g. 1,2", "--cpus"),
    LoadOption(
        "on_loss",
        OptionKind(_FIELDS["on_loss"].type),
        "if a load process or generator is lost: `redistribute` its load to the others (default), or `stop` the run",
    ),
)
# Keys, flags, checks, help and JSON Schema are derived from this table.
LOAD_OPTIONS = {option.name: option for option in _OPTIONS}
