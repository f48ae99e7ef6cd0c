"""Forest plot: positions of effects, margins and the zero line."""

from __future__ import annotations

import pytest

from cockpit.analysis.outcome import Effect, Outcome
from cockpit.tui.charts.forest import axis, forest_row, scale_end
from cockpit.tui.terminal.glyphs import to_ascii
from tests.tui.driving import plain

WIDTH = 41


def effect(change: float | None, low: float | None = None, high: float | None = None, name: str = "rate") -> Effect:
    return Effect(name=name, outcome=Outcome.BETTER, change=change, low=low, high=high, margin=0.03)


def row_text(metric: Effect, end: float = 1.5) -> str:
    (line,) = plain([forest_row(metric, end, WIDTH, "chart")])
    assert len(line) == WIDTH
    return line


def test_better_interval_is_right_of_zero() -> None:
    line = row_text(effect(0.2, 0.1, 0.3))
    assert line.strip() == "┊│┊   ├───●───┤"
    assert line.index("│") == WIDTH // 2
    assert line.index("│") < line.index("├") < line.index("●") < line.index("┤")


@pytest.mark.parametrize("name", ["p50", "p99", "web1.cpu.per_request", "web1.memory.used"])
def test_lower_is_better_except_for_rate(name: str) -> None:
    line = row_text(effect(-0.2, -0.25, -0.1, name=name))
    assert line.index("│") < line.index("├") < line.index("●") < line.index("┤")
    worse = row_text(effect(0.2, 0.1, 0.25, name=name))
    assert worse.index("├") < worse.index("●") < worse.index("┤") < worse.index("│")


def test_inverse_ratios_are_equidistant_from_zero() -> None:
    up, down = row_text(effect(1.0, 0.9, 1.1), 3), row_text(effect(-0.5, -0.53, -0.47), 3)
    zero = WIDTH // 2
    assert up.index("●") - zero == zero - down.index("●")


def test_interval_including_zero_crosses_zero_line() -> None:
    line = row_text(effect(0.05, -0.05, 0.15))
    assert line.index("├") < line.index("┼") < line.index("●") < line.index("┤")
    assert line.index("┼") == WIDTH // 2
    assert "│" not in line


def test_equivalent_effect_is_within_margins() -> None:
    line = row_text(effect(0.002, -0.01, 0.012), 1.05)
    assert line.count("┊") == 2
    assert line.index("┊") < line.index("├") < line.index("┤") < line.rindex("┊")


def test_margins_and_interval_have_different_roles() -> None:
    line = forest_row(effect(0.2, 0.1, 0.3), 1.5, WIDTH, "chart")
    roles = {text: role for text, role in line if text.strip()}
    assert roles["┊"] == roles["│"] == "rule"
    assert roles["●"] == roles["├"] == roles["─"] == "chart"


def test_interval_beyond_scale_ends_in_arrow() -> None:
    assert row_text(effect(0.2, 0.1, 9.0)).endswith("─▸")
    assert row_text(effect(9.0, 8.0, 10.0)).endswith("▸")
    assert row_text(effect(-0.2, -0.9, -0.1)).startswith("◂─")


def test_one_sided_interval_extends_to_edge() -> None:
    line = row_text(effect(0.2, 0.1, None))
    assert line.rstrip().endswith("─▸")
    assert "├" in line and "┤" not in line
    at_most = row_text(effect(-0.2, None, -0.1, name="p99"))
    assert at_most.rstrip().endswith("─▸")


def test_missing_interval_is_ring_and_missing_value_is_empty() -> None:
    assert row_text(effect(0.2)).replace("┊", " ").split() == ["│", "○"]
    assert row_text(effect(None)).split() == ["│"]
    points = Effect(name="errors", outcome=Outcome.WORSE, relative=False, change=0.02, low=0.01, high=0.03)
    assert row_text(points).split() == ["│"], "percentage points are not a ratio"


def test_scale_covers_effects_but_not_wide_intervals() -> None:
    assert scale_end([]) == 1.2
    assert scale_end([effect(0.001, -0.01, 0.01)]) == 1.2
    assert scale_end([effect(0.3, 0.2, 0.4), effect(-0.35, -0.4, -0.2, name="p99")]) == 2.0
    assert scale_end([effect(0.3, -0.9, 90.0)]) == 2.0
    assert scale_end([effect(174.0, 93.0, 289.0)]) == 300.0
    assert scale_end([effect(1e6)]) == 10000.0


def test_axis_labels_directions_and_scale_ends() -> None:
    (line,) = plain([axis(1.5, WIDTH)])
    assert line.split() == ["◂", "1.5×", "worse", "0", "1.5×", "better", "▸"]
    assert line.index("0") == WIDTH // 2
    assert plain([axis(10.0, 27)])[0].split()[3] == "0", "separated from its neighbours"
    assert plain([axis(1000.0, 27)])[0].split() == ["◂", "1k×", "worse", "0", "1k×", "better", "▸"]
    (short,) = plain([axis(1000.0, 21)])
    assert short.split() == ["◂", "worse", "0", "better", "▸"]
    assert plain([axis(1.5, 9)]) == [" " * 9]


def test_ascii_ends_point_and_zero_are_distinct() -> None:
    assert to_ascii(row_text(effect(0.2, 0.1, 0.3))).strip() == ":|:   +---*---+"
    assert to_ascii(row_text(effect(-0.2, -0.9, 0.1), 1.5)).strip().startswith("<-")
    assert "o" in to_ascii(row_text(effect(0.2)))
