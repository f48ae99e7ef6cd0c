"""Loads, failures, warnings and instants as text, for all reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.timeline import load_words
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.results import RunResult
from cockpit.model.load.plan import LoadPlan, amount_words
from cockpit.model.text import sanitize


def failure_words(result: RunResult) -> str:
    """Return how all requests of a run failed; "" if one succeeded."""
    counts = result.counts
    if not counts.all_failed:
        return ""
    if counts.refused == counts.ended:
        statuses = ", ".join(str(status) for status in sorted(counts.statuses))
        return f"all {counts.ended:,} responses are {statuses}"
    return f"all {counts.ended:,} requests failed: {errors_words({**counts.errors, **counts.unexpected})}"


def alert_of(result: RunResult) -> str:
    failure = failure_words(result)
    return f"FAILED: {failure}" if failure else ""


def warning_texts(result: RunResult) -> list[str]:
    return [warning_words(warning) for warning in run_warnings(result)]


def plan_words(plan: LoadPlan) -> str:
    """Return the load in one line, as in `GET http://a/ · closed c=20 n=10000 · new connection each`."""
    if plan.traffic:
        return f"traffic of {sanitize(plan.url)}{f' for {plan.duration:g} s' if plan.duration else ''}"
    connections = "keep-alive" if plan.keepalive else "new connection each"
    if plan.http2:
        streams = "1 stream" if plan.streams == 1 else f"{plan.streams} streams"
        connections = f"HTTP/2 · {streams} per connection · {connections}"
    if plan.requests_per_connection:
        connections = f"{plan.requests_per_connection} requests per connection"
    if plan.cookies:
        connections += " · cookies"
    if plan.connections_per_user > 1:
        connections += f" per {plan.connections_per_user} connections"
    if plan.think_time:
        connections += f" · think time {plan.think_time.words}"
    model = "open" if plan.open else "closed"
    bursts = f" in bursts of {plan.burst}" if plan.burst > 1 else ""
    chain = "chain of " if plan.chained else ""
    many = f" ({chain}{len(plan.mix)} requests)" if plan.mix else " (many paths)" if plan.paths or plan.replay else ""
    warmup = f" after {plan.warmup:g} s of warm-up" if plan.warmup else ""
    urls = " and ".join(f"{variant.name} {variant.url}" for variant in plan.variants) or plan.url
    what = f"{sanitize(plan.method)} {sanitize(urls)}{many}"
    return f"{what} · {model} {_amount(plan)}{bursts}{warmup} · {connections}"


def _amount(plan: LoadPlan) -> str:
    if plan.stages:
        levels = ", ".join(map(amount_words, plan.stages))
        return f"load levels {levels} of {plan.stages[0].duration:g} s"
    limits = [f"n={plan.requests}"] if plan.requests is not None else []
    limits += [f"{plan.duration:g} s"] if plan.duration is not None else []
    unlimited = "until the log ends" if plan.replay else "until the list ends"
    return f"{load_words(replace(plan, http='1.1'))} {' or '.join(limits) or unlimited}"


def errors_words(errors: Mapping[str, int]) -> str:
    """Return kinds with their counts, the most frequent first, or `none`."""
    ordered = sorted(errors.items(), key=lambda item: -item[1])
    return ", ".join(f"{sanitize(kind)} {count}" for kind, count in ordered) or "none"


def when(wall: float) -> str:
    """Return an instant in UTC, so that a report does not depend on the time zone of its machine."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
