"""The history of changes on a host: which are applied, which are undone, and which one to undo next. Pure.

An undo is a change too; undoing an undo redoes its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused, UsageError
from cockpit.model.text import sanitize
from cockpit.tuning.applied import HistoryEntry, HistoryState

# Words for the parts that a rollback left, see HistoryEntry.
_LEFT = {
    "file": "a file was not restored",
    "value": "a value was not restored",
    "reload": "the reload with the original files failed",
}


def ordered(entries: Iterable[HistoryEntry]) -> list[HistoryEntry]:
    """Return the changes of one host, newest first; `undone_by` of an undone change is the name of the undo."""
    undone: dict[str, str] = {}
    history = []
    for past in sorted(entries, key=lambda past: (past.begun, past.facts.when), reverse=True):
        if past.state == HistoryState.APPLIED and past.change in undone:
            past = replace(past, state=HistoryState.UNDONE, undone_by=undone[past.change])
        elif past.state == HistoryState.APPLIED and past.facts.undoes:
            undone.setdefault(past.facts.undoes, past.name)
        history.append(past)
    return history


def unfinished(history: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Return the unfinished changes, interrupted ones first. A partial rollback ends with a newer change of a value."""
    interrupted = [past for past in history if past.state == HistoryState.INTERRUPTED]
    partial = [past for past in history if past.state == HistoryState.PARTIAL and not _newer(history, past)]
    return [*interrupted, *partial]


def urgency(past: HistoryEntry) -> int:
    """Return the rank of a change for an undo without a name: interrupted, applied, partially rolled back."""
    return {HistoryState.INTERRUPTED: 2, HistoryState.APPLIED: 1}.get(past.state, 0)


def next_to_undo(history: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the change that an undo without a name undoes (see `urgency`), the newest one that is not an undo; None at
    the end of the history."""
    applied = [past for past in history if past.state == HistoryState.APPLIED and not past.facts.undoes]
    return max([*applied, *unfinished(history)], key=urgency, default=None)


def find_change(histories: Iterable[tuple[str, HistoryEntry]], name: str) -> tuple[str, HistoryEntry]:
    """Return the host and the change with that name. Raises UsageError, ChangeRefused if it cannot be undone."""
    matches = [(host, past) for host, past in histories if name in (past.name, past.change.rpartition("/")[2])]
    if not matches:
        raise UsageError(f"unknown change {sanitize(name, 80)!r}; tune PROFILE history lists the names")
    if len(matches) > 1:
        full = ", ".join(past.change.rpartition("/")[2] for _, past in matches)
        raise UsageError(f"{name}: {len(matches)} changes have this name; use one of {full}")
    past = matches[0][1]
    if past.state == HistoryState.UNDONE:
        raise ChangeRefused(f"{name}: already undone by {past.undone_by}; undo {past.undone_by} to redo {name}")
    if past.state != HistoryState.APPLIED and not past.state.is_unfinished:
        raise ChangeRefused(f"{name}: nothing to undo, it is {past.state}")
    return matches[0]


def check_newer(history: Sequence[HistoryEntry], past: HistoryEntry) -> None:
    """Raise ChangeRefused if a newer applied change of the host touched a value of this one."""
    if newer := _newer(history, past):
        knobs = ", ".join(setting.knob for setting in newer.facts.settings)
        raise ChangeRefused(f"{past.name}: {newer.name} changed {knobs} since; undo {newer.name} first")


def _newer(history: Sequence[HistoryEntry], past: HistoryEntry) -> HistoryEntry | None:
    """Return a newer applied change of a value of this one. A newer change and its undo cancel each other."""
    newer = list(takewhile(lambda each: each.change != past.change, history))
    names = {each.change for each in newer}
    for each in newer:
        counts = each.state == HistoryState.APPLIED and each.facts.undoes not in names
        if counts and set(each.facts.places) & set(past.facts.places):
            return each
    return None


def state_words(past: HistoryEntry) -> str:
    """Return the state of an unfinished change and what it means for the host."""
    left = [_LEFT[part] for part in dict.fromkeys(past.left) if part in _LEFT] or ["its new values may be active"]
    return f"{past.state}: {', '.join(left)}"
