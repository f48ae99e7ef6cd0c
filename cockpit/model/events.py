"""Everything that can happen in a session. `t` is seconds on the cockpit's monotonic clock since it began.

Events carry raw deltas and counters; rates, percentages and percentiles are made by `fold` alone.
A new field gets a default, so that an older recording still opens.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.hosts import HostConfig, HostFacts, HostReading
from cockpit.model.knobs import Knob, ServerAction, Setting
from cockpit.model.load import LoadPlan
from cockpit.model.study import Study


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """What all events have: the instant `t` (s)."""

    t: float


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
    environment: dict[str, str] = {}
    boot: str = ""


class SessionEnded(Event, frozen=True, tag="session_ended"):
    """Last of all; a recording without it was cut short."""


class RunStarted(Event, frozen=True, tag="run_started"):
    """Load begins. `run` counts from 1; `addresses` are what the target's name resolved to."""

    run: int
    plan: LoadPlan
    addresses: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tick saw of one named request of a mix; the fields are as in Tick."""

    sent: int = 0
    completed: int = 0
    statuses: dict[int, int] = {}
    errors: dict[str, int] = {}
    unexpected: dict[str, int] = {}
    service: Histogram = EMPTY
    response: Histogram = EMPTY


class Tick(Event, frozen=True, tag="tick"):
    """What one worker did between `start` and `t`. All counts are for this interval alone.

    `sent` requests begun; `completed` replies read whole; `errors` by kind (a timeout is one); `abandoned` were in
    flight when the run was told to end and count neither as completed nor as errors. `connections` is how many are
    open at `t`. `connect` per connection made, `first_byte`, `service` per request: from its first byte
    sent (or its connect begun) to its last byte read; a timeout stands in `service` and `response` with the time at
    which it was given up. `response` is from the intended send; empty under closed load, where it is the service time.
    `lag` is how late the worker came to what was due, or, of what had to wait for room, to the room; `cpu` its own CPU
    seconds, `cpu_wait` those in which it was ready to run and others had the CPU (0 where the system does not tell);
    `pause` the longest time (s) it did not come round to look. `held_back` arrivals were due in this interval, found
    `max_in_flight` requests under way and had to wait; they are among `sent` where they were sent. `unsent` ones still
    waited at the end of the run, or of the warm-up (those are then sent, and counted nowhere).
    `dropped` arrivals were due, found a million others waiting in their worker, and were never sent.
    `reconnects` counts kept connections lost between two responses. `retries` counts idempotent requests sent a second
    time because a kept connection was lost before a byte of the response: the server may have received `sent` and
    `retries` together. `unclosed` connections were closed by the client after the server had announced to close them.
    `redirect` is the Location of a redirect that was not expected, as the server sent it.
    `unexpected` replies were whole and not what was expected, by kind; `varied` ones had another length than the first
    of their kind, which is no failure. `body_bytes` leaves out heads and framing. `tls` is handshakes.
    `stage` is the rung of a ladder; a tick lies in one. `warmup` ticks are shown and not counted.
    `lag` has buckets of 6%.
    """

    run: int
    worker: int
    start: float
    sent: int = 0
    completed: int = 0
    abandoned: int = 0
    statuses: dict[int, int] = {}
    errors: dict[str, int] = {}
    bytes_received: int = 0
    bytes_sent: int = 0
    connections: int = 0
    cpu: float = 0.0
    pause: float = 0.0
    body_bytes: int = 0
    held_back: int = 0
    varied: int = 0
    unexpected: dict[str, int] = {}
    groups: dict[str, Group] = {}
    stage: int = 0
    warmup: bool = False
    unsent: int = 0
    dropped: int = 0
    retries: int = 0
    reconnects: int = 0
    unclosed: int = 0
    redirect: str = ""
    cpu_wait: float = 0.0
    connect: Histogram = EMPTY
    tls: Histogram = EMPTY
    first_byte: Histogram = EMPTY
    service: Histogram = EMPTY
    response: Histogram = EMPTY
    lag: Histogram = EMPTY


class LoadAdjusted(Event, frozen=True, tag="load_adjusted"):
    """Somebody altered the load of a run in flight; the workers follow within a tick or two."""

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


class MachineTimes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """CPU seconds of all CPUs of a machine since its start. macOS counts `user`, `nice`, `system` and `idle` only."""

    user: float
    nice: float
    system: float
    idle: float
    iowait: float = 0.0
    irq: float = 0.0
    softirq: float = 0.0
    steal: float = 0.0


class GeneratorSample(Event, frozen=True, tag="generator_sample"):
    """The machine that cockpit and its load workers run on, with so many `cpus`. `own` is the CPU time (s) of all of
    these since cockpit started."""

    cpus: int
    times: MachineTimes
    own: float


class WorkerLost(Event, frozen=True, tag="worker_lost"):
    """A load worker died; the figures of its run are partial."""

    run: int
    worker: int
    detail: str


class RunEnded(Event, frozen=True, tag="run_ended"):
    """Load is over. `completed`: the plan was carried out; `stopped`: somebody stopped it; `failed`: see detail."""

    run: int
    reason: Literal["completed", "stopped", "failed"]
    detail: str = ""


HostCondition = Literal["connecting", "asking", "up", "slow", "lost", "refused"]


class HostChanged(Event, frozen=True, tag="host_changed"):
    """A host's condition. `asking`: it waits for a person's answer. `slow`: the connection stands and the probe's
    answer is overdue. `lost` is soon tried again, `refused` (key, permission) now and then."""

    host: str
    condition: HostCondition
    detail: str = ""
    facts: HostFacts | None = None


class HostSample(Event, frozen=True, tag="host_sample"):
    """A reading, placed at the instant the host took it, within the `round_trip` (s) of question and answer.

    `interval` (s) is the pace in force, longer than the configured one where the line is slow; 0: not told.
    """

    host: str
    round_trip: float
    reading: HostReading
    interval: float = 0.0


class TailText(Event, frozen=True, tag="tail_text"):
    """Lines that a tail of a host has printed, as a terminal has them but not neutralised, without their ends.

    `tail` is its place in the host's configuration; `skipped` lines before these came faster than they can be kept.
    `continues`: the first stands in the place of the last one told, which was not finished."""

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


class StatusRead(Event, frozen=True, tag="status_read"):
    """What a status page said: counters and gauges by the page's own names, in its own units. `page` is its place in
    the host's configuration. `detail` says why it could not be read. `text` is what is no number (the scoreboard)."""

    host: str
    page: int
    values: dict[str, float] = {}
    text: dict[str, str] = {}
    detail: str = ""


class KnobRead(Event, frozen=True, tag="knob_read"):
    """A knob's value as the host has it; None is: not set there. `detail` says why it could not be read."""

    knob: str
    host: str
    value: str | None
    detail: str = ""


class ChangeBegun(Event, frozen=True, tag="change_begun"):
    """Somebody asked for a change. `change` is its letter; `undoes` the letter of the change it takes back.

    `diff` is what is going to be written, as `diff -u` prints it; `cost` what it costs (see Cost), `who` asked for it.
    `inactive` are the knobs whose value it writes without making it active. `rounds` is the number of the rounds of
    which it is a set-up, to be undone; 0: none.
    """

    change: str
    host: str
    settings: tuple[Setting, ...]
    undoes: str = ""
    diff: str = ""
    cost: str = ""
    who: str = ""
    inactive: tuple[str, ...] = ()
    rounds: int = 0


Stage = Literal["armed", "written", "tested", "reloaded", "in force", "not yet active", "confirmed", "undoing"]


class ChangeStage(Event, frozen=True, tag="change_stage"):
    """How far a change has come. `armed`: from here on the host undoes it by itself unless it is confirmed.

    `in force`: the server works by it; `not yet active`: all is written, and the server has not read it. `seconds` is
    then how long it waits for a person to confirm it; None: it does not. `undoing`: from here on the host puts
    everything back.
    """

    change: str
    stage: Stage
    seconds: float | None = None


Outcome = Literal["applied", "written", "restored", "failed"]


class ChangeEnded(Event, frozen=True, tag="change_ended"):
    """`applied`: active from `t` on, but for its `inactive` values; `written`: none of its values is active yet;
    `restored`: it failed and the host is as before; `failed`: look at the host."""

    change: str
    outcome: Outcome
    detail: str = ""


class ActionBegun(Event, frozen=True, tag="action_begun"):
    """Somebody had a host run the commands of an action. `number` counts the actions of the session from 1."""

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
    """A person's remark at an instant."""

    text: str


class StudyBegun(Event, frozen=True, tag="study_begun"):
    """A study begins, or goes on: its plan, how many `steps` that is at most, and how many were `done` before.

    `fingerprint` is that of the plan before secrets were replaced in it: sessions of one study have the same."""

    study: Study
    steps: int
    done: int = 0
    fingerprint: str = ""


class StudyRound(Event, frozen=True, tag="study_round"):
    """A round begins: its steps in order, each a variant at a load level, and the comparisons that are still `open`,
    each a first variant, another one and a load level. Numbers count from 1."""

    round: int
    steps: tuple[tuple[str, float | None], ...]
    open: tuple[tuple[str, str, float | None], ...] = ()


class StudyRun(Event, frozen=True, tag="study_run"):
    """The next run, number `run` of the session, belongs to a `step` (from 0) of the study: the `variant` in a `round`
    (from 1), at a load `level`, in a pass. `turn` counts the runs of the step in that pass from 1; 0 is a warm-up."""

    run: int
    step: int
    round: int
    variant: str
    level: float | None = None
    part: str = ""
    turn: int = 1


class StudyObservation(Event, frozen=True, tag="study_observation"):
    """What the command of an observation, by its `name`, printed before (`after`: after) a run; `detail`: why it did
    not."""

    run: int
    name: str
    host: str
    after: bool
    text: str = ""
    detail: str = ""


class StudyStepEnded(Event, frozen=True, tag="study_step_ended"):
    """A step is done: the `counted` runs of the session are its result."""

    step: int
    counted: tuple[int, ...]


class StudyEnded(Event, frozen=True, tag="study_ended"):
    """A study is over: every comparison is closed, or the last round is done."""


AnyEvent = (
    SessionStarted
    | SessionEnded
    | RunStarted
    | Tick
    | LoadAdjusted
    | RunExtended
    | GeneratorSample
    | WorkerLost
    | RunEnded
    | HostChanged
    | HostSample
    | TailText
    | TailChanged
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
    | StudyBegun
    | StudyRound
    | StudyRun
    | StudyObservation
    | StudyStepEnded
    | StudyEnded
)


def _to_wire(value: Any) -> Any:
    if isinstance(value, Histogram):
        return value.to_wire()
    raise NotImplementedError(f"no wire form for {type(value)}")


def _from_wire(kind: type, value: Any) -> Any:
    if kind is Histogram:
        return Histogram.from_wire(value)
    raise NotImplementedError(f"no wire form for {kind}")


_encoder = msgspec.json.Encoder(enc_hook=_to_wire)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent, dec_hook=_from_wire)


def encode(event: AnyEvent) -> bytes:
    """One event as one line of JSON, without the line's end."""
    return _encoder.encode(event)


def decode(line: bytes | str) -> AnyEvent:
    """The inverse of `encode`. Raises msgspec.MsgspecError when it is not an event."""
    return _decoder.decode(line)


def kind(event: AnyEvent) -> str:
    """The event's name on the wire, as in `tick`."""
    return str(event.__struct_config__.tag)
