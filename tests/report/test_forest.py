"""Forest plots: drawn effects, ends of intervals, and a readable axis."""

import math
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.verdicts.outcome import Cause, Effect, Objection, Outcome
from cockpit.analysis.words.verdicts import change_words
from cockpit.document.html import to_html
from cockpit.document.model import Document, Table
from cockpit.document.svg import row_svg
from cockpit.report.forest import ForestRow, forest
from tests.report.test_page import outline

SHARES = st.floats(-0.99, 50.0)


def effect(change: float, low: float | None, high: float | None, **other: object) -> Effect:
    given = {"name": "rate", "outcome": Outcome.BETTER, "margin": 0.03, **other}
    return Effect(change=change, low=low, high=high, **given)  # type: ignore[arg-type]


def table(*effects: Effect, name: str = "x") -> Table:
    return forest("metric", [ForestRow(name, one) for one in effects])


def drawn(table: Table) -> list[tuple[float, float, list[float], float]]:
    """Return per plot the left and right end of the line, the caps and the point, from 0 to 1000."""
    found = []
    for marks in table.marks:
        svg = row_svg(table.axis, marks)
        for line, point in re.findall(r'<path class="s c\d" d="([^"]+)"/><path class="s c\d point" d="M([\d.]+)', svg):
            left, right = re.findall(r"M([\d.]+) 10H([\d.]+)", line)[0]
            caps = [float(cap) for cap in re.findall(r"M([\d.]+) 5V15", line)]
            found.append((float(left), float(right), caps, float(point)))
    return found


def labels(table: Table) -> list[tuple[float, str]]:
    return [(1000 * table.axis.at(value), label) for value, label in table.axis.labels]


def test_each_effect_is_a_row_with_text_and_interval() -> None:
    first, second = effect(0.2, 0.1, 0.3), effect(-0.1, -0.15, 0.02, outcome=Outcome.INCONCLUSIVE)
    rows = forest("metric", [ForestRow("few", first), ForestRow("more", second, control=True)])
    text = " ".join(outline(to_html(Document("x", [rows]))).texts)
    words = ("few", "better", "more", "inconclusive", "same settings")
    assert all(expected in text for expected in (*words, change_words(first), change_words(second)))
    (left, right, caps, point), (other_left, _, _, other_point) = drawn(rows)
    assert caps == [left, right] and left < point < right
    zero = next(at for at, label in labels(rows) if label == "0")
    assert other_left < other_point < zero < left


def test_intervals_reach_edge_and_leave_room() -> None:
    (rate_left, rate_right, rate_caps, _), (left, right, caps, _) = drawn(
        table(effect(0.5, 0.4, None), effect(-0.5, None, -0.4))
    )
    assert (rate_caps, rate_right) == ([rate_left], 1000)
    assert (caps, left) == ([right], 0)
    wide = effect(0.1, -0.999, 900.0, outcome=Outcome.INCONCLUSIVE)
    (left, right, caps, _), narrow = drawn(table(wide, effect(0.2, 0.1, 0.3)))
    assert (left, right, caps) == (0, 1000, []), "both ends are beyond the scale"
    assert narrow[1] - narrow[0] > 100


def test_scales_are_separate_and_unknown_effects_not_drawn() -> None:
    lost = Objection(cause=Cause.HOST_LOST, host="web1", seconds=9)
    refused = table(effect(0.2, 0.1, 0.3, outcome=Outcome.INVALID, objection=lost), effect(0.2, None, None))
    assert refused.axis is None and "web1 was lost for 9 s" in refused.cells()[0][1].note
    spawned = effect(-19.0, -25.0, -14.0, name="web1.processes.spawned_per_s", relative=False)
    assert len(drawn(table(effect(0.2, 0.1, 0.3), spawned))) == 1
    alone = table(spawned)
    assert len(drawn(alone)) == 1 and "−20" in [label for _, label in labels(alone)]
    for high, expected in ((0.004, "+0.2%"), (0.3, "+20%"), (1.3, "×2"), (400.0, "×100")):
        plot = table(effect(high / 2, high / 4, high, margin=0.0))
        assert expected in [label for _, label in labels(plot)]
        assert math.isclose(drawn(plot)[0][1], 1000, rel_tol=0.1)


@given(st.lists(st.tuples(SHARES, SHARES, SHARES, st.sampled_from(list(Outcome))), min_size=1, max_size=8))
def test_plot_is_valid_for_any_effects(shares: list[tuple[float, float, float, Outcome]]) -> None:
    ordered = [(*sorted(values), outcome) for *values, outcome in shares]
    plot = table(*(effect(change, low, high, outcome=outcome) for low, change, high, outcome in ordered))
    outline(to_html(Document("x", [plot])))
    assert len(drawn(plot)) == sum(outcome is not Outcome.INVALID for *_, outcome in ordered)
    for left, right, caps, point in drawn(plot):
        assert 0 <= left <= point <= right <= 1000
        assert all(cap in (left, right) for cap in caps)
    places = [at for at, _ in labels(plot)] if plot.axis else []
    assert places == sorted(places)
    assert all(right - left >= 150 for left, right in pairwise(places))
