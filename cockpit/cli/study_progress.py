"""Plan of a study as text, and its progress on stderr."""

from __future__ import annotations

import asyncio
import os
import sys

from rich.cells import set_cell_size

from cockpit.analysis.intervals import FIRST_TEST
from cockpit.cli.progress import result_words
from cockpit.cli.terminal import raw
from cockpit.metrics.results import run_result
from cockpit.model.state import State
from cockpit.model.study import Study, Variant, variant_plan
from cockpit.model.text import count_text, sanitize
from cockpit.profiles.profile import Profile
from cockpit.report.words import plan_words
from cockpit.session.loop import Session
from cockpit.study.history import earlier_spread
from cockpit.study.judging import headline_of, level_words
from cockpit.study.plan import planned_comparisons, round_of, search_time, steps_of, study_duration
from cockpit.study.results import StudyResult
from cockpit.study.runner import StudyRunner
from cockpit.study.words import extent_words, length_words, progress_words, round_lines, sensitivity_words, settings_of

REFRESH = 0.5


def plan_text(profile: Profile, study: Study) -> str:
    """Return the plan of a study with its duration and minimum detectable effect."""
    shown = study.without_secrets()
    lines = [f"study {sanitize(profile.name)} ({study.form})"]
    lines += [f"  {sanitize(line.strip())}" for line in profile.question.splitlines() if line.strip()]
    lines += [f"  load      {plan_words(shown.plan)}", *_variants(shown)]
    lines += [f"  {name:<8}  {text}" for name, text in _rules(study)]
    if study.seed is not None:
        lines += ["", "order:", *(_order(shown, turn) for turn in range(1, study.all_rounds + 1))]
    return "\n".join([*lines, "", *schedule_lines(profile, study)])


def schedule_lines(profile: Profile, study: Study, known: StudyResult | None = None) -> list[str]:
    """Return rounds, seed, duration and minimum detectable effect of a study. `known`: result of completed rounds."""
    seed = "random seed" if study.seed is None else f"seed {study.seed}"
    rounds = count_text(study.rounds, "round")
    if study.rounds > FIRST_TEST and study.compare:
        rounds = f"{FIRST_TEST} to {rounds}"
    rounds += f" after {study.discard_rounds} discarded" if study.discard_rounds else ""
    length = extent_words(study_duration(study, profile.knobs, profile.actions))
    done = f", of which {known.complete_rounds} are done" if known and known.complete_rounds else ""
    lines = [f"{rounds}, {len(study.variants)} variants, {seed}: {length}{done}"]
    if not study.compare:
        return lines
    earlier = earlier_spread(profile.name, study.form)
    if known is not None and known.spread is not None:
        lines.append(sensitivity_words(study, known.spread))
    elif earlier is not None:
        spread, studies = earlier
        lines.append(sensitivity_words(study, spread, count_text(studies, "earlier A/A control")))
    else:
        lines.append(sensitivity_words(study, None))
    return lines


def _order(study: Study, turn: int) -> str:
    names = dict.fromkeys(
        step.variant.name for step in steps_of(study, round_of(study, turn, planned_comparisons(study)))
    )
    return f"  round {turn:<3} {' · '.join(sanitize(name) for name in names)}"


def _variants(study: Study) -> list[str]:
    return [f"  variant   {sanitize(each.name)}: {sanitize(_settings(study, each), 200)}" for each in study.variants]


def _settings(study: Study, variant: Variant) -> str:
    if variant.control:
        return f"the same settings as {study.variants[0].name}, with a separate set-up"
    target = [variant_plan(study, variant, None).url] if variant.url else []
    actions = [f"action {action}" for action in variant.before]
    return ", ".join([*settings_of(variant), *target, *actions]) or "current settings"


def _rules(study: Study) -> list[tuple[str, str]]:
    out = f", the first {study.discard} discarded" if study.discard else ""
    rules = [("runs", f"{count_text(study.discard + study.runs, 'run')} after each set-up{out}")]
    if study.until:
        most = length_words(search_time(study))
        rules = [("until", f"{study.until}: after each set-up a capacity search of at most {most}")]
    if study.levels:
        rules.append(("levels", ", ".join(level_words(study, level) for level in study.levels)))
    if len(study.passes) > 1:
        rules.append(("passes", ", ".join(sanitize(each.name) for each in study.passes)))
    if study.compare:
        rules.append(("verdicts", ", ".join(f"{sanitize(b)} vs {sanitize(a)}" for a, b in study.compare)))
        rules.append(("metrics", ", ".join(study.metrics) or f"{headline_of(study)} and the other default metrics"))
        if study.margin is not None:
            rules.append(("equivalent", f"a change within {100 * study.margin:g}%"))
        rules.append(("alpha", _error_rate(study)))
    return rules


def _error_rate(study: Study) -> str:
    comparisons = count_text(study.comparisons, "comparison")
    if study.rounds < FIRST_TEST:
        return f"5% over {comparisons}; {_FEW_ROUNDS}"
    return f"5% over {comparisons}, tested after each round from round {FIRST_TEST}; closed comparisons drop out"


_FEW_ROUNDS = f"one test, with the variance between runs pooled over all cells (fewer than {FIRST_TEST} rounds)"


async def show_study(session: Session, runner: StudyRunner) -> None:
    """Show progress until cancelled: a status line on a terminal, else one line per step; and the lines of a round."""
    before, rounds = "", 0
    terminal, own = sys.stderr.isatty(), raw(sys.stderr)
    clear = "\r\x1b[K" if terminal else ""
    try:
        while True:
            progress = runner.progress
            result = progress.result
            if result is not None and result.complete_rounds > rounds:
                rounds = result.complete_rounds
                own.write(clear)
                print(*round_lines(result, progress.left), sep="\n", file=sys.stderr, flush=True)
            line = progress_words(progress)
            if terminal:
                own.write(clear)
                print(_in_one_row(line + so_far(session.state)), end="", file=sys.stderr, flush=True)
            elif progress.now != before:
                print(sanitize(line, 300), file=sys.stderr, flush=True)
            before = progress.now
            await asyncio.sleep(REFRESH)
    finally:
        print(clear, end="", file=own, flush=True)


def _in_one_row(line: str) -> str:
    """Return the line cut to the terminal's width, because only the last row of a wrapped line can be cleared."""
    return set_cell_size(sanitize(line), max(1, os.get_terminal_size(sys.stderr.fileno()).columns - 1)).rstrip()


def so_far(state: State) -> str:
    result = run_result(state, state.running) if state.running else None
    if result is None or not result.counts.completed:
        return ""
    return f" · {result_words(result)}"
