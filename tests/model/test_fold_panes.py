"""Tails and status pages in the state: lines, rates, averages over the run window, restarts as markers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.fold import fold, fold_all
from cockpit.model.fold_panes import TAIL_LINES
from cockpit.model.host_state import HostState, StatusPane
from cockpit.model.hosts import HostConfig, ProcessCounters, StatusKind, StatusPage
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import metric_value, run_result
from cockpit.model.state import State
from tests.model.hosts import FACTS, process, sample

PAGES: tuple[StatusKind, ...] = ("apache", "squid", "tomcat")
CONFIG = HostConfig(
    name="web1",
    tail=("tail -F log", "sar -b 1"),
    status=tuple(StatusPage(kind=kind, url="http://localhost/") for kind in PAGES),
)
BEGUN: list[ev.AnyEvent] = [
    ev.SessionStarted(t=0, wall=0, version="0", name="x", hosts=(CONFIG,)),
    ev.HostChanged(t=0, host="web1", condition="up", facts=FACTS),
]


def folded(*events: ev.AnyEvent) -> HostState:
    return fold_all([*BEGUN, *events]).hosts["web1"]


def text(t: float, *lines: str, tail: int = 0, skipped: int = 0, continues: bool = False) -> ev.TailText:
    return ev.TailText(t=t, host="web1", tail=tail, lines=lines, skipped=skipped, continues=continues)


def access(t: float, **values: object) -> ev.AccessCounts:
    return ev.AccessCounts(t=t, host="web1", tail=0, seconds=1, **values)


def read(t: float, page: int = 0, detail: str = "", **values: float) -> ev.StatusRead:
    named = {name.replace("_", " "): value for name, value in values.items()}
    return ev.StatusRead(t=t, host="web1", page=page, values=named, detail=detail)


def test_lines_are_kept_and_partial_lines_replaced() -> None:
    host = folded(
        text(1, "a", "10 %"),
        text(2, "20 %", "b", continues=True, skipped=3),
        text(2, "other", tail=1),
        ev.TailChanged(t=3, host="web1", tail=1, condition="ended", detail="exit status 1"),
    )
    first, second = host.tails
    assert [(line.t, line.text) for line in first.lines] == [(1, "a"), (2, "20 %"), (2, "b")]
    assert (first.skipped, first.command) == (3, "tail -F log")
    assert (second.condition, second.detail, second.lines[0].text) == ("ended", "exit status 1", "other")
    host = folded(*(text(t, *(f"{t}.{n}" for n in range(100))) for t in range(20)))
    assert len(host.tails[0].lines) == TAIL_LINES
    assert host.tails[0].lines[-1].text == "19.99"


@pytest.mark.parametrize(
    "event",
    [
        text(1, "a", tail=7),
        read(1, page=9),
        ev.TailText(t=1, host="x", tail=0, lines=()),
        ev.StatusRead(t=1, host="x", page=0),
    ],
)
def test_events_of_unconfigured_panes_are_ignored(event: ev.AnyEvent) -> None:
    assert folded(event).tails == folded().tails


def page(*events: ev.AnyEvent, of: int = 0) -> StatusPane:
    return folded(*events).pages[of]


def test_counters_become_rates_and_gauges_stay() -> None:
    pane = page(read(1, Total_Accesses=100, BusyWorkers=3), read(3, Total_Accesses=150, BusyWorkers=5))
    assert pane.rates == {"Total Accesses": 25}
    assert (pane.values["BusyWorkers"], pane.t) == (5, 3)
    readings = [
        ev.StatusRead(
            t=t, host="web1", page=2, values={"requestCount": t, "ajp-nio-8009 requestCount": 2 * t, "maxTime": 9}
        )
        for t in (1.0, 2.0)
    ]
    assert page(*readings, of=2).rates == {"requestCount": 1, "ajp-nio-8009 requestCount": 2}


def test_failed_page_keeps_previous_values() -> None:
    pane = page(read(1, Total_Accesses=100), read(2, detail="404: is mod_status enabled?"))
    assert (pane.detail, pane.t, pane.values) == ("404: is mod_status enabled?", 1, {"Total Accesses": 100})
    pane = page(read(1, Total_Accesses=100), read(2, detail="gone"), read(3, Total_Accesses=110))
    assert (pane.detail, pane.rates) == ("", {"Total Accesses": 5})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"Total_Accesses": 100.0}, {"Total_Accesses": 40.0}),
        ({"Total_Accesses": 100.0, "Uptime": 60.0}, {"Total_Accesses": 140.0, "Uptime": 2.0}),
    ],
)
def test_counter_reset_has_no_rate(old: dict[str, float], new: dict[str, float]) -> None:
    assert page(read(1, **old), read(2, **new)).rates == {}


def run(*events: ev.AnyEvent) -> State:
    """A run from 1 s to 9 s."""
    inside = sorted([*(sample(t) for t in (1, 3, 5, 7, 9)), *events], key=lambda event: event.t)
    plan = LoadPlan(url="http://web1/", requests=1)
    load = [ev.RunStarted(t=1, run=1, plan=plan), *inside, ev.Tick(t=9, run=1, worker=0, start=1, completed=1, sent=1)]
    return fold_all([*BEGUN, *load, ev.RunEnded(t=9, run=1, reason="completed")])


def test_averages_over_run_window() -> None:
    state = run(
        read(2, BusyWorkers=2, IdleWorkers=8, Total_Accesses=100),
        read(4, BusyWorkers=4, IdleWorkers=6, Total_Accesses=200),
        read(8, BusyWorkers=4, IdleWorkers=6, Total_Accesses=800),
        ev.StatusRead(t=2, host="web1", page=1, values={"client_http.hits": 10}),
        ev.StatusRead(t=4, host="web1", page=1, values={"client_http.hits": 30}),
        ev.StatusRead(t=6, host="web1", page=1, values={"client_http.hits": 5}),
        ev.StatusRead(t=8, host="web1", page=1, values={"client_http.hits": 15}),
    )
    result = run_result(state, 1)
    assert result is not None
    assert metric_value(result, "web1.apache.busy") == pytest.approx((3 * 2 + 4 * 4) / 6)
    assert metric_value(result, "web1.apache.idle") == pytest.approx((7 * 2 + 6 * 4) / 6)
    assert metric_value(result, "web1.apache.requests") == pytest.approx(700 / 6)
    # The interval with the counter reset is excluded.
    assert metric_value(result, "web1.squid.hits") == pytest.approx(30 / 4)
    assert metric_value(result, "web1.tomcat.busy") is None


def test_access_log_rates_and_hit_ratio_over_run_window() -> None:
    state = run(
        access(1.5, lines=900, statuses={200: 900}),
        ev.AccessCounts(
            t=3, host="web1", tail=0, seconds=1, lines=100, statuses={200: 98, 502: 2}, lookups=100, hits=50
        ),
        access(4, lines=300, statuses={200: 300}, lookups=300, hits=300),
        ev.AccessCounts(t=4, host="web1", tail=1, seconds=1, lines=70, statuses={200: 70}),
        ev.AccessCounts(t=5, host="other", tail=0, seconds=1, lines=1, statuses={200: 1}),
    )
    result = run_result(state, 1)
    assert result is not None
    assert metric_value(result, "web1.access.requests") == pytest.approx(200)
    assert metric_value(result, "web1.access.errors") == pytest.approx(1)
    assert metric_value(result, "web1.access.hit_ratio") == pytest.approx(100 * 350 / 400)
    assert [counts.t for counts in state.hosts["web1"].tails[0].counts] == [1.5, 3, 4]
    state = run(access(3, lines=100, statuses={200: 100}))
    result = run_result(state, 1)
    assert result is not None and metric_value(result, "web1.access.hit_ratio") is None


def workers(parent: int, start: int, *pids: int) -> tuple[ProcessCounters, ...]:
    """A parent process with this start time (clock ticks), and its workers."""
    return process(parent, start), *(replace(process(pid, start + 1), ppid=parent) for pid in pids)


def restarts(*samples: ev.HostSample) -> list[tuple[float, str]]:
    state = fold_all(BEGUN)
    for event in samples:
        state = fold(state, event)
    return [(marker.t, marker.text) for marker in state.markers if marker.kind == "restart"]


def test_new_parent_process_is_a_restart() -> None:
    old, new = workers(12, 100, 13, 14), workers(34, 100_200, 35, 36)
    assert restarts(sample(1, processes=old), sample(2, processes=()), sample(4, processes=new)) == [
        (pytest.approx(2), "web1 apache2 restarted: pid 12 → 34")
    ]
    old = workers(12, 100, 13)
    short_lived = workers(33, 100_200, 34)
    permanent = workers(34, 100_201, 35)
    found = restarts(sample(1, processes=old), sample(2.05, processes=short_lived), sample(4, processes=permanent))
    assert [text for _, text in found] == ["web1 apache2 restarted: pid 12 → 34"]
    first = workers(12, 100, 13, 14)
    replaced = workers(12, 100, 23, 24)
    second = (*replaced, *workers(50, 100_100, 51))
    assert restarts(*(sample(t, processes=p) for t, p in ((1, first), (2, replaced), (4, second), (5, replaced)))) == []
    assert restarts(sample(1), sample(4, processes=workers(34, 100_200, 35))) == []
    state = fold_all([*BEGUN, *(read(t, ParentServerMPMGeneration=g) for t, g in ((1, 0), (2, 0), (3, 1), (4, 0)))])
    assert [(marker.t, marker.sign, marker.text) for marker in state.markers] == [
        (3, "R", "web1 apache: reloaded, generation 0 → 1")
    ]
