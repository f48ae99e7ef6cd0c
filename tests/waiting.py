"""Conditions that tests wait for, free ports, and programs that a machine might lack."""

import asyncio
import inspect
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

# Seconds; far longer than any test waits, even on a busy machine.
DEADLINE = 120.0
_STEP = 0.01
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


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM, address: str = "127.0.0.1") -> int:
    """Return a port that nothing uses at the moment."""
    with socket.socket(type=kind) as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def programs(*names: str) -> list[Any]:
    """Return parameters for tests that run these programs; those beyond BASE run in `make test-lab` only."""
    return [name if name.split()[0] in BASE else pytest.param(name, marks=pytest.mark.lab) for name in names]
