"""Hostile status pages: the result is recordable metrics or a one-line error of that page."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from cockpit.hosts.feed import HostFeed
from cockpit.hosts.local import LocalShell
from cockpit.hosts.status import feed as status_feed
from cockpit.hosts.status.feed import parse_page, read_page
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import StatusRead
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig, StatusKind, StatusPage
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.servers.registry import STATUS_PAGES
from cockpit.servers.status import MOST_VALUES, NAME_CHARS
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.session.rounding import rounded
from tests.hostile.measuring import MAX_MIB, SEEDS, measured
from tests.hostile.status_fuzz import KINDS, PAGES, mutated
from tests.hosts.test_status import response, serving
from tests.model.hosts import sample

# Inputs per seed.
COUNT = 3_000


@pytest.mark.parametrize("seed", SEEDS)
def test_fuzzed_pages_raise_only_host_errors_and_replay(seed: int) -> None:
    metrics = measured("tests.hostile.status_fuzz", str(seed), str(COUNT))
    assert metrics["inputs"] >= COUNT
    assert metrics["mib"] < MAX_MIB
    assert metrics["outcomes"]["read"] > COUNT / 4 and metrics["outcomes"]["refused"] > COUNT / 20


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


def test_metric_names_and_count_are_bounded() -> None:
    rows = "".join(f"Row{number}: {number}\n" for number in range(5000))
    metrics = parse_page("apache", f"BusyWorkers: 1\n{'n' * 5000}: 7\n{rows}".encode())
    assert len(metrics.values) == MOST_VALUES and max(map(len, metrics.values)) <= NAME_CHARS


def test_long_connector_name_is_not_stored_per_metric() -> None:
    attributes = " ".join(f'f{number}="1"' for number in range(5000))
    connector = f'<connector name="{"n" * 100_000}"><threadInfo {attributes}/></connector>'
    metrics = parse_page("tomcat", f"<status><jvm/>{connector}{connector}</status>".encode())
    assert sum(map(len, metrics.values)) < MOST_VALUES * 2 * NAME_CHARS


def test_deeply_nested_xml_is_refused() -> None:
    with pytest.raises(HostError):
        parse_page("tomcat", b"<a>" * 300_000)
    with pytest.raises(HostError):
        parse_page("tomcat", b"<a>" * 100_000 + b"</a>" * 100_000)


async def test_fuzzed_http_responses_raise_only_host_errors() -> None:
    """Mutated heads and bodies from a real server."""
    rng = random.Random(7)
    responses = [mutated(response(PAGES[rng.choice(KINDS)]), rng) for _ in range(300)]
    shell = LocalShell("web1")
    async with serving(*responses) as server:
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


async def test_internal_error_is_shown_on_its_page_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host, its other page and the recording are unaffected."""

    def broken(page: str) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setitem(status_feed.STATUS_PAGES, "apache", STATUS_PAGES["apache"]._replace(parse=broken))
    async with serving(*[response(PAGES["nginx"])] * 50) as server:
        url = f"http://127.0.0.1:{server.port}/"
        pages = (StatusPage(kind="apache", url=url), StatusPage(kind="nginx", url=url))
        state = await _final_state(HostConfig(name="web1", status=pages), tmp_path / "x.cockpit")
    failed, good = state.hosts["web1"].pages
    assert failed.detail.startswith("internal error in cockpit: ZeroDivisionError at test_status_pages.py:")
    assert "secret" not in failed.detail
    assert good.values["Waiting"] == 106 and not good.detail


async def test_internal_error_is_shown_on_its_host_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(feed: HostFeed) -> None:
        raise KeyError("x")

    monkeypatch.setattr(HostFeed, "_watch", broken)
    source = LiveSource(_profile(HostConfig(name="web1")), Clock())
    session = Session(source)
    running = asyncio.create_task(session.run())
    async with asyncio.timeout(60):
        state = await session.until(lambda state: "web1" in state.hosts and state.hosts["web1"].condition == "lost")
    assert state.hosts["web1"].detail.startswith("internal error in cockpit: KeyError at test_status_pages.py:")
    source.mark("still here")
    async with asyncio.timeout(60):
        await session.until(lambda state: any(marker.text == "still here" for marker in state.markers))
    await source.close()
    await running


def _profile(*hosts: HostConfig) -> Profile:
    return Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/", concurrency=1, duration=1.0), hosts=hosts)


async def _final_state(host: HostConfig, path: Path) -> State:
    """Run a session until all pages and the host were read; check its replay and return its last state."""
    session = Session(LiveSource(_profile(host), Clock()), RecordingWriter(path))
    running = asyncio.create_task(session.run())

    def all_read(state: State) -> bool:
        known = state.hosts.get(host.name)
        return known is not None and len(known.points) > 1 and all(page.t or page.detail for page in known.pages)

    async with asyncio.timeout(60):
        await session.until(all_read)
    await session.source.close()
    await running
    with Recording(path) as recording:
        assert fold_all(recording.events()) == session.state
    return session.state
