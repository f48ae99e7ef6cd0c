"""Lines, charts, buckets and forest plots: pure functions of numbers."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cockpit.analysis.buckets import edges_filling, edges_for
from cockpit.analysis.verdicts.outcome import Effect, Outcome
from cockpit.model.histogram import Histogram
from cockpit.tui.charts import braille
from cockpit.tui.charts.forest import axis, forest_row, scale_end
from cockpit.tui.charts.throughput import nice_ceiling
from cockpit.tui.charts.window import SCALES, ChartWindow, coarser_scale, finer_scale, window_for
from cockpit.tui.terminal.glyphs import to_ascii
from cockpit.tui.terminal.styled_line import clip, fit, join_fitting, left_and_right, length, right, rule
from tests.tui.driving import plain

TEXTS = st.text(alphabet="ab 日本語é", max_size=30)


@given(TEXTS, st.integers(0, 40))
def test_fit_and_right_return_exact_width(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(right(text, width)) == width


@given(st.lists(TEXTS, max_size=5), st.integers(1, 40))
def test_clipped_line_never_exceeds_width(texts: list[str], width: int) -> None:
    line = tuple((text, "") for text in texts)
    assert length(clip(line, width)) == min(length(line), width)


def test_lines_are_cut_to_their_width() -> None:
    title, value = (("throughput", "strong"),), (("12.4k req/s", ""),)
    for width in range(1, 60):
        assert length(rule(title, value, width)) == width
        assert length(left_and_right(title, value, width)) <= width
    assert fit("MaxSpareServers", 8) == "MaxSpar…"
    assert clip((("MaxSpare", ""), ("Servers", "")), 10)[-1] == ("S…", "")
    parts = [(("one", ""),), (("a very long part", ""),), (("two", ""),)]
    assert "".join(text for text, _ in join_fitting(parts, 10)) == "one  two"


def test_charts_distinguish_missing_zero_and_range() -> None:
    assert braille.area([None, None], 10, 2) == [" ", " "]
    assert braille.area([0.0, 0.0], 10, 2) == [" ", "⣀"]
    assert braille.area([10.0, 10.0, 5.0, 5.0], 10, 2) == ["⣿ ", "⣿⣿"], "from the bottom up"
    assert braille.area([1.0, 1.0], 4, 1, [(2.0, 4.0), ()]) == ["⣅"], "minimum solid, range dotted"
    assert [braille.bar(share, 20) for share in (1e-6, 0.0, 1.0)] == ["▏", "", "█" * 20]
    assert braille.trend([0.0, 50.0, 100.0], 100.0) == "▁▄█"


@given(
    st.lists(st.integers(1, 10**11) | st.sampled_from([12_500_000, 10**6]), min_size=1, max_size=60), st.integers(1, 20)
)
def test_buckets_contain_every_value_within_limit(values: list[int], limit: int) -> None:
    histogram = Histogram.of(values)
    edges = edges_for(histogram, limit)
    assert len(edges) - 1 <= limit
    assert sum(histogram.between(edges)) == len(values)


def test_buckets_are_as_fine_as_limit_allows() -> None:
    histogram = Histogram.of([1_100_000, 1_900_000])
    assert edges_for(histogram, 1) == (1_000_000, 2_000_000)
    assert edges_for(histogram, 3) == (1_000_000, 1_250_000, 1_600_000, 2_000_000)
    assert len(edges_for(histogram, 8)) == 7


@given(st.integers(0, 10**10), st.integers(0, 10**10), st.integers(1, 40))
def test_edges_filling_height_cover_range(first: int, second: int, number: int) -> None:
    low, high = sorted((first, second))
    edges = edges_filling(low, high, number)
    assert len(edges) == number + 1 or len(edges_for(Histogram.of([low, high]), number)) - 1 == number
    assert list(edges) == sorted(set(edges))
    assert edges[0] <= max(1, low) and edges[-1] > high


@given(st.floats(0.01, 1e9))
def test_axis_maximum_is_slightly_above_values(value: float) -> None:
    assert value <= nice_ceiling(value)
    assert value < 1 or nice_ceiling(value) <= value * 1.34


def test_window_moves_in_steps_and_zooms_out_to_whole_session() -> None:
    windows = [window_for(now, 50) for now in range(300)]
    assert all(window.first <= now < window.first + window.seconds for now, window in enumerate(windows))
    assert all(0 <= window.cell(now + 0.9) < 50 for now, window in enumerate(windows))
    assert [windows[now].span for now in (0, 12, 24, 25, 49, 50, 99, 299)] == [0.25, 0.375, 0.5, 0.625, 1, 1.125, 2, 2]
    assert len({window.first for window in windows}) == 21
    known = [window_for(now, 50, start=7, end=80.0) for now in range(7, 80)]
    assert set(known) == {ChartWindow(7, 1.484375, 50)}, "a known end fixes the scale"
    assert window_for(300, 50, start=7, end=310.0) == window_for(300, 50, start=7), "too long for the charts"
    now, span = 3600.0, None
    spans = []
    for _ in range(12):
        window = window_for(now, 60, span)
        spans.append(window.span)
        span = coarser_scale(window, now)
    assert spans[:9] == [2, 3, 4, 5, 10, 20, 60, 120, 120]
    assert window.first == 0
    assert finer_scale(ChartWindow(0, 4.0, 60)) == 3
    assert finer_scale(ChartWindow(0, 0.25, 60)) == 0.25


@given(st.floats(0, 40_000), st.floats(0, 1), st.integers(10, 200), st.sampled_from([None, *SCALES]))
def test_window_contains_cursor(now: float, share: float, cells: int, span: float | None) -> None:
    without = window_for(now, cells, span)
    assert without.first <= now < without.end
    cursor = now * share // without.span * without.span
    window = window_for(now, cells, span, cursor)
    assert 0 <= window.cell(cursor) < cells
    assert window.first % window.span == 0, "cell boundaries do not depend on the window"
    assert window == without or cursor < without.first


WIDTH = 41


def effect(change: float | None, low: float | None = None, high: float | None = None, name: str = "rate") -> Effect:
    return Effect(name=name, outcome=Outcome.BETTER, change=change, low=low, high=high, margin=0.03)


def row_text(metric: Effect, end: float = 1.5) -> str:
    (line,) = plain([forest_row(metric, end, WIDTH, "chart")])
    return line


def test_row_shows_interval_margins_and_zero_line() -> None:
    for name, change, low, high, end, row in (
        ("rate", 0.2, 0.1, 0.3, 1.5, "                   ┊│┊   ├───●───┤       "),
        # Lower is better, except for the rate.
        ("p50", -0.2, -0.25, -0.1, 1.5, "                   ┊│┊   ├─────●──┤      "),
        ("web1.cpu.per_request", -0.2, -0.25, -0.1, 1.5, "                   ┊│┊   ├─────●──┤      "),
        ("web1.memory.used", 0.2, 0.1, 0.25, 1.5, "         ├─●───┤   ┊│┊                   "),
        # Inverse ratios are equidistant from zero.
        ("rate", 1.0, 0.9, 1.1, 3.0, "                   ┊│┊          ├●┤      "),
        ("rate", -0.5, -0.53, -0.47, 3.0, "      ├●┤          ┊│┊                   "),
        # The interval includes zero, or is within the margins.
        ("rate", 0.05, -0.05, 0.15, 1.5, "                 ├──┼─●────┤             "),
        ("rate", 0.002, -0.01, 0.012, 1.05, "        ┊       ├───┼●───┤      ┊        "),
        # The interval exceeds the scale, or is one-sided.
        ("rate", 0.2, 0.1, 9.0, 1.5, "                   ┊│┊   ├───●──────────▸"),
        ("rate", 9.0, 8.0, 10.0, 1.5, "                   ┊│┊                  ▸"),
        ("rate", -0.2, -0.9, -0.1, 1.5, "◂────────●─────┤   ┊│┊                   "),
        ("rate", 0.2, 0.1, None, 1.5, "                   ┊│┊   ├───●──────────▸"),
        ("p99", -0.2, None, -0.1, 1.5, "                   ┊│┊   ├─────●────────▸"),
        # Neither interval nor value.
        ("rate", 0.2, None, None, 1.5, "                   ┊│┊       ○           "),
        ("rate", None, None, None, 1.5, "                   ┊│┊                   "),
        # A margin is drawn at least a cell from zero.
        ("rate", 0.2, None, None, 30.0, "                   ┊│○                   "),
    ):
        assert row_text(effect(change, low, high, name), end) == row


def test_row_has_roles_no_place_for_points_and_ascii_ends() -> None:
    points = Effect(name="errors", outcome=Outcome.WORSE, relative=False, change=0.02, low=0.01, high=0.03)
    assert row_text(points).split() == ["│"]
    line = forest_row(effect(0.2, 0.1, 0.3), 1.5, WIDTH, "chart")
    roles = {text: role for text, role in line if text.strip()}
    assert roles["┊"] == roles["│"] == "rule"
    assert roles["●"] == roles["├"] == roles["─"] == "chart"
    assert to_ascii(row_text(effect(0.2, 0.1, 0.3))).strip() == ":|:   +---*---+"
    assert to_ascii(row_text(effect(-0.2, -0.9, 0.1))).strip().startswith("<-")
    assert "o" in to_ascii(row_text(effect(0.2)))


def test_scale_covers_effects_and_axis_has_labels() -> None:
    assert scale_end([]) == 1.2
    assert scale_end([effect(0.001, -0.01, 0.01)]) == 1.2
    assert scale_end([effect(0.3, 0.2, 0.4), effect(-0.35, -0.4, -0.2, name="p99")]) == 2.0
    assert scale_end([effect(0.3, -0.9, 90.0)]) == 2.0
    assert scale_end([effect(174.0, 93.0, 289.0)]) == 300.0
    assert scale_end([effect(1e6)]) == 10000.0
    (line,) = plain([axis(1.5, WIDTH)])
    assert line.split() == ["◂", "1.5×", "worse", "=", "1.5×", "better", "▸"]
    assert line.index("=") == WIDTH // 2
    assert plain([axis(10.0, 27)])[0].split()[3] == "=", "separated from its neighbours"
    assert plain([axis(1000.0, 27)])[0].split() == ["◂", "1k×", "worse", "=", "1k×", "better", "▸"]
    assert plain([axis(1000.0, 21)])[0].split() == ["◂", "worse", "=", "better", "▸"]
    assert plain([axis(1.5, 9)]) == [" " * 9]
