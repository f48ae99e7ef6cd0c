"""Charts of failures, stalls, latency over time and thresholds; the clock of the run; the runs table."""

import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cockpit.analysis.baseline import Baseline, baseline_of, baseline_run
from cockpit.analysis.thresholds import Status
from cockpit.metrics.results import run_result
from cockpit.model import events as ev
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.tui.alert import alert
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput, state_line
from cockpit.tui.draw_context import DrawContext, StoredBaselines
from cockpit.tui.runs.table import Runs
from cockpit.tui.status_lines import run_clock
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import context_of, plain
from tests.tui.scenario import WALL, Scenario

PLAN = LoadPlan(url="http://a/", concurrency=20, duration=60.0, extend=0.0)


def started(*thresholds: str) -> list[ev.AnyEvent]:
    first = ev.SessionStarted(t=0.0, wall=WALL, version="0.1.0", name="x", thresholds=thresholds)
    return [first, ev.RunStarted(t=0.0, run=1, plan=PLAN)]


def second(at: int, completed: int = 1000, ms: Sequence[int] = (10,), run: int = 1, **values: object) -> ev.Tick:
    tick = ev.Tick(
        t=at + 1.0,
        start=float(at),
        run=run,
        worker=0,
        completed=completed,
        statuses={200: completed} if completed else {},
        in_flight=20,
        oldest=0.01,
        service=Histogram.of([value * 1_000_000 for value in ms] * (completed // max(1, len(ms)))),
    )
    return replace(tick, **values)


STALL = [second(at, 0, oldest=at - 4.0, silence=at - 4.0) for at in range(5, 8)]
REFUSED = [second(at, 0, errors={"refused": 500}) for at in range(8, 12)]


def chart(events: Sequence[ev.AnyEvent], width: int = 66, height: int = 14) -> list[str]:
    return plain(Throughput().draw(context_of(events, span=0.5), width, height))


def test_failures_are_stacked_and_stalled_seconds_are_zero() -> None:
    events = [*started(), *(second(at) for at in range(5)), *STALL, *REFUSED]
    lines = chart(events)
    assert "■ stall" in lines[0] and "x 100% failed" in lines[0]
    axis = next(line for line in lines if "└" in line)
    assert axis.count("■") == 6, "two cells per second"
    assert axis.count("x") == 8
    plot = [line for line in lines[1:] if "│" in line or "┤" in line]
    assert plot[-1].count("0") == 6
    # 500 of at most 1000 requests/s: half of the height, two cells per second.
    assert sum(line.count("x") for line in plot) == 8 * len(plot) // 2, lines
    few = [*started(), *(second(at, 990, statuses={200: 990}, errors={"reset": 10}) for at in range(4))]
    plot = [line for line in chart(few)[1:] if "│" in line or "┤" in line]
    assert [line.count("x") for line in plot if "x" in line] == [8], "few failures are marked on top"
    for height in (5, 6, 7):
        lines = chart([*started(), *(second(at) for at in range(5))], height=height)
        assert len(lines) <= height
        assert [line for line in lines if "⣿" in line], lines


@pytest.mark.parametrize("width", [58, 76, 116])
def test_alert_starts_with_most_serious_failure(width: int) -> None:
    events = [*started(), *(second(at) for at in range(5)), *STALL]
    line = plain([alert(context_of(events), width)])[0]
    assert line.startswith(" NO RESPONSE for 3.0 s   20 in flight, oldest 3.0 s")
    down = plain([alert(context_of([*events, *REFUSED]), width)])[0]
    assert down.startswith(" TARGET DOWN since 0:08 ") and ("500/s failed (100%)" in down) == (width > 58)
    assert len(down) <= width
    over = plain([alert(context_of([*events, *REFUSED, second(12), second(13)]), width)])[0]
    assert over.startswith("x 2k of 9k failed (22.2%): refused 2000")
    assert alert(context_of(events[:5]), width) == ()


@pytest.mark.parametrize("width", [58, 78, 120])
def test_chart_title_shows_failed_share_and_good_rate(width: int) -> None:
    events = [*started(), *(second(at, statuses={200: 750, 503: 250}) for at in range(3))]
    title = chart(events, width)[0]
    assert "x 25.0% failed  750 good/s" in title
    assert "% failed" not in chart([*events, second(3), second(4)], width)[0]
    down = chart([*started(), *(second(at, 0, errors={"refused": 500}) for at in range(3))], width)[0]
    assert "x 100% failed  0 good/s" in down


def test_heat_map_marks_failures_and_stalls() -> None:
    good = [*started(), *(second(at) for at in range(5))]
    lines = plain(Latency().draw(context_of([*good, *STALL, *REFUSED], span=0.5), 90, 12))
    (signs,) = [line for line in lines if line.startswith(" fail┤")]
    assert signs.count("■") == 3 * signs.count("x") // 4 > 0
    lines = plain(Latency().draw(context_of(good, latency="heat map"), 90, 12))
    assert not any("fail" in line for line in lines)
    assert len(lines) == 12


def test_latency_chart_shows_recent_percentiles() -> None:
    slow = (second(at, ms=(100,) * 99 + (900,)) for at in range(10, 30))
    events = [*started(), *(second(at) for at in range(10)), *slow]
    title, *lines = plain(Latency().draw(context_of(events), 90, 12))
    assert "last 10 s  ─ p50 100  ═ p99 100  max 900" in title
    levels = [at for at, line in enumerate(lines) if "≡" in line or "─" in line[7:]]
    assert max(levels) - min(levels) >= 2, "the step from 10 to 100 ms"


def test_thresholds_are_lines_or_below_chart_and_in_alert() -> None:
    thresholds = ("p99 < 50ms", "rate > 2000", "errors == 0", "p50 < 20ms", "no threshold at all")
    context = context_of([*started(*thresholds), *(second(at, ms=(10,) * 9 + (80,)) for at in range(10))])
    latency, throughput = Latency().draw(context, 90, 12), Throughput().draw(context, 90, 14)
    (failed,) = [line for line in latency if "p99 < 50ms" in "".join(text for text, _ in line)]
    assert any(text.startswith(" ✗ ") and role == "failed" for text, role in failed)
    assert any(text.startswith(" ✓ ") and role == "better_value" for line in latency for text, role in line)
    texts = plain(latency)
    (at,) = [at for at, text in enumerate(texts) if "p99 < 50ms" in text]
    assert not set(texts[at]) & set("░▒▓█─═≡"), "the line of a limit has no data"
    assert texts[at - 1].split("┤")[0].strip() == "50", "the limit is an edge of the cells above"
    (low,) = [line for line in throughput if "rate > 2000" in "".join(text for text, _ in line)]
    assert ("✗", "failed") in low and ("╌", "failed") in low
    good = [*started("errors == 0", "web1.cpu.idle > 20"), *(second(at) for at in range(5))]
    assert plain([state_line(context_of(good), 60)]) == ["✓ errors == 0  ? web1.cpu.idle > 20  responses 5k  200 100%"]
    assert alert(context_of(good), 60) == ()
    bad = context_of([*good, *REFUSED])
    assert plain([state_line(bad, 60)])[0].startswith("✗ errors == 0  ? web1.cpu.idle > 20")
    assert plain([alert(bad, 118)])[0].endswith("refused 2000  ✗ errors == 0")


@pytest.mark.parametrize("height", range(5, 16))
@pytest.mark.parametrize(("limit", "slow"), [(50, 2), (50, 20), (900, 1), (0.5, 3)])
def test_p99_beyond_its_limit_is_above_the_line(height: int, limit: float, slow: int) -> None:
    seconds = [second(at, ms=(1000,) * 10 if at < slow else (2, 3, 4)) for at in range(30)]
    lines = Latency().draw(context_of([*started(f"p99 < {limit:g}ms"), *seconds]), 90, height)
    (line,) = [at for at, each in enumerate(lines) if f"p99 < {limit:g}ms" in "".join(text for text, _ in each)]
    failed = [
        at for at, each in enumerate(lines[1:], 1) if any(piece in (("═", "failed"), ("≡", "failed")) for piece in each)
    ]
    assert failed and max(failed) < line


def test_stored_baseline_is_read_once_and_drawn_as_line() -> None:
    context = context_of([*started("p99 <= 110% of baseline"), *(second(at) for at in range(10))])
    result = run_result(context.state, 1)
    fast = baseline_of("spring", [baseline_run("x", 0.0, replace(result, seconds=result.seconds / 2))] * 3, PLAN)
    read: list[LoadPlan] = []

    def read_fast(plan: LoadPlan) -> Baseline:
        read.append(plan)
        return fast

    baselines = StoredBaselines(read_fast)
    for thresholds, name, widget in (
        (("p99 <= 110% of baseline",), "p99 <= 110% of baseline", Latency()),
        ((), "rate >= 95% of baseline", Throughput()),
    ):
        state = context_of([*started(*thresholds), *(second(at) for at in range(10))]).state
        context = DrawContext(state=state, baselines=baselines)
        (line,) = [line for line in widget.draw(context, 90, 14) if name in "".join(text for text, _ in line)]
        assert any("╌" in text for text, _ in line)
        without = plain(widget.draw(DrawContext(state=state), 90, 14))
        assert not any("of baseline" in text for text in without)
    assert read == [PLAN]
    (rate,) = context.thresholds
    assert rate.limit == pytest.approx(1900) and rate.status is Status.FAILED

    def unreadable(plan: LoadPlan) -> Baseline | None:
        raise UsageError("spring: no such baseline")

    assert StoredBaselines(unreadable).of(1, PLAN) is None


def test_tiny_screen_marks_latency_if_requests_failed() -> None:
    good = [*started(), second(0)]
    for events, role in ((good, "strong"), ([*good, *REFUSED], "failed")):
        lines = TinyScreen().draw(context_of(events), 40, 12)
        assert [line[2][1] for line in lines if line and line[0][0].startswith("service")] == [role]


def test_charts_and_clock_stop_at_end_of_load() -> None:
    events = [*started(), *(second(at) for at in range(20)), ev.RunEnded(t=20.0, run=1, reason="completed")]
    before = chart(events)
    later = [*events, ev.HostChanged(t=400.0, host="web1", condition="lost")]
    assert chart(later) == before
    assert chart([*later, ev.Note(t=500.0, text="later")]) != before, "charts show notes"
    running = [*started(), second(0), second(1)]
    assert plain([run_clock(context_of(running))]) == ["0:02/1:00  "]
    ended = [*running, ev.RunEnded(t=2.5, run=1, reason="stopped"), ev.Note(t=9.0, text="x")]
    assert plain([run_clock(context_of(ended))]) == ["0:02/1:00  "]
    assert plain([run_clock(context_of([]))]) == [""]
    endless = replace(PLAN, duration=None, requests=1000)
    counted = [running[0], ev.RunStarted(t=0.0, run=1, plan=endless), second(0)]
    assert plain([run_clock(context_of(counted))]) == ["0:01  "]


@pytest.mark.parametrize("width", [66, 76, 118])
def test_runs_table_has_latency_and_errors_at_every_width(width: int) -> None:
    lines = plain(Runs().draw(context_of(Scenario(2).events(99)), width, 12))
    assert lines[1].split()[:2] == ["#", "change"]
    assert {"req/s", "p50", "p99", "p99.9", "max", "err", "verdict"} <= set(lines[1].split())
    bars = re.search(r"runs  req/s ([▁-█]+)  p99 ([▁-█]+) ─", lines[0])
    assert bars and len(bars[1]) == len(bars[2]) == 4, "one bar per segment"


def test_averages_of_hosts_without_a_column_are_below_the_segments() -> None:
    context = context_of(Scenario(2).events(30))
    lines = plain(Runs().draw(context, 64, 12))
    assert [line.split()[:2] for line in lines if line.startswith("   web")] == [["web1", "%busy"], ["web2", "%busy"]]
    assert "%busy" in plain(Runs().draw(context, 110, 12))[1]
    assert not any("web1" in line and "%busy" in line for line in plain(Runs().draw(context, 110, 12))[2:])


def test_runs_table_shows_exact_maximum_and_marks_failures() -> None:
    """Use a histogram with coarse buckets, as in a compacted recording."""
    slow = Histogram.of([30_000_000] * 999 + [7_037_000_000]).coarse()
    tick = replace(second(0, 1000), service=slow, errors={"reset": 10})
    line = Runs().draw(context_of([*started(), tick]), 76, 8)[2]
    row = [text for piece, _ in line for text in piece.split()]
    assert "7037" in row
    assert "1.0%" in row
    assert {role for text, role in line if text.strip() in ("30", "7037", "1.0%")} == {"failed"}
