"""The state that the events so far add up to. Frozen: a fold makes a new state, so any state can be kept and shown.

Screen, check, replay and report read only this. Times are session seconds, latencies seconds,
rates per second, memory bytes unless a name says otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from cockpit.model.autopilot import AutopilotState
from cockpit.model.counts import Counts
from cockpit.model.events import Awaited, ChangeOutcome, RoundsBegun, RoundsEnded, SessionStarted, Side
from cockpit.model.generators import GeneratorMachine, GeneratorState
from cockpit.model.host_state import HostState, HostWindow
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load import LoadPlan, RunTotals
from cockpit.model.load_seconds import Filling, LoadSecond, load_second
from cockpit.model.series import replaced
from cockpit.model.study import Study, StudyObservation, StudyRound, StudyRun, StudyStepEnded, StudyStepLost


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a worker without a complete response, as its last tick has them: see Tick."""

    requests: int
    oldest: float
    silence: float


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of one run with unchanged settings: a line of the runs table.

    `label` is `base`, the settings, and the load level if there is one.
    `changes` are the letters of the changes made since the segment before (`changes_until` says how many the session
    had by then); `end` is None while it runs. `saturated_worker_seconds`: the generator was the bottleneck in them.
    `round` is the round that it belongs to with the set-up of the next window, 0: none.
    `partial` is why its metrics are incomplete. `warmup` is not counted into the run's result; `stage` is its
    load level; `altered`: the load was changed during the segment. `warnings` and the target's `addresses` were
    known before the run; `worker_cpu` is CPU seconds by worker, `worker_wait` those it waited for a CPU,
    `worker_silence` those in which it had requests in flight and no response. `totals` as in RunStarted.
    """

    number: int
    run: int
    plan: LoadPlan
    label: str
    base: str = ""
    changes: tuple[str, ...] = ()
    changes_until: int = 0
    start: float
    last: float
    end: float | None = None
    counts: Counts = Counts()
    hosts: Mapping[str, HostWindow] = MappingProxyType({})
    stage: int = 0
    warmup: bool = False
    altered: bool = False
    warnings: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    worker_cpu: Mapping[int, float] = MappingProxyType({})
    worker_wait: Mapping[int, float] = MappingProxyType({})
    worker_silence: Mapping[int, float] = MappingProxyType({})
    saturated_worker_seconds: float = 0.0
    partial: str = ""
    round: int = 0
    reason: str = ""
    detail: str = ""
    totals: RunTotals | None = None

    @property
    def seconds(self) -> float:
        """Length of the part that ticks cover."""
        return self.last - self.start

    @property
    def saturated(self) -> float:
        """Seconds in which the generator was the bottleneck."""
        return self.saturated_worker_seconds / self.plan.workers

    @property
    def stalled(self) -> float:
        """Seconds without any response while requests were in flight."""
        return min(self.worker_silence.values()) if len(self.worker_silence) == self.plan.workers else 0.0

    @property
    def cpu_wait(self) -> float:
        """The largest share of the time that a worker was ready to run and had no CPU."""
        return max(self.worker_wait.values(), default=0.0) / self.seconds if self.seconds > 0 else 0.0

    @property
    def rate(self) -> float:
        """Responses/s, failed statuses included; 0 before the first tick."""
        return self.counts.completed / self.seconds if self.seconds > 0 else 0.0


class KnobState(msgspec.Struct, frozen=True, kw_only=True):
    """A knob and its value, as last read. `known` is False before the first reading; not `active`: a change wrote the
    value to a file that the server has not read since."""

    knob: Knob
    value: str | None = None
    known: bool = False
    detail: str = ""
    active: bool = True


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change from its request on. `outcome` is None while it is under way; `ended` is when it was over.

    `stages` are how far it came, with the instant of each (see ChangeStage). `confirm_by` is until when a person must
    confirm it, or it undoes itself; None: no confirmation is needed. `diff`, `cost`, `who`, `inactive`, `trial`
    are as in ChangeBegun; a value that an action makes active leaves `inactive`.
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
    stages: Mapping[str, float] = MappingProxyType({})
    confirm_by: float | None = None

    @property
    def active_since(self) -> float | None:
        """From when on the server worked by it; None: it never did, or not yet."""
        return self.stages.get("active", self.ended if self.outcome == "applied" else None)

    @property
    def label(self) -> str:
        """Return the changed settings, e.g. `A MaxSpareServers 10 → 30`."""
        what = ", ".join(f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in self.settings)
        return f"{self.letter} {'undo ' + self.undoes + ': ' if self.undoes else ''}{what}"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """A point on the timeline. `kind` is change, action, note, gap, restart or worker; `sign` its letter on charts."""

    t: float
    kind: str
    sign: str
    text: str


class ActionRun(msgspec.Struct, frozen=True, kw_only=True):
    """An action from its request on. `done` of `times` runs succeeded; `ended` is None while it runs."""

    number: int
    action: str
    host: str
    times: int
    begun: float
    ended: float | None = None
    done: int = 0
    detail: str = ""


class StudyState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a study in this session: its rounds, runs, observations, the completed steps, and those that
    were cut short by the loss of a host (`lost`).

    `steps` is the maximum of the whole study, `before` of them were done in earlier sessions. `ended`: the study is
    over.
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
    """Run `run` is extended beyond its plan, from `since` until `until` (s) at most: see RunExtended."""

    run: int
    since: float
    until: float
    awaited: Awaited
    change: str = ""


class RoundWindowState(msgspec.Struct, frozen=True, kw_only=True):
    """A window of a round: `end` is None while it lasts or when it was cut short."""

    round: int
    side: Side
    start: float
    until: float
    end: float | None = None


class RoundsState(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds from their announcement on; `ended` is None while they run."""

    begun: RoundsBegun
    windows: tuple[RoundWindowState, ...] = ()
    ended: RoundsEnded | None = None

    @property
    def budget(self) -> int:
        return len(self.begun.first)

    @property
    def complete(self) -> tuple[tuple[RoundWindowState, RoundWindowState], ...]:
        """The rounds of which both windows have their full length: (before, after) each, in order of time."""
        done: dict[int, dict[Side, RoundWindowState]] = {}
        for window in self.windows:
            if window.end is not None:
                done.setdefault(window.round, {})[window.side] = window
        return tuple((sides["before"], sides["after"]) for sides in done.values() if len(sides) == 2)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A session at the instant `t`. The empty State() is before anything happened.

    `extension` is None unless the end of the run in flight is postponed; `rounds` are those of the session;
    `in_flight` is by worker of the active run, `machines` are its generators by worker; () if all workers run on the
    cockpit's machine, which is `generator`. `closed_seconds` are the seconds of load that no further tick can change;
    `filling` are those after them.
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
    filling: tuple[Filling, ...] = ()
    in_flight: Mapping[int, InFlight] = MappingProxyType({})
    study: StudyState | None = None
    extension: Extension | None = None
    rounds: tuple[RoundsState, ...] = ()
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
        """The changes without those that were made only to be measured."""
        return tuple(change for change in self.changes if not change.trial)

    @property
    def running_rounds(self) -> RoundsState | None:
        return self.rounds[-1] if self.rounds and self.rounds[-1].ended is None else None

    @property
    def studying(self) -> bool:
        return self.study is not None and not self.study.ended

    @property
    def segment(self) -> Segment | None:
        """The segment that load is counted into, or the last one."""
        return self.segments[-1] if self.segments else None


def with_host(state: State, host: HostState) -> State:
    """Return the state with the host in place of the one of its name."""
    return replace(state, hosts={**state.hosts, host.config.name: host})


def with_last_segment(state: State, segment: Segment) -> State:
    """Return the state with the segment in place of its last one."""
    return replace(state, segments=(*state.segments[:-1], segment))


def mark(state: State, marker: Marker) -> State:
    place = bisect_right(state.markers, marker.t, key=attrgetter("t"))
    return replace(state, markers=(*state.markers[:place], marker, *state.markers[place:]))
