"""Rounds of a study: closed comparisons drop out, the study ends, and the A/A control may contradict verdicts."""

import json
import random
from collections.abc import Container, Mapping
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Outcome
from cockpit.model.load.plan import LoadPlan
from cockpit.model.study import CONTROL, Pass, Study, Variant
from cockpit.profiles.study import with_control
from cockpit.report.study import study_text
from cockpit.report.study_json import StudyJson, study_json
from cockpit.study.collecting import collect
from cockpit.study.judging import detectable, next_round
from cockpit.study.plan import DurationRange, StudyStep, planned_comparisons, study_duration
from cockpit.study.results import Contradiction, StudyResult, StudyVerdict
from cockpit.study.words import round_lines
from tests.study.sessions import Condition, Rates, session, whole_study

PLAN = LoadPlan(url="http://web1/", concurrency=20, duration=3.0)
STUDY = with_control(
    Study(
        plan=PLAN,
        variants=tuple(Variant(name=name) for name in ("base", "fast", "near", "same")),
        rounds=10,
        compare=(("base", "fast"), ("base", "near"), ("base", "same")),
    )
)
MEANS = {"base": 4000.0, CONTROL: 4000.0, "fast": 6000.0, "near": 4080.0, "same": 4000.0}


def rates(means: Mapping[str, float] = MEANS, deviation: float = 0.01) -> Rates:
    """Return rates that vary per variant and round with this relative deviation, deterministically."""

    def rate(step: StudyStep) -> float:
        drawn = random.Random(f"{step.variant.name} {step.round} {step.level}")
        return means[step.variant.name] * (1 + drawn.gauss(0, deviation))

    return rate


def by_name(result: StudyResult) -> dict[str, StudyVerdict]:
    return {comparison.other: comparison for comparison in result.verdicts}


def with_only(*names: str, rounds: int = STUDY.rounds, **values: Any) -> Study:
    """Return the study with the control and these variants; the first is compared with the others."""
    variants = tuple(variant for variant in STUDY.variants if variant.name in (*names, CONTROL))
    compare = tuple((names[0], name) for name in names[1:])
    return replace(STUDY, variants=variants, compare=compare, rounds=rounds, **values)


@pytest.fixture(scope="module")
def done() -> StudyResult:
    return whole_study(STUDY, rates())


def test_closed_variants_drop_out_but_baseline_and_control_stay(done: StudyResult) -> None:
    found = by_name(done)
    assert (found["fast"].verdict.outcome, found["fast"].closed, found["fast"].rounds) == (Outcome.BETTER, True, 4)
    last = {cell.variant: cell.last_round for cell in done.cells}
    assert last["fast"] == 4
    assert last["base"] == last[CONTROL] == max(last.values()) == len(done.rounds) > 4
    for turn in done.rounds[4:]:
        names = [name for name, _ in turn.steps]
        assert "fast" not in names and {"base", CONTROL} <= set(names)
        assert ("base", "fast", None) not in turn.open


def test_discarded_rounds_are_first_and_not_counted() -> None:
    study = replace(STUDY, discard_rounds=2, rounds=5)
    found = whole_study(study, rates())
    assert len(found.rounds) == found.complete_rounds <= study.all_rounds == 7
    assert found.counted_rounds == len(found.rounds) - 2
    base = next(cell for cell in found.cells if cell.variant == "base")
    assert [run.place.round for run in base.discarded] == [1, 2]
    fast = by_name(found)["fast"]
    assert (fast.verdict.outcome, fast.closed, fast.rounds) == (Outcome.BETTER, True, 4), "not before the sixth round"
    assert max(cell.last_round for cell in found.cells if cell.variant == "fast") == 6
    assert "of at most 5 rounds in random order, seed 1, after 2 discarded" in study_text(found)
    assert json.loads(study_json(found))["discard_rounds"] == 2
    assert study_duration(study, (), ()).most == 7 / 5 * study_duration(replace(study, discard_rounds=0), (), ()).most
    early = collect([session(study, [1, 2, 3, 4, 5], rates())], "small")
    assert early is not None and not any(comparison.closed for comparison in early.verdicts)
    assert "tests begin after round 6" in round_lines(early, DurationRange(60, 600, True))[0]


def test_verdict_uses_rounds_in_which_comparison_was_open(done: StudyResult) -> None:
    for comparison in done.verdicts:
        pair = (comparison.first, comparison.other, None)
        opened = len(done.rounds) if comparison.control else sum(pair in turn.open for turn in done.rounds)
        assert comparison.rounds == comparison.verdict.values[0] == opened


def test_no_comparison_is_tested_before_fourth_round() -> None:
    state = session(STUDY, [1, 2, 3], rates({**MEANS, "fast": 40000.0}))
    result = collect([state], "small")
    assert result is not None and not any(comparison.closed for comparison in result.verdicts)
    turn = next_round(STUDY, result)
    assert turn is not None and turn.round == 4 and turn.open == planned_comparisons(STUDY)


@pytest.mark.parametrize(("other", "deviation", "outcome"), [("fast", 0.01, "better"), ("same", 0.002, "equivalent")])
def test_study_ends_early_if_all_comparisons_are_closed(other: str, deviation: float, outcome: str) -> None:
    result = whole_study(with_only("base", other, rounds=50), rates(deviation=deviation))
    assert result.ended and len(result.rounds) == 4 and by_name(result)[other].verdict.outcome == outcome
    assert "4 of at most 50 rounds in random order, seed 1: every comparison was closed early" in study_text(result)


def test_budget_ends_open_comparison_as_inconclusive() -> None:
    result = whole_study(with_only("base", "near", rounds=5), rates(deviation=0.05))
    comparison = by_name(result)["near"]
    assert (len(result.rounds), result.ended, comparison.closed) == (5, True, False)
    assert comparison.verdict.outcome is Outcome.INCONCLUSIVE
    effect = comparison.verdict.headline
    assert effect is not None and effect.detectable is not None and effect.detectable > 0.05
    assert comparison.needed is not None and comparison.needed > 5
    text, data = study_text(result), json.loads(study_json(result))
    assert "detectable from" in text
    assert [verdict["needed"] for verdict in data["verdicts"] if not verdict["control"]] == [comparison.needed]
    # A run of 3 s and a second until the next, in the baseline, the control and the variant.
    assert comparison.needed_seconds == pytest.approx(comparison.needed * 3 * 4, rel=0.2)
    many = comparison.needed > 50
    needed = "more than 50 rounds needed: make runs longer" if many else f"about {comparison.needed} rounds needed, "
    assert needed in text


def test_levels_are_closed_independently() -> None:
    study = with_only("base", "fast", rounds=6, levels=(1.0, 8.0))

    def rate(step: StudyStep) -> float:
        drawn = random.Random(f"{step.variant.name} {step.round}").gauss(0, 0.05)
        fast = step.variant.name == "fast" and step.level == 8.0
        return 4000.0 * (2.0 if fast else 1 + drawn)

    result = whole_study(study, rate)
    assert {level for _, _, level in result.rounds[-1].open} == {1.0}
    assert {level for _, level in result.rounds[-1].steps} == {1.0}
    assert [len(turn.steps) for turn in result.rounds] == [6, 6, 6, 6, 3, 3]
    both = replace(study, passes=(Pass(name="cold"), Pass(name="warm")))
    assert both.comparisons == 4


def test_interrupted_study_continues_with_same_round(done: StudyResult) -> None:
    first = replace(done, done=frozenset(list(done.done)[:-1]), ended=False)
    turn = next_round(STUDY, first)
    assert turn is not None
    assert [turn] == [other for other in done.rounds if other.round == turn.round], "same order, steps and comparisons"


@pytest.mark.parametrize(
    ("other", "control", "contradiction"),
    [
        ("fast", 5980.0, Contradiction.CONTROL_DIFFERS),
        ("fast", 4400.0, None),
        ("fast", 3600.0, None),
        ("near", 4200.0, Contradiction.CONTROL_DIFFERS),
        ("same", 4200.0, Contradiction.CONTROL_DIFFERS),
    ],
)
def test_differing_control_contradicts_effects_not_clearly_larger(
    other: str, control: float, contradiction: Contradiction | None
) -> None:
    result = whole_study(with_only("base", other, rounds=4), rates({**MEANS, CONTROL: control}, deviation=0.002))
    assert result.control_differs
    assert by_name(result)[other].contradiction is contradiction
    assert ("! the A/A control differs too" in study_text(result)) == (contradiction is not None)
    data = json.loads(study_json(result))["verdicts"]
    found = [(verdict["control"], verdict["contradiction"]) for verdict in data]
    assert found == [(True, None), (False, contradiction)]


def test_effect_smaller_than_control_has_warning() -> None:
    def rate(step: StudyStep) -> float:
        # The control is 3% off on average and varies widely; the other variant is 2% off each time.
        off = {"near": 0.02, CONTROL: 0.03 + (0.05 if step.round % 2 else -0.05)}.get(step.variant.name, 0.0)
        return 8000.0 * (1 + off)

    comparison = by_name(whole_study(with_only("base", "near", rounds=4), rate))["near"]
    assert comparison.verdict.outcome is Outcome.BETTER
    assert comparison.contradiction is Contradiction.SMALLER_THAN_CONTROL


def test_control_supplies_spread_and_detectable_effect(done: StudyResult) -> None:
    assert done.spread is not None
    assert 0.008 < done.spread.deviation < 0.03, "two runs of 1% each"
    assert done.spread.freedom == len(done.rounds) - 1
    assert detectable(STUDY, done.spread.deviation) > detectable(replace(STUDY, rounds=40), done.spread.deviation)
    assert 1e9 < detectable(STUDY, 1e6) < float("inf"), "finite for any recorded spread"
    data = json.loads(study_json(done))
    assert data["spread"]["deviation"] == done.spread.deviation
    effect = f"minimum detectable effect on rate {100 * data['spread']['detectable']:.1f}% in 10 rounds"
    assert effect in study_text(done)


def test_text_and_json_agree(done: StudyResult) -> None:
    data, text = json.loads(study_json(done)), study_text(done)
    jsonschema.validate(data, msgspec.json.schema(StudyJson))
    assert (data["seed"], data["budget"], data["complete_rounds"]) == (1, 10, len(done.rounds))
    assert [turn["order"] for turn in data["rounds"]] == [[list(step) for step in turn.steps] for turn in done.rounds]
    for verdict in data["verdicts"]:
        assert verdict["verdict"]["text"] in text
    assert "A/A control vs base: " in text


def test_progress_lists_closed_and_open_comparisons(done: StudyResult) -> None:
    first_four = collect([session(STUDY, [1, 2, 3, 4], rates())], "small")
    assert first_four is not None
    lines = round_lines(first_four, DurationRange(60, 600, True))
    assert lines[0].startswith("round 4 of 10 done · minimum detectable effect on rate ")
    assert "at most 10 min left" in lines[0]
    assert any(line.startswith("  closed  fast vs base: better: rate +") for line in lines)
    assert any(line.startswith("  open    near vs base: inconclusive: rate ") for line in lines)
    early = collect([session(STUDY, [1], rates())], "small")
    assert early is not None
    assert round_lines(early, DurationRange(60, 600, True)) == [
        "round 1 of 10 done · tests begin after round 4 · at most 10 min left"
    ]


def test_all_judged_metrics_must_be_conclusive() -> None:
    study = with_only("base", "fast", rounds=5, metrics=("p99", "rate"))

    def rate(step: StudyStep) -> float:
        return 4000.0 * (1 + random.Random(f"{step.variant.name} {step.round}").gauss(0, 0.05))

    result = whole_study(study, rate)
    comparison = by_name(result)["fast"]
    effects = comparison.verdict.effects
    assert [effect.name for effect in effects] == ["p99", "rate"] and effects[0].headline
    assert not comparison.closed and len(result.rounds) == 5


def fast_study(
    condition: Condition, fast: float = 6000.0, rounds: Container[int] = range(9), **load: float
) -> StudyResult:
    """Return a study with the variant `fast`, which has this condition in some rounds."""

    def steps(step: StudyStep) -> Condition:
        return condition if step.variant.name == "fast" and step.round in rounds else ""

    study = with_only("base", "fast", rounds=8, plan=replace(PLAN, **load))
    return whole_study(study, rates({**MEANS, "fast": fast}), steps)


def test_few_spoiled_rounds_are_excluded_and_counted() -> None:
    result = fast_study("busy", 4050.0, {2})
    comparison = by_name(result)["fast"]
    assert comparison.excluded == 1 and comparison.rounds == len(result.rounds) - 1
    assert comparison.verdict.outcome is not Outcome.INVALID
    assert f"1 of {len(result.rounds)} rounds excluded: generator saturated" in study_text(result)


def test_comparison_recovers_from_many_spoiled_rounds() -> None:
    result = fast_study("busy", 4050.0, {1, 3})
    assert len(result.rounds) == 8, "not closed at round 4, when half of the rounds were excluded"
    comparison = by_name(result)["fast"]
    assert (comparison.excluded, comparison.rounds) == (2, 6) and comparison.verdict.outcome is not Outcome.INVALID


def test_variant_that_is_spoiled_or_fails_in_all_rounds_is_closed() -> None:
    excluded, saturating, failing = (
        fast_study("busy", rate=4000.0, fast=4050.0),
        fast_study("busy"),
        fast_study("failing"),
    )
    for result in (excluded, saturating, failing):
        assert by_name(result)["fast"].closed and len(result.rounds) == 4
    assert by_name(excluded)["fast"].verdict.outcome is Outcome.INVALID
    verdict = by_name(saturating)["fast"].verdict
    assert (verdict.outcome, verdict.at_least) == (Outcome.BETTER, True)
    verdict = by_name(failing)["fast"].verdict
    assert (verdict.outcome, verdict.effects[0].outcome) == (Outcome.WORSE, Outcome.INVALID)


def test_detectable_effect_without_unspoiled_round_is_unknown() -> None:
    result = whole_study(with_only("base", "fast", rounds=8), rates(), lambda _: "busy")
    assert result.spread is None
    assert "on rate: unknown because too many A/A control rounds are invalid" in study_text(result)
