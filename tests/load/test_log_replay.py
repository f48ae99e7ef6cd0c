"""Replay of access logs: the replayed lines, their times, and the requests that a real server receives."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from cockpit.load import open_load
from cockpit.load.http.protocol import Assignment, decode_assignment, encode
from cockpit.load.log_reader import LoggedLoad, read_log
from cockpit.load.log_share import LoggedArrivals, LoggedOrder
from cockpit.load.preflight import preflight
from cockpit.load.ramp import constant
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import Invalid, check_plan
from cockpit.model.load.plan import LoadPlan, LogReplay
from tests.data import data_of
from tests.load.servers import SMALL, ClientConnection, Outcome, begin, engine_load, engine_run, load, plan, serving

DATA = data_of(__file__)

Write = Callable[..., LogReplay]
HEAD_ONLY = SMALL.removesuffix(b"hello")


def line(second: float, request: str = "GET / HTTP/1.1") -> str:
    """Return a line with milliseconds, or without if the second is an integer."""
    seconds = f"{second % 60:06.3f}" if second % 1 else f"{second % 60:02.0f}"
    return f'10.0.0.9 - - [23/Nov/2026:01:{int(second) // 60:02d}:{seconds} +0000] "{request}" 200 5 "-" "x"'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_log(*lines: str, **values: Any) -> LogReplay:
        file = tmp_path / f"access{len(list(tmp_path.iterdir()))}.log"
        file.write_text("".join(f"{text}\n" for text in lines))
        return LogReplay(file=str(file), **values)

    return write_log


def read(replay: LogReplay, **values: Any) -> LoggedLoad:
    return read_log(LoadPlan(url="http://www.example.org/", replay=replay, **values))


def requests_of(log: LoggedLoad) -> list[bytes]:
    return [log.requests.line(number) for number in log.numbers.tolist()]


# --- reading ---


def test_requests_are_ordered_by_time_and_scaled_by_speed(write: Write) -> None:
    log = read(
        write(line(2.5, "GET /b HTTP/1.1"), line(1.5, "HEAD /a?x=1 HTTP/1.0"), line(2.5, "GET /a HTTP/2.0"), speed=2.0)
    )
    assert requests_of(log) == [b"HEAD /a?x=1", b"GET /b", b"GET /a"]
    assert log.offsets.tolist() == pytest.approx([0.0, 0.5, 0.5])
    assert (log.total, log.seconds, log.warnings) == (3, pytest.approx(0.5), ())
    assert log.summary.endswith("3 requests over 1 s, replayed at speed 2 in 0.5 s")


def test_requests_with_whole_seconds_are_spread_over_their_second(write: Write) -> None:
    replay = write(*(line(second, f"GET /{number} HTTP/1.1") for number, second in enumerate([1, 1, 2, 1, 2, 9, 1])))
    log = read(replay)
    assert log.offsets.tolist() == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 8.0])
    assert requests_of(log) == [b"GET /0", b"GET /1", b"GET /3", b"GET /6", b"GET /2", b"GET /4", b"GET /5"]
    assert log.warnings[0].endswith("timestamps are whole seconds; requests are spread evenly within each second")
    random = read(replay, arrivals="poisson", seed=3)
    assert requests_of(random) == requests_of(log)
    assert random.offsets.tolist() == sorted(random.offsets.tolist()) != log.offsets.tolist()
    assert "spread at random" in random.warnings[0]
    assert random.offsets.tolist() != read(replay, arrivals="poisson", seed=4).offsets.tolist()


def test_lines_that_cannot_be_replayed_are_counted_by_reason(write: Write) -> None:
    targets = DATA["lines_that_cannot_be_replayed_are_counted_by_reason_cases"]
    log = read(
        write(
            line(1.5, "POST /form HTTP/1.1"),
            line(1.5, "DELETE /x HTTP/1.1"),
            *(line(1.5, f"GET {target} HTTP/1.1") for target in targets),
            '10.0.0.9 - - [23/Nov/2026:01:00:01 +0000] "\\x16\\x03" 400 5',
            "AH00489: resuming normal operations",
        )
    )
    assert requests_of(log) == [b"GET /a", b"GET /?q", b"GET /a%20b", b"GET /%C3%A4"]
    assert log.warnings[0].endswith(
        ": 7 of 11 lines are not replayed (malformed, or in another format: 4,"
        " methods other than GET and HEAD: 2, URLs of other hosts: 1)"
    )


def test_host_header_selects_urls_of_log(write: Write) -> None:
    squid = "1795396200.250 250 10.0.0.9 TCP_MISS/200 3456 GET http://shop.example/1 - HIER_DIRECT/o -"
    with pytest.raises(UsageError, match=r"none of its 1 lines .*other hosts.*-H 'Host: NAME'"):
        read(write(squid))
    for host in ("shop.example", "Shop.Example:8080"):
        assert requests_of(read(write(squid), headers=(("host", host),))) == [b"GET /1"]


POST = line(1.5, "POST / HTTP/1.1")
UVICORN = 'INFO:     127.0.0.1:52846 - "GET /x HTTP/1.1" 200 OK'
FPM = '127.0.0.1 -  23/Nov/2026:01:10:00 +0000 "GET /index.php" 200'


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((), "is empty"),
        (("x", "y"), r"malformed.*formats are common or combined"),
        ((POST,), "only GET and HEAD are sent"),
        ((FPM, POST, POST), "only GET and HEAD are sent"),
        (("INFO:     Started server process [1]", UVICORN), r"uvicorn logs no times; replay the log of the prox"),
        ((FPM, FPM), r"log: cannot be replayed: PHP-FPM logs scripts instead of URLs; replay the log"),
    ],
)
def test_log_without_requests_is_refused_with_hint(write: Write, lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(write(*lines))
    assert read(write(*lines, line(1.5))).omitted.total() == len(lines)


def test_missing_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(LogReplay(file=str(tmp_path / "none")))


def test_urls_without_their_query_strings_are_counted(write: Write) -> None:
    squid = "1795396200.25{} 250 10.0.0.9 TCP_MISS/200 3456 GET http://www.example.org/{} - HIER_DIRECT/o -"
    log = read(write(squid.format(0, "a?"), squid.format(1, "b"), squid.format(2, "a?")))
    assert requests_of(log) == [b"GET /a?", b"GET /b", b"GET /a?"]
    assert log.warnings[0].endswith(
        ": 2 of 3 URLs have no query string after their ?: squid removes it by default; set strip_query_terms off"
    )


def test_shares_of_workers_cover_log_and_round_trip_json(write: Write) -> None:
    log = read(write(*(line(number + 0.5, f"GET /{number % 3} HTTP/1.1") for number in range(11))))
    load_plan = LoadPlan(url="http://a/", replay=log.replay)
    sent: list[tuple[float, bytes]] = []
    for worker in range(3):
        share = log.share(worker, 3)
        message = encode(
            Assignment(plan=load_plan, run=1, worker=worker, concurrency=1, requests=4, address=("a", 1), log=share)
        )
        assignment = decode_assignment(message)
        assert assignment.log == share
        arrivals, order = LoggedArrivals(share), LoggedOrder(load_plan, share)
        arrivals.follow(100.0, constant(0.0, 100.0))
        while arrivals.due < float("inf"):
            sent.append((arrivals.due - 100.0, order.next_request().request.split(b" HTTP")[0]))
            arrivals.advance()
    assert sorted(sent) == [(float(number), b"GET /%d" % (number % 3)) for number in range(11)]


def test_skipped_arrivals_are_counted(write: Write) -> None:
    arrivals = LoggedArrivals(read(write(*(line(number + 0.5) for number in range(5)))).share(0, 1))
    arrivals.follow(10.0, constant(0.0, 10.0))
    assert arrivals.skip(12.5) == 3 and arrivals.due == 13.0
    assert arrivals.skip(12.5) == 0
    assert arrivals.skip(99.0) == 2 and arrivals.due == float("inf")


@pytest.mark.parametrize("at_once", [True, False])
def test_requests_of_dropped_arrivals_are_left_out(write: Write, at_once: bool) -> None:
    log = read(write(*(line(number + 0.5, f"GET /{number} HTTP/1.1") for number in range(9))))
    order = LoggedOrder(LoadPlan(url="http://a/", replay=log.replay), log.share(0, 1))
    for place, count in ((3, 2),) if at_once else ((3, 1), (4, 1)):
        order.drop(place, count)
    order.drop(7, 1)
    assert [order.next_request().request.split(b" ")[1] for _ in range(6)] == [b"/0", b"/1", b"/2", b"/5", b"/6", b"/8"]


# --- replaying ---


class Received:
    """A server that records the request line and the time of each request."""

    def __init__(self, delay: float = 0.0) -> None:
        self.lines: list[str] = []
        self.instants: list[float] = []
        self._delay = delay

    async def __call__(self, client: ClientConnection) -> None:
        while True:
            request = await client.request()
            self.instants.append(monotonic())
            self.lines.append(request.split(b" HTTP")[0].decode())
            await asyncio.sleep(self._delay)
            await client.send(HEAD_ONLY if request.startswith(b"HEAD") else SMALL)


async def test_server_receives_exactly_the_requests_of_log(write: Write) -> None:
    methods = ["GET", "GET", "HEAD"]
    expected = [f"{methods[number % 3]} /{number % 5}?n={number}" for number in range(60)]
    lines = (line(1.5 + number / 10, f"{request} HTTP/1.1") for number, request in enumerate(expected))
    received = Received()
    async with serving(received) as server:
        outcome = await load(plan(server.url, replay=write(*lines, speed=20.0), workers=2))
    assert Counter(received.lines) == Counter(expected)
    assert outcome.total("sent") == outcome.total("completed") == outcome.merged("response").count == 60
    assert outcome.statuses == {200: 60} and outcome.errors == {}
    assert outcome.total("body_bytes") == 40 * 5
    assert outcome.groups == {}
    started = outcome.started.plan
    assert (started.requests, started.replay and started.replay.seconds) == (60, pytest.approx(5.9 / 20))
    assert "?n=" not in repr(outcome.started)


async def test_intervals_of_log_are_divided_by_speed(write: Write) -> None:
    for speed, shortest in ((2.0, 0.2), (0.5, 0.8)):
        received, started = Received(), monotonic()
        replay = write(line(1.5, "GET /a HTTP/1.1"), line(1.9, "GET /b HTTP/1.1"), speed=speed)
        async with serving(received) as server:
            await engine_load(plan(server.url, replay=replay, requests=2))
        assert received.lines == ["GET /a", "GET /b"]
        assert received.instants[1] - started >= shortest


async def test_after_dropped_arrivals_each_request_is_sent_at_its_own_instant(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten at one instant, one is sent, three wait and six are dropped."""
    monkeypatch.setattr(open_load, "BACKLOG_LIMIT", 3)
    replay = write(*(line(1.5, f"GET /{number} HTTP/1.1") for number in range(10)), line(1.9, "GET /late HTTP/1.1"))
    received = Received()
    outcome, _ = await engine_run(received, replay=replay, requests=11, max_in_flight=1)
    assert outcome.total("dropped") == 6
    assert received.lines == ["GET /0", "GET /1", "GET /2", "GET /3", "GET /late"]


@pytest.mark.parametrize("values", [{"requests": 3}, {"duration": 0.3}])
async def test_count_or_duration_ends_replay_before_end_of_log(write: Write, values: dict[str, Any]) -> None:
    replay = write(*(line(1.5 + number / 10) for number in (0, 1, 2, 6000)))
    async with serving(Received()) as server:
        outcome = await load(plan(server.url, replay=replay, **values))
    assert outcome.total("sent") == 3
    assert outcome.ended.reason == "completed"


async def test_load_of_replay_cannot_be_adjusted(write: Write) -> None:
    outcome = Outcome()
    async with serving(Received()) as server:
        run = await begin(plan(server.url, replay=write(line(1.5), line(600.5))), outcome)
        for values in ({"rate": 5.0}, {"concurrency": 5}):
            with pytest.raises(UsageError, match="sets the load"):
                run.adjust(**values)
        run.stop()
        await run.wait()


async def test_preflight_sends_first_request_and_reports_skipped_lines(write: Write) -> None:
    received = Received()
    async with serving(received) as server:
        found = await preflight(plan(server.url, replay=write(line(2, "HEAD /first HTTP/1.1"), line(3), "x")))
    assert received.lines == ["HEAD /first"] and found.status == 200
    assert [warning.partition(": ")[2][:6] for warning in found.warnings] == ["1 of 3", "timest"]


@pytest.mark.parametrize(
    ("values", "options"),
    [({"rate": 5.0}, "rate"), ({"warmup": 1.0, "body": "x"}, "warmup, body"), ({"method": "POST"}, "method")],
)
def test_options_set_by_log_are_refused(values: dict[str, Any], options: str) -> None:
    with pytest.raises(Invalid, match=f"load.replay_log: conflicts with {options}, since"):
        check_plan(LoadPlan(url="http://a/", replay=LogReplay(file="x"), **values))
