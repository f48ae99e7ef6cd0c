"""Warnings as text, the same on the screen, in reports and in JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cockpit.analysis.warnings import RunWarning, WarningKind
from cockpit.model.text import sanitize

_TEXTS = {
    WarningKind.NOT_FOUND: "all {count} responses were {subject}: is the path right?",
    WarningKind.REFUSED: "all {count} responses were {subject}: is this the right request?",
    WarningKind.REDIRECTED: "{count} of {total} responses redirect and are not followed: load {subject} instead",
    WarningKind.GENERATOR_SATURATED: "generator saturated for {share:.0%} of the time: the server may be faster than "
    "measured",
    WarningKind.OTHER_LOAD: "other programs took {share:.0%} of the CPU of {subject}, with %steal; if they serve the "
    "load, watch them",
    WarningKind.CPU_WAIT: "the generator waited {share:.0%} of the time for a CPU: latencies include that wait",
    WarningKind.STALLED: "no response for {seconds:.1f} s ({share:.0%} of the time): closed load sends nothing while "
    "it waits, so the percentiles are too low (coordinated omission); measure at a constant rate (-q)",
    WarningKind.RUN_FAILED: "the run failed: {subject}",
    WarningKind.PARTIAL: "metrics are incomplete: {subject}",
    WarningKind.STOPPED: "the run was stopped before its planned end",
    WarningKind.DROPPED: "{count} arrivals were dropped: the queue was full; lower the rate or raise --max-in-flight",
    WarningKind.UNSENT: "{count} due requests were never sent: the limit of {limit} in flight was reached",
    WarningKind.QUEUED: "{count} arrivals were queued: the limit of {limit} in flight was reached; response time "
    "includes the wait, service time does not",
    WarningKind.UNCLOSED: "the server announced Connection: close {count} times and kept the connection open; cockpit "
    "closed it, so local ports stay in TIME_WAIT here",
    WarningKind.LOAD_ALTERED: "the load was altered during the run: compare segments under the same load",
    WarningKind.ERRORS: "{count} of {total} requests got no complete response: rate and latency exclude them, but "
    "latency includes timeouts",
    WarningKind.UNTIMED_ERRORS: "{count} of {total} requests got no complete response: rate and latency exclude them",
    WarningKind.TIMED_ERRORS: "{count} of {total} requests got no complete response: the rate excludes them, latency "
    "includes them",
    WarningKind.FEW_SAMPLES: "few samples ({count} responses): percentiles above p90 are uncertain",
    WarningKind.IN_FLIGHT: "{count} requests were in flight at the end and are not counted",
    WarningKind.SHORT: "short: {seconds:.1f} s; metrics are unreliable below {limit:g} s",
    WarningKind.PREFLIGHT: "{subject}",
    WarningKind.LOAD_DIFFERS: "the load differs: {subject}",
    WarningKind.QUEUED_SECONDS: "arrivals were queued in {seconds} s",
    WarningKind.HOST_UNREAD: "no samples of {subject} for {seconds} s",
    WarningKind.TOTALS_ONLY: "only totals of {subject}, no data per second: stability and spread within the run are "
    "unknown",
    WarningKind.INTERPOLATED: "latencies are interpolated from {count} percentiles",
    WarningKind.SPEED_DIFFERS: "after the change the CPU of {subject} ran at {share:.0%} of its speed before (clock "
    "rate, or other guests on its hardware), which shifts rate, latency and CPU time; rounds are adjusted for it",
    WarningKind.SHARED_CPU: "both targets are on one machine whose idle CPU is unknown: if it has none, the ratio of "
    "their rates is that of the CPU shares which they get; compare latency at a fixed rate (-q), or CPU/request",
    WarningKind.INVALID_LINES: "{count} of {total} lines in the access log of {subject} have another format and "
    "are not counted",
    WarningKind.LOG_UNREAD: "the access log of {subject} was not read for {seconds:.1f} s (connection lost, or no "
    "permission): its requests of that time are not counted, and rates are those of the rest",
    WarningKind.LOG_ROTATED: "rotations of the access log of {subject}: {count}; lines just before a truncation "
    "(copytruncate) can be missing",
    WarningKind.ROUNDS_EXCLUDED: "{count} of {total} rounds excluded: {subject}",
}
# Maximum number of subjects that are named for one warning.
_MAX_NAMED = 3


class _Range(NamedTuple):
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        low, high = format(self.low, spec), format(self.high, spec)
        return high if low == high else f"{low.removesuffix('%')}–{high}"


def warning_words(*alike: RunWarning) -> str:
    """Return the text of warnings of one kind and subject, with the range of each value."""
    first = alike[0]
    values = {
        name: _Range(min(warning.values[name] for warning in alike), max(warning.values[name] for warning in alike))
        for name in first.values
    }
    text = _TEXTS[first.kind].format(subject=sanitize(first.subject), **values)
    shows_subject = first.kind is WarningKind.INTERPOLATED and first.subject
    return f"{text}: {sanitize(first.subject)}" if shows_subject else text


def grouped(warnings: Iterable[tuple[str, RunWarning]], cells: int) -> list[str]:
    """Return a line per kind and subject from (name of a cell, warning), in order of first occurrence; `cells` is the
    number of cells."""
    groups: dict[tuple[str, str], dict[str, RunWarning]] = {}
    for name, warning in warnings:
        groups.setdefault((warning.kind, warning.subject), {})[name] = warning
    return [f"{_cell_names(list(alike), cells)}: {warning_words(*alike.values())}" for alike in groups.values()]


def _cell_names(names: list[str], cells: int) -> str:
    if len(names) <= _MAX_NAMED:
        return ", ".join(names)
    return f"all {cells}" if len(names) == cells else f"{len(names)} of {cells}"
