"""Stacks of a segment: its slices, their sum, samples of each function. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from cockpit.model.stacks import KERNEL, OTHER, SEPARATOR, StackSlice
from cockpit.model.state import Segment, State

# Outermost functions of the kernel: of interrupts, and of system calls with the prefixes of the latter.
_INTERRUPTS = (
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "irq_",
    "el0_irq",
    "el0t_64_irq",
    "common_interrupt",
)
_ENTRIES = ("entry_SYSCALL", "do_syscall_64", "x64_sys_call", "el0", "do_el0_svc", "invoke_syscall")
_SYSTEM_CALL = re.compile(r"^(__)?(x64|ia32|arm64|se|do|k)?_?sys_")


class FunctionSamples(msgspec.Struct, frozen=True):
    """Samples of a function: `own`: while it was executed itself; `total`: it or a function that it called."""

    own: int
    total: int


def segment_slices(state: State, host: str, segment: Segment) -> tuple[StackSlice, ...]:
    """Return the slices of a host that are completely within a segment, in order of time; only those with the source of
    the last one."""
    end = segment.last if segment.end is None else segment.end
    slices = slices_between(state, host, segment.start, end)
    return tuple(part for part in slices if part.source == slices[-1].source)


def slices_between(state: State, host: str, start: float, end: float) -> tuple[StackSlice, ...]:
    known = state.hosts.get(host)
    return tuple(part for part in known.slices if start <= part.start and part.t <= end) if known else ()


def merged(slices: Iterable[StackSlice]) -> Mapping[str, int]:
    """Return the samples by folded stack (see StackSlice) of all slices; samples of unknown stacks under OTHER."""
    stacks: Counter[str] = Counter()
    for part in slices:
        stacks.update(part.stacks)
        if part.other:
            stacks[OTHER] += part.other
    return stacks


def segment_stacks(state: State, host: str, segment: Segment) -> Mapping[str, int]:
    """Return the samples by folded stack in a segment of a host; empty without a complete slice."""
    return merged(segment_slices(state, host, segment))


def by_function(stacks: Mapping[str, int]) -> dict[str, FunctionSamples]:
    """Return the samples of each function. A recursive function counts once per sample; process names do not count."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for stack, count in stacks.items():
        frames = functions(stack)
        own[frames[-1]] += count
        for frame in set(frames):
            total[frame] += count
    return {frame: FunctionSamples(own[frame], samples) for frame, samples in total.items()}


def by_cause(stacks: Mapping[str, int]) -> dict[str, int]:
    """Return the samples by cause, each sample once: its system call, fault or interrupt, else its innermost
    function."""
    causes: Counter[str] = Counter()
    for stack, count in stacks.items():
        causes[cause(stack)] += count
    return dict(causes)


@lru_cache(maxsize=20_000)
def cause(stack: str) -> str:
    """Return the system call (without prefixes of the kernel), fault or interrupt of a stack, else its innermost
    function."""
    frames = functions(stack)
    kernel = [frame.removesuffix(KERNEL) for frame in frames if frame.endswith(KERNEL)]
    if not kernel:
        return frames[-1]
    if "page_fault" in kernel[0]:
        return "page fault"
    if kernel[0].startswith(_INTERRUPTS):
        return "interrupt"
    called = next((frame for frame in kernel if not frame.startswith(_ENTRIES)), kernel[-1])
    return _SYSTEM_CALL.sub("", called).partition(".")[0]


@lru_cache(maxsize=20_000)
def functions(stack: str) -> Sequence[str]:
    """Return the functions of a folded stack without the process name, outermost first; a stack of one frame as is."""
    return tuple(stack.split(SEPARATOR)[1:]) or (stack,)
