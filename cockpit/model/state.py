"""The state of a session after its events so far. Frozen: fold creates a new state, so any state can be kept and shown.

Screen, check, replay and report read only the state. Times are session seconds, latencies seconds, rates per second,
memory bytes unless the name has another unit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotState
from cockpit.model.capacity import CapacityBegun, CapacityEnded
from cockpit.model.counts import Counts, LogCounts, log_rate
from cockpit.model.events import ChangeOutcome, ExtensionReason, RoundsBegun, RoundsEnded, RoundSide, SessionStarted
from cockpit.model.generators import GeneratorMachine, GeneratorState, WorkerLost
from cockpit.model.host.state import HostState, HostWindow
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import LoadPlan, RunTotals
from cockpit.model.load.seconds import LoadSecond, OpenSecond, load_second
from cockpit.model.markers import ChangeName, Marker
from cockpit.model.series import replaced
from cockpit.model.study import Study, StudyObservation, StudyRound, StudyRun, StudyStepEnded, StudyStepLost


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The number of `requests` of a worker without a complete response in its last tick; other fields: see Tick."""

    requests: int
    oldest: float
    silence: float


class SegmentBasis(msgspec.Struct, frozen=True, kw_only=True):
    """Why a segment differs from the previous one: by `changes`; as the first or another run; by the `variants` of a
    duet; as a round or a load level of a capacity search, by `number`, or as the part between or after them. `host`:
    see RoundsBegun.new_on."""

    kind: Literal[
        "baseline", "again", "changes", "variants", "search", "level", "between_levels", "round", "after_rounds"
    ] = "baseline"
    changes: tuple[ChangeName, ...] = ()
    variants: tuple[str, ...] = ()
    number: int = 0
    side: RoundSide | None = None
    host: str = ""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one run with unchanged settings: a line of the runs table.

    `basis`: why it differs from the previous one; `labelled_by`: what its label shows, with `load` both. `changes`:
    letters of the changes since the previous segment; `changes_until`: number of changes of the session at its start;
    `counted`: start of its first tick, None before it. `end`: None while it runs. `saturated_worker_seconds`: worker-
    seconds in which the generator was the bottleneck. `round`: number of its round, to which the set-up of the next
    window belongs too; 0: none. `losses`: lost workers, whose metrics are missing. `warmup`: not part of the run's
    result; `stage`: load level. `warnings` and `addresses` of the target: from before the run. By worker: `worker_cpu`:
    CPU time (s); `worker_wait`: time it waited for a CPU (s); `worker_silence`: time with requests in flight and no
    response (s). `totals`: see RunStarted. `logs`: users' traffic by host.
    """

    number: int
    run: int
    plan: LoadPlan
    basis: SegmentBasis = SegmentBasis()
    labelled_by: Literal["basis", "load", "warmup"] = "basis"
    changes: tuple[str, ...] = ()
    changes_until: int = 0
    start: float
    last: float
    counted: float | None = None
    end: float | None = None
    counts: Counts = Counts()
    hosts: Mapping[str, HostWindow] = MappingProxyType({})
    stage: int = 0
    warmup: bool = False
    warnings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    worker_cpu: Mapping[int, float] = MappingProxyType({})
    worker_wait: Mapping[int, float] = MappingProxyType({})
    worker_silence: Mapping[int, float] = MappingProxyType({})
    saturated_worker_seconds: float = 0.0
    losses: tuple[WorkerLost, ...] = ()
    round: int = 0
    reason: str = ""
    detail: str = ""
    totals: RunTotals | None = None
    logs: Mapping[str, LogCounts] = MappingProxyType({})

    @property
    def seconds(self) -> float:
        """Length of the part covered by ticks."""
        return self.last - (self.start if self.counted is None else self.counted)

    @property
    def saturated(self) -> float:
        """Seconds in which the generator was the bottleneck."""
        return self.saturated_worker_seconds / max(1, len(self.worker_cpu))

    @property
    def stalled(self) -> float:
        """Seconds without any response while requests were in flight."""
        return min(self.worker_silence.values()) if 0 < len(self.worker_cpu) == len(self.worker_silence) else 0.0

    @property
    def cpu_wait(self) -> float:
        """The largest share of the time in which a worker was runnable and waited for a CPU."""
        return max(self.worker_wait.values(), default=0.0) / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate(self) -> float:
        """Responses/s, failed statuses included; 0 before the first tick. Of users' traffic: while logs were read."""
        if self.logs:
            return log_rate(self.logs, self.seconds)
        return self.counts.completed / self.seconds if self.seconds > 0 else 0.0


class KnobState(msgspec.Struct, frozen=True, kw_only=True):
    """A knob and its last read value. `known`: it was read at least once; not `active`: a change wrote the value to a
    file that the server has not read since. `reading`: the value that was read since the last change; (): none."""

    knob: Knob
    value: str | None = None
    known: bool = False
    detail: str = ""
    active: bool = True
    reading: tuple[str | None, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change, from its request on. `outcome` and `ended` are None while it is in progress.

    `stages`: time of each stage that it reached (see ChangeStage). `confirm_by`: time until which the user must confirm
    it, else it is rolled back; None: no confirmation needed. `diff`, `cost`, `who`, `inactive`, `trial`: see
    ChangeBegun; a value that an action activates is removed from `inactive`. `exceeded`: see ChangeEnded.
    """

    letter: str
    host: str
    settings: tuple[Setting, ...]
    begun: float
    undoes: str = ""
    ended: float | None = None
    outcome: ChangeOutcome | None = None
    detail: str = ""
    diff: str = ""
    cost: str = ""
    who: str = ""
    inactive: tuple[str, ...] = ()
    trial: bool = False
    exceeded: str = ""
    stages: Mapping[str, float] = MappingProxyType({})
    confirm_by: float | None = None

    @property
    def active_since(self) -> float | None:
        """The time at which it became active; None: never, or not yet."""
        return self.stages.get("active", self.ended if self.outcome == "applied" else None)

    @property
    def name(self) -> ChangeName:
        return ChangeName(letter=self.letter, settings=self.settings, undoes=self.undoes)


class ActionRun(msgspec.Struct, frozen=True, kw_only=True):
    """An action, from its request on. `done` of `times` runs succeeded; `ended`: None while it runs."""

    number: int
    action: str
    host: str
    times: int
    begun: float
    ended: float | None = None
    done: int = 0
    detail: str = ""


class StudyState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a study in this session: its rounds, runs, observations, completed steps (`done`), and steps that
    were interrupted by the loss of a host (`lost`).

    `steps`: maximum number of steps of the whole study, of which `before` were completed in earlier sessions.
    """

    study: Study
    fingerprint: str
    steps: int
    before: int = 0
    rounds: tuple[StudyRound, ...] = ()
    runs: tuple[StudyRun, ...] = ()
    observations: tuple[StudyObservation, ...] = ()
    done: tuple[StudyStepEnded, ...] = ()
    lost: tuple[StudyStepLost, ...] = ()
    ended: bool = False


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The extension of run `run` beyond its plan, from `since` until at most `until` (s): see RunExtended."""

    run: int
    since: float
    until: float
    awaited: ExtensionReason
    change: str = ""


class RoundWindowState(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a round. `end`: None while it runs, or if it was interrupted. `logs`: users' requests by host."""

    round: int
    side: RoundSide
    start: float
    until: float
    end: float | None = None
    logs: Mapping[str, LogCounts] = MappingProxyType({})


class RoundsState(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds, from their announcement on; `ended`: None while they run."""

    begun: RoundsBegun
    windows: tuple[RoundWindowState, ...] = ()
    ended: RoundsEnded | None = None

    @property
    def budget(self) -> int:
        return len(self.begun.first)

    @property
    def complete(self) -> tuple[tuple[RoundWindowState, RoundWindowState], ...]:
        """The complete rounds, whose windows both have their full length: (before, after) of each, in order of time."""
        done: dict[int, dict[RoundSide, RoundWindowState]] = {}
        for window in self.windows:
            if window.end is not None:
                done.setdefault(window.round, {})[window.side] = window
        return tuple((sides["before"], sides["after"]) for sides in done.values() if len(sides) == 2)


class CapacityLevelState(msgspec.Struct, frozen=True, kw_only=True):
    """A level of a capacity search, measured in segment `segment` until `until`. `end`: None while it runs, or if it
    was interrupted."""

    level: int
    rate: float
    segment: int
    until: float
    end: float | None = None


class CapacityState(msgspec.Struct, frozen=True, kw_only=True):
    """A capacity search, from its start on; `ended`: None while it runs."""

    begun: CapacityBegun
    levels: tuple[CapacityLevelState, ...] = ()
    ended: CapacityEnded | None = None


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A session at the instant `t`. State() is the state before the first event.

    `running`: number of the active run; `runs`: number of runs so far. `extension`: set if the end of the active run is
    postponed. `in_flight`: by worker of the active run; `machines`: generator of each of its workers, (): all workers
    run on the cockpit's machine. `generator`: the cockpit's machine. `closed_seconds`: seconds of load that no later
    tick can change; `filling`: the open seconds after them.
    """

    t: float = 0.0
    started: SessionStarted | None = None
    ended: bool = False
    running: int | None = None
    runs: int = 0
    plans: Mapping[int, LoadPlan] = MappingProxyType({})
    segments: tuple[Segment, ...] = ()
    closed_seconds: Sequence[LoadSecond] = ()
    hosts: Mapping[str, HostState] = MappingProxyType({})
    knobs: Mapping[str, KnobState] = MappingProxyType({})
    changes: tuple[Change, ...] = ()
    actions: tuple[ActionRun, ...] = ()
    markers: tuple[Marker, ...] = ()
    filling: tuple[OpenSecond, ...] = ()
    in_flight: Mapping[int, InFlight] = MappingProxyType({})
    study: StudyState | None = None
    extension: Extension | None = None
    rounds: tuple[RoundsState, ...] = ()
    capacities: tuple[CapacityState, ...] = ()
    generator: GeneratorMachine | None = None
    generators: Mapping[str, GeneratorState] = MappingProxyType({})
    machines: tuple[str, ...] = ()
    autopilot: AutopilotState | None = None

    @property
    def seconds(self) -> Sequence[LoadSecond]:
        """All seconds of load. The last few are computed at each access, not at each tick."""
        newest = tuple(load_second(filling) for filling in self.filling)
        return replaced(self.closed_seconds, len(self.closed_seconds), newest) if newest else self.closed_seconds

    @property
    def own_changes(self) -> tuple[Change, ...]:
        """The changes that were not made only for a measurement."""
        return tuple(change for change in self.changes if not change.trial)

    @property
    def running_rounds(self) -> RoundsState | None:
        return self.rounds[-1] if self.rounds and self.rounds[-1].ended is None else None

    @property
    def running_capacity(self) -> CapacityState | None:
        return self.capacities[-1] if self.capacities and self.capacities[-1].ended is None else None

    @property
    def studying(self) -> bool:
        return self.study is not None and not self.study.ended

    @property
    def segment(self) -> Segment | None:
        """The current segment, or the last one if no run is active."""
        return self.segments[-1] if self.segments else None


def with_host(state: State, host: HostState) -> State:
    """Return the state with the host of that name replaced by `host`."""
    return replace(state, hosts={**state.hosts, host.config.name: host})


def with_last_segment(state: State, segment: Segment) -> State:
    """Return the state with its last segment replaced by `segment`."""
    return replace(state, segments=(*state.segments[:-1], segment))


def mark(state: State, marker: Marker) -> State:
    place = bisect_right(state.markers, marker.t, key=attrgetter("t"))
    return replace(state, markers=(*state.markers[:place], marker, *state.markers[place:]))
