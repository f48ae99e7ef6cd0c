"""Text and JSON of `cockpit tune`: knobs, changes, the history; prompts about interrupted changes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from cockpit.analysis.words.timeline import settings_words
from cockpit.cli.terminal import aligned, emit, typed_line
from cockpit.model.events import AnyEvent, ChangeBegun, ChangeStage, StageName
from cockpit.model.knobs import Knob, Setting, not_yet_active
from cockpit.model.text import sanitize
from cockpit.report.encoding import struct_from
from cockpit.session.interrupted import answers_to, interruption_words
from cockpit.session.live_tuning import LiveTuning
from cockpit.session.tuning import Preview
from cockpit.tuning.applied import AppliedChange, HistoryEntry, HistoryState, name_of

T = TypeVar("T")


class KnobJson(msgspec.Struct, kw_only=True):
    """A knob with its active value (null: unset, or not read because of `problem`)."""

    name: str
    host: str
    kind: str
    value: str | None
    allowed: str
    options: tuple[str, ...]
    cost: str
    place: str
    help: str
    problem: str


def knob_json(knob: Knob, value: str | None, problem: str) -> KnobJson:
    cost = knob.effective_cost
    return struct_from(KnobJson, knob, value=value, problem=problem, options=knob.choices, cost=cost)


def value_text(row: KnobJson) -> str:
    if row.problem:
        return f"could not be read: {sanitize(row.problem)}"
    return "unset" if row.value is None else sanitize(row.value)


def knob_table(rows: Sequence[KnobJson]) -> list[str]:
    table = [("knob", "value", "host", "cost", "allowed", "place")]
    table += [(r.name, value_text(r), r.host, r.cost, r.allowed or "-", sanitize(r.place, 100)) for r in rows]
    helps = ["", *(f"    {r.help}" if r.help else "" for r in rows)]
    return [line for pair in zip(aligned(table, widest=40), helps, strict=True) for line in pair if line]


class PastChangeJson(msgspec.Struct, kw_only=True):
    """A change in the history of a host. `when` is in epoch seconds."""

    name: str
    host: str
    state: HistoryState
    undone_by: str | None
    undoes: str | None
    who: str
    when: float
    settings: tuple[Setting, ...]
    inactive: tuple[str, ...]
    directory: str


def past_change_json(host: str, past: HistoryEntry) -> PastChangeJson:
    return struct_from(
        PastChangeJson,
        past.facts,
        name=past.name,
        host=host,
        state=past.state,
        undone_by=past.undone_by or None,
        undoes=name_of(past.facts.undoes) or None,
        directory=past.change,
    )


def past_line(host: str, past: HistoryEntry) -> str:
    when = datetime.fromtimestamp(past.facts.when).strftime("%Y-%m-%d %H:%M:%S")
    values = settings_words(past.facts.settings) or "nothing to change"
    undo = f"undo {name_of(past.facts.undoes)}: " if past.facts.undoes else ""
    state = f"undone by {past.undone_by}" if past.undone_by else past.state
    if past.state == HistoryState.APPLIED and past.facts.inactive:
        state = f"written without a reload: {', '.join(past.facts.inactive)}"
    return sanitize(f"{past.name}  {when}  {host}  {past.facts.who}  {undo}{values}  {state}")


class ChangeJson(msgspec.Struct, kw_only=True):
    """A change on a host, or its preview. `undoes`: the name of the change that it undoes."""

    host: str
    settings: tuple[Setting, ...]
    cost: str
    diff: str
    stages: tuple[StageName, ...]
    outcome: str
    inactive: tuple[str, ...]
    notes: tuple[str, ...]
    undoes: str | None = None


class ActionJson(msgspec.Struct, kw_only=True):
    """An action; `done`: it was run, `times` times."""

    name: str
    host: str
    command: str
    times: int
    done: bool


class ChangeProgress:
    """Print the changes of a session: diffs on stdout, stages on stderr. `knobs`: those that may be changed."""

    def __init__(self, knobs: Iterable[Knob], *, as_json: bool) -> None:
        self._knobs = {knob.name: knob for knob in knobs}
        self._json = as_json
        self._begun: list[ChangeBegun] = []
        self._stages: dict[str, list[StageName]] = {}

    def feed(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            if isinstance(event, ChangeBegun):
                self._begun.append(event)
                # Without a diff the change is refused, or changes nothing.
                if event.diff:
                    self._print_effects(event)
            elif isinstance(event, ChangeStage):
                self._stages.setdefault(event.change, []).append(event.stage)
                waits = "" if event.seconds is None else f"; type y and Enter within {event.seconds:g} s to keep it"
                print(f"{event.stage}{waits}", file=sys.stderr, flush=True)

    def preview(self, preview: Preview) -> ChangeJson:
        """Print a change without making it, and return it as JSON data."""
        self._print_effects(preview)
        return _row(preview, (), "dry run", preview.notes)

    def rolled_back(self, host: str) -> ChangeJson:
        return _row(Preview(host, diff="", cost=""), (), "rolled back", ())

    def rows(self, changes: Iterable[AppliedChange]) -> list[ChangeJson]:
        rows = []
        for begun, applied in zip(self._begun, changes, strict=True):
            if not begun.diff:
                self._print_effects(begun)
            if waits := not_yet_active(applied.inactive):
                print(waits, file=sys.stderr)
            for note in applied.notes:
                print(f"note: {sanitize(note)}", file=sys.stderr)
            effects = begun if begun.diff else replace(begun, settings=())
            rows.append(_row(effects, self._stages.get(begun.change, ()), applied.outcome, applied.notes))
        return rows

    def _print_effects(self, effects: Preview | ChangeBegun) -> None:
        if self._json:
            return
        lines = "".join(f"{_neutral_line(line)}\n" for line in effects.diff.splitlines())
        waits = not_yet_active([self._knobs[name] for name in effects.inactive if name in self._knobs])
        emit(f"{lines}cost: {effects.cost}{f' ({waits})' if waits else ''}" if lines else "nothing to change")


def _row(effects: Preview | ChangeBegun, stages: Sequence[StageName], outcome: str, notes: Sequence[str]) -> ChangeJson:
    return struct_from(ChangeJson, effects, stages=tuple(stages), outcome=outcome, notes=tuple(notes), undoes=None)


def _neutral_line(line: str) -> str:
    return "\t".join(sanitize(part) for part in line.split("\t"))


async def await_change(change: Awaitable[T]) -> T:
    """Await a change; report the rollback if it is interrupted."""
    try:
        return await change
    except asyncio.CancelledError as error:
        # With the hosts whose changes are complete.
        why = sanitize(str(error)) or "interrupted"
        print(f"cockpit: {why}; the change under way was rolled back", file=sys.stderr)
        raise


async def resolve_interrupted(tuning: LiveTuning, hosts: Iterable[str]) -> None:
    """Ask whether to undo, finish or leave each interrupted change of the hosts; without a terminal list them.

    Raises CockpitError.
    """
    for host in hosts:
        await tuning.interrupted.find(host)
    for host, past in tuple(tuning.interrupted.changes):
        if (host, past) not in tuning.interrupted.changes:
            continue  # ended by the one before
        text = sanitize(interruption_words(host, past))
        if not sys.stdin.isatty():
            print(f"{text}; `cockpit tune PROFILE undo {past.name}` rolls it back", file=sys.stderr)
            continue
        print(f"{text}.\n{answers_to(past)}, or Enter to decide later: ", end="", file=sys.stderr, flush=True)
        answer = await typed_line()
        if answer in ("u", "undo"):
            await tuning.interrupted.undo(host, past)
            print(f"{host}: {past.name} is rolled back", file=sys.stderr)
        elif answer in ("f", "finish"):
            await tuning.interrupted.finish(host, past)
            print(f"{host}: {past.name} is finished", file=sys.stderr)
        elif answer in ("l", "leave"):
            await tuning.interrupted.leave(host, past)
            print(f"{host}: {past.name} is left as it is", file=sys.stderr)
