"""The part of fold for CPU profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from cockpit.model.stacks import KEPT_SLICES, ProfilerChanged, StackSlice
from cockpit.model.state import State, with_host


def _stack_slice(state: State, event: StackSlice) -> State:
    host = state.hosts.get(event.host)
    return with_host(state, replace(host, slices=(*host.slices, event)[-KEPT_SLICES:])) if host else state


def _profiler_changed(state: State, event: ProfilerChanged) -> State:
    host = state.hosts.get(event.host)
    return with_host(state, replace(host, profiler=event)) if host else state


STACK_FOLDS: dict[type, Callable[[State, Any], State]] = {
    StackSlice: _stack_slice,
    ProfilerChanged: _profiler_changed,
}
