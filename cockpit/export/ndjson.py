"""JSON lines of a session: metrics per second, changes, markers, runs. The structs define the schema.

Metrics have the names of the CSV columns (export.series), with units. Unknown values are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.analysis.words.timeline import marker_text
from cockpit.export.series import host_metrics_at, load_metrics_at, segment_at, utc
from cockpit.metrics.results import run_result
from cockpit.model.errors import UsageError
from cockpit.model.events import ChangeOutcome
from cockpit.model.knobs import Setting
from cockpit.model.markers import Marker
from cockpit.model.state import Change, State
from cockpit.model.text import escaped
from cockpit.report.run_json import RunJson, run_json

# Time (s) after a second by which its ticks and samples have arrived, and the lines of its access logs.
_LATE, _LATE_TRAFFIC = 2, 12


class JsonLine(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line. `t`: session time (s); `utc`: wall clock of cockpit's machine at `t`."""

    t: float
    utc: str


class SessionLine(JsonLine, frozen=True, kw_only=True, tag="session"):
    version: str
    name: str
    target: str
    hosts: tuple[str, ...]


class SecondLine(JsonLine, frozen=True, kw_only=True, tag="second"):
    """Metrics of the second that starts at `t`. `segment`: its number in the runs table. `load` is empty if no
    load ran; a host's metrics are empty if the host was not sampled."""

    run: int | None
    segment: int | None
    warmup: bool
    load: dict[str, float]
    hosts: dict[str, dict[str, float]]


class ChangeLine(JsonLine, frozen=True, kw_only=True, tag="change"):
    """A finished change, started at `begun` and active from `active` on (null: never). `trial`: a temporary change,
    made for a measurement and then undone."""

    change: str
    host: str
    settings: tuple[Setting, ...]
    undoes: str
    trial: bool
    begun: float
    active: float | None
    outcome: ChangeOutcome
    detail: str


class MarkerLine(JsonLine, frozen=True, kw_only=True, tag="marker"):
    """A marker on the timeline. `kind`: change, action, note, gap, restart or worker. The marker of a change is the
    instant at which it became active."""

    kind: str
    text: str


class RunLine(JsonLine, frozen=True, kw_only=True, tag="run"):
    """A finished run, with the result that `cockpit run --json` prints."""

    result: RunJson


AnyLine = SessionLine | SecondLine | ChangeLine | MarkerLine | RunLine


class SessionLines:
    """Lines of a growing session, each returned once."""

    def __init__(self) -> None:
        self._next_second = 0
        self._changes: set[int] = set()
        self._markers: set[Marker] = set()
        self._runs = 0
        self._begun = False

    def new_lines(self, state: State, *, last: bool = False) -> Iterator[AnyLine]:
        """Yield the lines that are new in `state`; with `last`, also those of unfinished seconds."""
        if state.started is None:
            return
        wall = state.started.wall

        def at(t: float) -> str:
            return utc(wall + t)

        if not self._begun:
            self._begun = True
            yield SessionLine(
                t=0.0,
                utc=at(0.0),
                version=state.started.version,
                name=state.started.name,
                target=state.started.target,
                hosts=tuple(host.name for host in state.started.hosts),
            )
        yield from self._seconds(state, at, int(state.t) + 1 if last else int(state.t) - delay(state))
        for index, change in enumerate(state.changes):
            if index not in self._changes and change.outcome is not None:
                self._changes.add(index)
                yield _change_line(change, change.outcome, at)
        for marker in state.markers:
            if marker not in self._markers:
                self._markers.add(marker)
                yield MarkerLine(t=marker.t, utc=at(marker.t), kind=marker.kind, text=marker_text(marker))
        yield from self._results(state, at, last=last)

    def _seconds(self, state: State, at: Callable[[float], str], end: int) -> Iterator[SecondLine]:
        for t in range(self._next_second, end):
            load = load_metrics_at(state, t)
            segment = segment_at(state, t) if load else None
            yield SecondLine(
                t=float(t),
                utc=at(t),
                run=segment.run if segment else None,
                segment=segment.number if segment else None,
                warmup=bool(segment and segment.warmup),
                load=load,
                hosts={name: host_metrics_at(host, t) for name, host in state.hosts.items()},
            )
        self._next_second = max(self._next_second, end)

    def _results(self, state: State, at: Callable[[float], str], *, last: bool) -> Iterator[RunLine]:
        """Yield the results of finished runs, each after all seconds of its run."""
        finished = state.runs if state.running is None else state.runs - 1
        for number in range(self._runs + 1, finished + 1):
            end = max((segment.last for segment in state.segments if segment.run == number), default=0.0)
            if end >= self._next_second and not last:
                break
            self._runs = number
            result = run_result(state, number)
            if result is not None:
                run = run_json(result, verdicts=verdicts(state), state=state)
                yield RunLine(t=state.t, utc=at(state.t), result=run)


def delay(state: State) -> int:
    """Return the time (s) after a second by which its data has arrived."""
    return _LATE_TRAFFIC if any(plan.traffic for plan in state.plans.values()) else _LATE


def _change_line(change: Change, outcome: ChangeOutcome, at: Callable[[float], str]) -> ChangeLine:
    t = change.begun if change.ended is None else change.ended
    return ChangeLine(
        t=t,
        utc=at(t),
        change=change.letter,
        host=change.host,
        settings=change.settings,
        undoes=change.undoes,
        trial=change.trial,
        begun=change.begun,
        active=change.active_since,
        outcome=outcome,
        detail=change.detail,
    )


class NdjsonStream:
    """A stream of JSON lines to `write`. It ends when `write` raises BrokenPipeError or UsageError."""

    def __init__(self, write: Callable[[Iterable[str]], None]) -> None:
        self.trouble = ""
        self._write = write
        self._lines = SessionLines()
        self._encoder = msgspec.json.Encoder()

    async def send_new(self, state: State) -> None:
        self._put(self._lines.new_lines(state))

    async def close(self, state: State) -> None:
        self._put(self._lines.new_lines(state, last=True))

    def _put(self, lines: Iterable[AnyLine]) -> None:
        if self.trouble:
            return
        try:
            self._write(f"{escaped(self._encoder.encode(line).decode())}\n" for line in lines)
        except BrokenPipeError:
            self.trouble = "--ndjson: the reader closed the pipe; later lines were not written"
        except UsageError as error:
            self.trouble = f"--ndjson: {error}"
