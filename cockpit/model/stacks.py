"""CPU profiles of hosts: folded stacks of the server's processes in slices of time. Events, their limits, frames."""

from __future__ import annotations

from typing import Literal

import msgspec

from cockpit.model.event import Event
from cockpit.model.recorded import Name
from cockpit.model.text import sanitize

# Limits of a slice: different stacks, characters and frames of a stack, characters of all stacks.
MAX_STACKS, MAX_STACK, MAX_DEPTH, MAX_TEXT = 2_000, 4_096, 128, 512 * 1024
# Limits of the sampling frequency (1/s), its default, and the length of a slice (s): a segment of 30 s has four.
MAX_HZ, DEFAULT_HZ, SLICE_SECONDS = 999, 49, 5.0
# Number of slices of a host that its state keeps: 83 min.
KEPT_SLICES = 1_000
# The frame of samples whose stack is not in the slice, the end of a kernel function, and the separator of frames.
OTHER, KERNEL, SEPARATOR = "[other]", "_[k]", ";"

_MAX_SAMPLES, _MAX_COST = 1 << 40, 1e6

# Events of perf, and profilers of a language; those of `WITH_WAITING` also sample threads that wait for a CPU.
StackSource = Literal["cycles", "cpu-clock", "py-spy", "asprof"]
WITH_WAITING = ("py-spy",)
ProfilerCondition = Literal["running", "stopped", "failed"]


class StackSlice(Event, frozen=True, tag="stack_slice"):
    """Samples of the code that the server's processes executed on a host between `start` and `t`, `hz` per CPU second;
    per second on a CPU or waiting for one if `source` is in WITH_WAITING.

    `stacks`: samples by folded stack: process name and functions from the outermost to the innermost, separated by `;`.
    Kernel functions end in `_[k]`; a function without a symbol is the name of its module, e.g. `[libc.so.6]`. `other`:
    samples of further stacks. All stacks and `other` add up to `samples` exactly. `cost`: CPU time (s) of the profiler.
    """

    host: Name
    start: float
    source: StackSource
    hz: int
    samples: int
    stacks: dict[str, int] = msgspec.field(default_factory=dict)
    other: int = 0
    cost: float = 0.0


class ProfilerChanged(Event, frozen=True, tag="profiler_changed"):
    """The profiler of a host started, was stopped, or failed. `detail`: why it failed, or has no functions of a
    language, and the command that helps."""

    host: Name
    condition: ProfilerCondition
    detail: str = ""


StackEvent = StackSlice | ProfilerChanged


def check_slice(part: StackSlice) -> None:
    """Raise ValueError for a slice beyond its limits, with characters a terminal would execute, or with a wrong sum."""
    if not 1 <= part.hz <= MAX_HZ or part.start >= part.t or not 0 <= part.cost < _MAX_COST:
        raise ValueError("a slice of stacks has a value out of range")
    if len(part.stacks) > MAX_STACKS or sum(map(len, part.stacks)) > MAX_TEXT:
        raise ValueError("a slice has too many stacks")
    if min(part.samples, part.other, 0) < 0 or part.samples > _MAX_SAMPLES or min(part.stacks.values(), default=1) < 1:
        raise ValueError("a slice of stacks has counts out of range")
    if sum(part.stacks.values()) + part.other != part.samples:
        raise ValueError("the stacks of a slice do not add up to its samples")
    for stack in part.stacks:
        if not stack or sanitize(stack, MAX_STACK) != stack or stack.count(SEPARATOR) >= MAX_DEPTH:
            raise ValueError("a slice has an invalid stack")
