"""`cockpit import`: results of other load generators into a recording."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from cockpit.cli.live import report_recording
from cockpit.imports.formats import format_of
from cockpit.imports.session import events_of
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.events import AnyEvent
from cockpit.model.fold import fold
from cockpit.model.state import State
from cockpit.model.text import neutral
from cockpit.recording import library
from cockpit.recording.writer import RecordingWriter

# A longer line is none of a result.
_LINE = 1 << 20


def import_results(options: Namespace) -> int:
    file: Path = options.file
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as lines:
            events = _events(lines, options)
            first = next(events)
            named: Path | None = options.output
            writer = RecordingWriter(named) if named else library.new_recording(file.stem, time.time())
            _record(chain([first], events), writer)
    except ValueError as error:
        raise UsageError(f"{file}: {neutral(str(error), 300)}") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    report_recording(writer.path)
    return EXIT_GOOD


def _events(lines: Iterator[str], options: Namespace) -> Iterator[AnyEvent]:
    file: Path = options.file
    checked = _checked(lines)
    first = next(checked, "")
    form = format_of(first)
    requests = form.read(chain([first], checked))
    print(f"{file}: {form.tool}", file=sys.stderr)
    name, wall = neutral(file.stem, 80), file.stat().st_mtime
    yield from events_of(requests, form, name, wall, options.url or "", options.concurrency)


def _checked(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if len(line) > _LINE:
            raise ValueError(f"line {number} is longer than {_LINE} characters")
        yield line


def _record(events: Iterator[AnyEvent], writer: RecordingWriter) -> None:
    state = State()
    try:
        for event in events:
            writer.record([event])
            state = fold(state, event)
            writer.settle(state)
    finally:
        writer.close()
    if writer.trouble:
        raise UsageError(f"{writer.path}: {writer.trouble}")
