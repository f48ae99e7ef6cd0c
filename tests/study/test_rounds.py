"""Rounds of a study: which comparisons are closed and drop out, when it ends, and what its A/A control contradicts."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.outcome import Outcome
from cockpit.model.load import LoadPlan
from cockpit.model.study import CONTROL, Pass, Study, Variant
from cockpit.profiles.study import with_control
from cockpit.report.study import study_text
from cockpit.report.study_json import StudyJson, study_json
from cockpit.study.collecting import collect
from cockpit.study.judging import detectable, next_round
from cockpit.study.plan import Extent, StudyStep, planned, whole_time
from cockpit.study.results import Contradiction, StudyResult, StudyVerdict
from cockpit.study.words import round_lines
from tests.study.sessions import Rates, session, whole_study

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
    """Rates of variants that vary from round to round by this deviation, always in the same way."""

    def rate(step: StudyStep) -> float:
        drawn = random.Random(f"{step.variant.name} {step.round} {step.level}")
        return means[step.variant.name] * (1 + drawn.gauss(0, deviation))

    return rate


def by_name(result: StudyResult) -> dict[str, StudyVerdict]:
    return {one.other: one for one in result.verdicts}


@pytest.fixture(scope="module")
def done() -> StudyResult:
    return whole_study(STUDY, rates())


def test_closed_variants_drop_out_and_the_baseline_and_the_control_stay(done: StudyResult) -> None:
    found = by_name(done)
    assert (found["fast"].verdict.outcome, found["fast"].closed, found["fast"].rounds) == (Outcome.BETTER, True, 4)
    last = {cell.variant: cell.last_round for cell in done.cells}
    assert last["fast"] == 4
    assert last["base"] == last[CONTROL] == max(last.values()) == len(done.rounds) > 4
    for turn in done.rounds[4:]:
        names = [name for name, _ in turn.steps]
        assert "fast" not in names and {"base", CONTROL} <= set(names)
        assert ("base", "fast", None) not in turn.open


def test_discarded_rounds_come_first_and_count_nowhere() -> None:
    study = replace(STUDY, discard_rounds=2, rounds=5)
    found = whole_study(study, rates())
    assert len(found.rounds) == found.whole_rounds <= study.all_rounds == 7
    assert found.counted_rounds == len(found.rounds) - 2
    base = next(cell for cell in found.cells if cell.variant == "base")
    assert [run.place.round for run in base.discarded] == [1, 2]
    fast = by_name(found)["fast"]
    assert (fast.verdict.outcome, fast.closed, fast.rounds) == (Outcome.BETTER, True, 4), "not before the sixth round"
    assert max(cell.last_round for cell in found.cells if cell.variant == "fast") == 6
    assert "of at most 5 rounds in random order, seed 1, after 2 discarded" in study_text(found)
    assert json.loads(study_json(found))["discard_rounds"] == 2
    assert whole_time(study, (), ()).most == 7 / 5 * whole_time(replace(study, discard_rounds=0), (), ()).most
    early = collect([session(study, [1, 2, 3, 4, 5], rates())], "small")
    assert early is not None and not any(one.closed for one in early.verdicts)
    assert "tests begin after round 6" in round_lines(early, Extent(60, 600, True))[0]


def test_a_verdict_rests_on_the_rounds_in_which_it_was_open(done: StudyResult) -> None:
    for one in done.verdicts:
        opened = len(done.rounds) if one.control else sum((one.first, one.other, None) in t.open for t in done.rounds)
        assert one.rounds == one.verdict.values[0] == opened


def test_nothing_is_tested_before_the_fourth_round() -> None:
    state = session(STUDY, [1, 2, 3], rates({**MEANS, "fast": 40000.0}))
    result = collect([state], "small")
    assert result is not None and not any(one.closed for one in result.verdicts)
    turn = next_round(STUDY, result)
    assert turn is not None and turn.round == 4 and turn.open == planned(STUDY)


def test_a_study_ends_early_when_every_comparison_is_closed() -> None:
    study = replace(STUDY, rounds=50, compare=(("base", "fast"), ("base", "same")), variants=STUDY.variants[:3])
    study = replace(study, compare=(("base", "fast"),))
    result = whole_study(study, rates())
    assert result.ended and len(result.rounds) == 4
    assert "4 of at most 50 rounds in random order, seed 1: every comparison was closed early" in study_text(result)


def test_an_equivalent_variant_is_closed_too() -> None:
    study = replace(STUDY, variants=(*STUDY.variants[:2], STUDY.variants[4]), compare=(("base", "same"),))
    result = whole_study(study, rates(deviation=0.002))
    assert by_name(result)["same"].verdict.outcome is Outcome.EQUIVALENT
    assert len(result.rounds) == 4


def test_the_budget_ends_what_stays_open() -> None:
    study = replace(STUDY, rounds=5, compare=(("base", "near"),), variants=(*STUDY.variants[:2], STUDY.variants[3]))
    result = whole_study(study, rates(deviation=0.05))
    one = by_name(result)["near"]
    assert (len(result.rounds), result.ended, one.closed) == (5, True, False)
    assert one.verdict.outcome is Outcome.INCONCLUSIVE
    effect = one.verdict.headline
    assert effect is not None and effect.detectable is not None and effect.detectable > 0.05
    assert one.needed is not None and one.needed > 5
    text, told = study_text(result), json.loads(study_json(result))
    assert "detectable from" in text
    assert [each["needed"] for each in told["verdicts"] if not each["control"]] == [one.needed]
    # A run of 3 s and a second until the next, in the baseline, the control and the variant.
    assert one.needed_seconds == pytest.approx(one.needed * 3 * 4, rel=0.2)
    words = (
        f"about {one.needed} rounds needed, " if one.needed <= 50 else "more than 50 rounds needed: make runs longer"
    )
    assert words in text


def test_levels_close_by_themselves_and_a_level_stays_until_all_passes_are_closed() -> None:
    study = replace(
        STUDY, variants=STUDY.variants[:3], compare=(("base", "fast"),), levels=(1.0, 8.0), rounds=6, plan=PLAN
    )

    def rate(step: StudyStep) -> float:
        drawn = random.Random(f"{step.variant.name} {step.round}").gauss(0, 0.05)
        fast = step.variant.name == "fast" and step.level == 8.0
        return 4000.0 * (2.0 if fast else 1 + drawn)

    result = whole_study(study, rate)
    assert {level for _, _, level in result.rounds[-1].open} == {1.0}
    assert {level for _, level in result.rounds[-1].steps} == {1.0}
    assert [len(one.steps) for one in result.rounds] == [6, 6, 6, 6, 3, 3]
    both = replace(study, passes=(Pass(name="cold"), Pass(name="warm")))
    assert both.comparisons == 4


def test_interrupted_in_a_round_it_goes_on_with_the_same_round(done: StudyResult) -> None:
    first = replace(done, done=frozenset(list(done.done)[:-1]), ended=False)
    turn = next_round(STUDY, first)
    assert turn is not None
    assert turn == next(one for one in done.rounds if one.round == turn.round), (
        "same order, same steps, same comparisons"
    )


def test_a_control_that_differs_speaks_against_every_conclusion() -> None:
    study = replace(STUDY, variants=STUDY.variants[:3], compare=(("base", "fast"),), rounds=4)
    result = whole_study(study, rates({**MEANS, CONTROL: 5000.0}))
    assert result.control_differs and by_name(result)["fast"].contradiction is Contradiction.CONTROL_DIFFERS
    assert "fast vs base: better: rate" in study_text(result)
    assert "! the A/A control differs too" in study_text(result)
    told = json.loads(study_json(result))["verdicts"]
    assert [(one["control"], one["contradiction"]) for one in told] == [(True, None), (False, "control differs")]


def test_an_effect_smaller_than_that_of_the_control_has_a_warning() -> None:
    study = replace(STUDY, variants=(*STUDY.variants[:2], STUDY.variants[3]), compare=(("base", "near"),), rounds=4)

    def rate(step: StudyStep) -> float:
        # The control is 3% off on average and varies widely; the other variant is 2% off each time.
        off = {"near": 0.02, CONTROL: 0.03 + (0.05 if step.round % 2 else -0.05)}.get(step.variant.name, 0.0)
        return 8000.0 * (1 + off)

    one = by_name(whole_study(study, rate))["near"]
    assert (one.verdict.outcome, one.contradiction) == (Outcome.BETTER, Contradiction.SMALLER_THAN_CONTROL)


def test_the_control_supplies_the_spread_and_what_can_be_detected(done: StudyResult) -> None:
    assert done.spread is not None
    assert 0.008 < done.spread.deviation < 0.03, "two runs of 1% each"
    assert done.spread.freedom == len(done.rounds) - 1
    assert detectable(STUDY, done.spread.deviation) > detectable(replace(STUDY, rounds=40), done.spread.deviation)
    assert 1e9 < detectable(STUDY, 1e6) < float("inf"), "whatever a recording says"
    told = json.loads(study_json(done))
    assert told["spread"]["deviation"] == done.spread.deviation
    assert f"minimum detectable effect on rate {100 * told['spread']['detectable']:.1f}% in 10 rounds" in study_text(
        done
    )


def test_text_and_json_agree_on_every_word_seed_order_and_round(done: StudyResult) -> None:
    told, text = json.loads(study_json(done)), study_text(done)
    jsonschema.validate(told, msgspec.json.schema(StudyJson))
    assert (told["seed"], told["budget"], told["whole_rounds"]) == (1, 10, len(done.rounds))
    assert [one["order"] for one in told["rounds"]] == [[list(step) for step in turn.steps] for turn in done.rounds]
    for one in told["verdicts"]:
        assert one["verdict"]["text"] in text
    assert "A/A control vs base: " in text


def test_progress_names_what_is_closed_how_and_what_is_open(done: StudyResult) -> None:
    first_four = collect([session(STUDY, [1, 2, 3, 4], rates())], "small")
    assert first_four is not None
    lines = round_lines(first_four, Extent(60, 600, True))
    assert (
        lines[0].startswith("round 4 of 10 done · minimum detectable effect on rate ")
        and "at most 10 min left" in lines[0]
    )
    assert any(line.startswith("  closed  fast vs base: better: rate +") for line in lines)
    assert any(line.startswith("  open    near vs base: inconclusive: rate ") for line in lines)
    early = collect([session(STUDY, [1], rates())], "small")
    assert early is not None
    assert round_lines(early, Extent(60, 600, True)) == [
        "round 1 of 10 done · tests begin after round 4 · at most 10 min left"
    ]


def test_metrics_that_a_study_judges_must_all_be_conclusive() -> None:
    study = replace(STUDY, variants=STUDY.variants[:3], compare=(("base", "fast"),), rounds=5, judge=("p99", "rate"))

    def rate(step: StudyStep) -> float:
        return 4000.0 * (1 + random.Random(f"{step.variant.name} {step.round}").gauss(0, 0.05))

    result = whole_study(study, rate)
    one = by_name(result)["fast"]
    assert [effect.name for effect in one.verdict.effects] == ["p99", "rate"] and one.verdict.effects[0].headline
    assert not one.closed and len(result.rounds) == 5


def spoiling(study: Study, rounds: set[int]) -> StudyResult:
    """A study whose generator has no CPU to spare in some rounds of the variant `fast`."""

    def busy(step: StudyStep) -> bool:
        return step.variant.name == "fast" and step.round in rounds

    return whole_study(study, rates({**MEANS, "fast": 4050.0}), busy)


@pytest.fixture
def one_pair() -> Study:
    return replace(STUDY, variants=STUDY.variants[:3], compare=(("base", "fast"),), rounds=8)


def test_a_few_spoiled_rounds_are_left_out_and_counted(one_pair: Study) -> None:
    result = spoiling(one_pair, {2})
    one = by_name(result)["fast"]
    assert one.spoiled == 1 and one.rounds == len(result.rounds) - 1
    assert one.verdict.outcome is not Outcome.INVALID
    assert f"1 of {len(result.rounds)} rounds left out: generator saturated" in study_text(result)


def test_many_spoiled_rounds_make_a_comparison_invalid_but_it_may_recover(one_pair: Study) -> None:
    result = spoiling(one_pair, {1, 3})
    assert len(result.rounds) == 8, "not closed at the fourth, when half of them were spoiled"
    one = by_name(result)["fast"]
    assert (one.spoiled, one.rounds) == (2, 6) and one.verdict.outcome is not Outcome.INVALID


def test_a_comparison_that_is_spoiled_in_every_round_is_closed_as_invalid(one_pair: Study) -> None:
    result = spoiling(replace(one_pair, plan=replace(PLAN, rate=4000.0)), set(range(1, 9)))
    one = by_name(result)["fast"]
    assert one.verdict.outcome is Outcome.INVALID and one.closed and len(result.rounds) == 4


def test_without_an_unspoiled_round_nothing_is_known_of_what_can_be_detected(one_pair: Study) -> None:
    result = whole_study(one_pair, rates(), busy=lambda _: True)
    assert result.spread is None
    assert "on rate: unknown as too many rounds of the A/A control were spoiled" in study_text(result)


def test_a_variant_that_outruns_the_generator_in_every_round_is_at_least_better(one_pair: Study) -> None:
    result = whole_study(one_pair, rates(), busy=lambda step: step.variant.name == "fast")
    one = by_name(result)["fast"]
    assert (one.verdict.outcome, one.verdict.at_least) == (Outcome.BETTER, True)
    assert one.closed and len(result.rounds) == 4


def test_a_variant_whose_requests_fail_is_closed_as_worse(one_pair: Study) -> None:
    result = whole_study(one_pair, rates(), failing=lambda step: step.variant.name == "fast")
    one = by_name(result)["fast"]
    assert one.verdict.outcome is Outcome.WORSE and one.verdict.effects[0].outcome is Outcome.INVALID
    assert one.closed and len(result.rounds) == 4
