"""The bytes of a request, plans that cannot be sent, and the arithmetic of shares, arrivals and phases."""

import errno
import math
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit import __version__
from cockpit.load.failures import connect_failure, transfer_failure
from cockpit.load.http.dialer import Dialer
from cockpit.load.http.protocol import assignments, share
from cockpit.load.http.request import target_of
from cockpit.load.ramp import constant
from cockpit.load.schedule import Arrivals, phases_of
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan, Stage
from tests.data import data_of
from tests.load.pairs import request_bytes

DATA = data_of(__file__)


def sent(url: str, **values: object) -> bytes:
    return request_bytes(LoadPlan(url=url, **values))  # type: ignore[arg-type]


def test_plain_request() -> None:
    assert b"\r\nAuthorization: Basic dTpwOnc=\r\n" in sent("http://u:p%3Aw@web1/")
    assert sent("http://web1/a b?q=é&x=%20#part") == (
        b"GET /a%20b?q=%C3%A9&x=%20 HTTP/1.1\r\nHost: web1\r\nUser-Agent: cockpit/"
        + __version__.encode()
        + b"\r\nAccept: */*\r\n\r\n"
    )


def test_headers_of_plan_replace_defaults() -> None:
    request = sent("http://web1:81/", headers=(("host", "other"), ("X-A", "1"), ("X-A", "2")), keepalive=False)
    assert b"Host: web1:81" not in request
    assert b"\r\nhost: other\r\n" in request
    assert b"\r\nX-A: 1\r\nX-A: 2\r\n" in request
    assert b"\r\nConnection: close\r\n" in request


def test_body_has_content_length() -> None:
    request = sent("http://web1/", method="POST", body="grüße")
    assert b"\r\nContent-Length: 7\r\n" in request
    assert request.endswith("\r\n\r\ngrüße".encode())
    assert b"Content-Length: 0\r\n" in sent("http://web1/", method="POST")


def test_large_requests_are_sent_without_delay() -> None:
    found = []
    for address in (("127.0.0.1", 1), ("/nowhere",)):
        [assignment] = assignments(LoadPlan(url="http://web1/", concurrency=1), 1, address)
        sock, _ = Dialer(assignment, 1 << 16).open()
        found.append(sock.family == socket.AF_INET and sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
        sock.close()
    assert found == [True, False]


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://[::1]:8080/", "::1", 8080, "[::1]:8080"),
        ("http://web1", "web1", 80, "web1"),
        ("http://bücher.example/", "xn--bcher-kva.example", 80, "xn--bcher-kva.example"),
    ],
)
def test_urls_are_parsed(url: str, host: str, port: int, authority: str) -> None:
    target = target_of(url)
    assert (target.host, target.port, target.authority, target.path) == (host, port, authority, "/")


@pytest.mark.parametrize(("url", "message"), DATA["invalid_urls_are_refused"])
def test_invalid_urls_are_refused(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        target_of(url)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("values", "message"), DATA["invalid_requests_are_refused"])
def test_invalid_requests_are_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_plan(LoadPlan(url="http://web1/", **values))  # type: ignore[arg-type]
        sent("http://web1/", **values)


@given(st.integers(0, 10**9), st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_shares_are_exact_and_even(total: int, weights: list[int]) -> None:
    shares = share(total, weights)
    assert sum(shares) == total
    assert all(abs(part - total * weight / sum(weights)) <= 1 for part, weight in zip(shares, weights, strict=True))


@given(st.integers(1, 500), st.integers(1, 5000), st.integers(1, 16))
def test_workers_share_plan_exactly(concurrency: int, requests: int, workers: int) -> None:
    plan = LoadPlan(url="http://web1/", concurrency=concurrency, requests=requests, workers=workers)
    assigned = assignments(plan, 1, ("127.0.0.1", 80))
    assert len(assigned) == min(workers, concurrency)
    assert sum(assignment.concurrency for assignment in assigned) == concurrency
    assert sum(assignment.requests or 0 for assignment in assigned) == requests
    assert all(assignment.concurrency >= 1 for assignment in assigned)


@pytest.mark.parametrize(
    ("code", "connecting", "connected"),
    [
        (errno.ECONNREFUSED, "refused", "reset"),
        (errno.ETIMEDOUT, "connect_timeout", "timeout"),
        (errno.EHOSTUNREACH, "unreachable", "unreachable"),
        (errno.ENETUNREACH, "unreachable", "unreachable"),
        (errno.EADDRNOTAVAIL, "no_local_ports", "no_local_ports"),
        (errno.EMFILE, "no_file_descriptors", "no_file_descriptors"),
        (errno.ECONNRESET, "reset", "reset"),
        (errno.EPIPE, "unreachable", "reset"),
        (None, "unreachable", "reset"),
    ],
)
def test_errno_maps_to_kind_of_failure(code: int | None, connecting: str, connected: str) -> None:
    assert connect_failure(code) == connecting
    assert transfer_failure(code) == connected


def due_before(arrivals: Arrivals, end: float) -> list[float]:
    found = []
    while arrivals.due < end - 1e-7:
        found.append(arrivals.due)
        arrivals.advance()
    return found


def plan(**values: object) -> LoadPlan:
    return LoadPlan(url="http://web1/", **values)  # type: ignore[arg-type]


def test_poisson_arrivals_have_rate_spread_and_seed() -> None:
    found = []
    for seed in (7, 7, 8):
        instants: list[float] = []
        for worker in (0, 1):
            arrivals = Arrivals(plan(rate=1000.0, arrivals="poisson", seed=seed), worker, 2)
            arrivals.follow(0.0, constant(1000.0, 0.0))
            instants += due_before(arrivals, 30.0)
        found.append(sorted(instants))
    assert found[0] == found[1] != found[2]
    gaps = [after - before for before, after in zip(found[0], found[0][1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert len(found[0]) == pytest.approx(30_000, rel=0.03)
    assert spread == pytest.approx(mean, rel=0.05)


def test_load_levels_follow_warm_up_in_order() -> None:
    stages = (Stage(duration=2.0, concurrency=1), Stage(duration=3.0, concurrency=4))
    phases, end = phases_of(plan(stages=stages, warmup=1.0), 10.0)
    assert [(phase.start, phase.stage, phase.warmup, phase.load.last) for phase in phases] == [
        (10.0, 0, True, 1),
        (11.0, 0, False, 1),
        (13.0, 1, False, 4),
    ]
    assert end == 16.0
    assert phases_of(plan(requests=5), 10.0)[1] == math.inf
    assert phases_of(plan(duration=5.0, warmup=2.0), 10.0)[1] == 17.0
