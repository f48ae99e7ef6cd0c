"""The load of one worker in one interval."""

from __future__ import annotations

from cockpit.model.counts import LoadCounts


class Tick(LoadCounts, frozen=True, tag_field="event", tag="tick"):
    """The load of one worker between `start` and `t`; counts cover this interval only.

    `connections`: open connections at `t`; `in_flight`: requests without a complete response at `t`; `oldest`: age of
    the oldest (s). `silence`: time (s) since the last tick with a complete response, or since the start of the run.
    `cpu_wait`: seconds in which the worker was runnable and waited for a CPU (0 if the system does not count them);
    `pause`: longest time (s) between two iterations of its event loop. `stage`: the load level, one per tick. `warmup`
    ticks are shown but not counted.
    """

    t: float
    run: int
    worker: int
    start: float
    connections: int = 0
    in_flight: int = 0
    oldest: float = 0.0
    silence: float = 0.0
    cpu_wait: float = 0.0
    pause: float = 0.0
    stage: int = 0
    warmup: bool = False
