"""Lines, charts and buckets: pure functions of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cockpit.analysis.buckets import edges_filling, edges_for
from cockpit.model.histogram import Histogram
from cockpit.tui.charts import braille
from cockpit.tui.charts.throughput import nice_ceiling
from cockpit.tui.charts.window import SCALES, ChartWindow, coarser_scale, finer_scale, window_for
from cockpit.tui.terminal.styled_line import clip, ends, fit, length, packed, right, rule

TEXTS = st.text(alphabet="ab 日本語é", max_size=30)


@given(TEXTS, st.integers(0, 40))
def test_fit_and_right_return_exact_width(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(right(text, width)) == width


@given(st.lists(TEXTS, max_size=5), st.integers(1, 40))
def test_clipped_line_never_exceeds_width(texts: list[str], width: int) -> None:
    line = tuple((text, "") for text in texts)
    assert length(clip(line, width)) == min(length(line), width)


@pytest.mark.parametrize("width", range(1, 60))
def test_rule_and_ends_fit_any_width(width: int) -> None:
    title, value = (("throughput", "strong"),), (("12.4k req/s", ""),)
    assert length(rule(title, value, width)) == width
    assert length(ends(title, value, width)) <= width


def test_cut_text_ends_with_ellipsis() -> None:
    assert fit("MaxSpareServers", 8) == "MaxSpar…"
    assert clip((("MaxSpare", ""), ("Servers", "")), 10)[-1] == ("S…", "")


def test_packed_omits_whole_parts() -> None:
    parts = [(("one", ""),), (("a very long part", ""),), (("two", ""),)]
    assert "".join(text for text, _ in packed(parts, 10)) == "one  two"


def test_missing_value_differs_from_zero_in_chart() -> None:
    missing, zero = braille.area([None, None], 10, 2), braille.area([0.0, 0.0], 10, 2)
    assert missing == [" ", " "]
    assert zero == [" ", "⣀"]


def test_chart_fills_from_bottom_to_top() -> None:
    assert braille.area([10.0, 10.0, 5.0, 5.0], 10, 2) == ["⣿ ", "⣿⣿"]


def test_smallest_bar_is_visible() -> None:
    assert braille.bar(1e-6, 20) == "▏"
    assert braille.bar(0.0, 20) == ""
    assert braille.bar(1.0, 20) == "█" * 20
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


def test_window_moves_in_steps_and_contains_now() -> None:
    windows = [window_for(now, 50) for now in range(300)]
    assert all(window.first <= now < window.first + window.seconds for now, window in enumerate(windows))
    assert all(0 <= window.cell(now + 0.9) < 50 for now, window in enumerate(windows))
    assert [windows[now].span for now in (0, 24, 25, 49, 50, 299)] == [0.5, 0.5, 1, 1, 2, 2]
    assert len({window.first for window in windows}) == 21


@given(st.floats(0, 40_000), st.floats(0, 1), st.integers(10, 200), st.sampled_from([None, *SCALES]))
def test_window_contains_cursor(now: float, share: float, cells: int, span: float | None) -> None:
    without = window_for(now, cells, span)
    assert without.first <= now < without.end
    cursor = now * share // without.span * without.span
    window = window_for(now, cells, span, cursor)
    assert 0 <= window.cell(cursor) < cells
    assert window.first % window.span == 0, "cell boundaries do not depend on the window"
    assert window == without or cursor < without.first


def test_zoom_out_stops_at_whole_session() -> None:
    now, span = 3600.0, None
    spans = []
    for _ in range(12):
        window = window_for(now, 60, span)
        spans.append(window.span)
        span = coarser_scale(window, now)
    assert spans[:7] == [2, 4, 10, 20, 60, 120, 120]
    assert window.first == 0
    assert finer_scale(ChartWindow(0, 4.0, 60)) == 2
    assert finer_scale(ChartWindow(0, 0.5, 60)) == 0.5


def test_column_draws_minimum_solid_and_range_dotted() -> None:
    assert braille.area([1.0, 1.0], 4, 1, [(2.0, 4.0), ()]) == ["⣅"]
