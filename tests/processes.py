"""Processes of a test: its children, without those that earlier tests in the same process still run; their ends."""

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


def command_of(process: psutil.Process) -> list[str]:
    """Return the command line of a process; empty if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, also if another one has its PID now."""
    return not process.is_running() or is_gone(process.pid)


def is_gone(pid: int) -> bool:
    """Return whether process `pid` has ended, reaped or not."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
