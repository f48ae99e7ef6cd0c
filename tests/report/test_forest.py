"""Forest plots: drawn effects, ends of intervals, and a readable axis."""

import math
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cockpit.analysis.verdicts.outcome import Cause, Effect, Objection, Outcome
from cockpit.analysis.words.verdicts import change_words
from cockpit.report.forest import ForestRow, forest
from tests.report.test_page import outline

SHARES = st.floats(-0.99, 50.0)


def effect(change: float, low: float | None, high: float | None, **other: object) -> Effect:
    given = {"name": "rate", "outcome": Outcome.BETTER, "margin": 0.03, **other}
    return Effect(change=change, low=low, high=high, **given)  # type: ignore[arg-type]


def drawn(html: str) -> list[tuple[float, float, list[float], float]]:
    """Return per plot the left and right end of the line, the caps and the point, from 0 to 1000."""
    found = []
    for line, point in re.findall(r'<path class="s c\d" d="([^"]+)"/><path class="s c\d point" d="M([\d.]+)', html):
        left, right = re.findall(r"M([\d.]+) 10H([\d.]+)", line)[0]
        caps = [float(cap) for cap in re.findall(r"M([\d.]+) 5V15", line)]
        found.append((float(left), float(right), caps, float(point)))
    return found


def labels(html: str) -> list[tuple[float, str]]:
    return [(float(at), label) for at, label in re.findall(r'<span style="left:([\d.]+)%">([^<]+)', html)]


def test_each_effect_is_a_row_with_text_and_interval() -> None:
    first, second = effect(0.2, 0.1, 0.3), effect(-0.1, -0.15, 0.02, outcome=Outcome.INCONCLUSIVE)
    html = forest("metric", [ForestRow("few", first), ForestRow("more", second, control=True)])
    text = " ".join(outline(html).texts)
    words = ("few", "better", "more", "inconclusive", "same settings")
    assert all(expected in text for expected in (*words, change_words(first), change_words(second)))
    (left, right, caps, point), (other_left, _, _, other_point) = drawn(html)
    assert caps == [left, right] and left < point < right
    zero = next(10 * at for at, label in labels(html) if label == "0")
    assert other_left < other_point < zero < left


def test_intervals_reach_edge_and_leave_room() -> None:
    html = forest("metric", [ForestRow("rate", effect(0.5, 0.4, None)), ForestRow("p99", effect(-0.5, None, -0.4))])
    (rate_left, rate_right, rate_caps, _), (left, right, caps, _) = drawn(html)
    assert (rate_caps, rate_right) == ([rate_left], 1000)
    assert (caps, left) == ([right], 0)
    wide = effect(0.1, -0.999, 900.0, outcome=Outcome.INCONCLUSIVE)
    html = forest("metric", [ForestRow("wide", wide), ForestRow("narrow", effect(0.2, 0.1, 0.3))])
    (left, right, caps, _), narrow = drawn(html)
    assert (left, right, caps) == (0, 1000, []), "both ends are beyond the scale"
    assert narrow[1] - narrow[0] > 100


def test_scales_are_separate_and_unknown_effects_not_drawn() -> None:
    lost = Objection(cause=Cause.HOST_LOST, host="web1", seconds=9)
    refused = effect(0.2, 0.1, 0.3, outcome=Outcome.INVALID, objection=lost)
    html = forest("metric", [ForestRow("a", refused), ForestRow("b", effect(0.2, None, None))])
    assert drawn(html) == [] and "web1 was lost for 9 s" in html
    spawned = effect(-19.0, -25.0, -14.0, name="web1.processes.spawned_per_s", relative=False)
    html = forest("metric", [ForestRow("rate", effect(0.2, 0.1, 0.3)), ForestRow("spawned", spawned)])
    assert len(drawn(html)) == 1
    alone = forest("comparison", [ForestRow("x", spawned)])
    assert len(drawn(alone)) == 1 and "−20" in [label for _, label in labels(alone)]
    for high, expected in ((0.004, "+0.2%"), (0.3, "+20%"), (1.3, "×2"), (400.0, "×100")):
        html = forest("metric", [ForestRow("x", effect(high / 2, high / 4, high, margin=0.0))])
        assert expected in [label for _, label in labels(html)]
        assert math.isclose(drawn(html)[0][1], 1000, rel_tol=0.1)


@given(st.lists(st.tuples(SHARES, SHARES, SHARES, st.sampled_from(list(Outcome))), min_size=1, max_size=8))
def test_plot_is_valid_for_any_effects(shares: list[tuple[float, float, float, Outcome]]) -> None:
    ordered = [(*sorted(values), outcome) for *values, outcome in shares]
    effects = [effect(change, low, high, outcome=outcome) for low, change, high, outcome in ordered]
    html = forest("metric", [ForestRow(str(at), drawn_effect) for at, drawn_effect in enumerate(effects)])
    outline(html)
    assert len(drawn(html)) == sum(drawn_effect.outcome is not Outcome.INVALID for drawn_effect in effects)
    for left, right, caps, point in drawn(html):
        assert 0 <= left <= point <= right <= 1000
        assert all(cap in (left, right) for cap in caps)
    places = [at for at, _ in labels(html)]
    assert places == sorted(places)
    assert all(right - left >= 15 for left, right in pairwise(places))
