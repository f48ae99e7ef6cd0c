"""The tables of a profile file. The structs are its schema: names, types and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, field

from cockpit.model.host.samples import INTERVAL, GeneratorConfig, HostConfig, StatusPage
from cockpit.model.knobs import Knob, Option, ServerAction
from cockpit.model.load.options import LOAD_OPTIONS, METHOD
from cockpit.model.load.plan import FASTEST, HttpVersion, Tls
from cockpit.model.stacks import DEFAULT_HZ, MAX_HZ
from cockpit.model.study import MOST_ROUNDS

# Default of a knob's workers: the processes of its host that a reload replaces.
AUTO = "auto"
Method = Annotated[str, Meta(pattern=METHOD)]
StatusCode = Annotated[int, Meta(ge=100, le=999)]
# Names of directives may contain dots.
KnobName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Positive = Annotated[int, Meta(gt=0)]
Seed = Annotated[int, Meta(ge=0)]
SectionName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
Duration = float | str
Label = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f\x7f]+$")]
Often = Annotated[int, Meta(ge=1, le=1000)]
RoundCount = Annotated[int, Meta(ge=1, le=MOST_ROUNDS)]
Discard = Annotated[int, Meta(ge=0, le=1000)]
AboveZero = Annotated[float, Meta(gt=0)]


class ProfileSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file. Unknown keys are errors."""


class ExpectSection(ProfileSection, frozen=True, kw_only=True):
    """The expected response."""

    status: StatusCode | tuple[StatusCode, ...] | None = None
    contains: str | None = None
    matches: str | None = None
    length: Annotated[int, Meta(ge=0)] | None = None
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$")] | None = None


class TargetSection(ProfileSection, frozen=True, kw_only=True):
    """The target. `urls`: a pattern of paths (`/img/{00001..15000}.jpg`), or a file with one path per line, sent in
    `order`."""

    url: str
    urls: str | None = None
    order: Literal["sequence", "shuffle", "once"] = "sequence"
    seed: Seed = 0
    connect_to: str = ""
    unix: str = ""
    expect: ExpectSection | None = None


class RequestSection(ProfileSection, frozen=True, kw_only=True):
    """One of several requests. `path` is relative to the URL of the target."""

    name: SectionName
    path: str = ""
    method: Method = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    body_file: str | None = None
    auth: str | None = None
    weight: Positive = 1
    expect: ExpectSection | None = None
    extract: dict[str, str] = field(default_factory=dict)


class LoadLevel(ProfileSection, frozen=True, kw_only=True):
    """A load level: concurrency or rate, or a ramp such as "10:200", for a duration."""

    duration: Duration
    concurrency: Positive | str | None = None
    rate: Annotated[float, Meta(gt=0)] | str | None = None


class LoadKeys(ProfileSection, frozen=True, kw_only=True):
    """The load: closed (`concurrency`) or open (`rate`). It ends with `requests` or `duration`, whichever comes first,
    or after the `stages`; default: after 10 s. A ramp lasts for its duration."""

    # The keys whose values have another form in a plan. LoadSection adds the keys of LOAD_OPTIONS.

    stages: tuple[LoadLevel, ...] = ()
    replay_log: str | None = None
    replay_speed: Annotated[float, Meta(gt=0, le=FASTEST)] | None = None
    think_time: Duration | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    body_file: str | None = None
    auth: str | None = None


if TYPE_CHECKING:

    class LoadSection(LoadKeys, frozen=True, kw_only=True):
        pass

else:
    LoadSection = msgspec.defstruct(
        "LoadSection",
        [(option.name, option.key, option.default) for option in LOAD_OPTIONS.values()],
        bases=(LoadKeys,),
        namespace={"__doc__": LoadKeys.__doc__},
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class TlsSection(Tls, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """TLS to an https target."""


class StatusSection(StatusPage, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A status page of a server, requested from the host."""

    url: Annotated[str, Meta(pattern=r"^(https?://|unix:/)")]


# A port of the host, optionally with a host name or address before it, or the path of a Unix socket.
ADDRESS = r"^(/[^\n]+|([^/\n]*:)?[0-9]{1,5})$"


class Host(HostConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: SectionName
    processes: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    upstreams: tuple[Annotated[str, Meta(pattern=ADDRESS)], ...] = ()
    interval: Annotated[float, Meta(ge=0.1, le=60)] = INTERVAL
    profile: Annotated[int, Meta(ge=1, le=MAX_HZ)] | bool = False
    status: tuple[StatusSection, ...] = ()

    @property
    def config(self) -> HostConfig:
        hz = DEFAULT_HZ if self.profile is True else int(self.profile)
        return msgspec.convert(msgspec.structs.replace(self, profile=hz), HostConfig, from_attributes=True)


class GeneratorSection(GeneratorConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine that generates load."""

    name: SectionName
    ssh: Annotated[str, Meta(min_length=1)]


class OptionSection(Option, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: SectionName
    set: Annotated[str, Meta(min_length=1)]


class KnobSection(Knob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting of a server. The required keys depend on its kind (see cockpit.profiles.knobs). `workers` is AUTO if
    the file does not set it."""

    name: KnobName
    option: tuple[OptionSection, ...] = ()
    cost: Literal["", "live", "graceful", "restart", "remount"] = ""
    workers: str = AUTO


class ActionSection(ServerAction, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command to run on a host from the screen or the command line."""

    name: SectionName
    command: Annotated[str, Meta(min_length=1)]
    times: Annotated[int, Meta(ge=1, le=1000)] = 1


class Check(ProfileSection, frozen=True, kw_only=True):
    """Thresholds of `cockpit check`. A run is aborted as soon as one of `abort_on` fails. `baseline` is the baseline's
    name for expressions such as `95% of baseline`, `runs` the number of runs, `max_duration` the duration
    after which a run is ended. `stable`: the rate must be stable."""

    thresholds: tuple[str, ...] = ()
    abort_on: tuple[str, ...] = ()
    baseline: str = ""
    runs: Annotated[int, Meta(ge=1, le=1000)] = 1
    stable: bool = False
    max_duration: Duration | None = None


class VariantSection(ProfileSection, frozen=True, kw_only=True):
    """A variant of a study: knobs, target, load and actions to compare."""

    name: Label
    set: dict[str, str] = field(default_factory=dict)
    url: str = ""
    before: tuple[str, ...] = ()
    concurrency: Positive | None = None
    rate: AboveZero | None = None
    burst: Positive | None = None
    max_in_flight: Positive | None = None
    http: HttpVersion | None = None
    streams: Positive | None = None
    keepalive: bool | None = None
    urls: str | None = None
    mix: tuple[str, ...] = ()


class FactorSection(ProfileSection, frozen=True, kw_only=True):
    """A knob and its values. Each combination of the values of all factors is a variant (full factorial)."""

    knob: str
    values: Annotated[tuple[str, ...], Meta(min_length=1)]


class PassSection(ProfileSection, frozen=True, kw_only=True):
    """One of several consecutive runs of a variant."""

    name: Label
    before: tuple[str, ...] = ()


class ObserveSection(ProfileSection, frozen=True, kw_only=True):
    """A command that runs on a host before and after each run."""

    name: Label
    host: str
    command: Annotated[str, Meta(min_length=1)]
    counter: bool = False


class ShortSection(ProfileSection, frozen=True, kw_only=True):
    """The short form of a study: its keys replace those of [study]; `variants` and `passes` select some by name."""

    requests: int | str | None = None
    duration: Duration | None = None
    rate: AboveZero | None = None
    concurrency: Positive | None = None
    warmup: Duration | None = None
    rounds: RoundCount | None = None
    discard_rounds: Discard | None = None
    runs: Often | None = None
    discard: Discard | None = None
    levels: tuple[AboveZero, ...] | None = None
    variants: tuple[str, ...] | None = None
    passes: tuple[str, ...] | None = None
    metrics: tuple[str, ...] | None = None
    compare: tuple[tuple[str, str], ...] | None = None
    margin: str | None = None
    run_time: Duration | None = None
    setup_warmup: Duration | None = None


class StudySection(ProfileSection, frozen=True, kw_only=True):
    """A study. Its `requests`, `duration` and `concurrency` replace those of [load]. `until`: limits of a capacity
    search, which each run then is."""

    requests: int | str | None = None
    duration: Duration | None = None
    concurrency: Positive | None = None
    rounds: RoundCount = 12
    discard_rounds: Discard = 0
    variant: tuple[VariantSection, ...] = ()
    factor: tuple[FactorSection, ...] = ()
    passes: tuple[PassSection, ...] = ()
    levels: tuple[AboveZero, ...] = ()
    seed: Seed | None = None
    runs: Often = 1
    discard: Discard = 0
    after: tuple[str, ...] = ()
    observe: tuple[ObserveSection, ...] = ()
    watch: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    until: str = ""
    compare: tuple[tuple[str, str], ...] = ()
    margin: str | None = None
    run_time: Duration | None = None
    setup_warmup: Duration = 0.0
    short: ShortSection | None = None


class DuetSection(ProfileSection, frozen=True, kw_only=True):
    """One of two targets of `cockpit duet`, which replaces the URL of the target. `host`: the [[host]] of its
    server."""

    name: Label
    url: str
    host: str = ""


class ProfileFile(ProfileSection, frozen=True, kw_only=True):
    """A profile."""

    question: str = ""
    guard: tuple[str, ...] = ()
    target: TargetSection = TargetSection(url="")
    request: tuple[RequestSection, ...] = ()
    load: LoadSection = LoadSection()
    tls: TlsSection = TlsSection()
    host: tuple[Host, ...] = ()
    generator: tuple[GeneratorSection, ...] = ()
    knob: tuple[KnobSection, ...] = ()
    action: tuple[ActionSection, ...] = ()
    check: Check = Check()
    variant: tuple[DuetSection, ...] = ()
    study: StudySection | None = None
