"""The events of a session. `t` is seconds on the cockpit's monotonic clock since the session started.

Events carry raw deltas and counters; only `fold` computes rates, percentages and percentiles.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from cockpit.model.autopilot import AutopilotEvent
from cockpit.model.capacity import CapacityEvent
from cockpit.model.event import Event
from cockpit.model.generators import GeneratorEvent
from cockpit.model.histogram import EMPTY, Histogram, from_wire, to_wire
from cockpit.model.host.samples import HostConfig, HostFacts, HostReading
from cockpit.model.knobs import Knob, ServerAction, Setting
from cockpit.model.load.plan import LoadPlan, RunTotals
from cockpit.model.recorded import Name, Url
from cockpit.model.stacks import StackEvent
from cockpit.model.study import StudyEvent
from cockpit.model.tick import Tick


class SessionStarted(Event, frozen=True, tag="session_started"):
    """The first event. `wall`: epoch seconds, the only wall-clock time that a session takes from the cockpit's machine;
    `boot`: boot id of that machine's kernel, as in HostFacts."""

    wall: float
    version: str
    name: str
    question: str = ""
    target: Url = ""
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    actions: tuple[ServerAction, ...] = ()
    thresholds: tuple[Name, ...] = ()
    environment: dict[str, str] = msgspec.field(default_factory=dict)
    boot: str = ""


class SessionEnded(Event, frozen=True, tag="session_ended"):
    """The last event; a recording without it was cut short."""


class RunStarted(Event, frozen=True, tag="run_started"):
    """A run starts. `run` counts from 1; `addresses`: the loaded addresses of the target. `machines`: the generator of
    each worker; (): all workers run on the cockpit's machine. `totals`: set if the run was imported from a summary."""

    run: int
    plan: LoadPlan
    addresses: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    machines: tuple[Name, ...] = ()
    totals: RunTotals | None = None


class LoadAdjusted(Event, frozen=True, tag="load_adjusted"):
    """The user changed the load of the active run; the workers follow within one or two ticks. A ramp to `ramp_to`
    lasts until the planned end of the run."""

    run: int
    concurrency: int | None = None
    rate: float | None = None
    ramp_to: float | None = None


ExtensionReason = Literal["baseline", "verdict", "rounds"]


class RunExtended(Event, frozen=True, tag="run_extended"):
    """The planned end of a run, by time or count, is postponed to `until` (session time, s) at the earliest.

    `awaited`: `baseline`: more seconds before a change; `verdict`: the verdict on the change with letter `change` ("":
    not started yet); `rounds`. If `until` is not after `t`, the extension is over and the run ends as planned.
    """

    run: int
    until: float
    awaited: ExtensionReason = "verdict"
    change: Name = ""


class RunEnded(Event, frozen=True, tag="run_ended"):
    """A run ended. `completed`: as planned; `stopped`: by the user; `failed`: see `detail`."""

    run: int
    reason: Literal["completed", "stopped", "failed"]
    detail: str = ""


class HostCondition(StrEnum):
    """The condition of a host. ASKING: waiting for an answer of the user, e.g. a password. SLOW: connected, but the
    probe's response is overdue. LOST: reconnects soon; REFUSED (key, permission): reconnects at long intervals."""

    CONNECTING = "connecting"
    ASKING = "asking"
    UP = "up"
    SLOW = "slow"
    LOST = "lost"
    REFUSED = "refused"


# Conditions of a host with a connection.
CONNECTED = (HostCondition.UP, HostCondition.SLOW)


class HostChanged(Event, frozen=True, tag="host_changed"):
    """A new condition of a host."""

    host: Name
    condition: HostCondition
    detail: str = ""
    facts: HostFacts | None = None


class HostSample(Event, frozen=True, tag="host_sample"):
    """A reading of a host, timestamped with the instant at which the host took it, to within the `round_trip` (s).

    `interval` (s): current sampling interval, longer than configured on a slow connection; 0: unknown.
    """

    host: Name
    round_trip: float
    reading: HostReading
    interval: float = 0.0


class TailText(Event, frozen=True, tag="tail_text"):
    """Lines printed by a tail of a host: as a terminal shows them, but not neutralised, without line ends.

    `tail`: index in the host's configuration; `skipped`: lines before these that arrived too fast to be kept.
    `continues`: the first line replaces the previous line, which was incomplete."""

    host: Name
    tail: int
    lines: tuple[str, ...]
    skipped: int = 0
    continues: bool = False


class TailChanged(Event, frozen=True, tag="tail_changed"):
    """A tail started or ended; `detail`: exit status and last output. It is restarted automatically."""

    host: Name
    tail: int
    condition: Literal["running", "ended"]
    detail: str = ""


class AccessCounts(Event, frozen=True, tag="access_counts"):
    """Requests appended to an access log, which a tail of a host follows, in the `seconds` before `t`, by status.

    `lines`: all lines, those in an unknown format included. `hits`: `lookups` that the server's cache answered;
    `latency`: logged response times. `late`: the log grew faster than it was read, so that the requests are older than
    that. `tail`: index in the host's configuration."""

    host: Name
    tail: int
    seconds: float
    lines: int
    statuses: dict[int, int] = msgspec.field(default_factory=dict)
    lookups: int = 0
    hits: int = 0
    latency: Histogram = EMPTY
    late: bool = False


class StatusRead(Event, frozen=True, tag="status_read"):
    """A reading of a status page: counters and gauges with the page's names and units. `page`: index in the host's
    configuration. `text`: values that are not numeric (the scoreboard). `detail`: why it could not be read."""

    host: Name
    page: int
    values: dict[str, float] = msgspec.field(default_factory=dict)
    text: dict[str, str] = msgspec.field(default_factory=dict)
    detail: str = ""


class KnobRead(Event, frozen=True, tag="knob_read"):
    """The value of a knob on its host; None: not set there. `detail`: why it could not be read. `since`: time of the
    previous reading."""

    knob: Name
    host: Name
    value: str | None
    detail: str = ""
    since: float | None = None


class ChangeBegun(Event, frozen=True, tag="change_begun"):
    """A change starts. `change`: its letter; `undoes`: the letter of the change that it undoes.

    `diff`: the planned file changes, as `diff -u` prints them; `cost`: see Cost; `who`: the user who requested it.
    `inactive`: knobs whose values are written without becoming active. `trial`: made only for a measurement and undone
    after it.
    """

    change: Name
    host: Name
    settings: tuple[Setting, ...]
    undoes: Name = ""
    diff: str = ""
    cost: Name = ""
    who: str = ""
    inactive: tuple[Name, ...] = ()
    trial: bool = False


StageName = Literal["armed", "written", "tested", "reloaded", "active", "not yet active", "confirmed", "undoing"]


class ChangeStage(Event, frozen=True, tag="change_stage"):
    """A change reached a stage. `armed`: from now on the host rolls it back unless it is confirmed.

    `active`: the server uses the new values; `not yet active`: everything is written, but the server has not read it.
    `seconds`: with these two stages, the time the user has to confirm the change (s); None: no confirmation needed.
    `undoing`: the host starts to roll everything back.
    """

    change: Name
    stage: StageName
    seconds: float | None = None


ChangeOutcome = Literal["applied", "written", "rolled back", "failed"]


class ChangeEnded(Event, frozen=True, tag="change_ended"):
    """A change ended. `applied`: active from `t` on, except for its `inactive` values; `written`: none of its values is
    active yet; `rolled back`: the host is as before; `failed`: state of the host unknown, inspect it. `exceeded`: the
    limit that was exceeded while it was active, with its value; "": none."""

    change: Name
    outcome: ChangeOutcome
    detail: str = ""
    exceeded: str = ""


class ActionBegun(Event, frozen=True, tag="action_begun"):
    """A host starts the commands of an action. `number` counts the actions of the session from 1."""

    number: int
    action: Name
    host: Name
    times: int = 1


class ActionEnded(Event, frozen=True, tag="action_ended"):
    """An action ended. `done`: number of successful runs; `detail`: the reason if a run failed."""

    number: int
    done: int
    detail: str = ""


RoundSide = Literal["before", "after"]


class RoundsBegun(Event, frozen=True, tag="rounds_begun"):
    """Rounds start in run `run`: each round measures both sides once, each after its own set-up.

    `settings`: the compared settings, old (before) and new (after); `change`: the letter of the change that made the
    new values active, "": they were not active. `active`: the side that is active at the start, and again if the rounds
    are interrupted. `first`: the first side of each round of the budget, drawn with `seed`. `seconds`: length of a
    window; `longest`: maximum duration of all rounds (s). `detectable`: announced minimum detectable effect on the
    headline metric (share, power 80%); None: unknown. `until`: limits of a capacity search, which each window then is,
    in a run of its own, the first of them `run`; "": no search. `sibling`: a host that has the old values while `host`
    has the new ones, and the new values (of `sibling_settings`) on the other side; "": rounds on one host.
    """

    number: int
    run: int
    host: Name
    settings: tuple[Setting, ...]
    first: tuple[RoundSide, ...]
    seconds: float
    longest: float
    active: RoundSide = "before"
    change: Name = ""
    seed: int = 0
    detectable: float | None = None
    until: str = ""
    sibling: Name = ""
    sibling_settings: tuple[Setting, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.host, self.sibling)))

    def new_on(self, side: RoundSide) -> str:
        """Return the host that has the new values on a side of rounds on two hosts; "": rounds on one host."""
        return "" if not self.sibling else self.host if side == "after" else self.sibling


class RoundWindow(Event, frozen=True, tag="round_window"):
    """A window of rounds `number` starts after its set-up: in `round` (from 1), `side` is measured until `until`."""

    number: int
    round: int
    side: RoundSide
    until: float


class RoundWindowEnded(Event, frozen=True, tag="round_window_ended"):
    """The last window of rounds `number` reached its full length."""

    number: int


RoundsOutcome = Literal["verdict", "budget", "stopped", "load ended", "failed"]


class RoundsEnded(Event, frozen=True, tag="rounds_ended"):
    """Rounds ended; the settings of side `active` are active. `sibling`: the server on which the better new values are
    now active, too.

    `verdict`: the sequential test concluded, or the rounds are invalid; `budget`: all rounds were run; `stopped` by
    the user, `load ended`, `failed` (see `detail`): the side that was active at the start is active again.
    """

    number: int
    outcome: RoundsOutcome
    active: RoundSide
    detail: str = ""
    sibling: str = ""


class Note(Event, frozen=True, tag="note"):
    """A user's note at an instant."""

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
    | CapacityEvent
    | Note
    | StackEvent
    | StudyEvent
    | AutopilotEvent
)


_encoder = msgspec.json.Encoder(enc_hook=to_wire)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent, dec_hook=from_wire)


def encode(event: AnyEvent) -> bytes:
    """Encode an event as one line of JSON, without a newline."""
    return _encoder.encode(event)


def decode(line: bytes | str) -> AnyEvent:
    """Decode a line written by `encode`. Raises msgspec.MsgspecError if it is not an event."""
    return _decoder.decode(line)


def kind(event: AnyEvent) -> str:
    """Return the name of the event in JSON, e.g. `tick`."""
    return str(event.__struct_config__.tag)
