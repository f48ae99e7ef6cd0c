"""A study's plan as text, and its progress on stderr."""

from __future__ import annotations

import asyncio
import sys

from cockpit.model.figures import run_result
from cockpit.model.state import State
from cockpit.model.study import Study
from cockpit.model.text import milliseconds, neutral, si
from cockpit.profiles.profile import Profile
from cockpit.report.summary import plan_words
from cockpit.session.loop import Session
from cockpit.study.plan import load_of, steps, takes
from cockpit.study.runner import Runner
from cockpit.study.words import extent_words, progress_words

REFRESH = 0.5


def plan_text(profile: Profile, study: Study) -> str:
    """What a study would do and about how long that takes."""
    planned = steps(study)
    lines = [f"study {neutral(profile.name)} ({study.form})"]
    lines += [f"  {neutral(line.strip())}" for line in profile.question.splitlines() if line.strip()]
    lines += [f"  load      {plan_words(study.plan.without_secrets())}", *_arms(study.without_secrets())]
    lines += [f"  {name:<8}  {text}" for name, text in _rules(study)]
    lines += ["", "steps:"]
    for step in planned:
        rung = "" if step.rung is None else f" · {_rung(study, step.rung)}"
        url = load_of(study, step.arm, step.rung).without_secrets().url
        lines.append(f"  {step.number + 1:3}  round {step.round} · {neutral(step.arm.name)}{rung}  {neutral(url)}")
    length = extent_words(takes(study, planned, profile.knobs, profile.actions))
    return "\n".join([*lines, "", f"{len(planned)} steps, about {length}"])


def _arms(study: Study) -> list[str]:
    lines = []
    for arm in study.arms:
        what = [f"{knob} = {value}" for knob, value in arm.set]
        what += [f"do {action}" for action in arm.before]
        lines.append(f"  arm       {neutral(arm.name)}{': ' if what else ''}{neutral(', '.join(what), 200)}")
    return lines


def _rules(study: Study) -> list[tuple[str, str]]:
    settle = study.settle
    often = f"{study.runs} run{'s' if study.runs > 1 else ''} a step"
    if settle:
        often = (
            f"again until {settle.runs} in a row lie within {100 * settle.within:g} % of their median, "
            f"at most {settle.at_most} times"
        )
    out = f", the first {study.leave_out} left out" if study.leave_out else ""
    rules = [("rounds", f"{study.repeats}, {study.order}"), ("runs", often + out)]
    if study.rungs:
        rules.append(("rungs", ", ".join(_rung(study, rung) for rung in study.rungs)))
    if len(study.passes) > 1:
        rules.append(("passes", ", ".join(neutral(one.name) for one in study.passes)))
    if study.compare:
        rules.append(("verdicts", ", ".join(f"{neutral(b)} against {neutral(a)}" for a, b in study.compare)))
    return rules


def _rung(study: Study, rung: float) -> str:
    return f"{rung:g}/s" if study.plan.open else f"c={rung:g}"


async def show_study(session: Session, runner: Runner) -> None:
    """Until cancelled: a line that changes on a terminal, else a line for each thing that is begun."""
    told = ""
    terminal = sys.stderr.isatty()
    try:
        while True:
            line = progress_words(runner.progress)
            if terminal:
                print(f"\r\x1b[K{neutral(line + so_far(session.state), 200)}", end="", file=sys.stderr, flush=True)
            elif runner.progress.now != told:
                print(neutral(line, 300), file=sys.stderr, flush=True)
            told = runner.progress.now
            await asyncio.sleep(REFRESH)
    finally:
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def so_far(state: State) -> str:
    """What the run that goes on has come to."""
    result = run_result(state, state.running) if state.running else None
    if result is None or not result.counts.completed:
        return ""
    p99 = milliseconds(result.counts.latency.percentile(99))
    return f" · {si(result.rate)} req/s  p99 {p99} ms  {result.counts.failed} failed"
