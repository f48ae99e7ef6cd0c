"""Child processes of a test, without those that earlier tests in the same process still run."""

from collections.abc import Callable
from contextlib import suppress

import psutil


def newer_children() -> Callable[[], list[psutil.Process]]:
    """Return a function that lists the children started after this call."""
    before = set(psutil.Process().children())
    return lambda: [child for child in psutil.Process().children() if child not in before]


def newer_descendants() -> Callable[[], list[psutil.Process]]:
    """Return a function that lists the children started after this call, with their descendants."""
    newer = newer_children()
    return lambda: [each for child in newer() for each in family(child)]


def family(process: psutil.Process) -> list[psutil.Process]:
    """List a process and its descendants; the descendants of a process that has ended are unknown."""
    with suppress(psutil.NoSuchProcess):
        return [process, *process.children(recursive=True)]
    return [process]
