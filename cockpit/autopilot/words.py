"""A search in words: its plan, an evaluation, and the claim at its end. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.analysis.outcome import Verdict
from cockpit.analysis.words import effect_words
from cockpit.autopilot.diagnosis import FoundLimit
from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotState, AutopilotTrial, SearchPlan
from cockpit.model.text import elapsed, milliseconds, neutral, si

# Metrics of a claim, beside the one that was searched.
_BESIDE = ("rate", "p50", "p99", "errors")


def plan_lines(begun: AutopilotBegun) -> Iterator[str]:
    plan, original = begun.plan, begun.original
    yield from map(neutral, begun.limits)
    goal = f"{'largest' if plan.maximize else 'least'} {plan.metric}"
    where = f" where {' and '.join(plan.constraints)}" if plan.constraints else ""
    yield f"{goal}{where}; at most {elapsed(plan.budget)}, the proof included; seed {plan.seed}"
    for knob in plan.knobs:
        values = ", ".join(shown(value) for value in knob.values)
        cost = f"; each change: {neutral(knob.cost)}" if knob.cost else ""
        yield f"  {neutral(knob.knob)}: {values} (now {shown(original.get(knob.knob, ''))}{cost})"


def trial_line(trial: AutopilotTrial, state: AutopilotState) -> str:
    """Return `12 search  MaxRequestWorkers 400, KeepAliveTimeout 2: rate 5.1k/s`."""
    what, metric, outcome = trial_cells(trial, state)
    found = ", ".join(filter(None, (f"{state.begun.plan.metric} {metric}" if metric else "", outcome)))
    return f"{trial.number:>3} {trial.purpose:<8}  {what}: {found}"


def trial_cells(trial: AutopilotTrial, state: AutopilotState) -> tuple[str, str, str]:
    """Return its settings, its metric ("": none), and what is wrong with it."""
    plan, original = state.begun.plan, state.begun.original
    moved = {name: value for name, value in trial.values.items() if value != original.get(name)}
    what = values_words(moved) if moved else "the original values"
    if trial.outcome != "measured":
        return what, "", f"{trial.outcome}: {neutral(trial.detail, 200)}"
    broken = [text for text, margin in zip(plan.constraints, trial.margins, strict=False) if margin < 0]
    return what, metric_words(plan.metric, trial.metric), f"broken: {neutral(', '.join(broken))}" if broken else ""


def claim(state: AutopilotState, verdict: Verdict | None) -> str:
    """Return the claim of a search that is over, in one line."""
    ended = state.ended
    if ended is None:
        return "the search runs"
    effort = f"{len(state.trials)} evaluations"
    if verdict is not None:
        effort += f", {verdict.values[0]} rounds"
    effort += f", {elapsed(ended.seconds)}"
    if ended.outcome != "better" or verdict is None:
        return f"{ended.outcome}: {_why(ended, verdict, state.begun.plan)}; {effort}"
    original = state.begun.original
    moved = {name: value for name, value in ended.values.items() if value != original.get(name)}
    memory = [effect.name for effect in verdict.effects if effect.name.endswith(".memory.used")]
    names = dict.fromkeys((state.begun.plan.metric, *_BESIDE, *memory))
    effects = [found for name in names if (found := verdict.effect(name)) is not None]
    applied = "now active" if ended.applied else "not active; the original values are"
    return f"better: {values_words(moved)}: {', '.join(map(effect_words, effects))}; {effort}; {applied}"


def values_words(values: Mapping[str, str]) -> str:
    return ", ".join(f"{neutral(name)} {shown(value)}" for name, value in values.items())


def shown(value: str) -> str:
    return neutral(value, 80) if value else "not set"


def metric_words(metric: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{si(value)}/s" if metric == "rate" else f"{milliseconds(value)} ms"


def _why(ended: AutopilotEnded, verdict: Verdict | None, plan: SearchPlan) -> str:
    tried = f"{values_words(ended.values)}: " if ended.values else ""
    effect = verdict.effect(plan.metric) if verdict else None
    found = f" ({effect_words(effect)})" if effect else ""
    return f"{tried}{neutral(ended.detail, 300)}{found}"


def diagnosis_lines(found: Sequence[FoundLimit]) -> Iterator[str]:
    """Yield what limits the server, a line each, and the knobs that bear on it."""
    for one in found:
        where = f"{neutral(one.host)}: " if one.host else ""
        knobs = f" → {', '.join(map(neutral, one.knobs))}" if one.knobs else ""
        yield f"limit: {where}{one.limit}: {one.evidence}{knobs}"
