"""The Universal Scalability Law as text."""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.analysis.capacity.usl import FEWEST_LEVELS, WORST, UslEstimate, UslFit, UslLevel, UslProblem
from cockpit.model.text import count_text, sanitize, si

USL_TITLES = ("c", "req/s", "curve", "residual")


def usl_line(fit: UslFit) -> str:
    """Return the peak, or why the fit is bad, in one line."""
    label = f" ({sanitize(fit.label, 60)})" if fit.label else ""
    return f"scalability{label}: {_claim(fit)}"


def usl_details(fit: UslFit) -> Iterator[str]:
    """Yield the parameters, and the levels that are not part of the fit."""
    if fit.single is not None and fit.contention is not None and fit.coherency is not None:
        parts = f"contention {_estimate(fit.contention)}, coherency {_estimate(fit.coherency)}"
        law = f"{_estimate(fit.single, '/s')} with one connection, {parts}"
        yield f"Universal Scalability Law: {law}; 95% CI, {count_text(len(fit.used), 'level')}, {_worst(fit)}"
    for level in fit.levels:
        if level.excluded is not None:
            yield f"c={level.concurrency} (segment {level.segment}) is excluded: {level.excluded}"


def usl_row(level: UslLevel) -> tuple[str, ...]:
    """Return connections, rate, rate by the curve, and the difference or the reason of an exclusion."""
    if level.fitted is None or level.residual is None:
        return str(level.concurrency), si(level.rate, 4), "–", str(level.excluded or "–")
    return str(level.concurrency), si(level.rate, 4), si(level.fitted, 4), f"{100 * level.residual:+.1f}%"


def _claim(fit: UslFit) -> str:
    match fit.problem:
        case UslProblem.FEW_LEVELS:
            levels = count_text(len({level.concurrency for level in fit.used}), "usable load level")
            return f"the fit is bad: {levels}, at least {FEWEST_LEVELS} are needed"
        case UslProblem.RESIDUAL:
            return f"the fit is bad: {_worst(fit)}, more than {100 * WORST:.0f}%"
    measured = f"the measured levels (c={min(level.concurrency for level in fit.used)} to {fit.most})"
    if fit.peak is None or fit.peak_rate is None or fit.peak.high is None:
        least = 1.0 if fit.peak is None else fit.peak.low or 1.0
        return f"no peak found within {measured}{f'; 95% CI of a peak: c ≥ {least:.0f}' if least > 1 else ''}"
    if not fit.peak_measured:
        return f"peak at c={_estimate(fit.peak, digits=2)}, not entirely within {measured}"
    return f"peak {_estimate(fit.peak_rate, '/s')} at c={_estimate(fit.peak, digits=2)}"


def _worst(fit: UslFit) -> str:
    worst = fit.worst
    if worst is None or worst.residual is None:
        return "no residuals"
    return f"largest residual {100 * worst.residual:+.1f}% at c={worst.concurrency}"


def _estimate(estimate: UslEstimate, unit: str = "", digits: int = 3) -> str:
    return f"{_number(estimate.value, digits)}{unit} ({_interval(estimate, digits)})"


def _interval(estimate: UslEstimate, digits: int) -> str:
    if estimate.low is None and estimate.high is None:
        return "interval unknown"
    if estimate.high is None:
        return f"≥ {_number(estimate.low or 0.0, digits)}"
    return f"{_number(estimate.low or 0.0, digits)}–{_number(estimate.high, digits)}"


def _number(value: float, digits: int) -> str:
    return si(value, digits) if value >= 1 else f"{value:.{digits}g}"
