"""The heat map, the cursor in the charts and how much time they show, as they are drawn."""

from __future__ import annotations

from dataclasses import replace as replace_context

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.histogram import Histogram
from cockpit.model.state import Marker
from cockpit.tui.charts.cursor import crossed, times
from cockpit.tui.charts.heat import edges_of, shares
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.markers import placed, with_words
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.terminal.glyphs import to_ascii
from cockpit.tui.terminal.styled_line import length
from tests.tui.driving import context_of, plain
from tests.tui.scenario import Scenario, plan, session_started

EVENTS = Scenario().events(99)


def ticks(times_ns: list[list[int]], response: bool = False) -> list[ev.AnyEvent]:
    """A run with one tick a second of these latencies."""
    load = plan(rate=10.0 if response else None)
    found: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=0.0, run=1, plan=load)]
    for at, values in enumerate(times_ns):
        told = {"service": Histogram.of(values), **({"response": Histogram.of(values)} if response else {})}
        found.append(ev.Tick(t=at + 1.0, run=1, worker=0, start=float(at), completed=len(values), **told))
    return found


def axis_of(lines: list[str]) -> tuple[str, str]:
    """The time axis of a throughput chart, and the instants below it."""
    at = next(at for at, line in enumerate(lines) if line.startswith("    0 └"))
    return lines[at], lines[at + 1]


def heat(context: DrawContext, width: int = 70, height: int = 11) -> list[str]:
    return plain(Latency().draw(context, width, height))


def test_columns_stand_below_those_of_the_throughput_chart() -> None:
    context = context_of(EVENTS, latency="heat map")
    above, below = plain(Throughput().draw(context, 70, 16)), heat(context)
    # Every cell with replies has dots above and shades below.
    dots = {
        at
        for line in above[2 : above.index(axis_of(above)[0])]
        for at, char in enumerate(line)
        if char > "⠀" and at > AXIS
    }
    shades = {at for line in below[1:-1] for at, char in enumerate(line) if char in "░▒▓█─═≡" and at > AXIS}
    assert shades == dots


def test_all_replies_are_in_some_bucket_and_shades_tell_their_share() -> None:
    ms = 1_000_000
    values = [[ms] * 97 + [30 * ms] * 3, [ms] * 50 + [3 * ms] * 50, [100 * ms] + [ms] * 999]
    context = context_of([*ticks(values)], latency="heat map")
    cells = [context.stretch(at, 1) for at in range(3)]
    edges = edges_of(cells, 9)
    assert len(edges) == 10
    for cell in cells:
        assert cell is not None
        assert sum(shares(cell, edges)) == pytest.approx(1)
    lines = heat(context, width=12 + AXIS)
    # Half a second a cell: two cells a second, from the fast end up.
    columns = ["".join(line[AXIS + 1 + 2 * at] for line in reversed(lines[1:-1])) for at in range(3)]
    assert columns[0].count("─") == 1
    assert columns[0].index("═") > columns[0].index("─"), "3 of 100 are 30 ms"
    assert "█" in columns[1] or "═" in columns[1]
    assert "≡" in columns[2], "one of a thousand is not the 99th percentile"
    assert "░" in columns[2], "but it can be seen"


def test_on_a_slow_line_the_shades_have_one_colour() -> None:
    context = context_of(EVENTS, latency="heat map")
    for lite, expected in ((False, {"heat1", "heat2", "heat3", "on_heat3"}), (True, {"chart", "strong"})):
        lines = Latency().draw(replace_context(context, lite=lite), 70, 11)[1:-1]
        assert expected <= {role for line in lines for text, role in line if text.strip()}
        assert lite != any(role.endswith("heat2") for line in lines for _, role in line)


def test_beyond_the_ends_of_the_axis_is_said() -> None:
    ms = 1_000_000
    values = [[ms, 2 * ms, 3 * ms] * 40 for _ in range(60)]
    values[7] = [ms] * 10 + [9_000 * ms]
    lines = heat(context_of(ticks(values), latency="heat map"))
    assert lines[1].lstrip().startswith(">")
    assert lines[1].index("═") == AXIS + 1 + 7, "a second a cell"


def test_the_title_says_which_time_is_drawn() -> None:
    closed, opened = ticks([[1000] * 5] * 3), ticks([[1000] * 5] * 3, response=True)
    assert "latency service over time, ms" in heat(context_of(closed, latency="heat map"))[0]
    assert "latency response over time, ms" in heat(context_of(opened, latency="heat map"))[0]


@pytest.mark.parametrize(("width", "height"), [(10, 3), (30, 5), (50, 8), (78, 7), (110, 20)])
def test_it_fits(width: int, height: int) -> None:
    for span in (None, 0.5, 10.0):
        for at in (None, 40.0, 99.0):
            context = context_of(EVENTS, latency="heat map", span=span, cursor=at)
            for widget in (Latency(), Throughput()):
                lines = widget.draw(context, width, height)
                assert all(length(line) <= width for line in lines[1:]) or width < 12
    assert len(heat(context_of(EVENTS, latency="heat map"), width, height)) <= height


def test_before_the_first_reply_there_is_no_map() -> None:
    started = [session_started(), ev.RunStarted(t=0.0, run=1, plan=plan()), ev.Tick(t=1.0, run=1, worker=0, start=0.0)]
    assert "no responses in this time range" in "\n".join(heat(context_of(started, latency="heat map")))
    assert "No responses yet" in "\n".join(heat(context_of([], latency="heat map")))


def test_what_is_under_the_cursor_is_named() -> None:
    context = context_of(EVENTS, cursor=20.0, span=2.0, latency="histogram")
    found = context.stretch(20, 2)
    assert found is not None and found.seconds == 2
    above = plain(Throughput().draw(context, 100, 16))
    assert "00:00:20  1.12k req/s" in above[0] or f"00:00:20  {found.rate / 1000:.2f}k req/s" in above[0]
    assert f"p99 {found.p99 * 1000:.0f}" in above[0]
    assert "web1 cpu 7" in above[0]
    assert "segment 1" in above[0]
    assert axis_of(above)[1][AXIS + 1 + 10] == "▲"
    below = heat(context_of(EVENTS, cursor=20.0, span=2.0, latency="heat map"))
    assert f"00:00:20  p50 {found.p50 * 1000:.0f} p99 {found.p99 * 1000:.0f}" in below[0]
    failing = plain(Throughput().draw(context_of(EVENTS, cursor=91.0, span=1.0), 100, 16))[0]
    assert "x 2" in failing and "failed" in failing
    wide = plain(Throughput().draw(context_of(EVENTS, cursor=60.0, span=20.0), 110, 16))[0]
    assert "▒ 3 s saturated" in wide
    assert "no load" in plain(Throughput().draw(context_of(EVENTS, cursor=40.0), 100, 16))[0]


def test_a_cursor_ahead_of_a_replay_that_went_back_stands_at_its_newest_cell() -> None:
    for now in (0.0, 3.2, 30.0, 98.0):
        state = replace(context_of(EVENTS).state, t=now)
        for cursor in (0.0, 60.0, 98.0, 5000.0):
            for view in ("heat map", "histogram"):
                context = DrawContext(state=state, view=View(cursor=cursor, latency=view))  # type: ignore[arg-type]
                window = context.window(60)
                at = context.cursor(window)
                assert at is not None and at <= now
                lines = plain(Throughput().draw(context, 60, 16))
                assert axis_of(lines)[1].index("▲") == AXIS + 1 + window.cell(at)
                assert len(plain(Latency().draw(context, 60, 10))) <= 10


def test_the_words_of_a_marker_stand_beside_its_letter() -> None:
    context = context_of(EVENTS, cursor=70.0, span=2.0)
    line = plain(Throughput().draw(context, 90, 16))[1]
    assert line[AXIS + 1 + 20] == "A" and line[AXIS + 1 + 35 :].startswith("B MaxConnectionsPerChild 10 → 1000")
    assert "MinSpare" not in line
    standing = replace(context.state, t=41.0)
    line = plain(Throughput().draw(DrawContext(state=standing, position=41.0), 90, 16))[1]
    assert "MinSpareServers 5 → 20" in line, "a replay that stands on it"


def test_words_keep_clear_of_other_letters_where_there_is_room() -> None:
    def marker(t: float, sign: str, text: str) -> Marker:
        return Marker(t=t, kind="note", sign=sign, text=text)

    window = ChartWindow(0, 1.0, 40)
    markers = placed([marker(2, "A", ""), marker(30, "B", "B Spare 1 → 2"), marker(36, "▸", "")], window)
    row = "".join(markers[at].sign if at in markers else " " for at in range(40))
    assert with_words(row, {30: markers[30]}, 40) == "  A" + " " * 15 + "Spare 1 → 2 B     ▸"
    first = replace(markers[2], text="a note that goes on and on for ever")
    told = with_words(row, {2: first}, 40)
    assert told == "  A a note that goes on and on for ever"
    longer = replace(markers[30], text="B " + "much too long " * 4)
    assert with_words(row, {30: longer}, 40) == "much too long much too long … B     ▸"


def test_zoomed_out_failed_and_saturated_seconds_still_mark_their_cell() -> None:
    lines = plain(Throughput().draw(context_of(EVENTS, span=20.0), 60, 16))
    axis, instants = axis_of(lines)
    axis = axis[AXIS + 1 :]
    assert axis[:6] == "1─2▒x4", "row 3 begins where the generator was saturated: its number gives way"
    assert instants.endswith("min · mean · max   20 s/cell")
    assert axis_of(plain(Throughput().draw(context_of(EVENTS), 60, 16)))[1].endswith("2 s/cell")


def test_labels_of_the_axis_do_not_overlap() -> None:
    for at in range(60):
        line = plain([times(ChartWindow(0, 2.0, 60), at * 2.0, "2 s/cell")])[0]
        assert line[at] == "▲"
        assert len(line) <= 60
        assert line.endswith("2 s/cell") == (at < 51)
        assert all(len(label) in (1, 8, 9) for label in line.removesuffix("2 s/cell").split())


def test_the_cursor_is_a_line_where_nothing_is_drawn() -> None:
    line = (("⣿⣿", "chart"), ("  ", ""))
    assert crossed(line, 1) == (("⣿", "chart"), ("⣿", "focus"), ("", "chart"), ("  ", ""))
    assert plain([crossed(line, 3)]) == ["⣿⣿ │"]
    assert plain([crossed(line, 6)]) == ["⣿⣿    │"]


def test_a_view_begins_without_a_cursor() -> None:
    assert View().cursor is None and View().span is None


def test_every_sign_of_the_map_is_another_in_ascii_too() -> None:
    signs = "░▒▓█─═≡"
    assert len(set(to_ascii(signs))) == len(signs)
