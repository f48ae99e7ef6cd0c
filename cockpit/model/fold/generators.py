"""The part of fold for load generators: their clocks, losses and seconds of load."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import generators as ge
from cockpit.model.generators import GeneratorSecond, GeneratorState
from cockpit.model.markers import WorkerMarker
from cockpit.model.state import State, mark
from cockpit.model.tick import Tick


def generator_clock(state: State, event: ge.GeneratorClock) -> State:
    known = replace(_known(state, event.machine), offset=event.offset, uncertainty=event.uncertainty, drift=event.drift)
    return _with(state, known)


def generator_lost(state: State, event: ge.GeneratorLost) -> State:
    state = _with(state, replace(_known(state, event.machine), lost=(event.t, event.detail), last=None))
    return mark(state, WorkerMarker(t=event.t, machine=event.machine, detail=event.detail))


def generator_tick(state: State, tick: Tick) -> State:
    """Add a tick to the current second of its generator."""
    if tick.worker >= len(state.machines):
        return state
    known = _known(state, state.machines[tick.worker])
    second = int((tick.start + tick.t) / 2)
    filling = known.filling
    if filling is None or second > filling.second:
        known = replace(known, last=filling)
        filling = GeneratorSecond(second=second)
    cpu, span = filling.spent.get(tick.worker, (0.0, 0.0))
    filling = replace(
        filling,
        completed=filling.completed + tick.completed,
        spent={**filling.spent, tick.worker: (cpu + tick.cpu, span + tick.t - tick.start)},
        lag=max(filling.lag, tick.lag.percentile(99)) if tick.lag.max > filling.lag else filling.lag,
        cpu_wait=filling.cpu_wait + tick.cpu_wait,
    )
    return _with(state, replace(known, filling=filling))


def _known(state: State, machine: str) -> GeneratorState:
    return state.generators.get(machine) or GeneratorState(name=machine)


def _with(state: State, known: GeneratorState) -> State:
    return replace(state, generators={**state.generators, known.name: known})
