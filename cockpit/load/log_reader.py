"""Read an access log for replay: its requests and their times, as arrays."""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache, partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from cockpit.load.http.request import target_of
from cockpit.load.log_share import LogShare
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, LogReplay
from cockpit.model.text import sanitize
from cockpit.servers.access_log import MOST_BYTES, LoggedRequest, PartialLog, without_prefix
from cockpit.servers.other_logs import JSON_WITHOUT_REQUEST, NO_FIELDS, OTHER_LOGS, w3c
from cockpit.servers.registry import LOGGED_REQUESTS, PARTIAL_LOGS

_LINES_LIMIT = 20_000_000
# Times (epoch s) from the year 9892 on are invalid.
_LATEST = 2.5e11
# Number of distinct requests that are deduplicated; later ones are stored per occurrence.
_DEDUPLICATED_LIMIT = 100_000
# Safe methods (RFC 9110 section 9.2.1), which are replayed.
_METHODS = frozenset((b"GET", b"HEAD"))
# Printable ASCII without quotes and backslashes, which servers escape in their logs like other bytes.
_PATH = re.compile(rb"/[!#-\[\]-~]*")
_ABSOLUTE = re.compile(rb"https?://([^/?#:@]{1,255})(?::\d{0,5})?([/?#].*|)")
# Spaces, and bytes outside of ASCII, which servers write as they are or escape as \xC3; Apache escapes quotes as \".
_ENCODED = re.compile(rb'\\x([0-9A-Fa-f]{2})|([ \x80-\xff])|\\(["\\])')
_FORMATS = (
    "common or combined (nginx, Apache, Tomcat, lighttpd, gunicorn, varnishncsa), squid's native format,"
    " HAProxy's httplog, JSON (Caddy, nginx, Envoy, Traefik), Envoy's default, AWS ALB, and W3C with #Fields (IIS,"
    " CloudFront)"
)


class Omission(StrEnum):
    """The reason why a line is not replayed."""

    METHOD = "methods other than GET and HEAD"
    HOST = "URLs of other hosts"
    MALFORMED = "malformed, or in another format"


class DistinctRequests:
    """Distinct requests (`METHOD path`) in one buffer, numbered from 0."""

    def __init__(self) -> None:
        self._lines = bytearray()
        self._ends = array("Q", [0])
        self._known: dict[bytes, int] = {}

    def number_of(self, line: bytes) -> int:
        known = self._known.get(line)
        if known is not None:
            return known
        number = len(self._ends) - 1
        self._lines += line
        self._ends.append(len(self._lines))
        if number < _DEDUPLICATED_LIMIT:
            self._known[line] = number
        return number

    def line(self, number: int) -> bytes:
        return bytes(self._lines[self._ends[number] : self._ends[number + 1]])


class LoggedLoad(NamedTuple):
    """The requests of a log: `offsets` are their times (s after the first request, at replay speed), `numbers` their
    numbers in `requests`.

    `spread` is "evenly" or "at random" if timestamps are whole seconds and the requests were spread within them, else
    "". `stripped` is the number of URLs whose query string was removed by the server.
    """

    replay: LogReplay
    offsets: Any
    numbers: Any
    requests: DistinctRequests
    lines: int
    omitted: Counter[Omission]
    spread: str
    stripped: int

    @property
    def total(self) -> int:
        return len(self.offsets)

    @property
    def seconds(self) -> float:
        """The duration of the replay."""
        return float(self.offsets[-1])

    @property
    def summary(self) -> str:
        """File, number of requests and speed, on one line."""
        return (
            f"{sanitize(self.replay.file)}: {self.total} requests over {self.seconds * self.replay.speed:.4g} s,"
            f" replayed at speed {self.replay.speed:g} in {self.seconds:.4g} s"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Differences between the log and its replay, one line each."""
        lines, name = [], sanitize(self.replay.file)
        if self.omitted:
            lines.append(f"{name}: {self.omitted.total()} of {self.lines} lines are not replayed ({self._omissions})")
        if self.spread:
            lines.append(f"{name}: timestamps are whole seconds; requests are spread {self.spread} within each second")
        if self.stripped:
            lines.append(
                f"{name}: {self.stripped} of {self.total} URLs have no query string after their ?: squid removes it by"
                " default; set strip_query_terms off"
            )
        return tuple(lines)

    @property
    def _omissions(self) -> str:
        return ", ".join(f"{reason}: {count}" for reason, count in self.omitted.most_common())

    def share(self, worker: int, workers: int) -> LogShare:
        """Return the share of a worker: every `workers`-th request, starting with request `worker`."""
        used, numbers = np.unique(self.numbers[worker::workers], return_inverse=True)
        return LogShare(
            offsets=np.ascontiguousarray(self.offsets[worker::workers]).tobytes(),
            numbers=numbers.astype(np.uint32).tobytes(),
            requests=b"\n".join(map(self.requests.line, used.tolist())),
        )


def read_log(plan: LoadPlan) -> LoggedLoad:
    """Return the requests of the log that a plan replays. The file is read once per process, so that all runs of a
    session replay the same requests even if the log grows. Raises UsageError."""
    assert plan.replay is not None
    own = [value for name, value in plan.headers if name.lower() == "host"]
    targets = (target_of(part.url).host for part in plan.parts)
    hosts = {*targets, *(host.rpartition(":")[0] or host for host in own)}
    seed = plan.seed if plan.arrivals == "poisson" else None
    return _read(plan.replay, frozenset(host.lower().encode() for host in hosts), seed)


@lru_cache(maxsize=1)
def _read(replay: LogReplay, hosts: frozenset[bytes], seed: int | None) -> LoggedLoad:
    """`seed` spreads requests at random within a second; None: evenly."""
    starts, numbers, requests, omitted = array("d"), array("I"), DistinctRequests(), Counter[Omission]()
    partial_logs, stripped = set[PartialLog](), 0
    try:
        with Path(replay.file).open("rb") as raw, _decompressed(raw, replay.file) as file:
            for request in parse_lines(iter(partial(file.readline, MOST_BYTES), b""), partial_logs):
                path = _path_of(request, hosts)
                if request is None or isinstance(path, Omission):
                    omitted[path if isinstance(path, Omission) else Omission.MALFORMED] += 1
                    continue
                starts.append(request.at)
                numbers.append(requests.number_of(request.method + b" " + path))
                stripped += path.endswith(b"?")
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or f"damaged: {error}"
        raise UsageError(f"{replay.file}: cannot be read: {reason}") from None
    lines = len(starts) + omitted.total()
    if not starts:
        raise UsageError(_no_requests(replay.file, omitted, partial_logs))
    instants = np.frombuffer(starts)
    order = np.argsort(instants, kind="stable")
    instants, spread = instants[order], ""
    if not np.any(instants % 1):
        instants, spread = _spread(instants, seed), "evenly" if seed is None else "at random"
    offsets = (instants - instants[0]) / replay.speed
    return LoggedLoad(
        replay, offsets, np.frombuffer(numbers, np.uint32)[order], requests, lines, omitted, spread, stripped
    )


def _decompressed(file: BufferedReader, name: str) -> IO[bytes]:
    """Return the content of a file that may be compressed. Raises UsageError for a format that Python lacks."""
    start = file.peek(6)
    if start.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        raise UsageError(f"{name}: compressed with zstd; use: zstd -dc {name} | cockpit run … --replay-log -")
    return file


def parse_lines(lines: Iterable[bytes], partial_logs: set[PartialLog]) -> Iterable[LoggedRequest | None]:
    """Yield the request of each line, None for a line without one. The first format that matches a line is used for all
    later lines; until then, matching formats that cannot be replayed are added to `partial_logs`."""
    parse: Callable[[bytes], LoggedRequest | None] | None = None
    for number, line in enumerate(lines):
        if number >= _LINES_LIMIT:
            raise UsageError(f"the log has more than {_LINES_LIMIT} lines; replay a part of it")
        if line.startswith(b"#"):
            parse = w3c(line) if line.startswith(b"#Fields:") else parse
            partial_logs |= {NO_FIELDS} if parse is None and line.startswith(b"#Fields:") else set()
            continue
        parse = parse or next((form for form in (*LOGGED_REQUESTS, *OTHER_LOGS) if form(line)), None)
        if not parse:
            known = (*PARTIAL_LOGS, JSON_WITHOUT_REQUEST)
            partial_logs |= {form for form in known if form.pattern.match(without_prefix(line))}
        request = parse(line) if parse else None
        yield request if request is not None and 0 <= request.at < _LATEST else None


def percent_encoded(target: bytes) -> bytes:
    """Return a logged target with percent-encoding in place of spaces, bytes outside of ASCII, and escapes."""
    return _ENCODED.sub(lambda match: b"%" + (match[1] or (match[2] or match[3]).hex().encode()).upper(), target)


def _path_of(request: LoggedRequest | None, hosts: frozenset[bytes]) -> bytes | Omission:
    """Return the path and query to send, or the reason why the request is not replayed."""
    if request is None:
        return Omission.MALFORMED
    if request.method not in _METHODS:
        return Omission.METHOD
    path = percent_encoded(request.target)
    if not path.startswith(b"/"):
        absolute = _ABSOLUTE.fullmatch(path)
        if absolute is None:
            return Omission.MALFORMED
        if absolute[1].lower() not in hosts:
            return Omission.HOST
        path = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
    return path if _PATH.fullmatch(path) else Omission.MALFORMED


def _spread(instants: Any, seed: int | None) -> Any:
    """Spread ascending times in whole seconds within their seconds: at random with a seed, else evenly."""
    if seed is not None:
        return np.sort(instants + np.random.default_rng(abs(seed)).random(len(instants)))
    _, first, counts = np.unique(instants, return_index=True, return_counts=True)
    place = np.arange(len(instants)) - np.repeat(first, counts)
    return instants + place / np.repeat(counts, counts)


def _no_requests(file: str, omitted: Counter[Omission], partial_logs: set[PartialLog]) -> str:
    """Return the error message for a log without requests that can be replayed."""
    if not omitted:
        return f"{file}: is empty; give an access log with requests"
    if omitted.keys() == {Omission.MALFORMED} and partial_logs:
        known = min(partial_logs, key=lambda log: log.lacks)
        return f"{file}: cannot be replayed: {known.lacks}; {known.instead}"
    reason, _ = omitted.most_common(1)[0]
    next_steps = {
        Omission.METHOD: "only GET and HEAD are sent",
        Omission.HOST: "give the host of its URLs with -H 'Host: NAME'",
        Omission.MALFORMED: f"formats are {_FORMATS}",
    }
    return f"{file}: none of its {omitted.total()} lines can be replayed ({reason}); {next_steps[reason]}"
