"""The CPUs of the servers and of the load generator, which do not share a CPU if possible."""

import os
from functools import cache


@cache
def usable_cpus() -> tuple[int, ...]:
    """Return all CPUs that this machine grants, independent of the affinity of this process."""
    affinity = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(1024))
        return tuple(sorted(os.sched_getaffinity(0)))
    finally:
        os.sched_setaffinity(0, affinity)


def server_cpu() -> int:
    """Return the CPU of all lab hosts: the first (CPU 0).

    Test processes that run side by side take the CPUs in turn, so that their labs do not all wait for one.
    """
    return usable_cpus()[_turn()]


def generator_cpu() -> int:
    """Return the CPU of the load generator: the second (CPU 1), or the only CPU; see `server_cpu` for tests."""
    return usable_cpus()[:2][_turn() - 1]


def _turn() -> int:
    """Return 0, in every second test process 1, if there are two CPUs."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return number % min(len(usable_cpus()), 2)


def on_server_cpu(command: list[str]) -> list[str]:
    """Return the command, pinned with its children to the servers' CPU."""
    return ["taskset", "-c", str(server_cpu()), *command]


def on_generator_cpu(command: list[str]) -> list[str]:
    """Return the command, pinned with its children to the generator's CPU."""
    return ["taskset", "-c", str(generator_cpu()), *command]
