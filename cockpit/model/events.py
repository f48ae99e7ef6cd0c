"""Everything that can happen in a session. `t` is seconds on the cockpit's monotonic clock since it began.

Events carry raw deltas and counters; rates, percentages and percentiles are made by `fold` alone.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from cockpit.model.autopilot import AutopilotEvent
from cockpit.model.counts import LoadCounts
from cockpit.model.event import Event
from cockpit.model.generators import GeneratorEvent
from cockpit.model.histogram import EMPTY, Histogram, from_wire, to_wire
from cockpit.model.hosts import HostConfig, HostFacts, HostReading
from cockpit.model.knobs import Knob, ServerAction, Setting
from cockpit.model.load import LoadPlan, RunTotals
from cockpit.model.study import StudyEvent


class SessionStarted(Event, frozen=True, tag="session_started"):
    """First of all. `wall` is the only wall-clock time (epoch seconds) a session takes from the cockpit's machine.

    `boot` is the boot id of that machine's kernel, as in HostFacts."""

    wall: float
    version: str
    name: str
    question: str = ""
    target: str = ""
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    actions: tuple[ServerAction, ...] = ()
    thresholds: tuple[str, ...] = ()
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    boot: str = ""


class SessionEnded(Event, frozen=True, tag="session_ended"):
    """Last of all; a recording without it was cut short."""


class RunStarted(Event, frozen=True, tag="run_started"):
    """Load begins. `run` counts from 1; `addresses` are what the target's name resolved to. `machines` are the
    generators by worker; () if all workers run on the cockpit's machine. `totals`: the run was imported from a
    summary."""

    run: int
    plan: LoadPlan
    addresses: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    totals: RunTotals | None = None


class Tick(LoadCounts, frozen=True, tag_field="event", tag="tick"):
    """The load of one worker between `start` and `t`; counts are of this interval alone.

    `connections` are open at `t`; `in_flight` requests have no complete response yet, the oldest of them is `oldest` s
    old. `silence` is the time (s) since the last tick with a complete response, or since the start of the run.
    `cpu_wait` are the seconds in which the worker was ready to run and others had the CPU (0 if the system does not
    count them), `pause` the longest time (s) between two iterations of its loop. `stage` is the load level; a tick is
    within one. `warmup` ticks are shown and not counted.
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


class LoadAdjusted(Event, frozen=True, tag="load_adjusted"):
    """The user changed the load of a run in flight; the workers follow within a tick or two."""

    run: int
    concurrency: int | None = None
    rate: float | None = None


Awaited = Literal["baseline", "verdict", "rounds"]


class RunExtended(Event, frozen=True, tag="run_extended"):
    """The end that the plan gives a run, by time or by count, does not take effect before `until` (session time, s).

    Awaited are enough seconds before a change, the verdict on the change with letter `change` ("": not begun), or
    rounds. `until` not after `t`: nothing is awaited, and the end of the plan takes effect.
    """

    run: int
    until: float
    awaited: Awaited = "verdict"
    change: str = ""


class RunEnded(Event, frozen=True, tag="run_ended"):
    """Load is over. `completed`: the plan was carried out; `stopped`: the user stopped it; `failed`: see detail."""

    run: int
    reason: Literal["completed", "stopped", "failed"]
    detail: str = ""


HostCondition = Literal["connecting", "asking", "up", "slow", "lost", "refused"]


class HostChanged(Event, frozen=True, tag="host_changed"):
    """A host's condition. `asking`: it waits for a person's answer. `slow`: the host is connected and the probe's
    answer is overdue. `lost` is soon tried again, `refused` (key, permission) now and then."""

    host: str
    condition: HostCondition
    detail: str = ""
    facts: HostFacts | None = None


class HostSample(Event, frozen=True, tag="host_sample"):
    """A reading, placed at the instant the host took it, within the `round_trip` (s) of question and answer.

    `interval` (s) is the active pace, longer than the configured one where the line is slow; 0: unknown.
    """

    host: str
    round_trip: float
    reading: HostReading
    interval: float = 0.0


class TailText(Event, frozen=True, tag="tail_text"):
    """Lines that a tail of a host has printed, as a terminal has them but not neutralised, without their ends.

    `tail` is its place in the host's configuration; `skipped` lines before these came faster than they can be kept.
    `continues`: the first replaces the last line before, which was not finished."""

    host: str
    tail: int
    lines: tuple[str, ...]
    skipped: int = 0
    continues: bool = False


class TailChanged(Event, frozen=True, tag="tail_changed"):
    """A tail runs, or has ended; `detail` is its exit status and last words. It is started again by itself."""

    host: str
    tail: int
    condition: Literal["running", "ended"]
    detail: str = ""


class AccessCounts(Event, frozen=True, tag="access_counts"):
    """Requests that an access log, followed by a tail of a host, got in the `seconds` before `t`, by their `statuses`.

    `lines` are all lines, also those of an unknown format. `hits` of `lookups` were answered from the server's cache;
    `latency` has the durations that the log states. `late`: the log grew faster than it was read, so these are of older
    seconds. `tail` is its place in the host's configuration."""

    host: str
    tail: int
    seconds: float
    lines: int
    statuses: dict[int, int] = msgspec.field(default_factory=dict)
    lookups: int = 0
    hits: int = 0
    latency: Histogram = EMPTY
    late: bool = False


class StatusRead(Event, frozen=True, tag="status_read"):
    """A reading of a status page: counters and gauges by the page's own names, in its own units. `page` is its place in
    the host's configuration. `detail` says why it could not be read. `text` is what is no number (the scoreboard)."""

    host: str
    page: int
    values: dict[str, float] = msgspec.field(default_factory=dict)
    text: dict[str, str] = msgspec.field(default_factory=dict)
    detail: str = ""


class KnobRead(Event, frozen=True, tag="knob_read"):
    """A knob's value as the host has it; None: not set there. `detail` says why it could not be read."""

    knob: str
    host: str
    value: str | None
    detail: str = ""


class ChangeBegun(Event, frozen=True, tag="change_begun"):
    """A change was requested. `change` is its letter; `undoes` the letter of the change that it undoes.

    `diff` is what is going to be written, as `diff -u` prints it; `cost` what it costs (see Cost), `who` requested it.
    `inactive` are the knobs whose value it writes without making it active. `trial`: it is made only
    to be measured, and its undo is planned.
    """

    change: str
    host: str
    settings: tuple[Setting, ...]
    undoes: str = ""
    diff: str = ""
    cost: str = ""
    who: str = ""
    inactive: tuple[str, ...] = ()
    trial: bool = False


Stage = Literal["armed", "written", "tested", "reloaded", "active", "not yet active", "confirmed", "undoing"]


class ChangeStage(Event, frozen=True, tag="change_stage"):
    """How far a change has come. `armed`: from here on the host undoes it by itself unless it is confirmed.

    `active`: the server works by it; `not yet active`: all is written, and the server has not read it. `seconds` is
    then how long it waits for a person to confirm it; None: it does not. `undoing`: from here on the host rolls
    everything back.
    """

    change: str
    stage: Stage
    seconds: float | None = None


ChangeOutcome = Literal["applied", "written", "rolled back", "failed"]


class ChangeEnded(Event, frozen=True, tag="change_ended"):
    """`applied`: active from `t` on, but for its `inactive` values; `written`: none of its values is active yet;
    `rolled back`: it failed and the host is as before; `failed`: inspect the host."""

    change: str
    outcome: ChangeOutcome
    detail: str = ""


class ActionBegun(Event, frozen=True, tag="action_begun"):
    """A host runs the commands of an action. `number` counts the actions of the session from 1."""

    number: int
    action: str
    host: str
    times: int = 1


class ActionEnded(Event, frozen=True, tag="action_ended"):
    """`done` of its runs ended well; `detail` says why not all of them did."""

    number: int
    done: int
    detail: str = ""


Side = Literal["before", "after"]


class RoundsBegun(Event, frozen=True, tag="rounds_begun"):
    """Rounds begin in run `run`: each round holds both settings once, each after its own set-up.

    `settings` are the settings compared, old (before) and new (after); `change` is the letter of the change that made
    the new ones active, "" for values that were not active yet. `active` is the side that was active at the start, and
    is again if the rounds are interrupted. `first` is the side that each round of the budget begins with, drawn with
    `seed`. A window takes `seconds`; `longest` is the most seconds that all rounds take. `detectable` is the smallest
    change of the headline (share) that was announced to be found with a probability of 80%; None: unknown.
    """

    number: int
    run: int
    host: str
    settings: tuple[Setting, ...]
    first: tuple[Side, ...]
    seconds: float
    longest: float
    active: Side = "before"
    change: str = ""
    seed: int = 0
    detectable: float | None = None


class RoundWindow(Event, frozen=True, tag="round_window"):
    """A window of rounds `number` begins, its set-up done: in `round` (from 1), `side` is measured until `until`."""

    number: int
    round: int
    side: Side
    until: float


class RoundWindowEnded(Event, frozen=True, tag="round_window_ended"):
    """The window of rounds `number` that began last has its full length."""

    number: int


RoundsOutcome = Literal["verdict", "budget", "stopped", "load ended", "failed"]


class RoundsEnded(Event, frozen=True, tag="rounds_ended"):
    """Rounds are over, and the settings of `active` are active.

    `verdict`: the sequential test concluded, or the rounds are invalid; `budget`: all rounds were run; `stopped` by
    the user, `load ended`, `failed` (see detail): the side that was active at the start is active again.
    """

    number: int
    outcome: RoundsOutcome
    active: Side
    detail: str = ""


class Note(Event, frozen=True, tag="note"):
    """A note of a person at an instant."""

    text: str


AnyEvent = (
    SessionStarted
    | SessionEnded
    | RunStarted
    | Tick
    | LoadAdjusted
    | RunExtended
    | GeneratorEvent
    | RunEnded
    | HostChanged
    | HostSample
    | TailText
    | TailChanged
    | AccessCounts
    | StatusRead
    | KnobRead
    | ChangeBegun
    | ChangeStage
    | ChangeEnded
    | ActionBegun
    | ActionEnded
    | RoundsBegun
    | RoundWindow
    | RoundWindowEnded
    | RoundsEnded
    | Note
    | StudyEvent
    | AutopilotEvent
)


_encoder = msgspec.json.Encoder(enc_hook=to_wire)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent, dec_hook=from_wire)


def encode(event: AnyEvent) -> bytes:
    """One event as one line of JSON, without the line's end."""
    return _encoder.encode(event)


def decode(line: bytes | str) -> AnyEvent:
    """The inverse of `encode`. Raises msgspec.MsgspecError when it is not an event."""
    return _decoder.decode(line)


def kind(event: AnyEvent) -> str:
    """The event's name on the wire, as in `tick`."""
    return str(event.__struct_config__.tag)
