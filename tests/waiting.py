"""Conditions that tests wait for, free ports, and programs that a machine might lack."""

import asyncio
import inspect
import itertools
import os
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

# Seconds; far longer than any test waits, even on a busy machine.
DEADLINE = 120.0
_STEP = 0.01
# Ports that the kernel never chooses by default, and how many of them are for one process of the tests.
_PORTS, _BLOCK = range(20_000, 32_000), 40
_calls = itertools.count()
# Programs of every Linux and macOS.
BASE = ("sh", "bash", "awk")


async def until(condition: Callable[[], object], seconds: float = DEADLINE) -> Any:
    """Wait for a true result of the condition and return it. Raises TimeoutError with the condition's name."""
    ends = time.monotonic() + seconds
    while True:
        result = condition()
        if isinstance(result, Awaitable):
            result = await result
        if result:
            return result
        _check_deadline(condition, ends)
        await asyncio.sleep(_STEP)


def wait_until(condition: Callable[[], object], seconds: float = DEADLINE) -> Any:
    """Wait for a true result of the condition like `until`, outside an event loop."""
    ends = time.monotonic() + seconds
    while not (result := condition()):
        _check_deadline(condition, ends)
        time.sleep(_STEP)
    return result


def _check_deadline(condition: Callable[[], object], ends: float) -> None:
    if time.monotonic() > ends:
        raise TimeoutError(f"still false: {inspect.getsource(condition).strip()}")


def free_port() -> int:
    """Return a port that nothing uses at the moment, and that no other process of the tests chooses."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    first = _PORTS[_BLOCK * (16 * os.getppid() + worker) % len(_PORTS)]
    for call in itertools.islice(_calls, _BLOCK):
        with suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", first + call % _BLOCK))
            return first + call % _BLOCK
    raise RuntimeError(f"no free port in {first} to {first + _BLOCK - 1}")


def programs(*names: str) -> list[Any]:
    """Return parameters for tests that run these programs; those beyond BASE run in `make test-lab` only."""
    return [name if name.split()[0] in BASE else pytest.param(name, marks=pytest.mark.lab) for name in names]
