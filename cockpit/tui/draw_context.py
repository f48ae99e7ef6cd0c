"""What one frame is drawn from: the session's state, and where the person is looking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from cockpit.analysis.outcome import Verdict
from cockpit.analysis.row_verdicts import RowVerdicts, row_before
from cockpit.analysis.stretches import Stretches, TimeRange
from cockpit.model.host_state import HostState, TailPane
from cockpit.model.state import LoadSecond, Segment, State
from cockpit.session.controls import Action, Mode, SessionStatus
from cockpit.tui.charts.window import AXIS, ChartWindow, window_for

LatencyView = Literal["histogram", "heat map", "percentiles"]
ProcessOrder = Literal["pid", "cpu", "rss", "unshared", "age", "start", "command"]
# How much of the screen the hosts have: their column, all of it for the one looked at, all of it for all of them.
HostRoom = Literal["column", "alone", "all"]

LATENCY_VIEWS: tuple[LatencyView, ...] = ("histogram", "heat map", "percentiles")
PROCESS_ORDERS: tuple[ProcessOrder, ...] = ("pid", "cpu", "rss", "unshared", "age", "start", "command")


class Detail(NamedTuple):
    """What stands below a host's figures; `place` tells tails and status pages apart."""

    kind: Literal["processes", "cores", "disks", "nets", "page", "tail", "averages"]
    place: int = 0


PROCESSES = Detail("processes")
AVERAGES = Detail("averages")


@dataclass(frozen=True)
class View:
    """Where the person is looking. `row` and `baseline` are segment numbers; None follows the last, or the first.

    `details` is by host name; `averages` puts those of the row looked at in the place of every one. `entered`: the
    arrows act on the detail of the host looked at, which begins `scroll` lines down (a tail: ends so many lines up).
    `chosen` is a process by (pid, start). `frozen` is the state of which the hosts are shown, `held` the tail as it
    was when somebody began to look back; None is: as they are now. `cursor` is the instant of the cursor in the charts
    over time, None: the arrows are not there; `span` how many seconds a cell of these charts is, None: see window_for.
    """

    host: int = 0
    row: int | None = None
    baseline: int | None = None
    latency: LatencyView = "histogram"
    room: HostRoom = "column"
    details: Mapping[str, Detail] = field(default_factory=dict)
    averages: bool = False
    entered: bool = False
    scroll: int = 0
    order: ProcessOrder = "pid"
    turned: bool = False
    filter: str = ""
    chosen: tuple[int, int] | None = None
    frozen: State | None = None
    held: TailPane | None = None
    cursor: float | None = None
    span: float | None = None

    @property
    def inside(self) -> bool:
        """Whether the arrows act on the detail of the host looked at; else they choose a row of the runs table."""
        return self.entered or self.room != "column"


@dataclass(frozen=True)
class DrawContext:
    """`mode` and `status` are those of the session; `trouble` says why nothing is recorded,
    `gaps` which time ranges were not.

    `position` is the instant of a replay where that is not the state's own time; `lost` says what of a recording is
    damaged and left out; `verdicts` and `stretches` are kept from scene to scene. `lite`: charts are plain, and what
    would only please the eye is left out.
    """

    state: State
    view: View = field(default_factory=View)
    mode: Mode | None = None
    status: SessionStatus | None = None
    position: float | None = None
    extent: tuple[float, float] | None = None
    actions: tuple[Action, ...] = ()
    recording: str = ""
    trouble: str = ""
    gaps: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    verdicts: RowVerdicts = field(default_factory=RowVerdicts)
    stretches: Stretches = field(default_factory=Stretches)
    lite: bool = False

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

    def before(self, row: Segment) -> Segment | None:
        """What a row is compared with: the chosen baseline, else the row before a change under load, else the first."""
        chosen = by_number(self.state.segments, self.view.baseline)
        base = chosen or row_before(self.state, row) or self.baseline
        return None if base is None or row.warmup or row.round or base.number == row.number else base

    def verdict(self, row: Segment) -> Verdict | None:
        """The verdict on a row; None where there is nothing to compare it with."""
        base = self.before(row)
        return None if base is None else self.verdicts.verdict(self.state, row, base)

    @property
    def hosts(self) -> tuple[HostState, ...]:
        """All hosts, as they are or as they were when somebody froze them."""
        return tuple((self.view.frozen or self.state).hosts.values())

    @property
    def hosts_now(self) -> float:
        """The instant of `hosts`, session seconds."""
        return self.now if self.view.frozen is None else self.view.frozen.t

    @property
    def host(self) -> HostState | None:
        """The host looked at."""
        return self.hosts[self.view.host % len(self.hosts)] if self.hosts else None

    def detail(self, host: HostState) -> Detail:
        """What stands below the figures of a host: what was chosen for it, else the first that it has."""
        if self.view.averages:
            return AVERAGES
        offered = details_of(host)
        chosen = self.view.details.get(host.config.name)
        return chosen if chosen in offered else offered[0]

    @property
    def second(self) -> LoadSecond | None:
        """The newest second of the load that runs now whose figures are whole; None without load."""
        state = self.state
        if state.running is None or not state.seconds:
            return None
        whole = [second for second in state.seconds[-2:] if second.second < state.seconds[-1].second]
        started = next(segment.start for segment in state.segments if segment.run == state.running)
        return whole[0] if whole and whole[0].end > started else state.seconds[-1]

    def window(self, width: int) -> ChartWindow:
        """What the charts over time show in `width` cells."""
        return window_for(self.now, max(2, width - AXIS - 1), self.view.span, self.view.cursor)

    def cursor(self, window: ChartWindow) -> float | None:
        """Where the cursor stands in that window, at the beginning of a cell: that of `now` where a replay went back
        behind it. None: there is no cursor."""
        at = self.view.cursor
        return None if at is None else window.instant(window.cell(min(at, self.now)))

    def stretch(self, start: float, length: float) -> TimeRange | None:
        """The load from an instant on for `length` s, of whole seconds; without one that has only just begun."""
        return self.stretches.of(self.state.seconds, int(start), max(1, int(length)), self._until)

    @cached_property
    def _until(self) -> int:
        """The first second that is not drawn."""
        seconds = self.state.seconds
        if not seconds:
            return 0
        begun = self.state.running is not None and seconds[-1].end - seconds[-1].start < 0.5
        return seconds[-1].second + (not begun)


def details_of(host: HostState) -> tuple[Detail, ...]:
    """What can be looked at below the figures of a host, in the order in which a key goes through it."""
    found = [PROCESSES] if host.config.processes is not None else []
    found += [Detail("cores"), Detail("disks"), Detail("nets")]
    found += [Detail("page", place) for place in range(len(host.pages))]
    found += [Detail("tail", place) for place in range(len(host.tails))]
    return tuple(found)


def by_number(segments: tuple[Segment, ...], number: int | None) -> Segment | None:
    """The row of that number, if there is one."""
    return segments[number - 1] if number is not None and 0 < number <= len(segments) else None
