"""Objections and other load as short text."""

from __future__ import annotations

from cockpit.analysis.verdicts.outcome import DIFFERENT, Cause, Objection, OtherLoad, Period, Verdict
from cockpit.model.text import sanitize


def objection_words(objection: Objection) -> str:
    side = f" {objection.side}" if objection.side else ""
    host = sanitize(objection.host)
    match objection.cause:
        case Cause.GENERATOR_SATURATED:
            period = "the baseline" if objection.side is Period.BEFORE else f"the time{side}"
            return f"the generator was the bottleneck for {100 * objection.share:.0f}% of {period}"
        case Cause.OTHER_LOAD if objection.other is not None:
            return f"other load on {other_load_words(objection.other)}"
        case Cause.SHARED_CPU:
            return "both targets share a machine without idle CPU, so that rates are those of the CPU shares they get"
        case Cause.SETTING_ALTERED:
            return f"a setting was changed elsewhere on {host}: {sanitize(objection.detail)}"
        case Cause.HOST_LOST:
            return f"{host} was lost for {objection.seconds} s{side}"
        case Cause.REQUESTS_FAILED:
            return f"{100 * objection.share:.1f}% of the requests failed{side}"
        case Cause.LOAD_DIFFERS:
            return f"the load differs: {objection.detail}"
        case Cause.TRAFFIC_DRIFTED:
            return f"the traffic of the two settings differs: {objection.detail}"
        case Cause.RUN_FAILED:
            return f"the run{side} failed: {sanitize(objection.detail)}"
        case Cause.PARTIAL:
            return f"metrics{side} are partial: {sanitize(objection.detail)}"
        case Cause.PROFILED:
            return f"the server's CPU was profiled only{side}; profile both sides, or none"
        case _:
            return f"{objection.cause}{side}"


def other_load_words(load: OtherLoad) -> str:
    """Return `web1: 1% of its CPU before, 48% after`, and what it can explain."""
    before, after = (f"{100 * share:.0f}%" for share in (load.before, load.after))
    machine = sanitize(load.host) or "the generator’s machine"
    known = [name for name, factors in load.delayed.items() if any(factors)]
    waits = "".join(f", a {name} of {' to '.join(_explained_ends(load, name))}" for name in known)
    explained = f", which explains a rate of {' to '.join(_explained_ends(load))}{waits}" if load.slowed else ""
    return f"{machine}: {before} of its CPU before, {after} after{explained}"


def bound_words(verdict: Verdict) -> str:
    """Return what other load explains at most of the rate, or of a headline that waits bound, in the direction of the
    effect if that is known: `others 16% → 29% of CPU explain at most ×1.19`; "" without such load or without
    effects."""
    loads = verdict.other_loads if verdict.effects else ()
    return "; ".join(_bound_words(load, verdict) for load in loads if load.slowed)


def _bound_words(load: OtherLoad, verdict: Verdict) -> str:
    headline = verdict.effects[0]
    timed = headline.name in load.delayed
    down, up = _explained_ends(load, headline.name if timed else "")
    rises = timed or headline.name in ("rate", "capacity")
    bounds = [up] if (headline.change or 0.0) * (1 if rises else -1) > 0 else [down]
    if headline.outcome not in DIFFERENT:
        bounds = [down, up]
    explained = "nothing of it" if {"÷1.00", "×1.00"}.issuperset(bounds) else f"at most {' to '.join(bounds)}"
    return f"others {100 * load.before:.0f}% → {100 * load.after:.0f}% of CPU explain {explained}"


def _explained_ends(load: OtherLoad, latency: str = "") -> tuple[str, str]:
    """Return the changes that other load explains at most: of the rate, a fall by the side after, a rise by the side
    before; of a latency, the opposite."""
    ends = load.delayed[latency][::-1] if latency else load.slowed or (1.0, 1.0)
    before, after = ends
    return ("any fall" if after is None else f"÷{after:.2f}", "any rise" if before is None else f"×{before:.2f}")
