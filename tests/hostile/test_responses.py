"""Any bytes from a server, in any chunks and with any ending: each request is counted exactly once."""

from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import get_args

import pytest

from cockpit.load.request_metrics import RequestMetrics, add_counts
from cockpit.model.load.plan import ErrorKind
from tests.hostile.measuring import THOROUGH
from tests.load.pairs import Pairs
from tests.load.servers import SMALL, plan

STATUS_LINES = (
    b"HTTP/1.1 200 OK",
    b"HTTP/1.1 200 ",
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 404 Not Found",
    b"HTTP/1.1 302 Found",
    b"HTTP/1.1 999 Odd",
)
BROKEN_STATUS_LINES = (
    *(b"HTTP/1.1 " + rest for rest in (b"2x0 OK", b"-200 OK", b"99 Low", b"1000 High", b"200 " + b"x" * 5000)),
    *(b"HTTP/1.1 " + rest for rest in (b"204 No Content", b"304 Not Modified", b"101 Switching Protocols")),
    *(b"HTTP/9.9 200 OK", b"HTTP/2 200", b"http/1.1 200 OK", b"ICY 200 OK", b"SSH-2.0-OpenSSH_9.2", b""),
)
FIELDS = (
    *(b"Server: x", b"Date: now", b"Location: /elsewhere", b"Connection: keep-alive", b"Set-Cookie: a=b; c=\xe9"),
    *(b"X-Empty:", b"X: " + b"y" * 300, b"X-Folded: a\r\n b"),
)
_VALUES: dict[bytes, tuple[bytes, ...]] = {
    b"Content-Length: ": (b"5", b"6", b"-5", b"+5", b"0x5", b"5, 6", b"", b"9" * 18, b"9" * 5000),
    b"Transfer-Encoding: ": (b"chunked", b"gzip", b"chunked, gzip"),
    b"Connection: ": (b"close", b"upgrade\r\nUpgrade: x"),
    b"X": (b": a\0b", b"\x07: y", b" : y", b": a\rb", b": a\nContent-Length: 3", b": " + b"y" * 140_000),
    b"": (b"content-length:  7 ", b"tRANSFER-eNCODING: CHUNKED", b": y", b"nonsense", b" folded"),
}
BROKEN_FIELDS = tuple(name + value for name, values in _VALUES.items() for value in values)
CHUNK_SIZES = (b"%x", b"%X;a=b", b"0%x", b'%x;a="b;c"')
_SIZES = (b"zz%x", b"-%x", b"0x%x", b"f%xf", b"f" * 20 + b"%.0x", b"%.0x", b"%x ", b" %x")
BROKEN_CHUNK_SIZES = (*_SIZES, b"%x;" + b"e" * 3000)
INTERIM = (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")
EXCESS = (b"\r\n", b"more", b"\0", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 408 Slow\r\n\r\n")


@dataclass(frozen=True)
class Response:
    """A response; `intact`: valid and complete, with this `status`; `until_close`: closing ends the body."""

    data: bytes
    intact: bool
    status: int
    size: int
    until_close: bool

    def split(self, rng: Random) -> list[bytes]:
        """The data split at a few random positions; rarely at each byte."""
        if len(self.data) < 400 and rng.random() < 0.02:
            return [self.data[at : at + 1] for at in range(len(self.data))]
        cuts = sorted(rng.randrange(len(self.data) + 1) for _ in range(rng.choice((0, 0, 1, 1, 2, 5))))
        edges = [0, *cuts, len(self.data)]
        return [self.data[a:b] for a, b in pairwise(edges) if a < b]


def response(rng: Random) -> Response:
    """A random response: intact, or broken in one or several ways."""
    broken = rng.random() < 0.7
    line, fields = rng.choice(STATUS_LINES), [rng.choice(FIELDS) for _ in range(rng.randrange(4))]
    body = rng.randbytes(rng.choice((0, 0, 1, 5, 5, 50, 2000)))
    framing = rng.choice(("length", "length", "chunked", "chunked", "close"))
    sizes = CHUNK_SIZES
    if broken:
        line, fields, sizes = _broken_parts(rng, line, fields)
    if framing == "length":
        fields.insert(rng.randrange(len(fields) + 1), b"Content-Length: %d" % len(body))
    if framing == "chunked":
        fields.insert(rng.randrange(len(fields) + 1), b"Transfer-Encoding: chunked")
    payload = _chunked(rng, body, sizes) if framing == "chunked" else body
    data = b"\r\n".join([line, *fields]) + b"\r\n\r\n"
    if rng.random() < 0.1:
        data = data.replace(b"\r\n", b"\n")
    data = b"".join(rng.choices(INTERIM, k=rng.choice((0, 0, 0, 1, 2)))) + data + payload
    if broken:
        data = _damaged(rng, data)
    status = int(line.split(b" ")[1]) if not broken else 0
    return Response(data, not broken, status, len(body), framing == "close")


def _broken_parts(rng: Random, line: bytes, fields: list[bytes]) -> tuple[bytes, list[bytes], tuple[bytes, ...]]:
    sizes = CHUNK_SIZES
    if rng.random() < 0.2:
        line = rng.choice(BROKEN_STATUS_LINES)
    if rng.random() < 0.4:
        fields = [*fields, *rng.choices(BROKEN_FIELDS, k=rng.choice((1, 1, 2)))]
    if rng.random() < 0.3:
        sizes = BROKEN_CHUNK_SIZES
    return line, fields, sizes


def _chunked(rng: Random, body: bytes, sizes: tuple[bytes, ...]) -> bytes:
    step = max(1, len(body) // rng.choice((1, 2, 3)))
    chunks = [body[at : at + step] for at in range(0, len(body), step)]
    coded = b"".join(rng.choice(sizes) % len(chunk) + b"\r\n" + chunk + b"\r\n" for chunk in chunks)
    return coded + b"0\r\n" + rng.choice((b"", b"", b"X: trailer\r\n")) + b"\r\n"


def _damaged(rng: Random, data: bytes) -> bytes:
    """The data truncated, extended, or with some bytes changed."""
    kind = rng.randrange(6)
    at = rng.randrange(len(data) + 1)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data + rng.choice(EXCESS)
    if kind == 2:
        return data[:at] + rng.choice((b"\0", b"\n", b"\r", b"\r\n\r\n", b" ", b"\xff")) + data[at:]
    if kind == 3:
        return data[:at] + data[at + rng.randrange(1, 9) :]
    if kind == 4:
        return data[:at] + rng.randbytes(1) + data[at + 1 :]
    return data


# Requests of a test. Development machines can test many more.
CASES = 40_000 if THOROUGH else 6_000
OK = Response(SMALL, intact=True, status=200, size=5, until_close=False)
ENDINGS = ("close", "close", "hold", "hold", "keep", "keep")


def _counted(counts: RequestMetrics) -> tuple[int, int, int]:
    """Numbers of completed, failed and timed requests; `settle` would spend half of the time on histograms."""
    harvest = counts.heads.harvest()
    add_counts(counts.statuses, harvest.statuses)
    counts.body += harvest.body
    latencies = counts.service.count + len(counts.whole) + len(counts.ends)
    return sum(counts.statuses.values()), sum(counts.errors.values()), latencies


class CheckedPairs(Pairs):
    """Checks after each request that it was counted exactly once."""

    def __init__(self, method: str) -> None:
        super().__init__(plan("http://127.0.0.1/x", requests=1, method=method))
        self._before = (0, 0, 0)

    @property
    def counts(self) -> RequestMetrics:
        return self.tally.per_request[0]

    def exchange(self, message: Response, chunks: list[bytes], ending: str) -> None:
        """Send a request, deliver its response in these chunks, and end the connection in this way."""
        self.begin()
        for chunk in chunks:
            if self.over:
                break
            self.deliver(chunk)
        if not self.over and (ending == "close" or message.until_close):
            self.end()
        if self.retrying:
            self.connect()
            self.deliver(SMALL)
        timed_out = not self.over
        if timed_out:
            self.connection.expire(100.0)
        self._check(timed_out)

    def _check(self, timed_out: bool) -> None:
        assert self.over
        counted = _counted(self.counts)
        completed, failed, latencies = (after - before for after, before in zip(counted, self._before, strict=True))
        self._before = counted
        assert (completed, failed) in {(1, 0), (0, 1)}
        assert latencies == completed + timed_out
        assert not (timed_out and completed)
        assert self.connections in (0, 1)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_request_on_fuzzed_connection_is_counted_once(method: str) -> None:
    rng = Random(method)
    with closing(CheckedPairs(method)) as pairs:
        for case in range(CASES // 3):
            message = response(rng)
            # An idle connection that is closed before any response: the request may be retried.
            chunks = [] if rng.random() < 0.02 else message.split(rng)
            ending = rng.choice(ENDINGS)
            try:
                pairs.exchange(message, chunks, ending)
            except Exception as error:
                raise AssertionError(f"case {case}: {chunks!r}, {ending}") from error
        latencies = _counted(pairs.counts)[2]
        pairs.counts.flush_latencies()
        assert pairs.counts.service.count == latencies
        assert sum(pairs.counts.errors.values()) > CASES // 30
        assert sum(pairs.counts.statuses.values()) > CASES // 30
        assert set(get_args(ErrorKind)) >= set(pairs.counts.errors) >= {"not_http", "invalid_head"}
        if method == "GET":
            assert pairs.counts.retries > 0


def test_intact_response_is_complete_in_any_chunks() -> None:
    rng = Random(7)
    with closing(CheckedPairs("GET")) as pairs:
        for _ in range(CASES // 4):
            message = response(rng)
            if not message.intact:
                continue
            before, body = pairs.counts.statuses.get(message.status, 0), pairs.counts.body
            pairs.exchange(message, message.split(rng), "keep")
            assert pairs.counts.statuses[message.status] == before + 1, message
            assert pairs.counts.body - body == message.size, message
        assert pairs.counts.errors == {}


@pytest.mark.parametrize("ending", ["close", "hold"])
def test_truncation_at_any_byte_is_one_error(ending: str) -> None:
    rng = Random(11)
    with closing(CheckedPairs("POST")) as pairs:
        for _ in range(60 if THOROUGH else 20):
            message = response(rng)
            if not message.intact or message.until_close or len(message.data) > 1000:
                continue
            for offset in range(len(message.data)):
                errors = sum(pairs.counts.errors.values())
                pairs.exchange(message, [message.data[:offset]] if offset else [], ending)
                assert sum(pairs.counts.errors.values()) == errors + 1, message.data[:offset]
