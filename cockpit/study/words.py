"""Texts about a study's progress, for stderr and the screen."""

from __future__ import annotations

import math

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.words.verdicts import metric_words, verdict_line
from cockpit.model.study import MOST_ROUNDS, Study, Variant
from cockpit.model.text import sanitize
from cockpit.study.judging import detectable, headline_of, level_words
from cockpit.study.plan import DurationRange, first_test
from cockpit.study.results import Contradiction, RoundSpread, StudyResult, StudyVerdict
from cockpit.study.runner import StudyProgress


def progress_words(progress: StudyProgress) -> str:
    """Return `round 2 of 12 · step 3 of 8 · event · run 2 · 4 to 9 min left`."""
    left = f" · {extent_words(progress.left)} left" if progress.left.known else ""
    place = f"step {progress.step} of {progress.steps} · " if progress.steps else ""
    return f"round {max(1, progress.round)} of {progress.rounds} · {place}{progress.now}{left}"


def round_lines(result: StudyResult, left: DurationRange) -> list[str]:
    """Return lines about a study after a round: its comparisons with their verdicts, and the maximum time left."""
    study, done = result.study, result.complete_rounds
    head = f"round {done} of {study.all_rounds} done"
    if not study.compare:
        return [head]
    if study.rounds < FIRST_TEST:
        return [f"{head} · one test after the last{_at_most(left) if done < study.all_rounds else ''}"]
    if result.counted_rounds < FIRST_TEST:
        return [f"{head} · tests begin after round {first_test(study)}{_at_most(left)}"]
    verdicts = [judged for judged in result.verdicts if not judged.control]
    continues = done < study.all_rounds and not all(judged.closed for judged in verdicts)
    lines = [f"{head} · {sensitivity_words(study, result.spread, done=done)}{_at_most(left) if continues else ''}"]
    return lines + [
        f"  {'closed' if judged.closed else 'open  '}  {verdict_line(judged.verdict)}" for judged in verdicts
    ]


def state_words(result: StudyResult) -> str:
    """Return one line: `1 of 3 closed: fast better · open: near, same · minimum detectable effect 2.3% …`."""
    study = result.study
    if not study.compare or result.counted_rounds < FIRST_TEST:
        return ""
    closed = [judged for judged in result.verdicts if judged.closed]
    words = [f"{len(closed)} of {study.comparisons} closed"]
    if closed:
        words[0] += f": {', '.join(f'{_place(study, judged)} {judged.verdict.outcome}' for judged in closed)}"
    still_open = [judged for judged in result.verdicts if not judged.closed and not judged.control]
    words += [f"open: {', '.join(_place(study, judged) for judged in still_open)}"] if still_open else []
    return sanitize(" · ".join([*words, sensitivity_words(study, result.spread, done=result.complete_rounds)]))


def _place(study: Study, judged: StudyVerdict) -> str:
    return " ".join(filter(None, (judged.other, level_words(study, judged.level), judged.pass_name)))


def _at_most(left: DurationRange) -> str:
    return f" · at most {length_words(left.most)} left" if left.known and math.isfinite(left.most) else ""


def sensitivity_words(study: Study, spread: RoundSpread | None, source: str = "A/A control", done: int = 0) -> str:
    """Return the minimum detectable effect on the study's headline in all its rounds, and the basis of the estimate.

    `done` is the number of rounds so far, `source` the origin of the spread.
    """
    name = metric_words(headline_of(study))
    if spread is None:
        first = first_test(study)
        why = f"until {first} rounds are done" if done < first else "because too many A/A control rounds are invalid"
        why = why if study.control else "without an A/A control"
        return f"minimum detectable effect on {name}: unknown {why}"
    effect = detectable(study, spread.deviation)
    shown = f"{100 * effect:.1f}%" if effect < 1 else f"×{1 + effect:.1f}"
    return (
        f"minimum detectable effect on {name} {shown} in {study.rounds} rounds "
        f"(s_d {100 * spread.deviation:.1f}%, {source}, {spread.freedom} degrees of freedom)"
    )


def contradiction_words(judged: StudyVerdict) -> str:
    """Return how the A/A control contradicts a comparison; "" if it does not."""
    match judged.contradiction:
        case Contradiction.CONTROL_DIFFERS:
            return "the A/A control differs too: repeated set-ups of the same settings differ"
        case Contradiction.SMALLER_THAN_CONTROL:
            return "the effect is smaller than that of the A/A control"
        case _:
            return ""


def needed_words(judged: StudyVerdict) -> str:
    """Return the number of rounds that would conclude a comparison; "" if it is concluded or the number is unknown."""
    if judged.needed is None:
        return ""
    if judged.needed > MOST_ROUNDS:
        return f"more than {MOST_ROUNDS} rounds needed: make runs longer"
    time = f", {length_words(judged.needed_seconds)}" if judged.needed_seconds else ""
    return f"about {judged.needed} rounds needed{time}"


def extent_words(extent: DurationRange) -> str:
    """Return `12 min`, `12 to 30 min` or `80 s to 3 min`, with a note if the duration of the runs is unknown."""
    least, most = length_words(extent.least), length_words(extent.most)
    number, _, unit = least.partition(" ")
    length = most if least == most else f"{number if most.endswith(unit) else least} to {most}"
    return length if extent.known else f"{length}, plus the time of the runs (set study.run_time)"


def length_words(seconds: float) -> str:
    """Return `80 s` or `12 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def settings_of(variant: Variant) -> list[str]:
    """Return the knobs and the options of the load that a variant sets."""
    load = [f"{name} {getattr(variant, name):g}" for name in ("concurrency", "rate") if getattr(variant, name)]
    load += [f"HTTP/{variant.http}"] if variant.http else []
    load += [f"bursts of {variant.burst}"] if variant.burst else []
    load += [f"at most {variant.max_in_flight} in flight"] if variant.max_in_flight else []
    load += [f"{variant.streams} streams per connection"] if variant.streams else []
    load += [] if variant.keepalive is None else [f"keep-alive {'on' if variant.keepalive else 'off'}"]
    load += [f"paths {variant.paths.pattern or len(variant.paths.listed)}"] if variant.paths else []
    load += [f"requests {', '.join(variant.mix)}"] if variant.mix else []
    return [*(f"{knob} {value}" for knob, value in variant.set), *load]
