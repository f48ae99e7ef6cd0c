"""The verdict on two variants under the same load at the same time."""

import math
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis import duet, paired
from cockpit.analysis.duet import COST, Loss, Sharing, cpu_sharing, is_settled, loss, sides
from cockpit.analysis.verdicts.outcome import Cause, Design, Effect, Outcome, Verdict
from cockpit.analysis.verdicts.segments import verdicts
from cockpit.analysis.verdicts.verdict import judge_duet
from cockpit.analysis.verdicts.wait import awaits_verdict
from cockpit.analysis.warnings import WarningKind
from cockpit.analysis.windows import DiscardReason, Window
from cockpit.metrics.results import all_results
from cockpit.model.counts import Group
from cockpit.model.events import RunEnded, RunStarted
from cockpit.model.fold.fold import fold
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan, TargetVariant
from cockpit.model.load.seconds import LoadSecond, VariantSecond
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.report.check import CheckResult, check_json, check_markdown, check_text, junit
from tests.analysis import synthetic
from tests.statistics.duets import duets
from tests.statistics.noise import NOISES

CLOSED = LoadPlan(
    url="http://a/",
    variants=(TargetVariant(name="A", url="http://a/"), TargetVariant(name="B", url="http://b/")),
    duration=30.0,
)
OPEN = LoadPlan(url="http://a/", variants=CLOSED.variants, duration=30.0, rate=100.0)


def window(
    ratio: float, seconds: int = 60, plan: LoadPlan = CLOSED, failed: tuple[int, int] = (0, 0), seed: int = 1
) -> Window:
    """Return a window in which the second variant has `ratio` times the rate, and 1/ratio times the latency, of the
    first, while both are disturbed."""
    random = np.random.default_rng(seed)
    shared = np.exp(random.normal(0, 0.2, seconds))
    found = []
    for second in range(seconds):
        parts = []
        for factor, fails in ((1.0, failed[0]), (ratio, failed[1])):
            number = round(1000 * (1 if plan.open else shared[second] * factor) * math.exp(random.normal(0, 0.01)))
            latency = random.exponential(1e6 / shared[second] / factor, number).astype(np.int64) + 1000
            parts.append(
                VariantSecond(
                    completed=number, failed=min(fails, number), errors=0, latency=Histogram.of(latency).coarse()
                )
            )
        found.append(
            LoadSecond(
                second=second,
                start=float(second),
                end=second + 1.0,
                completed=sum(part.completed for part in parts),
                variants=tuple(parts),
            )
        )
    return Window(start=0.0, end=float(seconds), plan=plan, seconds=tuple(found))


def test_sides_have_the_counts_of_their_variant() -> None:
    whole = window(2.0, 10)
    one, two = sides(whole)
    assert [second.completed for second in two.seconds] == [second.variants[1].completed for second in whole.seconds]
    assert not one.seconds[0].variants
    assert sum(second.completed for second in (*one.seconds, *two.seconds)) == sum(
        second.completed for second in whole.seconds
    )


@pytest.mark.parametrize(("ratio", "outcome"), [(1.1, Outcome.BETTER), (0.9, Outcome.WORSE), (1.0, Outcome.EQUIVALENT)])
def test_difference_is_found_beneath_a_disturbance_that_both_share(ratio: float, outcome: Outcome) -> None:
    found = judge_duet(window(ratio))
    assert found.design is Design.DUET
    assert found.label == "B vs A"
    assert found.outcome is outcome
    headline = found.headline
    assert headline is not None
    assert headline.name == "rate"
    assert headline.low is not None and headline.high is not None
    assert headline.low <= ratio - 1 <= headline.high
    assert headline.high - headline.low < 0.06


def test_latency_is_the_headline_at_a_fixed_rate() -> None:
    found = judge_duet(window(1.3, plan=OPEN))
    assert [effect.name for effect in found.effects][:2] == ["p50", "p99"]
    assert found.outcome is Outcome.BETTER
    assert found.headline is not None and found.headline.change == pytest.approx(1 / 1.3 - 1, abs=0.03)


def test_more_failures_are_worse_whatever_the_rate() -> None:
    found = judge_duet(window(1.2, failed=(0, 5)))
    assert found.effect("errors") is not None
    assert found.outcome is Outcome.WORSE


def test_short_duet_says_how_long_it_needs() -> None:
    found = judge_duet(window(2.0, 12))
    assert (found.outcome, found.effects) == (Outcome.INCONCLUSIVE, ())


def test_missing_blocks_are_never_negative() -> None:
    blocks = [{"p50": np.array([1.0, float("nan"), 1.2, 1.1, 1.3, 1.2, 1.1])}, {"p50": np.linspace(1.0, 1.1, 7)}]
    headline = Effect(name="p50", outcome=Outcome.INCONCLUSIVE, headline=True)
    assert (duet._blocks_missing("p50", blocks, headline) or 0) >= 0
    unknown = [{"p50": np.array([float("nan")])}, {"p50": np.array([1.0])}]
    assert duet._blocks_missing("p50", unknown, headline) is None


def test_saturated_generator_makes_both_sides_invalid() -> None:
    whole = window(1.2)
    bound = Window(
        start=0.0,
        end=60.0,
        plan=CLOSED,
        seconds=whole.seconds[:40],
        saturated=whole.seconds[40:],
        flawed={DiscardReason.SATURATED: 20},
    )
    found = judge_duet(bound)
    assert found.outcome is Outcome.INVALID
    assert found.objection is not None and found.objection.side is None


@pytest.mark.parametrize(
    ("low", "high", "outcome", "expected", "settled"),
    [
        (-0.02, 0.02, Outcome.EQUIVALENT, Loss.WITHIN, True),
        (-0.04, -0.01, Outcome.WORSE, Loss.WITHIN, True),
        (-0.08, -0.01, Outcome.WORSE, Loss.WORSE, False),
        (-0.09, -0.06, Outcome.WORSE, Loss.BEYOND, True),
        (-0.09, 0.01, Outcome.INCONCLUSIVE, Loss.OPEN, False),
        (0.02, 0.09, Outcome.BETTER, Loss.WITHIN, True),
    ],
)
def test_loss_is_within_or_beyond_the_margin(
    low: float, high: float, outcome: Outcome, expected: Loss, settled: bool
) -> None:
    for name, ends in (("rate", (low, high)), ("p50", (-high, -low))):
        effect = Effect(name=name, outcome=outcome, headline=True, change=0.0, low=ends[0], high=ends[1], margin=0.05)
        verdict = Verdict(outcome=outcome, design=Design.DUET, effects=(effect,))
        assert (loss(verdict), is_settled(verdict)) == (expected, settled)


def test_interval_is_infinite_for_few_blocks_and_holds_over_all_tests() -> None:
    assert math.isinf(paired.effect(np.array([0.1, 0.2])).high)
    found = [one for noise in NOISES.values() for one in duets(noise, 6, 0.0, seed=3)]
    assert sum(math.isfinite(one.called) for one in found) <= 0.05 * len(found)
    assert sum(one.covered for one in found) >= 0.95 * len(found)


def test_duets_find_five_percent_and_are_three_times_as_exact_as_rounds() -> None:
    found = [one for noise in NOISES.values() for one in duets(noise, 6, math.log(0.95), seed=4)]
    assert sum(math.isfinite(one.called) for one in found) >= 0.85 * len(found)
    assert 3 * np.median([one.width for one in found]) <= np.median([one.rounds for one in found])


def folded(ratio: float, seconds: int, plan: LoadPlan = CLOSED) -> State:
    """Return the state of a duet after this many seconds, from its events."""
    state = fold(State(), RunStarted(t=0.0, run=1, plan=plan))
    random = np.random.default_rng(5)
    for second in range(seconds):
        groups = {}
        for name, factor in (("A", 1.0), ("B", ratio)):
            number = round(500 * factor * math.exp(random.normal(0, 0.01)))
            latency = Histogram.of(random.exponential(1e6 / factor, number).astype(np.int64) + 1000)
            groups[name] = Group(sent=number, completed=number, statuses={200: number - 1, 503: 1}, service=latency)
        total = sum(group.completed for group in groups.values())
        tick = Tick(
            t=second + 1.0,
            run=1,
            worker=0,
            start=float(second),
            sent=total,
            completed=total,
            statuses={200: total - 2, 503: 2},
            groups=groups,
            service=Histogram.merged(group.service for group in groups.values()),
        )
        state = fold(state, tick)
    return state


def test_seconds_have_the_counts_of_both_variants() -> None:
    second = folded(2.0, 8).seconds[4]
    one, two = second.variants
    assert (one.completed + two.completed, one.failed, two.failed) == (second.completed, 1, 1)
    assert two.completed > 1.8 * one.completed
    assert two.latency.count == two.completed


def test_run_is_extended_until_the_verdict() -> None:
    assert awaits_verdict(folded(1.2, 20), "")
    state = folded(1.2, 60)
    assert not awaits_verdict(state, "")
    [found] = verdicts(state)
    assert (found.outcome, found.design) == (Outcome.BETTER, Design.DUET)
    assert awaits_verdict(folded(1.0001, 20), "")


def test_result_of_a_check_against_a_base() -> None:
    for ratio, code, words in (
        (1.0, 0, "not worse by more than 5%"),
        (0.7, 99, "worse by more than 5%"),
        (1.0, 4, "a loss beyond 5% is not excluded"),
    ):
        variants = (TargetVariant(name="base", url="http://a/"), TargetVariant(name="head", url="http://u:secret@b/`|"))
        plan = LoadPlan(url="http://a/", variants=variants, duration=30.0, margin=0.05).without_secrets()
        state = folded(ratio, 15 if code == 4 else 90, plan)
        state = fold(state, RunEnded(t=90.0, run=1, reason="completed"))
        check = CheckResult(target="http://b/", result=all_results(state)[0], verdict=verdicts(state)[0])
        assert (check.exit_code, check.words) == (code, words)
        assert check_text(check).endswith(f"check: {words}")
        assert msgspec.json.decode(check_json(check))["check"]["exit"] == code
        suite = ElementTree.fromstring(junit(check))
        assert suite.attrib["failures"] == str(int(code > 0))
        comment = check_markdown(check)
        assert words in comment and "secret" not in comment and r"http\://b/\`\|" in comment
        assert ("| rate |" in comment) == (code != 4)


@pytest.mark.parametrize(
    ("url", "idle", "rate", "sharing"),
    [
        ("http://a:81/", 2.0, None, Sharing.YES),
        ("http://a:81/", None, None, Sharing.UNKNOWN),
        ("http://a:81/", 40.0, None, Sharing.NO),
        ("http://a:81/", 2.0, 50.0, Sharing.NO),
        ("http://b/", 2.0, None, Sharing.NO),
    ],
)
def test_rates_of_targets_that_share_a_busy_machine_are_no_answer(
    url: str, idle: float | None, rate: float | None, sharing: Sharing
) -> None:
    variants = (TargetVariant(name="A", url="http://a:80/"), TargetVariant(name="B", url=url))
    whole = window(1.2, plan=LoadPlan(url="http://a:80/", variants=variants, duration=30.0, rate=rate))
    whole = replace(whole, seconds=tuple(replace(second, idle=idle) for second in whole.seconds))
    assert cpu_sharing(whole) is sharing
    verdict = judge_duet(whole)
    assert any(one.kind is WarningKind.SHARED_CPU for one in verdict.warnings) == (sharing is Sharing.UNKNOWN)
    invalid = verdict.objection is not None and verdict.objection.cause is Cause.SHARED_CPU
    assert (verdict.outcome is Outcome.INVALID, invalid) == (sharing is Sharing.YES,) * 2
    assert (loss(verdict) is Loss.OPEN) == (sharing is Sharing.YES)


@pytest.mark.parametrize(("cost", "outcome"), [(1.0, Outcome.EQUIVALENT), (0.7, Outcome.BETTER)])
def test_cpu_per_request_compares_targets_that_share_a_cpu(cost: float, outcome: Outcome) -> None:
    """The second target got twice the CPU, and has twice the rate or more."""
    names = {"old": 25.0, "new": 50.0}
    variants = tuple(TargetVariant(name=name, url=f"http://a:{at}/", host=name) for at, name in enumerate(names, 80))
    whole = window(2.0 / cost, plan=LoadPlan(url="http://a/", variants=variants, duration=30.0))
    hosts = {}
    for name, busy in names.items():
        points = synthetic.window(1, busy=90.0).hosts["web1"]
        rates = [second.variants[name == "new"].completed for second in whole.seconds]
        usual = sum(rates) / len(rates)
        hosts[name] = tuple(
            replace(point, servers=busy * rate / usual) for point, rate in zip(points, rates, strict=True)
        )
    verdict = judge_duet(replace(whole, hosts=hosts, cpus=dict.fromkeys(names, 2)))
    headline, *others = verdict.effects
    assert (headline.name, headline.outcome, verdict.outcome) == (COST, outcome, outcome)
    assert {each.outcome for each in others if each.name in ("rate", "p50", "p99")} == {Outcome.INVALID}
