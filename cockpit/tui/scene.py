"""What one frame is drawn from: the session's state, and where the person is looking."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cockpit.model.state import HostState, LoadSecond, Segment, State
from cockpit.session.controls import Action

LatencyView = Literal["histogram", "percentiles"]
ProcessOrder = Literal["pid", "cpu"]

LATENCY_VIEWS: tuple[LatencyView, ...] = ("histogram", "percentiles")
PROCESS_ORDERS: tuple[ProcessOrder, ...] = ("pid", "cpu")


@dataclass(frozen=True)
class View:
    """Where the person is looking. `row` and `baseline` are segment numbers; None follows the last, or the first."""

    host: int = 0
    row: int | None = None
    baseline: int | None = None
    latency: LatencyView = "histogram"
    order: ProcessOrder = "pid"
    host_alone: bool = False


@dataclass(frozen=True)
class Scene:
    """`mode` and `condition` are the session's words for itself; `trouble` says why nothing is recorded.

    `position` is the instant under the cursor where that is not the state's own time.
    """

    state: State
    view: View = field(default_factory=View)
    mode: str = ""
    condition: str = ""
    position: float | None = None
    extent: tuple[float, float] | None = None
    actions: tuple[Action, ...] = ()
    recording: str = ""
    trouble: str = ""

    @property
    def now(self) -> float:
        """The instant shown, session seconds."""
        return self.state.t if self.position is None else self.position

    @property
    def row(self) -> Segment | None:
        """The row looked at: the chosen one, else the last."""
        return by_number(self.state.segments, self.view.row) or self.state.segment

    @property
    def baseline(self) -> Segment | None:
        """The row that others are compared with: the chosen one, else the first that is no warm-up."""
        segments = self.state.segments
        first = next((segment for segment in segments if not segment.warmup), None)
        return by_number(segments, self.view.baseline) or first

    @property
    def hosts(self) -> tuple[HostState, ...]:
        return tuple(self.state.hosts.values())

    @property
    def host(self) -> HostState | None:
        """The host looked at."""
        return self.hosts[self.view.host % len(self.hosts)] if self.hosts else None

    @property
    def second(self) -> LoadSecond | None:
        """The newest second of the load that runs now whose figures are whole; None without load."""
        state = self.state
        if state.running is None or not state.seconds:
            return None
        whole = [second for second in state.seconds[-2:] if second.second < state.seconds[-1].second]
        started = next(segment.start for segment in state.segments if segment.run == state.running)
        return whole[0] if whole and whole[0].end > started else state.seconds[-1]


def by_number(segments: tuple[Segment, ...], number: int | None) -> Segment | None:
    """The row of that number, if there is one."""
    return segments[number - 1] if number is not None and 0 < number <= len(segments) else None
