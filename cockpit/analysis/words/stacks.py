"""Differences of CPU profiles as short text."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.analysis.stacks.difference import LEAST_SLICES
from cockpit.analysis.verdicts.outcome import ProfileDifference
from cockpit.model.stacks import SLICE_SECONDS, WITH_WAITING, ProfilerChanged, StackSource
from cockpit.model.text import sanitize, share_words, si

# Maximum number of causes in a line.
_MOST = 5


def profile_lines(profiles: Iterable[ProfileDifference], growing: bool = False) -> list[str]:
    """Return one line per host: `web1 CPU profile: −22% CPU/request: fork −9 points, mmap −6, __memset −3`. `growing`:
    further slices after the change will follow."""
    return [f"{sanitize(known.host)} CPU profile: {_change_words(known, growing)}" for known in profiles]


def _change_words(known: ProfileDifference, growing: bool) -> str:
    if known.change is None:
        if growing and known.slices[1] < LEAST_SLICES <= known.slices[0]:
            return f"in about {SLICE_SECONDS * (LEAST_SLICES - known.slices[1]):.0f} s"
        return f"too few slices for a test: {known.slices[0]} before, {known.slices[1]} after"
    shown = [f"{sanitize(name, 40)} {_points(points)}" for name, points in list(known.causes.items())[:_MOST]]
    if shown:
        first, *rest = shown
        shown = [f"{first} points", *rest]
    change = f"{_sign(known.change)}{100 * abs(known.change):.0f}%" if known.change < 1 else f"×{si(1 + known.change)}"
    return f"{change} {cpu_words(known.source)}/request: {', '.join(shown) or 'no significant change of a function'}"


def cpu_words(source: StackSource) -> str:
    """Return the time that samples of this source count."""
    return "CPU and run-queue wait" if source in WITH_WAITING else "CPU"


def sampling_words(source: StackSource, hz: int) -> str:
    """Return how often, and by which profiler of a language."""
    return f"{hz} Hz" + ("" if source in ("cycles", "cpu-clock") else f" by {source}")


def native_words(profiler: ProfilerChanged | None) -> str:
    """Return why a profile has no functions of the server's language; "" if it has."""
    return sanitize(profiler.detail) if profiler is not None and profiler.condition != "failed" else ""


def profiled_words(known: ProfileDifference) -> str:
    """Return how a host was profiled, and what that cost."""
    sides = zip(known.slices, known.samples, strict=True)
    counted = " before, ".join(f"{slices} slices, {si(samples)} samples" for slices, samples in sides)
    return (
        f"{cpu_words(known.source)} of {sanitize(known.host)} was profiled at "
        f"{sampling_words(known.source, known.hz)}: {counted} after; the profiler used {share_words(known.cost)} of a "
        "core; functions differ at a false discovery rate of 5% over slices of 5 s"
    )


def _points(points: float) -> str:
    size = abs(points)
    return f"{_sign(points)}{size:.{0 if size >= 2.95 else 1}f}"


def _sign(value: float) -> str:
    return "−" if value < 0 else "+"
