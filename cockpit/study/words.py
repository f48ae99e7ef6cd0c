"""A study's progress in words, for stderr and the screen."""

from __future__ import annotations

from cockpit.study.plan import Extent
from cockpit.study.runner import Progress


def progress_words(progress: Progress) -> str:
    """`step 3 of 8 · round 1 · event · run 2 · 4 to 9 min left`."""
    step = min(progress.done + 1, progress.steps)
    left = f" · {extent_words(progress.left)} left" if progress.left.known else ""
    return f"step {step} of {progress.steps} · {progress.now}{left}"


def extent_words(extent: Extent) -> str:
    """`12 min`, `12 to 30 min`; what is only known from below says so."""
    least, most = _length(extent.least), _length(extent.most)
    length = most if least == most else f"{least} to {most}"
    return length if extent.known else f"{length}, and what its runs take (study.takes would say)"


def _length(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
