"""Heat map, cursor and time range of the charts, as drawn."""

import itertools
from dataclasses import replace as replace_context

import pytest
from msgspec.structs import replace

from cockpit.analysis.words.timeline import marker_sign
from cockpit.model import events as ev
from cockpit.model.histogram import Histogram
from cockpit.model.knobs import Setting
from cockpit.model.markers import ChangeMarker, ChangeName, NoteMarker
from cockpit.tui.charts.cursor import axis_labels, with_cursor
from cockpit.tui.charts.heat import edges_of, shares
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.markers import markers_by_cell, with_marker_texts
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.terminal.styled_line import length
from tests.tui.driving import context_of, plain
from tests.tui.scenario import Scenario, plan, session_started

EVENTS = Scenario().events(99)
MS = 1_000_000


def ticks(times_ns: list[list[int]], response: bool = False) -> list[ev.AnyEvent]:
    """Return a run with one tick per second, with these latencies (ns)."""
    load = plan(rate=10.0 if response else None)
    found: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=0.0, run=1, plan=load)]
    for at, values in enumerate(times_ns):
        histograms = {"service": Histogram.of(values), **({"response": Histogram.of(values)} if response else {})}
        found.append(ev.Tick(t=at + 1.0, run=1, worker=0, start=float(at), completed=len(values), **histograms))
    return found


def axis_of(lines: list[str]) -> tuple[str, str]:
    """Return the time axis of a throughput chart, and the line of times below."""
    at = next(at for at, line in enumerate(lines) if line.startswith("    0└"))
    return lines[at], lines[at + 1]


def heat(context: DrawContext, width: int = 70, height: int = 11) -> list[str]:
    return plain(Latency().draw(context, width, height))


def throughput(width: int = 100, **view: object) -> list[str]:
    return plain(Throughput().draw(context_of(EVENTS, **view), width, 16))


def cells_with(lines: list[str], signs: str) -> set[int]:
    return {at for line in lines for at, char in enumerate(line) if at > AXIS and char in signs}


def test_columns_align_with_throughput_chart() -> None:
    above, below = throughput(70), heat(context_of(EVENTS, latency="heat map"))
    dots = cells_with(above[1 : above.index(axis_of(above)[0])], "".join(map(chr, range(0x2801, 0x2900))))
    assert dots
    assert cells_with(below[1:], "░▒▓█─═≡") == dots


def test_every_response_is_in_bucket_shaded_by_share() -> None:
    values = [[MS] * 97 + [30 * MS] * 3, [MS] * 50 + [3 * MS] * 50, [100 * MS] + [MS] * 999]
    context = context_of(ticks(values), latency="heat map")
    cells = [context.time_range(at, 1) for at in range(3)]
    edges = edges_of(cells, 9)
    assert len(edges) == 10
    for cell in cells:
        assert sum(shares(cell, edges)) == pytest.approx(1)
    lines = heat(context, width=12 + AXIS)
    # 0.375 s per cell; from the lowest latency up.
    columns = ["".join(line[AXIS + 1 + at] for line in reversed(lines[1:])) for at in (0, 3, 6)]
    assert columns[0].count("─") == 1
    assert columns[0].index("═") > columns[0].index("─"), "3 of 100 are 30 ms"
    assert "█" in columns[1] or "═" in columns[1]
    assert "≡" in columns[2], "0.1% of the responses do not move the 99th percentile"
    assert "░" in columns[2], "but they are visible"


def test_heat_map_has_shades_titles_and_edges() -> None:
    context = context_of(EVENTS, latency="heat map")
    for lite, expected in ((False, {"heat1", "heat2", "heat3", "p50", "p99"}), (True, {"chart", "strong"})):
        lines = Latency().draw(replace_context(context, lite=lite), 70, 11)[1:]
        assert expected <= {role for line in lines for text, role in line if text.strip()}
        assert lite != any(role.endswith("heat2") for line in lines for _, role in line)

    def lines(times: list[list[int]], response: bool = False) -> list[str]:
        return heat(context_of(ticks(times, response), latency="heat map"))

    assert "latency service, ms" in lines([[1000] * 5] * 3)[0]
    assert "latency response, ms" in lines([[1000] * 5] * 3, response=True)[0]
    assert "no responses in this time range" in "\n".join(lines([[]]))
    assert "No responses yet" in "\n".join(heat(context_of([], latency="heat map")))
    values = [[MS, 2 * MS, 3 * MS] * 40 for _ in range(60)]
    values[7] = [MS] * 10 + [9_000 * MS]
    top = lines(values)[1]
    assert top.lstrip().startswith(">"), "the latency is beyond the axis"
    assert top.index("═") == AXIS + 1 + 7, "1 s per cell"


@pytest.mark.parametrize(("width", "height"), [(10, 3), (30, 5), (50, 8), (78, 7), (110, 20)])
def test_charts_fit_any_size(width: int, height: int) -> None:
    for span, at, widget in itertools.product((None, 0.5, 10.0), (None, 40.0, 99.0), (Latency(), Throughput())):
        context = context_of(EVENTS, latency="heat map", span=span, cursor=at)
        lines = widget.draw(context, width, height)
        assert 0 < len(lines) <= height
        assert max(map(length, lines)) <= width


def test_title_shows_values_at_cursor() -> None:
    context = context_of(EVENTS, cursor=20.0, span=2.0, latency="heat map")
    found = context.time_range(20, 2)
    assert found is not None and found.seconds == 2
    above = throughput(cursor=20.0, span=2.0, latency="histogram")
    for text in (f"00:00:20  {found.rate / 1000:.2f}k req/s", f"p99 {found.p99 * 1000:.0f}", "web1 cpu 7", "segment 1"):
        assert text in above[0]
    assert axis_of(above)[1][AXIS + 1 + context.window(100).cell(20)] == "▲"
    assert f"00:00:20  p50 {found.p50 * 1000:.0f} p99 {found.p99 * 1000:.0f}" in heat(context)[0]
    failing = throughput(cursor=91.0, span=1.0)[0]
    assert "x 2" in failing and "failed" in failing
    assert "▒ 3 s saturated" in throughput(110, cursor=60.0, span=20.0)[0]
    assert "no load" in throughput(cursor=40.0)[0]


@pytest.mark.parametrize("now", [0.0, 3.2, 30.0, 98.0])
def test_cursor_beyond_replay_position_is_clamped(now: float) -> None:
    state = replace(context_of(EVENTS).state, t=now)
    for cursor, view in itertools.product((0.0, 60.0, 98.0, 5000.0), ("heat map", "histogram")):
        context = DrawContext(state=state, view=View(cursor=cursor, latency=view))  # type: ignore[arg-type]
        window = context.window(60)
        at = context.cursor(window)
        assert at is not None and at <= now
        lines = plain(Throughput().draw(context, 60, 16))
        assert axis_of(lines)[1].index("▲") == AXIS + 1 + window.cell(at)
        assert len(heat(context, 60, 10)) <= 10


def test_marker_text_is_beside_letter_at_cursor() -> None:
    line = throughput(90, cursor=70.0, span=2.0)[1]
    assert line[AXIS + 1 + 18] == "A" and line[AXIS + 1 + 33 :].startswith("B MaxConnectionsPerChild 10 → 1000")
    assert "MinSpare" not in line
    at_marker = replace(context_of(EVENTS).state, t=41.0)
    line = plain(Throughput().draw(DrawContext(state=at_marker, position=41.0), 90, 16))[1]
    assert "MinSpareServers 5 → 20" in line, "the replay is at the marker"


def test_marker_text_avoids_other_letters() -> None:
    def marker(t: float, letter: str, knob: str) -> ChangeMarker:
        change = ChangeName(letter=letter, settings=(Setting(knob=knob, old="1", new="2"),))
        return ChangeMarker(t=t, change=change, outcome="applied", ended=t)

    window = ChartWindow(0, 1.0, 40)
    markers = markers_by_cell([marker(2, "A", "K"), marker(30, "B", "Spare"), NoteMarker(t=36, text="")], window)
    row = "".join(marker_sign(markers[at]) if at in markers else " " for at in range(40))
    assert with_marker_texts(row, {30: markers[30]}, 40) == "  A" + " " * 15 + "Spare 1 → 2 B     ▸"
    first = marker(2, "A", "a.name.that.is.too.long.for.it")
    assert with_marker_texts(row, {2: first}, 40) == "  A a.name.that.is.too.long.for.it 1 → 2"
    longer = marker(30, "B", "much.too.long." * 4)
    assert with_marker_texts(row, {30: longer}, 40) == "much.too.long.much.too.long.… B     ▸"


def test_axis_keeps_marks_and_labels_apart() -> None:
    axis, instants = axis_of(throughput(60, span=20.0))
    assert axis[AXIS + 1 :][:6] == "1─2▒x4", "segment 3 starts in a saturated cell, whose mark replaces the number"
    assert instants.endswith("min · mean · max   20 s/cell")
    assert axis_of(throughput(60))[1].endswith("1.65 s/cell")
    for at in range(60):
        line = plain([axis_labels(ChartWindow(0, 2.0, 60), at * 2.0, "2 s/cell")])[0]
        assert line[at] == "▲"
        assert len(line) <= 60
        assert line.endswith("2 s/cell") == (at < 51)
        assert all(len(label) in (1, 8, 9) for label in line.removesuffix("2 s/cell").split())
    line = (("⣿⣿", "chart"), ("  ", ""))
    assert with_cursor(line, 1) == (("⣿", "chart"), ("⣿", "focus"), ("", "chart"), ("  ", ""))
    assert plain([with_cursor(line, 3)]) == ["⣿⣿ │"]
    assert plain([with_cursor(line, 6)]) == ["⣿⣿    │"]
