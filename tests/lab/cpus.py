"""Which CPU serves and which generates load, so that the two do not take time from each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@cache
def usable_cpus() -> tuple[int, ...]:
    """Every CPU this machine grants, whatever mask this process was started with."""
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(1024))
        return tuple(sorted(os.sched_getaffinity(0)))
    finally:
        os.sched_setaffinity(0, mine)


def server_cpu() -> int:
    """The CPU that all lab hosts run on: the first (CPU 0)."""
    return usable_cpus()[0]


def generator_cpu() -> int:
    """The CPU for the load generator: the second (CPU 1), or the only one there is."""
    return usable_cpus()[:2][-1]


def on_server_cpu(command: list[str]) -> list[str]:
    """The command, pinned to the servers' CPU; what it starts inherits that."""
    return ["taskset", "-c", str(server_cpu()), *command]


def on_generator_cpu(command: list[str]) -> list[str]:
    """The command, pinned to the generator's CPU; what it starts inherits that."""
    return ["taskset", "-c", str(generator_cpu()), *command]


@contextmanager
def generator_affinity() -> Iterator[None]:
    """Pins the calling thread, and what it starts meanwhile, to the generator's CPU."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {generator_cpu()})
    try:
        yield
    finally:
        os.sched_setaffinity(0, mine)
