"""Texts about a search: bottlenecks, plan, evaluations, result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.words.capacity import rate_words
from cockpit.analysis.words.verdicts import effect_words
from cockpit.autopilot.diagnosis import Bottleneck
from cockpit.metrics.catalogue import entry
from cockpit.metrics.units import value_text
from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotState, AutopilotTrial, SearchPlan
from cockpit.model.text import elapsed, sanitize

# Metrics in the result besides the searched one.
_OTHER_METRICS = ("rate", "p50", "p99", "errors")


def plan_lines(begun: AutopilotBegun) -> Iterator[str]:
    plan, original = begun.plan, begun.original
    yield from map(sanitize, begun.limits)
    goal = f"{'maximize' if plan.maximize else 'minimize'} {plan.metric}"
    constraints = f" subject to {' and '.join(plan.constraints)}" if plan.constraints else ""
    yield f"{goal}{constraints}; budget {elapsed(plan.budget)} including the proof; seed {plan.seed}"
    for knob in plan.knobs:
        values = ", ".join(setting_text(value) for value in knob.values)
        cost = f"; cost of a change: {sanitize(knob.cost)}" if knob.cost else ""
        yield f"  {sanitize(knob.knob)}: {values} (now {setting_text(original.get(knob.knob, ''))}{cost})"


def trial_line(trial: AutopilotTrial, state: AutopilotState) -> str:
    """Return `12 search  MaxRequestWorkers 400, KeepAliveTimeout 2: rate 5.1k/s`."""
    settings, metric, problem = trial_cells(trial, state)
    result = ", ".join(filter(None, (f"{state.begun.plan.metric} {metric}" if metric else "", problem)))
    return f"{trial.number:>3} {trial.purpose:<8}  {settings}: {result}"


def trial_cells(trial: AutopilotTrial, state: AutopilotState) -> tuple[str, str, str]:
    """Return settings, metric ("": none) and problem ("": none) of an evaluation."""
    plan, original = state.begun.plan, state.begun.original
    changed = {name: value for name, value in trial.values.items() if value != original.get(name)}
    settings = values_words(changed) if changed else "the original values"
    if trial.outcome != "measured":
        outcome = "constraint failed" if trial.outcome == "infeasible" else trial.outcome
        return settings, "", f"{outcome}: {sanitize(trial.detail, 200)}"
    failed = [text for text, margin in zip(plan.constraints, trial.margins, strict=False) if margin < 0]
    problem = f"constraint failed: {sanitize(', '.join(failed))}" if failed else ""
    interval = f" (95% CI {'–'.join(map(rate_words, trial.interval))})" if trial.interval else ""
    return settings, f"{metric_words(plan.metric, trial.metric)}{interval}", problem


def result_line(state: AutopilotState, verdict: Verdict | None) -> str:
    """Return the result of a finished search, in one line."""
    ended = state.ended
    if ended is None:
        return "the search is running"
    effort = f"{len(state.trials)} evaluations"
    if verdict is not None:
        effort += f", {verdict.values[0]} rounds"
    effort += f", {elapsed(ended.seconds)}"
    if ended.outcome != "better" or verdict is None:
        return f"{ended.outcome}: {_reason(ended, verdict, state.begun.plan)}; {effort}"
    original = state.begun.original
    changed = {name: value for name, value in ended.values.items() if value != original.get(name)}
    memory = [effect.name for effect in verdict.effects if effect.name.endswith(".memory.used")]
    names = dict.fromkeys((state.begun.plan.metric, *_OTHER_METRICS, *memory))
    effects = [effect for name in names if (effect := verdict.effect(name)) is not None]
    applied = "now active" if ended.applied else "not applied, the original values are active"
    return f"better: {values_words(changed)}: {', '.join(map(effect_words, effects))}; {effort}; {applied}"


def values_words(values: Mapping[str, str]) -> str:
    return ", ".join(f"{sanitize(name)} {setting_text(value)}" for name, value in values.items())


def setting_text(value: str) -> str:
    return sanitize(value, 80) if value else "not set"


def metric_words(metric: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{rate_words(value)}/s" if metric == "capacity" else value_text(entry(metric).unit, value)


def _reason(ended: AutopilotEnded, verdict: Verdict | None, plan: SearchPlan) -> str:
    tried = f"{values_words(ended.values)}: " if ended.values else ""
    effect = verdict.effect(plan.metric) if verdict else None
    change = f" ({effect_words(effect)})" if effect else ""
    return f"{tried}{sanitize(ended.detail, 300)}{change}"


def diagnosis_lines(bottlenecks: Sequence[Bottleneck]) -> Iterator[str]:
    """Yield one line per bottleneck, with the knobs that affect it."""
    for each in bottlenecks:
        host = f"{sanitize(each.host)}: " if each.host else ""
        knobs = f" → {', '.join(map(sanitize, each.knobs))}" if each.knobs else ""
        yield f"bottleneck: {host}{each.limit} ({each.evidence}){knobs}"
