"""Verdicts as short text: for the summary, the runs table, the strip, and the method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec.structs import replace

from cockpit.analysis.baseline import assumed_spread
from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.stability import Stability, StabilityKind
from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Design, Effect, Outcome, Verdict
from cockpit.analysis.windows import DiscardReason
from cockpit.analysis.words.factors import FACTOR_FROM, factor_text, factor_words, is_factor
from cockpit.analysis.words.objections import bound_words, objection_words, other_load_words
from cockpit.analysis.words.stacks import profiled_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.catalogue import entry, host_entry
from cockpit.metrics.units import RATE, value_text
from cockpit.model.counts import Counts
from cockpit.model.text import sanitize, si

# An interval beyond this factor to both sides is uninformative, and its ends are not shown.
_WIDE = 1000.0
VerdictRole = Literal["good", "bad", ""]
_ROLES: dict[Outcome, VerdictRole] = {Outcome.BETTER: "good", Outcome.WORSE: "bad"}
_BRIEF = {
    Cause.OTHER_LOAD: "others",
    Cause.GENERATOR_SATURATED: "gen-sat",
    Cause.HOST_LOST: "lost",
    Cause.LOAD_DIFFERS: "≠ load",
    Cause.RUN_FAILED: "failed",
    Cause.PARTIAL: "partial",
    Cause.REQUESTS_FAILED: "errors",
    Cause.PROFILED: "profile",
    Cause.SHARED_CPU: "cpu",
    Cause.SETTING_ALTERED: "setting",
    Cause.TRAFFIC_DRIFTED: "≠ traffic",
}

MARKS = {
    Outcome.BETTER: "▲",
    Outcome.WORSE: "▼",
    Outcome.EQUIVALENT: "≈",
    Outcome.INCONCLUSIVE: "?",
    Outcome.INVALID: "!",
}


def headline_words(verdict: Verdict) -> str:
    """Return the headline's metric and change if there is a conclusion: `rate ×3.7`; else ""."""
    if verdict.outcome not in DIFFERENT or not verdict.effects:
        return ""
    return f"{metric_words(verdict.effects[0].name)} {amount_words(verdict.effects[0])}"


def verdict_line(verdict: Verdict) -> str:
    """Return the verdict in one line, as in `A KeepAlive Off → On: better: rate +15% (+12 to +18%) · n = 4 vs 4`."""
    label = f"{sanitize(verdict.label)}: " if verdict.label else ""
    return " · ".join(filter(None, (f"{label}{verdict_words(verdict)}", basis_words(verdict))))


def verdict_words(verdict: Verdict) -> str:
    """Return the verdict without its label and basis."""
    head = str(verdict.outcome)
    if verdict.outcome is Outcome.INVALID and verdict.objection is not None:
        return f"{head}: {objection_words(verdict.objection)}"
    if not verdict.effects:
        return f"{head}: {too_few_words(verdict)}"
    if verdict.at_least and verdict.outcome in DIFFERENT:
        head += ", at least"
    if verdict.growing and verdict.outcome is Outcome.INCONCLUSIVE and verdict.effects[0].likely:
        head += f", likely {verdict.effects[0].likely}"
    items = [*_items_by_outcome(verdict), *filter(None, [bound_words(verdict)])]
    return f"{head}: {'; '.join(items)}{needs_words(verdict)}"


def effect_words(effect: Effect) -> str:
    """Return `rate better +15% (+12 to +18%)`, or why there is no conclusion."""
    name = metric_words(effect.name)
    if effect.outcome is Outcome.INVALID and effect.objection is not None:
        return f"{name} {effect.outcome}: {objection_words(effect.objection)}"
    return f"{name} {effect.outcome} {conclusion_words(effect)}"


def conclusion_words(effect: Effect, factors: bool | None = None) -> str:
    """Return the change, with the margin if equivalent, or the minimum detectable effect if inconclusive. `factors` as
    in `change_words`, unless equivalent."""
    if effect.change is None:
        return "too few values"
    if effect.outcome is Outcome.EQUIVALENT:
        return f"{margin_words(effect)}: {change_words(effect)}"
    return f"{change_words(effect, factors)}{detectable_words(effect)}"


def margin_words(effect: Effect) -> str:
    """Return the equivalence margin: `within 3%`."""
    return f"within {_percent(effect.margin)}{_unit(effect)}"


def detectable_words(effect: Effect) -> str:
    """Return the minimum detectable effect of an inconclusive comparison."""
    if effect.outcome is not Outcome.INCONCLUSIVE or effect.detectable is None or not effect.relative:
        return ""
    return f", detectable from {detectable_amount(effect.detectable)}" if effect.detectable < _WIDE else ""


def detectable_amount(share: float) -> str:
    """Return a minimum detectable effect: `12%`, `×2.1`."""
    return f"×{factor_text(share + 1)}" if share >= FACTOR_FROM else _percent(share)


def uses_factors(effects: Iterable[Effect]) -> bool:
    """Return whether a column of changes is written as factors, because one of them doubles or halves its metric."""
    return any(is_factor(effect.change) for effect in effects if effect.relative and effect.change is not None)


def change_words(effect: Effect, factors: bool | None = None) -> str:
    """Return the change with its interval: `+15% (+12 to +18%)`, `×9.7 (5.3–18)`, `÷164 (94–290)`; if one end is open
    `≥ +12% (measured +15%)`. `factors`: relative changes as factors or as percentages; None: by their size."""
    change, low, high = effect.change, effect.low, effect.high
    if change is None:
        return "unknown"
    shown = _amount(effect, change, factors)
    if low is None and high is None:
        return f"{shown} (no interval)"
    if high is None or low is None:
        return f"{_one_sided_words(effect, factors)} (measured {shown})"
    if effect.relative and 1 + high > _WIDE**2 * (1 + max(low, -1.0)):
        return f"{shown} (interval wider than ×{_WIDE:g})"
    if _is_factor(effect, change, factors):
        ends = (1 + low, 1 + high) if change >= 0 else (1 / (1 + high), 1 / (1 + low))
        return f"{shown} ({factor_text(ends[0])}–{factor_text(ends[1])})"
    return f"{shown} ({_signed(effect, low)} to {_signed(effect, high)}{'%' if effect.relative else _unit(effect)})"


def _one_sided_words(effect: Effect, factors: bool | None = None) -> str:
    """Return the only end of a one-sided interval: `≥ +12%`, `≤ −30%`; of a quotient `≥ ÷1.7`, `≤ ÷2.5`."""
    end = (effect.low if effect.high is None else effect.high) or 0.0
    is_quotient = end < 0 and _is_factor(effect, end, factors)
    return f"{'≥' if (effect.high is None) != is_quotient else '≤'} {_amount(effect, end, factors)}"


def amount_words(effect: Effect, factors: bool | None = None) -> str:
    """Return the change without its interval: `+15%`, `×9.7`; if one end is open, the other end, `≥ +12%`. `factors` as
    in `change_words`."""
    if effect.change is None:
        return "unknown"
    is_two_sided = (effect.low is None) == (effect.high is None)
    return _amount(effect, effect.change, factors) if is_two_sided else _one_sided_words(effect, factors)


def _is_factor(effect: Effect, change: float, factors: bool | None) -> bool:
    """Return whether a change is shown as `×9.7` or `÷164`."""
    return effect.relative and change > -1 and (is_factor(change) if factors is None else factors)


def _amount(effect: Effect, change: float, factors: bool | None = None) -> str:
    """Return a change without its interval: `+15%`, `×9.7`, `÷164`."""
    if not _is_factor(effect, change, factors):
        return f"{_signed(effect, change)}{'%' if effect.relative else _unit(effect)}"
    return factor_words(change)


def value_words(effect: Effect) -> str:
    """Return before and after in the metric's unit, as in `12.1k → 13.9k`."""
    return " → ".join("–" if value is None else _value(effect.name, value) for value in (effect.before, effect.after))


def metric_words(name: str) -> str:
    """Return `web1 CPU/request` for `web1.cpu.per_request`; other names unchanged."""
    host, _, metric = name.partition(".")
    title = host_entry(metric).long
    return f"{sanitize(host)} {title}" if title else name


def brief(verdict: Verdict) -> tuple[str, VerdictRole]:
    """Return at most eight characters for a table, and their colour."""
    if verdict.outcome is Outcome.INVALID:
        return _BRIEF[verdict.objection.cause] if verdict.objection else "invalid", ""
    if verdict.outcome is Outcome.EQUIVALENT:
        return "≈", ""
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return ("wait" if verdict.needs is not None and math.isfinite(verdict.needs) else "?"), ""
    shown = next((effect for effect in verdict.effects if effect.outcome is verdict.outcome), verdict.effects[0])
    role = _ROLES[verdict.outcome]
    name = "" if shown.headline else f"{shown.name.split('.', 1)[-1].split('.')[0][:3]} "
    change = shown.change or 0.0
    if verdict.at_least:
        name = "≤" if shown.low is None else "≥"
        change = next((end for end in (shown.low, shown.high) if end is not None), change)
    if shown.relative and change >= FACTOR_FROM:
        return f"{name}×{si(1 + change, 2)}", role
    return f"{name}{_signed(shown, change, digits=0)}{'%' if shown.relative else ''}", role


def method_lines(verdict: Verdict) -> list[str]:
    """Return the method of the verdict and its warnings, one line each."""
    return [*basis_lines(verdict), *(f"! {warning_words(warning)}" for warning in verdict.warnings)]


def basis_lines(verdict: Verdict) -> list[str]:
    """Return the method of the verdict, line by line, without the reason of an invalid one."""
    lines = []
    if verdict.effects:
        lines.append(_METHOD[verdict.design])
        for side, seconds in zip(("before", "after"), verdict.discarded, strict=True):
            if seconds:
                lines.append(f"discarded {side}: {discarded_words(seconds)}")
        reason = verdict.objection.other if verdict.objection else None
        lines += [f"other load on {other_load_words(load)}" for load in verdict.other_loads if load != reason]
    lines += [words] if (words := speed_words(verdict)) else []
    lines += map(profiled_words, verdict.profiles)
    if verdict.effects and verdict.design is not Design.TOTALS:
        lines.append(
            f"simultaneous 95% intervals ({100 * verdict.effects[0].level:.1f}% for {verdict.effects[0].name}); "
            "equivalent: the interval is within the margin; changes below 1% count as no difference"
        )
    return lines


def speed_words(verdict: Verdict) -> str:
    """Return the adjustment for CPU speed, with the unadjusted effects; empty without an adjustment."""
    adjusted = [effect for effect in verdict.effects if effect.speed is not None]
    if not adjusted:
        return ""
    return (
        f"adjusted for CPU speed, measured by the probe's loop: {_speed_words(adjusted)}; unadjusted: "
        f"{', '.join(f'{metric_words(effect.name)} {change_words(unadjusted(effect))}' for effect in adjusted)}"
    )


def unadjusted(effect: Effect) -> Effect:
    """Return the effect without its adjustment for CPU speed, if there is one."""
    if effect.speed is None:
        return effect
    return replace(effect, change=effect.speed.change, low=effect.speed.low, high=effect.speed.high)


def _speed_words(adjusted: Iterable[Effect]) -> str:
    """Return the difference of CPU speed: its spread between rounds, or the ratio of one switch."""
    speeds = [effect.speed for effect in adjusted if effect.speed is not None]
    spreads = [speed.spread for speed in speeds if speed.spread is not None]
    if spreads:
        return f"standard deviation of the ratio {_percent(max(spreads))} between rounds"
    ratio = max((speed.ratio for speed in speeds), key=lambda ratio: abs(math.log(ratio)))
    return f"{100 * ratio:.1f}% of its value before the change"


def stability_words(stability: Stability) -> str:
    text = _instability_words(stability)
    return text if stability.segment is None else f"segment {stability.segment}: {text}"


def _instability_words(stability: Stability) -> str:
    match stability.kind:
        case StabilityKind.TOO_SHORT:
            discarded = f" ({discarded_words(stability.discarded)} discarded)" if stability.discarded else ""
            return f"too short: {stability.seconds} s counted{discarded}, needs {stability.needed} s"
        case StabilityKind.RATE:
            rates = ", ".join(map(si, stability.rates))
            return f"rate was {rates} req/s in the last {len(stability.rates)} parts of {stability.seconds} s each"
        case StabilityKind.P99:
            return f"p99 {'rose' if stability.change > 0 else 'fell'} by {100 * abs(stability.change):.0f}%"
        case _:
            return str(stability.kind)


def discarded_words(seconds: Mapping[DiscardReason, int]) -> str:
    """Return `3 s after a start, 1 s covered only in part`."""
    return ", ".join(f"{number} s {_FLAWS[flaw]}" for flaw, number in seconds.items())


_FLAWS = {
    DiscardReason.GUARD: "after a start",
    DiscardReason.PARTIAL: "covered only in part",
    DiscardReason.UNREAD: "without counts of an access log",
    DiscardReason.SATURATED: "generator saturated",
    DiscardReason.CHANGING: "during a change or an action",
}
_METHOD = {
    Design.SWITCH: "one change under load: an anytime-valid interval of the difference of the means and of the step "
    "beside a common trend; blocks of 5 s, variance of batches of up to 30 s; outliers that favour the effect may be "
    "left out",
    Design.ROUNDS: "paired rounds: both settings in each round, one value per round",
    Design.DUET: "both variants under the same load at the same time: an anytime-valid interval of the mean difference "
    "of blocks of 5 s; variance of batches of up to 30 s; connections are renewed every 5 s",
    Design.RUNS: "one value per run; the variance between runs is pooled over the settings",
    Design.TOTALS: "only totals from another tool: without data per second there is no interval",
    Design.SINGLE_RUNS: f"one run each: a spread between runs of {100 * assumed_spread('rate'):.0f}% "
    f"(p99: {100 * assumed_spread('p99'):.0f}%) is assumed; rounds measure it",
}


def needs_words(verdict: Verdict) -> str:
    if verdict.needs is None:
        return ""
    if math.isinf(verdict.needs):
        return "; the baseline is too short for a verdict; run rounds"
    return f"; {math.ceil(verdict.needs)} s more"


def _items_by_outcome(verdict: Verdict) -> Iterable[str]:
    """Yield the effects by outcome: that of the verdict first, inconclusive ones by name only."""
    order = dict.fromkeys((verdict.outcome, *DIFFERENT, Outcome.EQUIVALENT, Outcome.INCONCLUSIVE, Outcome.INVALID))
    for outcome in order:
        alike = [effect for effect in verdict.effects if effect.outcome is outcome]
        if not alike:
            continue
        head = "" if outcome is verdict.outcome else f"{outcome}: "
        yield head + ", ".join(_effect_item(effect, verdict, uses_factors(verdict.effects)) for effect in alike)


def _effect_item(effect: Effect, verdict: Verdict, factors: bool) -> str:
    name = metric_words(effect.name)
    if effect.outcome in DIFFERENT or effect.headline:
        words = conclusion_words if effect.outcome is verdict.outcome else change_words
        return f"{name} {words(effect, factors)}"
    return name


def too_few_words(verdict: Verdict) -> str:
    before, after = verdict.values
    if verdict.needs is not None and math.isfinite(verdict.needs):
        return f"{math.ceil(verdict.needs)} s more"
    if verdict.design is Design.SWITCH:
        return f"too short: {before * verdict.block} s before and {after * verdict.block} s after; 25 s and 35 s needed"
    if verdict.design is Design.ROUNDS:
        return f"{before} rounds; {FIRST_TEST} needed"
    if verdict.design is Design.DUET:
        return f"too short: {before * verdict.block} s; 35 s needed"
    return f"too few runs: {before} vs {after}; 2 vs 2 needed"


def basis_words(verdict: Verdict) -> str:
    """Return the basis of a verdict: `60 s vs 60 s, adjusted for CPU speed`, `12 rounds`, `n = 4 vs 4`; empty without
    effects."""
    if not verdict.effects:
        return ""
    before, after = verdict.values
    adjusted = ", adjusted for CPU speed" if verdict.adjusted else ""
    if verdict.design is Design.SWITCH:
        final = ", final" if verdict.reached is not None else ""
        return f"{before * verdict.block} s vs {after * verdict.block} s{adjusted}{final}"
    if verdict.design is Design.ROUNDS:
        return f"{before} rounds{adjusted}"
    if verdict.design is Design.DUET:
        return f"{before * verdict.block} s, both at the same time"
    return f"n = {before} vs {after}{', totals only' if verdict.design is Design.TOTALS else ''}"


def _percent(share: float) -> str:
    shown = 100 * share
    return f"{shown:.{0 if shown >= 9.95 or shown == round(shown) else 1}f}%"


def _signed(effect: Effect, value: float, digits: int | None = None) -> str:
    """Return a change with its sign, in percent if relative, else in the metric's unit; the unit itself is left out."""
    sign = "−" if value < 0 else "+"
    size_of = abs(value)
    if effect.relative or effect.name == "errors":
        shown = 100 * size_of
        places = (0 if shown >= 9.95 else 1) if digits is None else digits
        return f"{sign}{shown:.{places}f}"
    return f"{sign}{si(size_of)}"


def _unit(effect: Effect) -> str:
    if effect.name == "errors":
        return " points"
    return "/s" if not effect.relative and entry(effect.name).unit is RATE else ""


def _value(name: str, value: float) -> str:
    # Errors are shares in a verdict.
    return f"{100 * value:.2f}%" if name == "errors" else value_text(entry(name).unit, value)


def connection_words(counts: Counts) -> str:
    """Return reconnects and retries as text; "" without any."""
    words = []
    if counts.reconnects:
        words.append(f"{counts.reconnects} keep-alive connections closed by the server")
    if counts.retries:
        words.append(f"{counts.retries} requests retried: the server may have received them twice")
    return ", ".join(words)
