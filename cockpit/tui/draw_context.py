"""The input of one frame: the session's state and the user's view."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from cockpit.analysis.baseline import Baseline
from cockpit.analysis.thresholds import ThresholdResult, check_thresholds_so_far
from cockpit.analysis.time_ranges import TimeRange, TimeRanges
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.segments import SegmentVerdicts, baseline_of, segment_before
from cockpit.model.errors import UsageError
from cockpit.model.host.state import HostState, TailPane
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment, State
from cockpit.session.controls import Action, Mode, SessionStatus
from cockpit.tui.charts.window import AXIS, ChartWindow, window_for

LatencyView = Literal["heat map", "histogram"]
ProcessOrder = Literal["pid", "cpu", "rss", "unshared", "age", "start", "command"]
# Seconds of the baseline that stay in the charts while a change is judged.
_BASELINE_SHOWN = 60.0
# Part of a second of a running load from which it is drawn; each drawn change is sent to the terminal.
_DRAWN = 0.9
# Reads the stored baseline of a load plan; None if none is stored. Raises UsageError.
BaselineOf = Callable[[LoadPlan], Baseline | None]
# Hosts in their column, the selected host on the whole screen, or all hosts on the whole screen.
HostRoom = Literal["column", "alone", "all"]

LATENCY_VIEWS: tuple[LatencyView, ...] = get_args(LatencyView)
PROCESS_ORDERS: tuple[ProcessOrder, ...] = get_args(ProcessOrder)


class StoredBaselines:
    """Stored baselines by run, each read once; None if none is stored for the run's load plan."""

    def __init__(self, read: BaselineOf = lambda plan: None) -> None:
        self._read = read
        self._known: dict[int, Baseline | None] = {}

    def of(self, run: int, plan: LoadPlan) -> Baseline | None:
        if run not in self._known:
            try:
                self._known[run] = self._read(plan)
            except UsageError:
                self._known[run] = None
        return self._known[run]


class Detail(NamedTuple):
    """A list below a host's metrics; `place` is the index of a tail or status page."""

    kind: Literal["processes", "cores", "disks", "nets", "page", "tail", "sar"]
    place: int = 0


PROCESSES = Detail("processes")
_DETAIL_NAMES = {"nets": "interfaces", "page": "status page", "sar": "all metrics"}
SAR = Detail("sar")


@dataclass(frozen=True)
class View:
    """The user's view: selections, scroll positions and display modes.

    `segment`, `baseline`: segment numbers; None: the last segment, the default baseline.
    `details`: the chosen list by host name.
    `metrics`: all metrics of the selected host, on the whole screen.
    `list_entered`: the arrows scroll the list of the selected host instead of selecting segments.
    `scroll`: hidden lines above the list; of a tail, hidden lines below it.
    `order`, `reverse_order`: sort column of the processes, and whether the order is reversed.
    `process`: the selected process as (pid, start). `folded`: identical processes share a line.
    `frozen`: the state whose hosts are shown; None: the current state.
    `paused_tail`: the paused tail as it was when the user scrolled back; None: the current tail.
    `cursor`: position of the chart cursor in session seconds; None: no cursor.
    `span`: seconds per cell of the charts over time; None: automatic, see `window_for`.
    """

    host: int = 0
    segment: int | None = None
    baseline: int | None = None
    latency: LatencyView = "heat map"
    room: HostRoom = "column"
    details: Mapping[str, Detail] = field(default_factory=dict)
    metrics: bool = False
    list_entered: bool = False
    scroll: int = 0
    order: ProcessOrder = "cpu"
    reverse_order: bool = False
    folded: bool = True
    filter: str = ""
    process: tuple[int, int] | None = None
    frozen: State | None = None
    paused_tail: TailPane | None = None
    cursor: float | None = None
    span: float | None = None

    @property
    def list_focused(self) -> bool:
        """Whether the arrows scroll the list of the selected host; otherwise they select segments."""
        return self.list_entered or self.room != "column"


@dataclass(frozen=True)
class DrawContext:
    """The input of one frame.

    `position`: the shown instant of a replay (session seconds); None: the time of `state`.
    `extent`: first and last instant of a replay; None: not a replay.
    `recording`: path of the recording. `recording_error`: the error that stopped recording, or "".
    `gaps`: time ranges missing in the recording. `damaged`: damaged parts of a replayed recording.
    `verdicts`, `time_ranges`, `baselines`: caches that are reused from frame to frame.
    `lite`: charts without decoration, for slow terminals. `chart_width`: cells of the charts, whose time axis the hosts
    share. `waiting`: the confirmed change that is not over, or "". `ending`: the work that delays the end of the
    session once the user has quit, or "".
    """

    state: State
    view: View = field(default_factory=View)
    mode: Mode | None = None
    status: SessionStatus | None = None
    position: float | None = None
    extent: tuple[float, float] | None = None
    actions: tuple[Action, ...] = ()
    recording: str = ""
    recording_error: str = ""
    gaps: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    verdicts: SegmentVerdicts = field(default_factory=SegmentVerdicts)
    time_ranges: TimeRanges = field(default_factory=TimeRanges)
    baselines: StoredBaselines = field(default_factory=StoredBaselines)
    lite: bool = False
    chart_width: int = 68
    waiting: str = ""
    ending: str = ""

    @property
    def now(self) -> float:
        """The shown instant in session seconds."""
        return self.state.t if self.position is None else self.position

    @property
    def segment(self) -> Segment | None:
        """The selected segment, otherwise the last one."""
        return by_number(self.state.segments, self.view.segment) or self.state.segment

    @property
    def baseline(self) -> Segment | None:
        """The chosen baseline, otherwise the first segment that is no warm-up."""
        segments = self.state.segments
        first = next((segment for segment in segments if not segment.warmup), None)
        return by_number(segments, self.view.baseline) or first

    def before(self, segment: Segment) -> Segment | None:
        """Return the baseline of a segment, see `baseline_of`."""
        return baseline_of(self.state, segment, by_number(self.state.segments, self.view.baseline))

    def verdict(self, segment: Segment) -> Verdict | None:
        """Return the verdict on a segment, of a duet that on its variants; None without a baseline."""
        if segment.plan.variants:
            return None if segment.warmup else self.verdicts.duet(self.state, segment)
        base = self.before(segment)
        return None if base is None else self.verdicts.verdict(self.state, segment, base)

    @property
    def hosts(self) -> tuple[HostState, ...]:
        """All hosts, current or frozen."""
        return tuple((self.view.frozen or self.state).hosts.values())

    @property
    def hosts_now(self) -> float:
        """The instant of `hosts` in session seconds."""
        return self.now if self.view.frozen is None else self.view.frozen.t

    @property
    def host(self) -> HostState | None:
        return self.hosts[self.view.host % len(self.hosts)] if self.hosts else None

    def detail(self, host: HostState) -> Detail:
        """Return the list below a host: the chosen one, otherwise the first available."""
        if self.view.metrics and host is self.host:
            return SAR
        offered = details_of(host)
        chosen = self.view.details.get(host.config.name)
        return chosen if chosen in offered else offered[0]

    @cached_property
    def seconds(self) -> Sequence[LoadSecond]:
        """The seconds of load, cached because charts read them for each column."""
        return self.state.seconds

    @property
    def second(self) -> LoadSecond | None:
        """The newest complete second of the running load, or the current one at its start; None without load."""
        state = self.state
        if state.running is None or not self.seconds:
            return None
        whole = [second for second in self.seconds[-2:] if second.second < self.seconds[-1].second]
        started = next(segment.start for segment in state.segments if segment.run == state.running)
        return whole[0] if whole and whole[0].end > started else self.seconds[-1]

    @cached_property
    def thresholds(self) -> tuple[ThresholdResult, ...]:
        """Results so far of the recorded thresholds and the stored baseline's limits, for the run of the selected
        segment."""
        if self.segment is None:
            return ()
        run = self.segment.run
        return check_thresholds_so_far(self.state, run, self.baselines.of(run, self.state.plans[run]))

    @property
    def _growing(self) -> bool:
        state = self.state
        return state.running is not None or not state.segments or any(not change.outcome for change in state.changes)

    @property
    def chart_end(self) -> float:
        """The newest instant in the charts over time: now during load or a change, otherwise their last event."""
        state = self.state
        if self._growing:
            return self.now
        last = max(segment.end or segment.last for segment in state.segments)
        return min(self.now, max([last, *(marker.t for marker in state.markers[-1:])]))

    @cached_property
    def chart_start(self) -> int:
        """The second of the first load, change or other marker; 0 without load."""
        state = self.state
        times = (*(marker.t for marker in state.markers[:1]), *(change.begun for change in state.changes[:1]))
        return int(min([self.now, state.segments[0].start, *times])) if state.segments else 0

    def window(self, width: int) -> ChartWindow:
        view, cells = self.view, max(2, width - AXIS - 1)
        charted = self.chart_start, self._known_end, self._needed
        return window_for(self.chart_end, cells, view.span, view.cursor, *charted)

    @cached_property
    def axis(self) -> ChartWindow:
        """The time range of the charts."""
        return self.window(self.chart_width)

    @property
    def _known_end(self) -> float:
        """The end of the charts, the planned one of a running load, in session seconds; 0 if it is unknown."""
        state = self.state
        if not self._growing:
            return self.chart_end
        seconds = None if state.running is None else state.plans[state.running].seconds
        if seconds is None:
            return 0.0
        start = next(segment.start for segment in state.segments if segment.run == state.running)
        return max(start + seconds, state.extension.until if state.extension else 0.0)

    @property
    def _needed(self) -> float | None:
        """The start of the last minute of the baseline of a change under load; None without a change."""
        segment = self.state.segment
        if segment is None or not segment.changes:
            return None
        base = segment_before(self.state, segment)
        return None if base is None else max(base.start, segment.start - _BASELINE_SHOWN)

    def cursor(self, window: ChartWindow) -> float | None:
        """Return the start of the cursor's cell in session seconds; None without a cursor."""
        at = self.view.cursor
        return None if at is None else window.instant(window.cell(max(self.chart_start, min(at, self.chart_end))))

    def time_range(self, start: float, length: float) -> TimeRange | None:
        """Return the load of `length` s from `start`, in whole seconds, up to 2 s those of both halves; a second that
        has just started is left out."""
        end = math.ceil(start + length) if length > 2 else int(start + length / 2) + 1
        seconds = end - int(start)
        return self.time_ranges.of(self.seconds, int(start), seconds, self._until)

    @cached_property
    def _until(self) -> int:
        """The end (exclusive) of the drawn seconds."""
        seconds = self.seconds
        if not seconds:
            return 0
        begun = self.state.running is not None and seconds[-1].end - seconds[-1].start < _DRAWN
        return seconds[-1].second + (not begun)


def details_of(host: HostState) -> tuple[Detail, ...]:
    """Return the available lists of a host, in the order in which the key steps through them."""
    details = [PROCESSES] if host.config.processes else []
    details += [Detail("cores"), Detail("disks"), Detail("nets")]
    details += [Detail("page", place) for place in range(len(host.pages))]
    details += [Detail("tail", place) for place in range(len(host.tails))]
    return tuple(details)


def name_of(detail: Detail) -> str:
    return _DETAIL_NAMES.get(detail.kind, detail.kind)


def by_number(segments: tuple[Segment, ...], number: int | None) -> Segment | None:
    return segments[number - 1] if number is not None and 0 < number <= len(segments) else None
