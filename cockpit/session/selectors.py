"""Selectors on the command line: a recording, a run in it, or a time range of it.

`FILE`, `FILE#2`, `FILE@10s..60s`, `FILE@14:05..14:10`, `FILE@00:01:00..`. An existing file of that name has priority.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from cockpit.analysis.verdicts.sides import Side, side_of_segments
from cockpit.model.errors import UsageError
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.fold.load import cut
from cockpit.model.state import State
from cockpit.recording.library import find
from cockpit.recording.reader import Recording, last_state
from cockpit.session.replay import parse_jump

_SQLITE = b"SQLite format 3\0"
# Ticks are not cut, so a segment may extend beyond the end of a time range by this much (s).
_TICK = 1.0
# Time (s) after an instant by which all earlier events have arrived: the counts of access logs are up to 12 s late.
_LATE = 12.0
# Instants closer than this (s) are the same.
_EPSILON = 1e-6


class Selector(NamedTuple):
    """A recording, or a part of it: `run`, or `time_range` as written. None: all of it."""

    path: Path
    run: int | None = None
    time_range: tuple[str, str] | None = None


def parse_source(text: str) -> Selector:
    """Parse a selector. Raises UsageError for an invalid run or range; the file need not exist.

    The file may be the name of a recording in the library.
    """
    if not _is_file(text):
        path, sign, number = text.rpartition("#")
        if sign and number.isascii() and number.isdecimal() and len(number) < 10 and int(number):
            return Selector(find(path), run=int(number))
        path, sign, time_range = text.rpartition("@")
        start, dots, end = time_range.partition("..")
        if sign and dots and _is_file(str(find(path))):
            return Selector(find(path), time_range=(start, end))
    return Selector(find(text))


def is_recording(text: str) -> bool:
    """Return whether a text names a recording or a part of one: a database, or a file with the suffix of recordings."""
    path = parse_source(text).path
    if path.suffix == ".cockpit":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):
        return False


def side_of(recording: Recording, source: Selector, text: str) -> Side:
    """Return the selection as one side of a comparison, while the recording is open. Raises UsageError."""
    if source.time_range is not None:
        return _range_of(recording, source.time_range, text)
    state = last_state(recording)
    if source.run is None:
        return side_of_segments(state, state.segments, text)
    if source.run > state.runs:
        raise UsageError(f"{text}: no such run; runs of the recording: {_runs(state)}")
    return side_of_segments(state, [segment for segment in state.segments if segment.run == source.run], text)


def run_of(recording: Recording, source: Selector, text: str) -> Side:
    """Like `side_of`, but the last run if neither run nor range is named. Raises UsageError."""
    if source.run is not None or source.time_range is not None:
        return side_of(recording, source, text)
    state = last_state(recording)
    if not state.runs:
        raise UsageError(f"{text}: no run in this recording")
    return side_of_segments(state, [segment for segment in state.segments if segment.run == state.runs], text)


def runs_of(recording: Recording, source: Selector, text: str, last: int) -> list[Side]:
    """Return the last runs of a recording, or the named run or time range. Raises UsageError."""
    if source.run is not None or source.time_range is not None or last == 1:
        return [run_of(recording, source, text)]
    state = last_state(recording)
    if state.runs < last:
        raise UsageError(f"{text}: {last} runs requested; runs of the recording: {_runs(state)}")
    return [
        side_of_segments(state, [segment for segment in state.segments if segment.run == run], text)
        for run in range(state.runs - last + 1, state.runs + 1)
    ]


def _state_cut_at(recording: Recording, start: float, end: float) -> State:
    """Return the last state, with segments cut at both instants (session seconds). Frequent events outside are not
    folded."""
    anchor = recording.latest_checkpoint(math.nextafter(start, -math.inf))
    state, waiting, number = anchor.state, [start, end], anchor.number
    for known in recording.following(anchor.number, anchor.instant, end + _LATE):
        while waiting and known.event.t >= waiting[0]:
            state = cut(state, waiting.pop(0))
        state, number = fold(state, known.event), max(number, known.number)
    return fold_all(recording.infrequent(number), state)


def _range_of(recording: Recording, time_range: tuple[str, str], text: str) -> Side:
    wall = recording.started.wall
    begin, over = time_range
    start = parse_jump(begin, 0.0, wall) if begin else 0.0
    end = parse_jump(over, start, wall) if over else math.inf
    if not start < end:
        raise UsageError(f"{text}: empty time range; its end must be after its start")
    state = _state_cut_at(recording, start, end)
    # A cut at the end of a load level leaves an empty segment.
    counted = [segment for segment in state.segments if segment.last > segment.start]
    segments = [
        segment for segment in counted if start - _EPSILON <= segment.start < end and segment.last <= end + _TICK
    ]
    return side_of_segments(state, segments, text)


def _runs(state: State) -> str:
    return f"1 to {state.runs}" if state.runs > 1 else "1" if state.runs else "none"


def _is_file(text: str) -> bool:
    # pathlib raises for a name that cannot exist, os.path does not.
    return os.path.isfile(text)  # noqa: PTH113
