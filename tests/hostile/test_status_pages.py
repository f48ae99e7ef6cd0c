"""Hostile status pages: the result is recordable metrics or a one-line error of that page."""

import math
import random
import time
from collections import Counter
from contextlib import suppress
from typing import get_args

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.status.feed import parse_page, read_page
from cockpit.model import events as ev
from cockpit.model.errors import HostError
from cockpit.model.events import StatusRead
from cockpit.model.host.samples import HostConfig, StatusKind, StatusPage
from cockpit.servers.status import MOST_VALUES, NAME_CHARS, PAGE_BYTES, TEXT_CHARS, PageMetrics
from cockpit.session.rounding import rounded
from tests.hostile.measuring import SEEDS, THOROUGH, growth_below
from tests.hostile.probe_fuzz import RUN, STEP, mutated, replay
from tests.hosts.pages import PAGES
from tests.hosts.test_status import answering, response
from tests.load.servers import serving
from tests.model.hosts import UP, sample

KINDS: tuple[StatusKind, ...] = get_args(StatusKind)
HOST = HostConfig(name="web1", status=tuple(StatusPage(kind=kind, url="http://localhost/") for kind in KINDS))


# Inputs per seed; the recorder packs a page after 250.
COUNT = 3000 if THOROUGH else 600


def _read(t: float, rng: random.Random, outcomes: Counter[str]) -> ev.AnyEvent:
    """The event for a page that is intact or mutated."""
    index = rng.randrange(len(KINDS))
    page = PAGES[KINDS[index]].encode()
    page_metrics, detail = PageMetrics({}, {}), ""
    try:
        page_metrics = parse_page(KINDS[index], page if rng.random() < 0.1 else mutated(page, rng))
        outcomes["read"] += 1
    except HostError as error:
        detail = str(error)
        outcomes["refused"] += 1
    assert len(page_metrics.values) <= MOST_VALUES and len(page_metrics.text) <= MOST_VALUES
    assert all(len(name) <= NAME_CHARS for name in (*page_metrics.values, *page_metrics.text))
    assert all(len(text) <= TEXT_CHARS for text in page_metrics.text.values())
    return rounded(
        ev.StatusRead(t=t, host="web1", page=index, values=page_metrics.values, text=page_metrics.text, detail=detail)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_fuzzed_pages_raise_only_host_errors_and_replay(seed: int) -> None:
    rng, outcomes, end = random.Random(seed), Counter[str](), (COUNT + 1) * STEP
    start = ev.SessionStarted(t=0, wall=1.7e9, version="0", name="x", hosts=(HOST,))
    last = (sample(end), ev.RunEnded(t=end, run=1, reason="completed"))
    with growth_below(130):
        read = [_read(t * STEP, rng, outcomes) for t in range(1, COUNT + 1)]
        state = replay([start, UP, RUN, sample(0.0), *read, *last])
    for page in state.hosts["web1"].pages:
        assert all(map(math.isfinite, (*page.values.values(), *page.rates.values())))
    assert outcomes["read"] > COUNT / 4 and outcomes["refused"] > COUNT / 20


MALFORMED: list[tuple[StatusKind, str, str]] = [
    ("squid-info", "Number of clients accessing cache:\t" + "9" * 5000, "Number of clients accessing cache"),
    ("squid-info", "Request Hit Ratios:\t5min: 1.2.3%, 60min: ...%", "Request Hit Ratios 5min"),
    ("squid-info", "Page faults with physical i/o: " + "9" * 400, "Page faults with physical i/o"),
    ("squid-info", "9" * 400 + " StoreEntries", "StoreEntries"),
    ("squid", "cd.memory = 1e400", "cd.memory"),
    ("squid", "cd.memory = nan", "cd.memory"),
    ("squid", "cd.memory = 9223372036854775808", "cd.memory"),
    ("apache", "Total Accesses: inf", "Total Accesses"),
    ("apache", "Total Accesses: " + "9" * 5000, "Total Accesses"),
]


@pytest.mark.parametrize(("kind", "row", "name"), MALFORMED)
def test_malformed_row_has_no_metric_others_remain(kind: StatusKind, row: str, name: str) -> None:
    lines = [line for line in PAGES[kind].splitlines() if name.removesuffix(" 5min") not in line]
    metrics = parse_page(kind, "\n".join([*lines, row]).encode())
    assert name not in metrics.values
    assert len(metrics.values) > 5


@pytest.mark.parametrize("digits", [19, 400, 5000])
def test_unrepresentable_nginx_metric_is_skipped(digits: int) -> None:
    metrics = parse_page("nginx", PAGES["nginx"].replace("291", "9" * digits).encode())
    assert "Active connections" not in metrics.values and metrics.values["Waiting"] == 106


def test_sizes_are_bounded() -> None:
    rows = "".join(f"Row{number}: {number}\n" for number in range(5000))
    metrics = parse_page("apache", f"BusyWorkers: 1\n{'n' * 5000}: 7\n{rows}".encode())
    assert len(metrics.values) == MOST_VALUES and max(map(len, metrics.values)) <= NAME_CHARS
    attributes = " ".join(('requestCount="1"', *(f'f{number}="1"' for number in range(5000))))
    connector = f'<connector name="{"n" * 100_000}"><threadInfo {attributes}/></connector>'
    metrics = parse_page("tomcat", f"<status><jvm/>{connector}{connector}</status>".encode())
    assert sum(map(len, metrics.values)) < MOST_VALUES * 2 * NAME_CHARS
    for nested in (b"<a>" * 300_000, b"<a>" * 100_000 + b"</a>" * 100_000):
        with pytest.raises(HostError):
            parse_page("tomcat", nested)


HEAD = "# pxname,svname,"


@pytest.mark.parametrize(
    "body",
    [
        HEAD + "\n," * (PAGE_BYTES // 2),
        HEAD + "x," * (PAGE_BYTES // 2 - 40_000) + "\n," * 9_999,
        HEAD + "\n" + "," * 90_000,
    ],
    ids=["rows", "columns and rows", "cells"],
)
def test_page_of_haproxy_takes_less_than_a_second_of_cpu(body: str) -> None:
    begun = time.process_time()
    with suppress(HostError):
        parse_page("haproxy", body.encode())
    assert time.process_time() - begun < 1.0


def test_page_on_a_socket_has_the_limit_of_any_page() -> None:
    with pytest.raises(HostError, match="more than 1 MiB or 10000 lines"):
        parse_page("haproxy", HEAD.encode() + b"\nx" * PAGE_BYTES)


async def test_fuzzed_http_responses_raise_only_host_errors() -> None:
    """Mutated heads and bodies from a real server."""
    rng = random.Random(7)
    responses = [mutated(response(PAGES[rng.choice(KINDS)]), rng) for _ in range(60)]
    shell = LocalShell("web1")
    async with serving(answering(*responses)) as server:
        for _ in responses:
            page = StatusPage(kind=rng.choice(KINDS), url=f"http://127.0.0.1:{server.port}/")
            try:
                await read_page(shell, page)
            except HostError as error:
                assert "\n" not in str(error) and len(str(error)) < 1000
    await shell.close()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_nan_and_infinity_never_reach_an_event(number: float) -> None:
    with pytest.raises(ValueError, match="host_sample: a number is NaN or infinite"):
        rounded(sample(1.0, load=(number, 0.0, 0.0)))
    with pytest.raises(ValueError, match="status_read: a number is NaN or infinite"):
        rounded(StatusRead(t=1.0, host="web1", page=0, values={"x": number}))
