"""Text and JSON of `cockpit tune`: knobs, changes, the history."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

import msgspec

from cockpit.cli.terminal import tell
from cockpit.model.events import Stage
from cockpit.model.knobs import Knob, not_yet_active
from cockpit.model.text import escaped, neutral
from cockpit.tuning.applied import Applied, Past, PastState, name_of
from cockpit.tuning.change_options import Watch
from cockpit.tuning.plan import Plan


def knob_row(knob: Knob, value: str | None, problem: str) -> dict[str, Any]:
    return {
        "name": knob.name,
        "host": knob.host,
        "kind": knob.kind,
        "value": value,
        "allowed": knob.allowed,
        "options": list(knob.choices),
        "cost": knob.price,
        "place": knob.place,
        "problem": problem,
    }


def value_text(row: dict[str, Any]) -> str:
    if row["problem"]:
        return f"could not be read: {neutral(row['problem'])}"
    return "unset" if row["value"] is None else neutral(row["value"])


def knob_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    table = [("knob", "value", "host", "cost", "allowed", "place")]
    table += [
        (r["name"], value_text(r), r["host"], r["cost"], r["allowed"] or "-", neutral(r["place"], 100)) for r in rows
    ]
    widths = [min(40, max(len(row[column]) for row in table)) for column in range(5)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip()
        for row in table
    ]


def past_row(host: str, past: Past) -> dict[str, Any]:
    return {
        "name": past.name,
        "host": host,
        "state": past.state,
        "undone_by": past.undone_by or None,
        "undoes": name_of(past.about.undoes) or None,
        "who": past.about.who,
        "when": past.about.when,
        "settings": [msgspec.to_builtins(setting) for setting in past.about.settings],
        "inactive": list(past.about.inactive),
        "directory": past.change,
    }


def past_line(host: str, past: Past) -> str:
    when = datetime.fromtimestamp(past.about.when).strftime("%Y-%m-%d %H:%M:%S")
    settings = [f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in past.about.settings]
    values = ", ".join(settings) or "nothing to change"
    undo = f"undo {name_of(past.about.undoes)}: " if past.about.undoes else ""
    state = f"undone by {past.undone_by}" if past.undone_by else past.state
    if past.state == PastState.APPLIED and past.about.inactive:
        state = f"written without a reload: {', '.join(past.about.inactive)}"
    return neutral(f"{past.name}  {when}  {host}  {past.about.who}  {undo}{values}  {state}")


class ChangeProgress(Watch):
    """Print a change in progress: its diff on stdout, its stages on stderr."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._plan: Plan | None = None
        self._stages: list[str] = []

    def begun(self, plan: Plan) -> None:
        self._plan = plan
        if not self._json:
            diff = "".join(f"{_neutral_line(line)}\n" for line in plan.diff.splitlines())
            waits = not_yet_active(plan.inactive)
            cost = f"{plan.cost}{f' ({waits})' if waits else ''}"
            tell(f"{diff}cost: {cost}" if diff else "nothing to change")

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._stages.append(stage)
        waits = "" if seconds is None else f"; type y and Enter within {seconds:g} s to keep it"
        print(f"{stage}{waits}", file=sys.stderr, flush=True)

    def result(self, outcome: str, notes: tuple[str, ...]) -> dict[str, Any]:
        """Return the change as JSON data."""
        plan = self._plan
        return {
            "host": plan.host if plan else "",
            "settings": [msgspec.to_builtins(setting) for setting in plan.settings] if plan else [],
            "cost": plan.cost if plan else "",
            "diff": plan.diff if plan else "",
            "stages": self._stages,
            "outcome": outcome,
            "inactive": [knob.name for knob in plan.inactive] if plan else [],
            "notes": list(notes),
        }


def _neutral_line(line: str) -> str:
    """Neutralise a line of a diff, except its tabs."""
    return "\t".join(neutral(part) for part in line.split("\t"))


async def finished(progress: ChangeProgress, change: Coroutine[Any, Any, Applied]) -> dict[str, Any]:
    """Await a change and print its outcome."""
    try:
        applied = await change
    except asyncio.CancelledError:
        print("cockpit: interrupted; the change was rolled back", file=sys.stderr)
        raise
    result = progress.result(applied.outcome, applied.notes)
    if not result["host"]:
        result["host"] = applied.host
    if waits := not_yet_active(applied.inactive):
        print(waits, file=sys.stderr)
    for note in applied.notes:
        print(f"note: {neutral(note)}", file=sys.stderr)
    return result


def print_json(rows: Any) -> None:
    tell(escaped(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()))
