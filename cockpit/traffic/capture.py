"""Capture a time range of an access log as a log to replay: times, methods and targets of its requests."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, NamedTuple

from cockpit.hosts.shell import Shell
from cockpit.load.log_reader import parse_lines, percent_encoded
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize
from cockpit.servers.access_log import LoggedRequest

# Bytes that are read to find the time at a place of a log, and the accuracy of a place.
_SAMPLE, _ACCURACY = 128 * 1024, 1024 * 1024
_CHUNK = 256 * 1024
# Lines at the end of a chunk whose times are read.
_LAST = 5
# Maximum bytes of a captured time range.
MOST_BYTES = 2 * 1024**3
# Logs are ordered by the ends of requests, and may have the times of their starts: maximum length of a request (s).
_DISORDER = 120.0
_UNSAFE = re.compile(rb"[^!#-\[\]-~]")
# Parameters of a query whose values may be secrets.
_SECRET = re.compile(
    rb"(?i)([?&;][^=&;]{0,60}(?:auth|code|credential|jwt|key|pass|pwd|secret|session|sid|sig|token)[^=&;]{0,60}=)[^&;]+"
)
_REDACTED = rb"\1redacted"


class CapturedRange(NamedTuple):
    """The first and the last instant (s since the epoch) of a captured time range."""

    since: float
    until: float


async def last_seconds(shell: Shell, file: str, seconds: float) -> CapturedRange:
    """Return the time range that ends with the last request of a log. Raises HostError."""
    size = await _size(shell, file)
    times = _times((await _part(shell, file, max(0, size - _SAMPLE), _SAMPLE)).split(b"\n"))
    if not times:
        raise HostError(f"{file}: no request with a known time at its end")
    return CapturedRange(max(times) - seconds, max(times))


async def fetch(shell: Shell, file: str, within: CapturedRange, into: IO[bytes]) -> None:
    """Write the lines of a time range, and some around it. Raises HostError."""
    start, end = 0, await _size(shell, file)
    while end - start > _ACCURACY:
        middle = (start + end) // 2
        cut, _, lines = (await _part(shell, file, middle, _SAMPLE)).partition(b"\n")
        times = _times(lines.split(b"\n"))
        if not times:
            break
        early = times[0] < within.since - _DISORDER
        start, end = (middle + len(cut) + 1, end) if early else (start, middle)
    channel = await shell.open(f"exec tail -c +{start + 1} -- {shlex.quote(file)}")
    fetched = 0
    try:
        while data := await channel.read(_CHUNK):
            into.write(data)
            fetched += len(data)
            if fetched > MOST_BYTES:
                raise HostError(f"{file}: more than {MOST_BYTES >> 30} GiB; choose a shorter time")
            times = _times(data.split(b"\n")[1:-1][-_LAST:])
            if times and min(times) > within.until + _DISORDER:
                into.truncate(into.tell() - len(data.rpartition(b"\n")[2]))
                break
    finally:
        channel.close()


class CapturedLog:
    """The requests of a time range, as `fetch` wrote it. Once they are read, `invalid` is the number of lines
    without a request, in and around the range, and `first` the time of the first request; None: there is none."""

    def __init__(self, log: IO[bytes], within: CapturedRange) -> None:
        self.invalid = 0
        self.first: float | None = None
        self._log = log
        self._within = within

    def lines(self, *, cut_queries: bool) -> Iterator[bytes]:
        """Yield the requests in common log format, without clients, users and referers. Values of queries that may be
        secrets are replaced."""
        for request in parse_lines(self._log, set()):
            if request is None:
                self.invalid += 1
                continue
            self.first = request.at if self.first is None else min(self.first, request.at)
            if self._within.since <= request.at <= self._within.until:
                yield _line(request, cut_queries=cut_queries)

    @property
    def notes(self) -> Iterator[str]:
        """The requests that are missing, one line each."""
        if self.invalid:
            yield f"lines without a request, which are left out: {self.invalid}"
        if self.first is not None and self.first > self._within.since:
            begin = datetime.fromtimestamp(self.first).astimezone().isoformat(sep=" ", timespec="seconds")
            yield f"starts at {begin}; earlier requests, if any, are in a rotated file"


def _line(request: LoggedRequest, *, cut_queries: bool) -> bytes:
    path, sign, query = percent_encoded(request.target).partition(b"?")
    kept = path + (b"" if cut_queries else _SECRET.sub(_REDACTED, sign + query))
    target = _UNSAFE.sub(lambda match: b"%%%02X" % ord(match[0]), kept)
    moment = datetime.fromtimestamp(request.at, UTC)
    fraction = f".{moment.microsecond:06d}" if request.at % 1 else ""
    stamp = f"{moment:%d/%b/%Y:%H:%M:%S}{fraction} +0000"
    return b'- - - [%s] "%s %s HTTP/1.1" 200 -\n' % (stamp.encode(), _UNSAFE.sub(b"?", request.method), target)


def _times(lines: list[bytes]) -> list[float]:
    return [request.at for request in parse_lines(lines, set()) if request]


async def _size(shell: Shell, file: str) -> int:
    text = await _run(shell, f"wc -c <{shlex.quote(file)}")
    return int(text) if text.strip().isdigit() and len(text) < 20 else 0


async def _part(shell: Shell, file: str, start: int, size: int) -> bytes:
    return await _run(shell, f"tail -c +{start + 1} -- {shlex.quote(file)} | head -c {size}")


async def _run(shell: Shell, program: str) -> bytes:
    done = await shell.run(program)
    if done.stderr.strip() and not done.stdout:
        reason = sanitize(done.stderr.decode(errors="replace").strip().splitlines()[-1], 200)
        raise HostError(reason)
    return done.stdout
